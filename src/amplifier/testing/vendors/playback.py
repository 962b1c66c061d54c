"""The provider under test, with a script instead of a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, Final, ParamSpec, TypeVar

import pytest

from amplifier.testing.coordinators import TestCoordinator
from amplifier.testing.transport import (
    HttpAnswer,
    HttpPart,
    HttpStep,
    ScriptedTransport,
)
from amplifier_kit.vendors import VendorProvider
from amplifier_kit.vendors.costs import price_table
from amplifier_sdk.chat import ChatRequest, ToolSpec
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message
from amplifier_sdk.modules import definition_of

__all__ = ["PlayedTests", "in_virtual_time"]

P = ParamSpec("P")
R = TypeVar("R")

_CONTENT_TYPES: Final[Mapping[str, str]] = {
    "sse": "text/event-stream",
    "lines": "application/x-ndjson",
}


def in_virtual_time(test: Callable[P, R]) -> Callable[P, R]:
    """Let a test's sleeps and deadlines pass at once, on each backend."""
    return pytest.mark.anyio(pytest.mark.usefixtures("virtual_clock")(test))


class PlayedTests:
    """What the suite's tests share."""

    provider: ClassVar[type[VendorProvider]]
    config: ClassVar[Mapping[str, JSONValue]] = {}
    text: ClassVar[bytes]
    tools: ClassVar[bytes]
    tool: ClassVar[str]
    thinking: ClassVar[bytes | None] = None
    bad: ClassVar[Path]
    becomes: ClassVar[Mapping[str, str]]

    def play(
        self,
        *steps: HttpStep,
        coordinator: Coordinator | None = None,
        **options: JSONValue,
    ) -> tuple[VendorProvider, ScriptedTransport]:
        """Make the provider with a script, and the script. It tries nothing again unless the options say so."""
        definition = definition_of(self.provider)
        assert definition is not None, (
            f"{self.provider.__name__} is not decorated with @provider"
        )
        # in a request it would be loaded in a thread, while time passes as it does outside
        price_table()
        # without chance: the tests compare waits to the second
        config = {**self.config, "max_retries": 0, "retry_jitter": False, **options}
        provider = definition.build(coordinator or TestCoordinator(), config)
        assert isinstance(provider, VendorProvider)
        # all above the socket is the product's own
        provider.transport = script = ScriptedTransport(*steps)
        return provider, script

    def answer(self, *parts: HttpPart) -> HttpAnswer:
        """Make an answer that streams."""
        return HttpAnswer(
            headers={"content-type": _CONTENT_TYPES[self.provider.framing]}, parts=parts
        )

    def request(self, text: str = "Hello.") -> ChatRequest:
        """Make a request that offers the tool."""
        spec = ToolSpec(
            name=self.tool, description="A tool.", parameters={"type": "object"}
        )
        return ChatRequest(messages=[Message(role="user", content=text)], tools=[spec])

    def good_streams(self) -> dict[str, bytes]:
        """Return the whole streams, by name."""
        streams = {"text": self.text, "tools": self.tools, "thinking": self.thinking}
        return {name: data for name, data in streams.items() if data is not None}
