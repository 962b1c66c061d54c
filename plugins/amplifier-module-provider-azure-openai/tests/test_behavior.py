"""The module does what every vendor's provider does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from amplifier.testing.vendors import VendorBehaviorTests
from amplifier_kit.vendors import VendorProvider
from amplifier_module_provider_azure_openai import AzureOpenAIProvider
from amplifier_sdk.jsontypes import JSONValue

STREAMS: Final = Path(__file__).parent / "responses"


class TestAzure(VendorBehaviorTests):
    """The whole suite, on streams as Azure breaks them."""

    provider: ClassVar[type[VendorProvider]] = AzureOpenAIProvider
    config: ClassVar[Mapping[str, JSONValue]] = {
        "api_key": "0123456789abcdef",
        "azure_endpoint": "https://acme.openai.azure.com",
        "default_deployment": "our-gpt",
        "max_continuations": 0,
    }
    text: ClassVar[bytes] = (STREAMS / "good/text.sse").read_bytes()
    tools: ClassVar[bytes] = (STREAMS / "good/tool.sse").read_bytes()
    thinking: ClassVar[bytes | None] = (STREAMS / "good/thinking.sse").read_bytes()
    tool: ClassVar[str] = "work"
    bad: ClassVar[Path] = Path(__file__).parent / "streams"
    # beside those of the API, which provider-openai is shown
    least_bad: ClassVar[int] = 11
    becomes: ClassVar[Mapping[str, str]] = {
        "code_of_no_status": "StreamError",
        "cut_before_the_end": "StreamError",
        "failed_of_the_server": "ProviderUnavailableError",
        "filter_error": "ContentFilterError",
        "filtered_after_a_call": "content_filter",
        "filtered_in_the_middle": "content_filter",
        "gateway_page": "StreamError",
        "no_capacity": "ProviderUnavailableError",
        "no_deployment": "NotFoundError",
        "token_expired": "AuthenticationError",
        "too_many_requests": "RateLimitError",
    }
