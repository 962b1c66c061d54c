"""The module has every behaviour of its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, Final

import httpx2

from amplifier.testing.conformance import Case, ProviderBehaviorTests, ProviderSamples, Samples
from amplifier.testing.transport import HttpAnswer, ScriptedTransport, json_answer
from amplifier_module_provider_anthropic import AnthropicConfig, AnthropicProvider
from amplifier_sdk import provider
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.jsontypes import JSONObject, JSONValue

STREAMS: Final = Path(__file__).parent / "streams" / "good"
OFFERS: Final[JSONObject] = {"tools": [{"name": "get_weather", "parameters": {"type": "object"}}]}


def _plays(name: str) -> HttpAnswer:
    return HttpAnswer(parts=((STREAMS / f"{name}.sse").read_bytes(),))


def _answer(request: httpx2.Request) -> HttpAnswer:
    """Answer as the request's model says, which is the name of a stream."""
    if request.url.path == "/v1/models":
        return json_answer({"data": [{"type": "model", "id": "text"}], "has_more": False})
    model = _model(request)
    if model == "refuses":
        return HttpAnswer(status=401)
    if model == "waits":
        return HttpAnswer(parts=(600.0,))
    return _plays(model)


def _model(request: httpx2.Request) -> str:
    return request.content.decode("utf-8", "replace").partition('"model": "')[2].partition('"')[0]


@provider
class Played(AnthropicProvider):
    """The module with a script instead of a network."""

    def __init__(self, config: AnthropicConfig, coordinator: Coordinator) -> None:
        super().__init__(config, coordinator)
        answer: Callable[[httpx2.Request], HttpAnswer] = _answer
        self.transport = ScriptedTransport(answer)


def _case(model: str, **more: JSONValue) -> Case:
    return Case(request={"model": model, **more})


class TestAnthropicProvider(ProviderBehaviorTests):
    """The whole suite."""

    module: ClassVar[object] = Played
    config: ClassVar[Mapping[str, JSONValue]] = {"api_key": "sk-test", "default_model": "text", "max_retries": 0}
    samples: ClassVar[Samples | None] = ProviderSamples(
        calls=_case("tool", **OFFERS),
        thinks=_case("thinking"),
        garbles=_case("garbled-arguments", **OFFERS),
        is_cut=_case("cut-call", **OFFERS),
        fails=_case("refuses"),
        waits=_case("waits"),
        bad_config={"api_key": "sk-test", "thinking_budget_tokens": 7},
    )
