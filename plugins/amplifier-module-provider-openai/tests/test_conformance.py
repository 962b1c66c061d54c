"""The module has every behaviour of its type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

import httpx2

from amplifier.testing.conformance import Case, ProviderBehaviorTests, ProviderSamples, Samples
from amplifier.testing.transport import HttpAnswer, ScriptedTransport, json_answer
from amplifier_module_provider_openai import OpenAIConfig, OpenAIProvider
from amplifier_sdk import provider
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.jsontypes import JSONObject, JSONValue

STREAMS: Final = Path(__file__).parent / "responses"
TOOLS: Final[JSONObject] = {"tools": [{"name": "work", "parameters": {"type": "object"}}]}


def _answer(request: httpx2.Request) -> HttpAnswer:
    """List models, or answer with the stream that the question names."""
    if request.method == "GET":
        return json_answer({"data": [{"id": "gpt-5-mini"}, {"id": "gpt-6.1-sol"}, {"id": "gpt-5-mini"}]})
    body = json.loads(request.content)
    questions = [item for item in body["input"] if item.get("role") == "user"]
    asked = str(questions[-1]["content"][0].get("text", "")).removesuffix(".") if questions else ""
    if asked == "wait":
        return HttpAnswer(parts=(600.0,))
    if asked == "fail":
        return HttpAnswer(status=400, parts=(b'{"error": {"message": "No.", "code": "invalid_prompt"}}',))
    file = STREAMS / f"{asked}.sse"
    return HttpAnswer(parts=((file if file.exists() else STREAMS / "good/text.sse").read_bytes(),))


@provider
class WithoutNetwork(OpenAIProvider):
    """The module with a script in place of the network."""

    def __init__(self, config: OpenAIConfig, coordinator: Coordinator) -> None:
        super().__init__(config, coordinator)
        self.transport = ScriptedTransport(_answer)


class TestOpenAIProvider(ProviderBehaviorTests):
    """The whole suite."""

    module: ClassVar[object] = WithoutNetwork
    config: ClassVar[Mapping[str, JSONValue]] = {
        "api_key": "sk-proj-0123456789abcdef",
        "max_continuations": 0,
        "max_retries": 0,
    }
    samples: ClassVar[Samples | None] = ProviderSamples(
        talks=Case(prompt="good/text."),
        calls=Case(prompt="good/tool.", request=TOOLS),
        thinks=Case(prompt="good/thinking."),
        garbles=Case(prompt="bad/arguments_cut.", request=TOOLS),
        is_cut=Case(prompt="bad/incomplete_call.", request=TOOLS),
        fails=Case(prompt="fail."),
        waits=Case(prompt="wait."),
        bad_config={"reasoning_effort": "huge"},
    )
