"""The module has every behaviour of its type."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from amplifier.testing.conformance import conformance
from amplifier.testing.vendors import answer_by_model, cases_by_model, without_network
from amplifier_module_provider_chat_completions import ChatCompletionsProvider
from amplifier_sdk.jsontypes import JSONObject

STREAMS: Final = Path(__file__).parent / "streams"
PLAYED: Final = {
    "talks": STREAMS / "good/text.sse",
    "calls": STREAMS / "good/tools.sse",
    "thinks": STREAMS / "good/thinking.sse",
    "garbles": STREAMS / "bad/arguments-that-are-no-json.sse",
    "is-cut": STREAMS / "bad/length-after-a-whole-call.sse",
}
MODELS: Final[JSONObject] = {
    "data": [{"id": "talks", "context_length": 8192}, {"id": "talks"}, {"id": 7}]
}


TestChatCompletionsProvider = conformance(
    "provider",
    without_network(ChatCompletionsProvider, answer_by_model(PLAYED, MODELS)),
    config={"api_key": "sk-test", "default_model": "talks", "max_retries": 0},
    samples=cases_by_model(
        tool="add", bad_config={"api_key": "sk-test", "send_reasoning": "maybe"}
    ),
)
