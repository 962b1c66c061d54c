"""The caller's place in a distributed trace, as W3C Trace Context writes it: from a request to its turn's spans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import attrs

__all__ = ["TraceParent", "called_by", "caller_of_turn"]

_FORM: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
_CALLER: ContextVar[TraceParent | None] = ContextVar("caller", default=None)


@attrs.frozen(kw_only=True)
class TraceParent:
    """A span of another process.

    Args:
        trace_id: of its trace, in 32 hexadecimal digits.
        span_id: its own, in 16.
        flags: whether it is sampled, and what later versions add; a byte.
    """

    trace_id: str
    span_id: str
    flags: int

    @classmethod
    def parse(cls, text: str) -> TraceParent | None:
        """Read the header `traceparent`; `None` where it is none, for then a trace begins anew."""
        found = _FORM.fullmatch(text.strip())
        if found is None or found["version"] == "ff":
            return None
        # only a later version may say more
        is_odd = found["version"] == "00" and found["more"] is not None
        if is_odd or not (int(found["trace"], 16) and int(found["span"], 16)):
            return None
        flags = int(found["flags"], 16)
        return cls(trace_id=found["trace"], span_id=found["span"], flags=flags)

    def __str__(self) -> str:
        """Write the header."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags:02x}"


def caller_of_turn() -> TraceParent | None:
    """Return the span for which this task works; `None` where no caller named one."""
    return _CALLER.get()


@contextmanager
def called_by(caller: TraceParent | None) -> Iterator[None]:
    """Work for a span of another process in a block, and in the tasks that it starts."""
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(token)
