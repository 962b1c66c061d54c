"""Handlers of events, marked where they are written.

```python
@on(TOOL_PRE, priority=10)
async def guard(event: str, data: ToolPre) -> HookResult: ...
```

On a method of a `@hook` class the handler is registered with the class's instance; a marked function is a
hook module of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final, Protocol, TypeAlias, TypeVar, overload

import attrs

from amplifier_sdk._callables import attributes_of
from amplifier_sdk.bounds import seconds
from amplifier_sdk.contracts import Hooks, Unregister
from amplifier_sdk.events import Event
from amplifier_sdk.results import HookResult
from amplifier_sdk.values import Value

__all__ = ["HandlerMark", "Subscription", "on", "register_handlers", "subscriptions_of"]

A = TypeVar("A", bound=Awaitable[HookResult | None] | HookResult | None)
P = TypeVar("P", bound=Mapping[str, object])
S = TypeVar("S")
T = TypeVar("T")

_Handler: TypeAlias = Callable[
    [str, dict[str, object]], Awaitable[HookResult | None] | HookResult | None
]
_SUBSCRIPTIONS: Final = "__amplifier_subscriptions__"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Subscription(Value):
    """One event that a handler hears, and how."""

    event: str
    priority: int = 0
    decides: bool | None = None
    timeout: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(seconds)
    )


class HandlerMark(Protocol[P]):
    """What `on` returns: accepts a handler, or a method, of exactly this payload."""

    @overload
    def __call__(self, handler: Callable[[str, P], A], /) -> Callable[[str, P], A]: ...
    @overload
    def __call__(
        self, handler: Callable[[S, str, P], A], /
    ) -> Callable[[S, str, P], A]:
        """Mark the handler and return it unchanged."""


@overload
def on(  # type: ignore[overload-overlap]  # an Event is a str: the exact overload stands first
    event: Event[P],
    *,
    priority: int = 0,
    decides: bool | None = None,
    timeout: float | None = None,
) -> HandlerMark[P]: ...
@overload
def on(
    event: str,
    *,
    priority: int = 0,
    decides: bool | None = None,
    timeout: float | None = None,
) -> HandlerMark[dict[str, object]]: ...
def on(
    event: str,
    *,
    priority: int = 0,
    decides: bool | None = None,
    timeout: float | None = None,
) -> object:
    """Mark a handler of one event; several marks make it hear several.

    The arguments are those of `Hooks.register`.
    """
    return _On(
        Subscription(event=event, priority=priority, decides=decides, timeout=timeout)
    )


@attrs.frozen(eq=False, repr=False)
class _On(Value):
    subscription: Subscription

    def __call__(self, handler: T) -> T:
        # beside those that are there: a handler that is marked twice hears two events
        setattr(
            handler, _SUBSCRIPTIONS, (*subscriptions_of(handler), self.subscription)
        )
        return handler


def subscriptions_of(handler: object) -> tuple[Subscription, ...]:
    """Return the events that `on` marked a handler for."""
    marks = getattr(handler, _SUBSCRIPTIONS, ())
    if isinstance(marks, tuple):
        return marks
    return ()


def register_handlers(hooks: Hooks, instance: object) -> Iterator[Unregister]:
    """Register a marked function, or an instance's marked methods, in the order its class defines them."""
    for handler in _marked(instance):
        for subscription in subscriptions_of(handler):
            yield hooks.register(
                subscription.event,
                handler,
                subscription.priority,
                getattr(handler, "__qualname__", None),
                decides=subscription.decides,
                timeout=subscription.timeout,
            )


def _marked(instance: object) -> Iterator[_Handler]:
    if subscriptions_of(instance) and callable(instance):
        yield instance
        return
    yield from (
        getattr(instance, name)
        for name, value in attributes_of(instance)
        if subscriptions_of(value)
    )
