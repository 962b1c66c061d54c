"""What becomes of streams, refusals, waits and keys: the suite of all vendors' providers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from amplifier.testing.vendors import VendorBehaviorTests
from amplifier_kit.vendors import VendorProvider
from amplifier_module_provider_chat_completions import ChatCompletionsProvider
from amplifier_sdk.jsontypes import JSONValue

STREAMS: Final = Path(__file__).parent / "streams"
BECOMES: Final[Mapping[str, str]] = {
    "a-list": "StreamError",
    "a-null": "StreamError",
    "a-page": "StreamError",
    "another-choice": "StreamError",
    "arguments-that-are-a-list": "problem",
    "arguments-that-are-cut": "problem",
    "arguments-that-are-no-json": "problem",
    "arguments-twice": "problem",
    "broken-characters": "text",
    "calls-are-an-object": "StreamError",
    "choices-are-an-object": "StreamError",
    "content-is-a-number": "StreamError",
    "cut-after-a-call": "StreamError",
    "cut-in-the-arguments": "StreamError",
    "cut-in-the-text": "StreamError",
    "cut-inside-the-last-event": "StreamError",
    "delta-is-a-text": "StreamError",
    "done-after-a-call-without-a-reason": "StreamError",
    "done-without-an-answer": "StreamError",
    "empty": "StreamError",
    "endless-brackets": "StreamError",
    "error-after-a-call": "RateLimitError",
    "error-as-an-object": "InvalidRequestError",
    "error-at-once": "ProviderUnavailableError",
    "error-in-the-text": "ProviderUnavailableError",
    "error-is-a-text": "ProviderUnavailableError",
    "error-of-a-long-request": "ContextLengthError",
    "error-with-a-finish": "ProviderUnavailableError",
    "filtered": "content_filter",
    "filtered-after-a-call": "content_filter",
    "half-a-json": "StreamError",
    "length-after-a-whole-call": "length",
    "length-in-the-arguments": "length",
    "length-in-the-text": "length",
    "lines-of-json": "StreamError",
    "not-a-number": "StreamError",
    "only-a-role": "StreamError",
    "reason-is-a-number": "StreamError",
    "reason-tool-calls-without-a-call": "StreamError",
    "unknown-reason-with-a-call": "error",
    "unknown-things-between": "text",
    "usage-alone": "StreamError",
    "words-after-the-end": "text",
    "words-that-are-no-json": "StreamError",
}


class TestChatCompletions(VendorBehaviorTests):
    """The provider keeps what all vendors' providers promise."""

    provider: ClassVar[type[VendorProvider]] = ChatCompletionsProvider
    config: ClassVar[Mapping[str, JSONValue]] = {
        "api_key": "sk-proj-0123456789",
        "default_model": "gpt-9-mini",
    }
    text: ClassVar[bytes] = (STREAMS / "good" / "text.sse").read_bytes()
    tools: ClassVar[bytes] = (STREAMS / "good" / "tools.sse").read_bytes()
    thinking: ClassVar[bytes | None] = (STREAMS / "good" / "thinking.sse").read_bytes()
    tool: ClassVar[str] = "add"
    bad: ClassVar[Path] = STREAMS / "bad"
    becomes: ClassVar[Mapping[str, str]] = BECOMES
