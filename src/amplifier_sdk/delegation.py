"""Delegation: what the capabilities `session.spawn` and `session.resume` take and give.

The kernel registers both for every session; an application may register its own in their place, for example
to run children elsewhere. A stored child is found again through a `ChildStore`, the capability
`session.children`; without one a session remembers its children while it lives.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import (
    Literal,
    Protocol,
    Required,
    TypeAlias,
    TypedDict,
    Unpack,
    runtime_checkable,
)

import attrs

from amplifier_sdk.content import TextBlock
from amplifier_sdk.journal import Journal, RecordedTurn
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.limits import LimitChanges
from amplifier_sdk.messages import Message, MessageDict

__all__ = [
    "BackgroundTask",
    "ChildObserver",
    "ChildRecord",
    "ChildResult",
    "ChildResume",
    "ChildStore",
    "HookInheritance",
    "JournaledChildStore",
    "ProviderPreference",
    "ResumableChildStore",
    "ResumeOptions",
    "SessionBackground",
    "SessionSpawn",
    "SpawnOptions",
    "ToolInheritance",
]

ChildObserver: TypeAlias = Callable[[str, dict[str, object]], None]
"""Hears an event of a child, by its name and data; it is sync, decides nothing and must not block."""


class ToolInheritance(TypedDict, total=False):
    """Which of the parent's tool modules a child gets, by module id; those of its agent it always gets.

    A tool that the parent has keeps the parent's configuration, also where the agent names it.
    """

    inherit_tools: Sequence[str]
    exclude_tools: Sequence[str]


class HookInheritance(TypedDict, total=False):
    """Which of the parent's hook modules a child gets, by module id; those of its agent it always gets.

    A module that guards the parent it always gets as well: one that has registered anything but observers
    (`decides=False`), or offers a capability. Only an application can leave a guard out, by `session.fork()`.
    """

    inherit_hooks: Sequence[str]
    exclude_hooks: Sequence[str]


class ProviderPreference(TypedDict, total=False):
    """A provider of the parent's, by module id or mounted name, and a model of it; both may be globs."""

    provider: str
    model: str


@attrs.frozen(kw_only=True)
class ChildResult(Mapping[str, JSONValue]):
    """What a child session's turn came to; its parts may be read by name as well, as those of a mapping.

    Args:
        output: the child's answer, or what it had written when it was cancelled.
        session_id: the child's id, with which its parent may resume it.
        status: how the turn ended; what a failing turn raises is raised to the caller instead.
        limit: the name of the limit that ended the turn early.
        turn_count: how many turns the child has run in all.
        spending: what this turn spent, its own children included, as JSON data.
        metadata: the child's metadata.
    """

    output: str
    session_id: str
    status: Literal["completed", "cancelled"] = "completed"
    limit: str | None = None
    turn_count: int = 1
    spending: Mapping[str, JSONValue] = attrs.field(factory=dict)
    metadata: Mapping[str, JSONValue] = attrs.field(factory=dict)

    def to_dict(self) -> dict[str, JSONValue]:
        """Write the result as plain JSON data, for example as a tool's output."""
        # every key, also of what is None: a model reads what there is not, too
        fields = attrs.asdict(self, recurse=False)
        return {**fields, "spending": {**self.spending}, "metadata": {**self.metadata}}

    def __getitem__(self, key: str) -> JSONValue:
        return self.to_dict()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())


@attrs.frozen(kw_only=True)
class ChildRecord:
    """All that is stored of a child session between its turns; JSON data but for what its plan may hold.

    Args:
        session_id: the child's id.
        parent_id: the session that made it, the only one that may resume it.
        agent_name: the agent it was made from.
        plan: the mount plan of its last turn. It is for those who show it: each turn's plan is made anew from that
            of the parent.
        messages: its history.
        turn_count: how many turns it has run.
        provider_preferences: its provider and model, the first of them that is mounted.
        request: what else was asked when it was made, by the names of `SpawnOptions`, as JSON data: its rules of
            inheritance, `orchestrator_config` and `session_metadata`.
        spending: what all its turns have spent, as JSON data; see `ChildResult`.
    """

    session_id: str
    parent_id: str
    agent_name: str
    plan: Mapping[str, object]
    messages: Sequence[MessageDict] = ()
    turn_count: int = 0
    provider_preferences: Sequence[ProviderPreference] = ()
    request: Mapping[str, JSONValue] = attrs.field(factory=dict)
    spending: Mapping[str, JSONValue] = attrs.field(factory=dict)

    @property
    def last_result(self) -> ChildResult:
        """What its last turn came to, which has ended: the last that its model said."""
        said = [each for each in self.messages if each.get("role") == "assistant"]
        content = Message.from_dict(said[-1]).content if said else ""
        if not isinstance(content, str):
            content = "".join(
                block.text for block in content if isinstance(block, TextBlock)
            )
        return ChildResult(
            output=content, session_id=self.session_id, turn_count=self.turn_count
        )


@runtime_checkable
class ChildStore(Protocol):
    """Keeps children between their turns; the capability `session.children`."""

    async def save(self, record: ChildRecord, /) -> None:
        """Store a child, in place of what was stored under its id."""

    async def load(self, session_id: str, /) -> ChildRecord | None:
        """Return what was stored under an id, or `None`."""


@runtime_checkable
class JournaledChildStore(ChildStore, Protocol):
    """A store that knows of a child while its turn runs, so that the end of the process loses nothing of it."""

    def open(self, record: ChildRecord, /) -> AbstractAsyncContextManager[Journal]:
        """Keep who a child is, and give the journal of the turn that it runs in the block.

        `save` is called within the block. The next `load` reports a journal whose turn was not saved.

        Raises:
            Exception: it cannot be stored; the child does not run.
        """


