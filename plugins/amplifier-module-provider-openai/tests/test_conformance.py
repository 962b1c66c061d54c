"""The module has every behaviour of its type."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from amplifier.testing.conformance import conformance
from amplifier.testing.vendors import answer_by_model, cases_by_model, without_network
from amplifier_module_provider_openai import OpenAIProvider
from amplifier_sdk.jsontypes import JSONObject

STREAMS: Final = Path(__file__).parent / "responses"
PLAYED: Final = {
    "talks": STREAMS / "good/text.sse",
    "gpt-6.1-sol": STREAMS / "good/text.sse",
    "calls": STREAMS / "good/tool.sse",
    "thinks": STREAMS / "good/thinking.sse",
    "garbles": STREAMS / "bad/arguments_cut.sse",
    "is-cut": STREAMS / "bad/incomplete_call.sse",
}
MODELS: Final[JSONObject] = {
    "data": [{"id": "gpt-5-mini"}, {"id": "gpt-6.1-sol"}, {"id": "gpt-5-mini"}]
}


TestOpenAIProvider = conformance(
    "provider",
    without_network(OpenAIProvider, answer_by_model(PLAYED, MODELS)),
    config={
        "api_key": "sk-proj-0123456789abcdef",
        "max_continuations": 0,
        "max_retries": 0,
    },
    samples=cases_by_model(tool="work", bad_config={"reasoning_effort": "huge"}),
)
