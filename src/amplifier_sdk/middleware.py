"""Middleware: functions around a turn, a model call, a tool call and the reading of a typed answer.

```python
@around("model")
async def timed(call: ModelCall, proceed: Proceed[ModelCall, ChatResponse]) -> ChatResponse:
    started = perf_counter()
    response = await proceed(call)
    log(call.provider, perf_counter() - started)
    return response
```

A marked function is registered as a handler is: on a session's hooks, as an agent's hook, as a method of a `@hook`
class, which a package can ship. It may look at what it passes on, change it where its class says so, proceed more than
once or not at all, and return something else; what it raises is the failure of what it surrounds. As with pluggy's
wrappers, the outermost is called first and sees the result last.

A package may also implement a hookspec, beside the hook that mounts it or instead of one:

```python
@amplifier_around_model.impl
async def timed(call: ModelCall, proceed: Proceed[ModelCall, ChatResponse]) -> ChatResponse: ...
```

pluggy's `tryfirst` puts one outside the others and its `trylast` inside; `placed` says it by names.

What guards a session stands outside: handlers have decided on a call before its middleware runs, and handlers of its
end see what middleware made of its result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Final,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    overload,
)

import attrs

from amplifier_sdk._fields import strings
from amplifier_sdk.chat import ChatRequest, ChatResponse, ToolCall
from amplifier_sdk.errors import did_you_mean
from amplifier_sdk.handlers import on
from amplifier_sdk.hookspecs import HookSpec
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import ToolResult
from amplifier_sdk.values import NO_EXTRAS, Value

if TYPE_CHECKING:
    from amplifier_sdk.run_context import RunContext  # few take it

__all__ = [
    "SPECS",
    "AroundMark",
    "ModelCall",
    "OutputAttempt",
    "Place",
    "Point",
    "Proceed",
    "ToolRun",
    "TurnCall",
    "amplifier_around_model",
    "amplifier_around_output",
    "amplifier_around_tool",
    "amplifier_around_turn",
    "around",
    "event_of",
    "place_of",
    "placed",
]

Point: TypeAlias = Literal["turn", "model", "tool", "output"]
"""What middleware surrounds."""

C = TypeVar("C")
D = TypeVar("D")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")

Proceed: TypeAlias = Callable[[C], Awaitable[R]]
"""Continues inwards with a call, and returns what came of it."""

_PLACE: Final = "__amplifier_place__"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class TurnCall(Value):
    """A turn that begins; its `prompt` and `metadata` may be changed, before handlers of `prompt:submit` see them."""

    session_id: str
    prompt: str
    metadata: Mapping[str, JSONValue] = NO_EXTRAS


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ModelCall(Value):
    """A request to a provider, as handlers left it; the `request` may be changed."""

    session_id: str
    provider: str
    iteration: int
    request: ChatRequest


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ToolRun(Value):
    """A tool call that was checked and decided on; its arguments are changed by a handler of `tool:pre` alone."""

    session_id: str
    call: ToolCall


@attrs.frozen(kw_only=True, eq=False, repr=False)
class OutputAttempt(Value):
    """An answer that is about to be read as a value of a type; its `text` may be changed.

    Proceeding raises what is wrong with it, `OutputMisfitError` or `OutputRejectedError`, which the model then reads.
    """

    session_id: str
    text: str
    attempt: int


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Place(Value):
    """Where a middleware stands among those of its point.

    Args:
        name: what others call it by; default the function's.
        before: names of those that it surrounds.
        after: names of those that surround it.
    """

    name: str | None = None
    before: tuple[str, ...] = attrs.field(default=(), converter=strings)
    after: tuple[str, ...] = attrs.field(default=(), converter=strings)


class AroundMark(Protocol, Generic[C, R]):
    """What `around` returns: accepts a function, or a method, of exactly this call and result."""

    @overload
    def __call__(
        self, function: Callable[[C, Proceed[C, R]], Awaitable[R]], /
    ) -> Callable[[C, Proceed[C, R]], Awaitable[R]]: ...
    @overload
    def __call__(
        self, function: Callable[[C, Proceed[C, R], RunContext[D]], Awaitable[R]], /
    ) -> Callable[[C, Proceed[C, R], RunContext[D]], Awaitable[R]]: ...
    @overload
    def __call__(
        self, function: Callable[[S, C, Proceed[C, R]], Awaitable[R]], /
    ) -> Callable[[S, C, Proceed[C, R]], Awaitable[R]]: ...
    @overload
    def __call__(
        self, function: Callable[[S, C, Proceed[C, R], RunContext[D]], Awaitable[R]], /
    ) -> Callable[[S, C, Proceed[C, R], RunContext[D]], Awaitable[R]]:
        """Mark the function and return it unchanged."""


@overload
def around(
    point: Literal["turn"],
    *,
    name: str | None = None,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
) -> AroundMark[TurnCall, str]: ...
@overload
def around(
    point: Literal["model"],
    *,
    name: str | None = None,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
) -> AroundMark[ModelCall, ChatResponse]: ...
@overload
def around(
    point: Literal["tool"],
    *,
    name: str | None = None,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
) -> AroundMark[ToolRun, ToolResult]: ...
@overload
def around(
    point: Literal["output"],
    *,
    name: str | None = None,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
) -> AroundMark[OutputAttempt, object]: ...
def around(
    point: Point,
    *,
    name: str | None = None,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
) -> object:
    """Mark a function as middleware.

    Args:
        point: what it surrounds.
        name: what others call it by; default the function's name.
        before: names of those that it surrounds; those that are not there do not matter.
        after: names of those that surround it. Without either, the one that is registered first is outside.

    Raises:
        ValueError: there is no such point.
    """
    if point not in get_args(Point):
        hint = did_you_mean(str(point), get_args(Point))
        known = ", ".join(get_args(Point))
        raise ValueError(f"There is no point {point!r}{hint or ';'} points: {known}")
    return _Around(point, Place(name=name, before=before, after=after))


def placed(
    *, name: str | None = None, before: Sequence[str] = (), after: Sequence[str] = ()
) -> Callable[[T], T]:
    """Say where an implementation of a hookspec stands; the arguments are those of `around`."""
    return _Placed(Place(name=name, before=before, after=after))


@attrs.frozen(eq=False, repr=False)
class _Placed(Value):
    place: Place

    def __call__(self, function: T) -> T:
        setattr(function, _PLACE, self.place)
        return function


@attrs.frozen(eq=False, repr=False)
class _Around(Value):
    point: Point
    place: Place

    def __call__(self, function: T) -> T:
        setattr(function, _PLACE, self.place)
        return on(event_of(self.point), decides=False)(function)  # type: ignore[call-overload, no-any-return]  # none of its handlers


def event_of(point: Point) -> str:
    """Return the name under which middleware of a point is registered; nothing of that name is ever emitted."""
    return f"around:{point}"


def place_of(function: object) -> Place:
    """Return where a function stands, as `around` marked it."""
    place = getattr(function, _PLACE, None)
    return place if isinstance(place, Place) else Place()


async def _surround(call: C, proceed: Proceed[C, R]) -> R:
    """Continue, as what surrounds nothing does."""
    return await proceed(call)


amplifier_around_turn: Final[HookSpec[[TurnCall, Proceed[TurnCall, str]], str]] = (
    HookSpec("amplifier_around_turn", _surround)
)
"""Surrounds a turn; returns the text of its answer."""

amplifier_around_model: Final[
    HookSpec[[ModelCall, Proceed[ModelCall, ChatResponse]], ChatResponse]
] = HookSpec("amplifier_around_model", _surround)
"""Surrounds a model call; returns the answer."""

amplifier_around_tool: Final[
    HookSpec[[ToolRun, Proceed[ToolRun, ToolResult]], ToolResult]
] = HookSpec("amplifier_around_tool", _surround)
"""Surrounds a tool call; returns its result."""

amplifier_around_output: Final[
    HookSpec[[OutputAttempt, Proceed[OutputAttempt, object]], object]
] = HookSpec("amplifier_around_output", _surround)
"""Surrounds the reading of a typed answer; returns its value."""

_Specs: TypeAlias = Mapping[Point, HookSpec[..., object]]  # type: ignore[explicit-any]  # each has a signature of its own

SPECS: Final = cast(
    "_Specs",
    {
        "turn": amplifier_around_turn,
        "model": amplifier_around_model,
        "tool": amplifier_around_tool,
        "output": amplifier_around_output,
    },
)
"""The hookspec of each point. They are no module types: any plugin may implement them."""
