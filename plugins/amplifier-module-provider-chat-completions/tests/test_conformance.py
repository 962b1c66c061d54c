"""The module has every behaviour of its type."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, Final

import httpx2

from amplifier.testing.conformance import Case, ProviderBehaviorTests, ProviderSamples, Samples
from amplifier.testing.transport import HttpAnswer, ScriptedTransport, json_answer
from amplifier_module_provider_chat_completions import ChatCompletionsConfig, ChatCompletionsProvider
from amplifier_sdk import provider
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.jsontypes import JSONObject, JSONValue

STREAMS: Final = Path(__file__).parent / "streams"
OFFERS: Final[JSONObject] = {"tools": [{"name": "add", "parameters": {"type": "object"}}]}
PLAYED: Final[Mapping[str, str]] = {
    "calls": "good/tools",
    "garbles": "bad/arguments-that-are-no-json",
    "is-cut": "bad/length-after-a-whole-call",
    "talks": "good/text",
    "thinks": "good/thinking",
}


def _answer(request: httpx2.Request) -> HttpAnswer:
    """Answer as the request's model says."""
    if request.url.path.endswith("/models"):
        return json_answer({"data": [{"id": "talks", "context_length": 8192}, {"id": "talks"}, {"id": 7}]})
    model = json.loads(request.content)["model"]
    if model == "refuses":
        return HttpAnswer(status=401)
    if model == "waits":
        return HttpAnswer(parts=(600.0,))
    return HttpAnswer(parts=((STREAMS / f"{PLAYED[model]}.sse").read_bytes(),))


@provider
class Played(ChatCompletionsProvider):
    """The module with a script instead of a network."""

    def __init__(self, config: ChatCompletionsConfig, coordinator: Coordinator) -> None:
        super().__init__(config, coordinator)
        answer: Callable[[httpx2.Request], HttpAnswer] = _answer
        self.transport = ScriptedTransport(answer)


def _case(model: str, **more: JSONValue) -> Case:
    return Case(request={"model": model, **more})


class TestChatCompletionsProvider(ProviderBehaviorTests):
    """The whole suite."""

    module: ClassVar[object] = Played
    config: ClassVar[Mapping[str, JSONValue]] = {"api_key": "sk-test", "default_model": "talks", "max_retries": 0}
    samples: ClassVar[Samples | None] = ProviderSamples(
        calls=_case("calls", **OFFERS),
        thinks=_case("thinks"),
        garbles=_case("garbles", **OFFERS),
        is_cut=_case("is-cut", **OFFERS),
        fails=_case("refuses"),
        waits=_case("waits"),
        bad_config={"api_key": "sk-test", "developer_role": "narrator"},
    )
