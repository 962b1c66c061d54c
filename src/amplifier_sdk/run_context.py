"""What a run gives to an application's own functions: its dependencies, and what happened so far.

A tool asks for it with an annotated parameter, which the model does not see:

```python
@tool
async def balance(ctx: RunContext[Bank], account: str) -> int:
    return await ctx.deps.balance(account)
```

Output validators and instructions that are functions get it as well; handlers and middleware get it behind the rest:

```python
@on(TOOL_PRE)
async def audit(event: str, data: ToolPre, ctx: RunContext[Bank]) -> HookResult | None: ...
```

 Who runs an `amplifier.Agent` gives the
dependencies; a type checker refuses a tool that wants others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps
from inspect import isawaitable
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar, cast

import attrs

from amplifier_sdk._callables import AnyCallable
from amplifier_sdk.chat import Usage
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import SessionError
from amplifier_sdk.limits import Limits
from amplifier_sdk.messages import MessageDict

if TYPE_CHECKING:
    from amplifier_sdk.progress import ToolContext  # only tools that report need it

__all__ = ["RUN_CONTEXT", "RunContext", "RunContextMaker", "with_run_context"]

DepsT_co = TypeVar("DepsT_co", covariant=True)

RUN_CONTEXT: Final = "session.run_context"
"""The capability, a `RunContextMaker`, of a session that has dependencies; its children have it too."""


@attrs.frozen(kw_only=True, eq=False)
class RunContext(Generic[DepsT_co]):
    """One moment of a run, as an application's function sees it.

    Args:
        deps: what the application gave to the run.
        session_id: the session that runs.
        usage: what its model calls have used until now, those of its children included; `None` where no provider
            reported any.
        limits: the session's limits.
        call_id: the id of the tool call; empty outside one.
        attempt: which try it is, from 1: an output that is rejected is asked for again.
    """

    deps: DepsT_co
    session_id: str
    usage: Usage | None = None
    limits: Limits = Limits()
    call_id: str = ""
    attempt: int = 1
    _call: ToolContext | None = attrs.field(default=None, repr=False)
    _read: Callable[[], Awaitable[Sequence[MessageDict]]] | None = attrs.field(
        default=None, repr=False
    )

    async def messages(self) -> tuple[MessageDict, ...]:
        """Return the conversation until now; to change what is returned changes nothing of it."""
        if self._read is None:
            return ()
        from copy import deepcopy  # asked for now and then

        return tuple(deepcopy(list(await self._read())))

    def progress(
        self,
        message: str = "",
        *,
        done: float | None = None,
        total: float | None = None,
    ) -> None:
        """Say how far the tool call is, as `ToolContext.progress` does; outside a call it goes nowhere.

        Raises:
            ToolError: the call is over.
        """
        if self._call is not None:
            self._call.progress(message, done=done, total=total)


class RunContextMaker(Protocol):
    """Makes the context of a run; the capability `RUN_CONTEXT`."""

    def __call__(
        self,
        coordinator: Coordinator,
        /,
        *,
        call: ToolContext | None = None,
        attempt: int = 1,
    ) -> RunContext[object]:
        """Make it.

        Args:
            coordinator: of the session that runs.
            call: the tool call for which it is made.
            attempt: which try it is, from 1.
        """
        ...


def with_run_context(
    function: AnyCallable, parameter: str, coordinator: Coordinator | None
) -> Callable[[object, object], Awaitable[object]]:
    """Return a handler, or middleware, that gives a function the context of each moment besides its two arguments.

    Args:
        function: sync or async.
        parameter: the name under which it takes the context.
        coordinator: of the session that runs.

    Raises:
        SessionError: the session has no context to give.
    """
    make = coordinator and coordinator.get_capability(RUN_CONTEXT)
    if coordinator is None or make is None:
        name = getattr(function, "__qualname__", repr(function))
        raise SessionError(
            f"{name} takes a RunContext, which a session of an amplifier.Agent gives; this session has none"
        )

    # with the marks of what it stands for
    @wraps(function)
    async def called(first: object, second: object) -> object:
        # an event's data, or what middleware surrounds
        about = second if isinstance(first, str) else first
        context = cast("RunContextMaker", make)(
            coordinator, attempt=getattr(about, "attempt", 1)
        )
        context = attrs.evolve(context, call_id=_call_id(about))
        answer = function(first, second, **{parameter: context})
        return await answer if isawaitable(answer) else answer

    return called


def _call_id(about: object) -> str:
    if isinstance(about, Mapping):
        return str(about.get("tool_call_id") or "")
    return str(getattr(getattr(about, "call", None), "id", ""))