@runtime_checkable
class ResumableChildStore(JournaledChildStore, Protocol):
    """A store that knows how far a child is whose turn was left in the middle, so that it continues."""

    async def unfinished(
        self, session_id: str, /
    ) -> tuple[ChildRecord, RecordedTurn] | None:
        """Return a child as it was before its last turn, and what is recorded of that; `None` where it came to its end.

        It need not be there.
        """


class SpawnOptions(TypedDict, total=False):
    """What `session.spawn` takes, by keyword.

    Args:
        agent_name: a key of the plan's `agents`; `"self"` is the parent without an overlay.
        instruction: the child's prompt.
        parent_session: the session that delegates, where the caller names it: the capability's own.
        agent_configs: agents in place of the plan's: partial plans by name.
        sub_session_id: the child's id; default one made from the parent's.
        tool_inheritance: which tools it gets besides its agent's; default all.
        hook_inheritance: which hooks it gets besides its agent's and those that guard; default all.
        orchestrator_config: laid over the configuration of its loop.
        provider_preferences: its provider and model, the first of them that is mounted.
        parent_messages: what its history begins with, after its agent's instruction.
        self_delegation_depth: how often an agent has delegated to itself so far; the child's capability of
            that name.
        session_metadata: laid over the `metadata` of its plan.
        limits: limits of this turn, where they are stricter than the parent's.
        observers: who hears the child's own events while this turn runs, by event; for those who show progress.
        continues: whether a child that has the id already is the one that is meant: its turn is continued, or its
            answer returned where that is there. Else it is an error.
    """

    agent_name: Required[str]
    instruction: Required[str]
    parent_session: object
    agent_configs: Mapping[str, object] | None
    sub_session_id: str | None
    tool_inheritance: ToolInheritance | None
    hook_inheritance: HookInheritance | None
    orchestrator_config: Mapping[str, JSONValue] | None
    provider_preferences: Sequence[ProviderPreference] | None
    parent_messages: Sequence[MessageDict] | None
    self_delegation_depth: int | None
    session_metadata: Mapping[str, JSONValue] | None
    limits: LimitChanges | None
    observers: Mapping[str, ChildObserver] | None
    continues: bool


class ResumeOptions(TypedDict, total=False):
    """What `session.resume` takes, by keyword.

    Args:
        sub_session_id: the child's id.
        instruction: its next prompt.
        agent_configs: agents in place of the plan's, of which one is the child's.
        tool_inheritance: which tools it gets by now, of those that it was to get when it was made.
        hook_inheritance: likewise for hooks.
        limits: limits of this turn.
        observers: as in `SpawnOptions`.
    """

    sub_session_id: Required[str]
    instruction: Required[str]
    agent_configs: Mapping[str, object] | None
    tool_inheritance: ToolInheritance | None
    hook_inheritance: HookInheritance | None
    limits: LimitChanges | None
    observers: Mapping[str, ChildObserver] | None


class SessionSpawn(Protocol):
    """The capability `session.spawn`: run one turn in a new child session."""

    async def __call__(self, **options: Unpack[SpawnOptions]) -> ChildResult:
        """Run an instruction in a child of this session; runs in the caller's task.

        The child's plan is the parent's with the agent's laid over it, which can only narrow what guards the
        parent: hooks, the configuration of tools, limits. It shares the parent's approval and
        display, is cancelled with it, spends from its budget, and is released when its turn has ended. The
        time it takes does not count against the deadline of the tool that calls this.

        Raises:
            BudgetExceededError: nothing is left of a budget, or the delegation is too deep.
            ConfigError: there is no such agent, it loosens what guards the session, or the plan that results has
                problems.
            Exception: whatever the child's turn raised, unchanged, with a note that names the child.
        """


class ChildResume(Protocol):
    """The capability `session.resume`: run another turn in a child session."""

    async def __call__(self, **options: Unpack[ResumeOptions]) -> ChildResult:
        """Resume a child of this session; runs in the caller's task.

        Its plan is made anew, as if it began now: from this session's present plan, the agent as it is by now, and
        what was asked when it was made. A tool that is not there any more it has not either.

        Raises:
            ChildNotFoundError: this session has no such child; one of another session is not found either.
            ConfigError: there is no such agent any more, or the plan that results has problems.
            SessionBusyError: the child runs a turn.
        """


class BackgroundTask(Protocol):
    """Work in a session's background."""

    @property
    def is_done(self) -> bool:
        """Whether it has ended, however that was."""

    def cancel(self) -> None:
        """Cancel it; where it has ended this does nothing."""

    async def wait(self) -> None:
        """Wait until it has ended, however that was."""


class SessionBackground(Protocol):
    """The capability `session.background`: run a function in a task of the session's own. No child inherits it."""

    def __call__(
        self, function: Callable[[], Awaitable[object]], /, *, name: str
    ) -> BackgroundTask:
        """Begin to run a function, which may outlive the running turn, and return at once.

        A child that it makes is none of the turn's: it goes on when that is cancelled or ends, draws on the budget of
        the turn also then, and is guarded as every child is. The session's clean-up cancels the task. What the
        function raises is reported.

        Args:
            function: what is run.
            name: what the task is called.

        Raises:
            OwnerTaskError: the session has no task group.
            SessionClosedError: the session was cleaned up.
        """
