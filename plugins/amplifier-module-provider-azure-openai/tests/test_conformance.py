"""The module has every behaviour of its type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

import httpx2

from amplifier.testing.conformance import Case, ProviderBehaviorTests, ProviderSamples, Samples
from amplifier.testing.transport import HttpAnswer, ScriptedTransport
from amplifier_module_provider_azure_openai import AzureConfig, AzureOpenAIProvider
from amplifier_sdk import provider
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.jsontypes import JSONObject, JSONValue

STREAMS: Final = Path(__file__).parent / "responses"
TOOLS: Final[JSONObject] = {"tools": [{"name": "work", "parameters": {"type": "object"}}]}


def _answer(request: httpx2.Request) -> HttpAnswer:
    """Answer with the stream that the question names."""
    body = json.loads(request.content)
    questions = [item for item in body["input"] if item.get("role") == "user"]
    asked = str(questions[-1]["content"][0].get("text", "")).removesuffix(".") if questions else ""
    if asked == "wait":
        return HttpAnswer(parts=(600.0,))
    if asked == "fail":
        return HttpAnswer(status=400, parts=(b'{"error": {"message": "No.", "code": "content_filter"}}',))
    file = STREAMS / f"{asked}.sse"
    return HttpAnswer(parts=((file if file.exists() else STREAMS / "good/text.sse").read_bytes(),))


@provider
class WithoutNetwork(AzureOpenAIProvider):
    """The module with a script in place of the network."""

    def __init__(self, config: AzureConfig, coordinator: Coordinator) -> None:
        super().__init__(config, coordinator)
        self.transport = ScriptedTransport(_answer)


class TestAzureOpenAIProvider(ProviderBehaviorTests):
    """The whole suite."""

    module: ClassVar[object] = WithoutNetwork
    config: ClassVar[Mapping[str, JSONValue]] = {
        "api_key": "0123456789abcdef",
        "azure_endpoint": "https://acme.openai.azure.com",
        "default_deployment": "our-gpt",
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
        bad_config={"api_version": "newest"},
    )
