"""Middleware in its order, called from the outside in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar, cast

from amplifier.kernel.hooks.registrations import Registration
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.middleware import Place, Proceed, place_of

__all__ = ["MiddlewareChain", "chain_of", "in_order"]

C = TypeVar("C")
R = TypeVar("R")


class MiddlewareChain(Protocol):
    """What surrounds one point of a session."""

    def __call__(self, call: C, innermost: Proceed[C, R], /) -> Awaitable[R]:
        """Call all of it, and in the end what it surrounds."""


def chain_of(functions: Sequence[object]) -> MiddlewareChain:
    """Return the chain of some functions, the outermost first."""

    def proceed(place: int, innermost: Proceed[C, R], call: C) -> Awaitable[R]:
        if place == len(functions):
            return innermost(call)
        function = cast("Callable[[C, Proceed[C, R]], Awaitable[R]]", functions[place])
        return function(call, partial(proceed, place + 1, innermost))

    def begin(call: C, innermost: Proceed[C, R], /) -> Awaitable[R]:
        return proceed(0, innermost, call)

    return begin


def in_order(registrations: Sequence[Registration]) -> list[object]:
    """Return the functions from the outside in: as they were registered, but for what they say of each other.

    Raises:
        ConfigError: what they say cannot all be.
    """
    left = [(entry, place_of(entry.handler)) for entry in registrations]
    ordered: list[object] = []
    while left:
        free = next(
            (one for one in left if not any(_is_inside(one, other) for other in left)),
            None,
        )
        if free is None:
            names = ", ".join(repr(_name(*one)) for one in left)
            raise ConfigError.of(
                "",
                f"{names}: before and after contradict each other",
                subject="order of the middleware",
            )
        left.remove(free)
        ordered.append(free[0].handler)
    return ordered


def _is_inside(
    one: tuple[Registration, Place], other: tuple[Registration, Place]
) -> bool:
    """Whether one of two stands inside the other."""
    return one is not other and (
        _name(*other) in one[1].after or _name(*one) in other[1].before
    )


def _name(entry: Registration, place: Place) -> str:
    return place.name or str(getattr(entry.handler, "__name__", entry.name))
