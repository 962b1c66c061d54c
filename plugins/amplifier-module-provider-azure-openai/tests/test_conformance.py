"""The module has every behaviour of its type."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from amplifier.testing.conformance import conformance
from amplifier.testing.vendors import answer_by_model, cases_by_model, without_network
from amplifier_module_provider_azure_openai import AzureOpenAIProvider

STREAMS: Final = Path(__file__).parent / "responses"
PLAYED: Final = {
    "talks": STREAMS / "good/text.sse",
    "calls": STREAMS / "good/tool.sse",
    "thinks": STREAMS / "good/thinking.sse",
    "garbles": STREAMS / "bad/arguments_cut.sse",
    "is-cut": STREAMS / "bad/incomplete_call.sse",
}


TestAzureOpenAIProvider = conformance(
    "provider",
    without_network(AzureOpenAIProvider, answer_by_model(PLAYED, {"data": []})),
    config={
        "api_key": "0123456789abcdef",
        "azure_endpoint": "https://acme.openai.azure.com",
        "default_model": "talks",
        "max_continuations": 0,
        "max_retries": 0,
    },
    samples=cases_by_model(tool="work", bad_config={"api_version": "newest"}),
)
