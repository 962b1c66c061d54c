"""Conversations of known size, and contexts that were given them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from amplifier import ModuleCoordinator
from amplifier.testing import EventRecorder
from amplifier_kit.compaction import CompactingContext, CompactionOptions
from amplifier_sdk import BaseProvider, JSONValue, MessageDict, ModelInfo, ProviderInfo
from amplifier_sdk.configuration import read_config

__all__ = [
    "TURN_TOKENS",
    "Large",
    "Memory",
    "Window",
    "call_block",
    "made",
    "step",
    "turn",
    "turns",
]

TURN_TOKENS: Final = 2 * (4 + 100)
"""Two messages of a hundred words, each with its frame."""


class Window(BaseProvider):
    """A provider that says how much it takes."""

    name = "window"

    def __init__(self, **defaults: JSONValue) -> None:
        self.defaults: Mapping[str, JSONValue] = defaults

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id="window", display_name="Window", defaults=self.defaults)

    deltas = None  # type: ignore[assignment]  # never asked


class Large(Window):
    """A provider that knows more of its model than its defaults say."""

    model: object = ModelInfo(
        id="m", display_name="M", context_window=20_000, max_output_tokens=2_000
    )

    def get_model_info(self) -> object:
        """Say what the model takes."""
        if isinstance(self.model, Exception):
            raise self.model
        return self.model


def turn(number: int) -> list[MessageDict]:
    """Make a prompt and an answer of a hundred words each."""
    text = f"{'word ' * 99}{number}"
    return [{"role": "user", "content": text}, {"role": "assistant", "content": text}]


def turns(count: int) -> list[MessageDict]:
    """Make turns, the oldest numbered 0."""
    return [message for number in range(count) for message in turn(number)]


def call_block(number: int) -> dict[str, JSONValue]:
    """Make the block of a call."""
    return {"type": "tool_call", "id": f"call_{number}", "name": "look", "input": {}}


def step(number: int, text: JSONValue = "word " * 400) -> list[MessageDict]:
    """Make an answer with a call, and its result."""
    return [
        {"role": "assistant", "content": [call_block(number)]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": text},
    ]


class Memory:
    """A context with what it sends; without notices and margin unless they are set."""

    def __init__(
        self, messages: Sequence[MessageDict] = (), **settings: JSONValue
    ) -> None:
        self.coordinator = ModuleCoordinator()
        self.recorder = EventRecorder.of(self.coordinator.hooks)
        plain: dict[str, JSONValue] = {
            "compaction_notice_enabled": False,
            "token_margin": 0,
        }
        options = read_config(
            CompactionOptions, {**plain, **settings}, subject="context"
        )
        self.context = CompactingContext(options, self.coordinator, messages)

    async def view(
        self, budget: int | None = None, provider: BaseProvider | None = None
    ) -> list[MessageDict]:
        """Return what a model sees."""
        return list(await self.context.get_messages_for_request(budget, provider))

    def figures(self) -> dict[str, object]:
        """Return the figures of the last compaction."""
        return self.recorder.data("context:compaction")[-1]

    @property
    def warnings(self) -> list[str]:
        """What a person was told."""
        return [
            str(data["message"]) for data in self.recorder.data("user:notification")
        ]


def made(messages: Sequence[MessageDict] = (), **settings: JSONValue) -> Memory:
    """Make a context that was given messages."""
    return Memory(messages, **settings)
