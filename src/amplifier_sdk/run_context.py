"""What a run gives to an application's own functions: its dependencies, and what happened so far.

A tool asks for it with an annotated parameter, which the model does not see:

```python
@tool
async def balance(ctx: RunContext[Bank], account: str) -> int:
    return await ctx.deps.balance(account)
```

Output validators and instructions that are functions get it as well. Who runs an `amplifier.Agent` gives the
dependencies; a type checker refuses a tool that wants others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

import attrs

from amplifier_sdk.chat import Usage
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.limits import Limits
from amplifier_sdk.messages import MessageDict

if TYPE_CHECKING:
    from amplifier_sdk.progress import ToolContext  # only tools that report need it

__all__ = ["RUN_CONTEXT", "RunContext", "RunContextMaker"]

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
