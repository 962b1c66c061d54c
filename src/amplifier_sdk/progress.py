"""What a tool reports while it runs: how far it is, and what it puts out.

A tool asks for its call's `ToolContext` with an annotated parameter, which the model does not see:

```python
@tool
def build(target: str, context: ToolContext) -> str:
    context.progress("compiling", done=3, total=10)
    context.output("3 warnings")
```

The reports go to the reader of the turn's stream and to handlers of `tool:progress` and `tool:output`. Where
nobody listens, as in a plain call outside a session, they go nowhere and cost nothing.

A tool may also ask the person: `await context.ask("Which branch?", options=["main", "next"])`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NotRequired, Protocol, TypeAlias, final, runtime_checkable

import attrs

from amplifier_sdk.contracts import Tool
from amplifier_sdk.errors import ToolError
from amplifier_sdk.events import Event, EventFields
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import ToolResult

__all__ = [
    "TOOL_OUTPUT",
    "TOOL_PROGRESS",
    "PersonAsker",
    "ToolContext",
    "ToolOutput",
    "ToolOutputWritten",
    "ToolProgress",
    "ToolProgressed",
    "ToolReport",
    "ToolWithContext",
]


class ToolProgressed(EventFields):
    """A tool says how far it is."""

    tool_name: str
    tool_call_id: NotRequired[str]
    message: str
    done: NotRequired[float | None]
    total: NotRequired[float | None]


class ToolOutputWritten(EventFields):
    """A tool put out text before its result."""

    tool_name: str
    tool_call_id: NotRequired[str]
    text: str


TOOL_PROGRESS: Final = Event[ToolProgressed]("tool:progress")
"""Emitted for each `ToolContext.progress` that handlers had time for."""

TOOL_OUTPUT: Final = Event[ToolOutputWritten]("tool:output")
"""Emitted for what `ToolContext.output` was given, joined where handlers are slow."""


@attrs.frozen(kw_only=True)
class ToolProgress:
    """A running tool says how far it is: `done` of `total`, in whatever it counts."""

    call_id: str
    tool_name: str
    message: str = ""
    done: float | None = None
    total: float | None = None


@attrs.frozen(kw_only=True)
class ToolOutput:
    """A piece of text that a running tool puts out before its result."""

    call_id: str
    tool_name: str
    text: str


@runtime_checkable
class ToolWithContext(Tool, Protocol):
    """A tool that reports: the host gives its `execute` the context of the call."""

    @property
    def takes_context(self) -> bool:
        """Whether it does; `True` in a tool that is written by hand."""

    async def execute(
        self, input: JSONObject, /, *, context: ToolContext | None = None
    ) -> ToolResult:
        """Run the tool.

        Args:
            input: the arguments, checked against the tool's schema.
            context: the call's own; `None` where somebody calls the tool without one.
        """


ToolReport: TypeAlias = ToolProgress | ToolOutput
"""What a running tool may report."""


class PersonAsker(Protocol):
    """What asks a person for a running call."""

    def __call__(
        self, message: str, schema: Mapping[str, JSONValue], timeout: float | None, /
    ) -> Awaitable[JSONValue]:
        """Return the answer; see `ToolContext.ask`."""


@final
class ToolContext:
    """One call of a tool, as the tool sees it; every method but `ask` may be called from any thread.

    Args:
        call_id: the call's id, as the model gave it; empty outside a session. It stays the same when the call runs
            again in a turn that another process continues.
        tool_name: the name by which the tool was called.
        send: takes each report, in any thread; `None` where nobody listens.
        idempotency_key: what no other call has, also where a vendor gives several calls the same id, and this one has
            again when it runs again in a turn that another process continues; empty outside a session.
        asker: asks a person; `None` where nobody can be asked.
    """

    __slots__ = ("_asker", "_ended", "_send", "call_id", "idempotency_key", "tool_name")

    def __init__(
        self,
        call_id: str = "",
        tool_name: str = "",
        send: Callable[[ToolReport], object] | None = None,
        idempotency_key: str = "",
        asker: PersonAsker | None = None,
    ) -> None:
        self.idempotency_key: Final = idempotency_key
        self.call_id: Final = call_id
        self.tool_name: Final = tool_name
        self._send = send
        self._asker = asker
        self._ended = False

    def progress(
        self,
        message: str = "",
        *,
        done: float | None = None,
        total: float | None = None,
    ) -> None:
        """Say how far the call is; of reports that nobody had time for yet the latest counts.

        Args:
            message: what happens now.
            done: how much is done, in a unit of the tool's choice.
            total: how much there is to do, in the same unit; `None` when nobody knows.

        Raises:
            ToolError: the call is over, as for `check`.
        """
        self.check()
        # read once: the host may end the call in another thread meanwhile
        send = self._send
        if send is not None:
            send(
                ToolProgress(
                    call_id=self.call_id,
                    tool_name=self.tool_name,
                    message=message,
                    done=done,
                    total=total,
                )
            )

    def output(self, text: str) -> None:
        """Put out text before the result: for the people who watch, not for the model.

        Raises:
            ToolError: the call is over, as for `check`.
        """
        self.check()
        # likewise
        send = self._send
        if send is not None and text:
            send(ToolOutput(call_id=self.call_id, tool_name=self.tool_name, text=text))

    async def ask(
        self,
        message: str,
        *,
        options: Sequence[str] = (),
        schema: Mapping[str, JSONValue] | None = None,
        timeout: float | None = None,
    ) -> JSONValue:
        """Ask the person and return their answer; `None` where they declined. No deadline runs meanwhile.

        Where questions are stored and answered later, the turn is left until then if the tool is `idempotent` or
        `asks_first`: the call runs again from its beginning, and what was answered is returned at once. Any other call
        waits in its process. A sync tool asks by `anyio.from_thread.run`.

        Args:
            message: what the person reads beside the call.
            options: what they may answer; the answer is one of them. Without `options` and `schema` it is a text.
            schema: the JSON Schema of the answer, such as that of an object for a form.
            timeout: seconds to wait; `None` means as long as it takes.

        Raises:
            ToolError: nobody can be asked, nobody answered in time, or the call is over.
            ValueError: options and a schema are given, or the schema is not valid.
        """
        from amplifier_sdk.person_questions import answer_schema  # few tools ask

        self.check()
        asker, wanted = self._asker, answer_schema(options, schema)
        if asker is None:
            raise ToolError("Nobody can be asked: the tool runs outside a session")
        return await asker(message, wanted, timeout)

    def check(self) -> None:
        """Return while the call runs: a sync tool calls this in long loops, since its thread cannot be stopped.

        Raises:
            ToolError: the call is over, because it was cancelled or passed its deadline.
        """
        if self._ended:
            raise ToolError(
                f"The call of {self.tool_name!r} is over: it was cancelled or passed its deadline"
            )

    def end(self) -> None:
        """Let every later use raise; the host calls this when the call is over."""
        # first: a report that comes between the two finds the call ended
        self._ended = True
        self._send = self._asker = None
