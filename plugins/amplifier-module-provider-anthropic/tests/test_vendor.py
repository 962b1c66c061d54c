"""The provider does what every vendor's provider does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from amplifier.testing.vendors import VendorBehaviorTests
from amplifier_kit.vendors import VendorProvider
from amplifier_module_provider_anthropic import AnthropicProvider
from amplifier_sdk.jsontypes import JSONValue

STREAMS: Final = Path(__file__).parent / "streams"


class TestAnthropicApi(VendorBehaviorTests):
    """The whole suite; each bad stream says in its first line what it becomes."""

    provider: ClassVar[type[VendorProvider]] = AnthropicProvider
    config: ClassVar[Mapping[str, JSONValue]] = {
        "api_key": "sk-ant-test-0123456789abcdef"
    }
    text: ClassVar[bytes] = (STREAMS / "good" / "text.sse").read_bytes()
    tools: ClassVar[bytes] = (STREAMS / "good" / "tool.sse").read_bytes()
    thinking: ClassVar[bytes | None] = (STREAMS / "good" / "thinking.sse").read_bytes()
    tool: ClassVar[str] = "get_weather"
    bad: ClassVar[Path] = STREAMS / "bad"
    becomes: ClassVar[Mapping[str, str]] = {
        path.stem: path.read_text(encoding="utf-8")
        .partition("\n")[0]
        .removeprefix(": ")
        for path in sorted(bad.glob("*.sse"))
    }
