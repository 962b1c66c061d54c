"""Handlers of events, marked where they are written.

```python
@on(TOOL_PRE, priority=10)
async def guard(event: str, data: ToolPre) -> HookResult: ...
```

On a method of a `@hook` class the handler is registered with the class's instance; a marked function is a
hook module of its own. A handler whose last parameter is annotated with `RunContext` gets the run's: the
dependencies that the application gave.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar, cast, overload

import attrs

from amplifier_sdk._callables import AnyCallable, attributes_of, parameters_of
from amplifier_sdk.bounds import seconds
from amplifier_sdk.contracts import Coordinator, Hooks, Unregister
from amplifier_sdk.events import Event
from amplifier_sdk.results import HookResult
from amplifier_sdk.values import Value

if TYPE_CHECKING:
    from amplifier_sdk.run_context import RunContext  # few handlers take it

__all__ = ["HandlerMark", "Subscription", "on", "register_handlers", "subscriptions_of"]

A = TypeVar("A", bound=Awaitable[HookResult | None] | HookResult | None)
D = TypeVar("D")
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
        self, handler: Callable[[str, P, RunContext[D]], A], /
    ) -> Callable[[str, P, RunContext[D]], A]: ...
    @overload
    def __call__(
        self, handler: Callable[[S, str, P], A], /
    ) -> Callable[[S, str, P], A]: ...
    @overload
    def __call__(
        self, handler: Callable[[S, str, P, RunContext[D]], A], /
    ) -> Callable[[S, str, P, RunContext[D]], A]:
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


def register_handlers(
    hooks: Hooks, instance: object, coordinator: Coordinator | None = None
) -> Iterator[Unregister]:
    """Register a marked function, or an instance's marked methods, in the order its class defines them.

    Args:
        hooks: of the session that hears them.
        instance: the function, or the object with the methods.
        coordinator: of the same session, for those that take a `RunContext`.

    Raises:
        SessionError: one takes a `RunContext`, and the session has none.
    """
    for handler in _marked(instance):
        called = _called(handler, coordinator)
        for subscription in subscriptions_of(handler):
            yield hooks.register(
                subscription.event,
                called,
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


def _called(handler: _Handler, coordinator: Coordinator | None) -> _Handler:
    """Return what is called in place of a handler: with the run's context behind the rest, where it takes one."""
    parameters = parameters_of(cast("AnyCallable", handler))
    if len(parameters) < 3:
        return handler
    # few handlers take it, and reading an annotation needs the reader
    from amplifier_sdk._reader.schema import takes_run_context
    from amplifier_sdk.run_context import with_run_context

    if not takes_run_context(cast("AnyCallable", handler), parameters[2]):
        return handler
    name = parameters[2].name
    return cast(
        "_Handler", with_run_context(cast("AnyCallable", handler), name, coordinator)
    )
