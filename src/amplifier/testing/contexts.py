"""A context manager that is a list."""

from __future__ import annotations

from collections.abc import Sequence

from amplifier_sdk.contracts import Provider
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import MessageDict

__all__ = ["MockContextManager"]


class MockContextManager:
    """Remembers messages in `messages`; every request gets all of them.

    Args:
        messages: the history to begin with; the list is copied.
    """

    def __init__(self, messages: Sequence[MessageDict] = ()) -> None:
        self.messages: list[MessageDict] = list(messages)

    async def add_message(self, message: MessageDict, /) -> None:
        """Append a message."""
        self.messages.append(message)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        """Return all messages, whatever the budget."""
        # a copy, as stores return one: a loop may change what it was given
        return list(self.messages)

    async def get_messages(self) -> list[MessageDict]:
        """Return all messages."""
        return list(self.messages)

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        """Replace the messages."""
        self.messages[:] = messages

    async def clear(self) -> None:
        """Forget all messages."""
        self.messages.clear()

    @property
    def roles(self) -> list[JSONValue]:
        """The roles of the messages, in order."""
        return [message["role"] for message in self.messages]

    @property
    def results(self) -> dict[JSONValue, JSONValue]:
        """The contents of the tool results, by the ids of their calls."""
        return {
            message["tool_call_id"]: message["content"]
            for message in self.messages
            if message["role"] == "tool"
        }
