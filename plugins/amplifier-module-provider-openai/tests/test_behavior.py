"""The module does what every vendor's provider does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from amplifier.testing.vendors import VendorBehaviorTests
from amplifier_kit.vendors import VendorProvider
from amplifier_module_provider_openai import OpenAIProvider
from amplifier_sdk.jsontypes import JSONValue

STREAMS: Final = Path(__file__).parent / "responses"


class TestOpenAI(VendorBehaviorTests):
    """The whole suite, on streams of the Responses API."""

    provider: ClassVar[type[VendorProvider]] = OpenAIProvider
    config: ClassVar[Mapping[str, JSONValue]] = {
        "api_key": "sk-proj-0123456789abcdef",
        "max_continuations": 0,
    }
    text: ClassVar[bytes] = (STREAMS / "good/text.sse").read_bytes()
    tools: ClassVar[bytes] = (STREAMS / "good/tool.sse").read_bytes()
    thinking: ClassVar[bytes | None] = (STREAMS / "good/thinking.sse").read_bytes()
    tool: ClassVar[str] = "work"
    bad: ClassVar[Path] = STREAMS / "bad"
    becomes: ClassVar[Mapping[str, str]] = json.loads(
        (STREAMS / "becomes.json").read_text()
    )
