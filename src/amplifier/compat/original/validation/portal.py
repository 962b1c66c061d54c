"""Running what tests of modules await: in an event loop of its own thread, whichever plugin runs the tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from anyio.from_thread import start_blocking_portal

__all__ = ["Portal", "open_portal"]

T = TypeVar("T")


class Portal(Protocol):
    """Runs async functions in one event loop."""

    def call(self, function: Callable[..., Awaitable[T]], *arguments: object) -> T:  # type: ignore[explicit-any]  # any function
        """Run a function to its end and return what it returns."""


@contextmanager
def open_portal() -> Iterator[Portal]:
    """Open an event loop of asyncio, on which the original's modules run."""
    with start_blocking_portal("asyncio") as portal:
        yield portal
