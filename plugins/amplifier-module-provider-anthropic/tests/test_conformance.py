"""The module has every behaviour of its type."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from amplifier.testing.conformance import conformance
from amplifier.testing.vendors import answer_by_model, cases_by_model, without_network
from amplifier_module_provider_anthropic import AnthropicProvider
from amplifier_sdk.jsontypes import JSONObject

STREAMS: Final = Path(__file__).parent / "streams" / "good"
PLAYED: Final = {
    "talks": STREAMS / "text.sse",
    "calls": STREAMS / "tool.sse",
    "thinks": STREAMS / "thinking.sse",
    "garbles": STREAMS / "garbled-arguments.sse",
    "is-cut": STREAMS / "cut-call.sse",
}
MODELS: Final[JSONObject] = {
    "data": [{"type": "model", "id": "talks"}],
    "has_more": False,
}


TestAnthropicProvider = conformance(
    "provider",
    without_network(AnthropicProvider, answer_by_model(PLAYED, MODELS)),
    config={"api_key": "sk-test", "default_model": "talks", "max_retries": 0},
    samples=cases_by_model(
        tool="get_weather",
        bad_config={"api_key": "sk-test", "thinking_budget_tokens": 7},
    ),
)
