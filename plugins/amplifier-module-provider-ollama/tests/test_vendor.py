"""The module does what every vendor's provider does, with streams written from Ollama's documentation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from amplifier.testing.vendors import VendorBehaviorTests
from amplifier_kit.vendors import VendorProvider
from amplifier_module_provider_ollama import OllamaProvider
from amplifier_sdk.jsontypes import JSONValue

STREAMS: Final = Path(__file__).with_name("streams")


class TestOllamaAsAVendor(VendorBehaviorTests):
    provider: ClassVar[type[VendorProvider]] = OllamaProvider
    config: ClassVar[Mapping[str, JSONValue]] = {"api_key": "key-of-a-cloud-0123456789"}
    text: ClassVar[bytes] = (STREAMS / "good" / "text.ndjson").read_bytes()
    tools: ClassVar[bytes] = (STREAMS / "good" / "tools.ndjson").read_bytes()
    thinking: ClassVar[bytes | None] = (
        STREAMS / "good" / "thinking.ndjson"
    ).read_bytes()
    tool: ClassVar[str] = "look_up"
    bad: ClassVar[Path] = STREAMS / "bad"
    becomes: ClassVar[Mapping[str, str]] = {
        "a-list": "StreamError",
        "a-null": "StreamError",
        "blank-lines": "StreamError",
        "byte-order-mark": "StreamError",
        "call-is-a-text": "StreamError",
        "call-without-function": "StreamError",
        "call-without-name": "StreamError",
        "calls-are-an-object": "StreamError",
        "content-is-a-number": "StreamError",
        "cut-after-a-call": "StreamError",
        "cut-after-a-line": "StreamError",
        "cut-inside-a-line": "StreamError",
        "cut-inside-the-last-line": "StreamError",
        "cut-while-thinking": "StreamError",
        "done-is-a-number": "StreamError",
        "done-is-a-text": "StreamError",
        "done-is-false": "StreamError",
        "empty": "StreamError",
        "endless-brackets": "StreamError",
        "error-after-a-call": "ProviderUnavailableError",
        "error-after-text": "ProviderUnavailableError",
        "error-at-once": "ProviderUnavailableError",
        "error-in-the-last-line": "ProviderUnavailableError",
        "error-is-an-object": "ProviderUnavailableError",
        "error-is-empty": "ProviderUnavailableError",
        "error-of-a-long-request": "ContextLengthError",
        "html-page": "StreamError",
        "length": "length",
        "length-with-a-call": "length",
        "load": "error",
        "message-is-a-text": "StreamError",
        "not-a-number": "StreamError",
        "reason-is-a-number": "error",
        "server-sent-events": "StreamError",
        "thinking-is-a-list": "StreamError",
        "two-objects-on-a-line": "StreamError",
        "unknown-reason": "error",
        "unknown-reason-with-a-call": "error",
        "unload": "error",
        "words-between": "StreamError",
    }
