"""Contexts on either side of the boundary: the original's for the session, the session's for original modules."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, cast

from amplifier.compat.plain import plain_copy
from amplifier.compat.providers import AdaptedProvider, ShownProvider
from amplifier_sdk.contracts import ContextManager, Provider
from amplifier_sdk.messages import MessageDict

__all__ = ["AdaptedContext", "OriginalContext", "ShownContext"]


class OriginalContext(Protocol):
    """What a context of the original has."""

    def add_message(self, message: dict[str, object], /) -> Awaitable[object]:
        """Append a message."""

    def get_messages(self) -> Awaitable[Sequence[dict[str, object]]]:
        """Return the whole history."""

    def set_messages(self, messages: list[dict[str, object]], /) -> Awaitable[object]:
        """Replace the history."""

    def clear(self) -> Awaitable[object]:
        """Forget everything."""


class AdaptedContext:
    """A context of the original as the session calls it."""

    def __init__(self, original: OriginalContext) -> None:
        self.original: OriginalContext = original
        view = getattr(original, "get_messages_for_request", None)
        self._view = view
        self._takes = frozenset() if view is None else _taken_by(view)

    async def add_message(self, message: MessageDict, /) -> None:
        """Append a message."""
        await self.original.add_message(_own(message))

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        """Return the view that fits the model's window."""
        if self._view is None:
            return await self.get_messages()
        given: dict[str, object] = {"token_budget": token_budget}
        if isinstance(provider, AdaptedProvider):
            given["provider"] = provider.original
        elif provider is not None:
            given["provider"] = ShownProvider(provider)
        taken = {key: value for key, value in given.items() if key in self._takes}
        return _stored(await self._view(**taken))

    async def get_messages(self) -> list[MessageDict]:
        """Return the whole history."""
        return _stored(await self.original.get_messages())

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        """Replace the history."""
        await self.original.set_messages([_own(message) for message in messages])

    async def clear(self) -> None:
        """Forget everything."""
        await self.original.clear()

    def __getattr__(self, name: str) -> object:
        return getattr(self.original, name)


class ShownContext:
    """A context of the session as modules of the original call it: what they get they may change for themselves."""

    def __init__(self, context: ContextManager) -> None:
        self.native: ContextManager = context

    async def add_message(self, message: object) -> None:
        """Append a message."""
        await self.native.add_message(cast("MessageDict", plain_copy(message)))

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: object = None
    ) -> list[dict[str, object]]:
        """Return the view that fits the model's window."""
        asked = provider.native if isinstance(provider, ShownProvider) else provider
        view = self.native.get_messages_for_request(
            token_budget=token_budget, provider=cast("Provider | None", asked)
        )
        return [_own(message) for message in await view]

    async def get_messages(self) -> list[dict[str, object]]:
        """Return the whole history."""
        return [_own(message) for message in await self.native.get_messages()]

    async def set_messages(self, messages: Sequence[object]) -> None:
        """Replace the history."""
        written = [cast("MessageDict", plain_copy(message)) for message in messages]
        await self.native.set_messages(written)

    async def clear(self) -> None:
        """Forget everything."""
        await self.native.clear()

    def __getattr__(self, name: str) -> object:
        return getattr(self.native, name)


def _taken_by(view: Callable[..., object]) -> frozenset[str]:  # type: ignore[explicit-any]  # any signature
    """Return which of the view's two arguments a context takes: older ones take no budget, and some no provider."""
    parameters = inspect.signature(view).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return frozenset({"token_budget", "provider"})
    return frozenset(each.name for each in parameters)


def _own(message: Mapping[str, object]) -> dict[str, object]:
    return cast("dict[str, object]", plain_copy(message))


def _stored(messages: Sequence[object]) -> list[MessageDict]:
    return [
        cast("MessageDict", message if type(message) is dict else plain_copy(message))
        for message in messages
    ]
