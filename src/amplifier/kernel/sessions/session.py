"""A session: modules mounted from a plan, and turns run through them.

Nothing stays open between two calls, so `initialize`, `execute` and `cleanup` may come from different
tasks. `async with` gives the session a task group of its own, in which modules may keep resources that
need one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from time import time
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack, overload
from uuid import uuid4

import anyio
from anyio.abc import TaskGroup

from amplifier.kernel.budgets.expenses import Spending
from amplifier.kernel.budgets.ledger import Ledger
from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier.kernel.groups import open_group
from amplifier.kernel.modules.loader import ModuleLoader
from amplifier.kernel.plans.plan import MountPlan
from amplifier.kernel.sessions.family import Family
from amplifier.kernel.sessions.history import instruct
from amplifier.kernel.sessions.mounter import ModuleMounter
from amplifier.kernel.sessions.turns import TurnQueue
from amplifier.kernel.spans import current_module
from amplifier.kernel.turn.stream import (
    EventFunction,
    EventFunctionSink,
    EventSink,
    TurnStream,
)
from amplifier_sdk.contracts import ApprovalSystem, DisplaySystem
from amplifier_sdk.errors import (
    ModuleError,
    SessionBusyError,
    SessionClosedError,
    SessionError,
)
from amplifier_sdk.events import (
    SESSION_END,
    SESSION_FORK,
    SessionEnd,
    SessionFork,
)
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.limits import LimitChanges
from amplifier_sdk.secret import withhold

if TYPE_CHECKING:
    from amplifier.kernel.modules.shapes import LoadedModule
    from amplifier.kernel.sessions.background import Background
    from amplifier.kernel.sessions.status import SessionStatus
    from amplifier_sdk.delegation import (
        BackgroundTask,
        ChildResult,
        ResumeOptions,
        SpawnOptions,
    )
    from amplifier_sdk.journal import RecordedTurn
    from amplifier_sdk.media import Prompt
    from amplifier_sdk.streaming import TurnFinished

__all__ = ["AmplifierSession"]

T = TypeVar("T")


class AmplifierSession:
    """One conversation with one set of modules.

    Args:
        config: the mount plan; see `docs/reference/mount-plan.md`.
        loader: finds the modules; default one that knows what is installed.
        session_id: default a fresh UUID.
        parent_id: the id of the session this one is a child of.
        approval_system: asks the person; without one, what needs approval is denied.
        display_system: shows messages to the person.
        is_resumed: the session resumes a stored one.
        task_group: where modules may keep tasks, when the session is not opened with `async with`.
        spent: what the session had spent before, when it is resumed; it counts against its limits, and `spending`
            begins with it.

    Raises:
        ConfigError: the plan has problems; all of them are named with their paths.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        loader: ModuleLoader | None = None,
        session_id: str | None = None,
        parent_id: str | None = None,
        approval_system: ApprovalSystem | None = None,
        display_system: DisplaySystem | None = None,
        is_resumed: bool = False,
        task_group: TaskGroup | None = None,
        *,
        spent: Spending | None = None,
    ) -> None:
        self.loader: ModuleLoader = loader or ModuleLoader()
        self.plan: MountPlan = MountPlan.read(config, self.loader.kinds)
        self.config: Mapping[str, object] = config
        self.session_id: str = session_id or str(uuid4())
        self.parent_id: str | None = parent_id
        self.is_resumed: bool = is_resumed
        self.initialized: bool = False
        self.coordinator: ModuleCoordinator = ModuleCoordinator(
            self,
            approval_system,
            display_system,
            session_id=self.session_id,
            parent_id=parent_id,
            config=config,
            settings=self.plan.session,
            kinds=self.loader.kinds,
        )
        self.coordinator.owners.task_group = task_group
        self._mounter = ModuleMounter(self.plan, self.loader, self.coordinator)
        self.modules: Mapping[tuple[str, str | None], LoadedModule] = (
            self._mounter.modules
        )
        self.ledger: Ledger = Ledger(self.plan.session.limits)
        if spent is not None:
            self.ledger.spending.add(spent)
        self._turns = TurnQueue(
            self.plan, self.coordinator, self.ledger, self._mounter.failures, is_resumed
        )
        # before any module is mounted, so that each finds them when it is
        self.coordinator.register_capability("session.spawn", self.spawn)
        self.coordinator.register_capability("session.resume", self.resume)
        steer = partial(self._steer, is_typed=False)  # whatever a module says
        self.coordinator.register_capability("session.steer", steer)
        self.family: Family = Family(self)
        self._background: Background | None = None
        self._started_at = time()
        self._ended_at: float | None = None
        # made in the event loop that runs the session, which may begin after this
        self._opening: anyio.Lock | None = None
        self._closed = False
        self._busy = False
        self._idle: anyio.Event | None = None
        self._opened: AbstractAsyncContextManager[AmplifierSession] | None = None

    @property
    def failures(self) -> tuple[ModuleError, ...]:
        """The modules of the plan that could not be used, and why."""
        return tuple(self._mounter.failures)

    @property
    def skipped(self) -> tuple[str, ...]:
        """The ids of the modules that mounted nothing, such as a provider that found no key."""
        return tuple(self._mounter.skipped)

    @property
    def spending(self) -> Spending:
        """What the session's turns have spent so far, those of its children and of earlier processes included."""
        return self.ledger.spending

    @property
    def last_turn(self) -> TurnFinished | None:
        """The result of the turn that ended last; `None` while one runs and after one that gave no answer."""
        turn = self._turns.last
        if turn is None:
            return None
        return turn.finished

    @property
    def status(self) -> SessionStatus:
        """What the session is doing and what it did, as of now."""
        from amplifier.kernel.sessions.status import status_of  # asked for now and then

        return status_of(
            self.session_id, self._turns, self.ledger, self._started_at, self._ended_at
        )

    @property
    def is_closed(self) -> bool:
        """Whether the session was cleaned up."""
        return self._closed

    @property
    def is_suspended(self) -> bool:
        """Whether the last turn waits for an answer that comes later: it was neither ended nor closed."""
        return self.coordinator.decisions.suspension.is_done

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs."""
        return self._busy

    # -- life

    async def __aenter__(self) -> Self:
        if self._opened is not None:
            raise SessionError(
                f"Session {self.session_id} is open already; leave it before it is opened again"
            )
        self._opened = self._open()
        try:
            await self._opened.__aenter__()
        except BaseException:
            self._opened = None
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        opened, self._opened = self._opened, None
        if opened is not None:
            return await opened.__aexit__(kind, error, traceback)
        return None

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[AmplifierSession]:
        """Open the session with a task group of its own around it."""
        async with open_group() as group:
            if self.coordinator.owners.task_group is None:
                self.coordinator.owners.task_group = group
                self.coordinator.owners.shielded = True
            try:
                await self.initialize()
                yield self
            finally:
                # before the group ends: clean-ups may need the tasks that live in it
                await self.cleanup()
                group.cancel_scope.cancel()

    async def initialize(self) -> None:
        """Mount the plan's modules; a second call does nothing. A session whose start failed is closed.

        The loop and the context come first, then providers, tools and hooks, each in the plan's order. A
        provider or tool that fails is in `failures` and announced; a loop, a context or a hook that
        fails ends the session's start, and what was mounted is released.

        Raises:
            SessionClosedError: the session was cleaned up.
            ModuleError: a module that the session cannot do without failed.
        """
        if not self.initialized:
            await self._mount()

    async def _mount(self) -> None:
        """Mount the modules, unless somebody who was here before did."""
        if self._opening is None:
            self._opening = anyio.Lock()
        async with self._opening:
            # another task, which this one waited for, may have mounted them
            if self.initialized:
                return
            self._refuse_closed()
            try:
                await self._mounter.mount_all()
                self._refuse_closed()
                if self.plan.instruction:
                    await instruct(self.coordinator.context, self.plan.instruction)
            except BaseException:
                self._close()
                # whoever failed may have registered clean-ups, and `cleanup` is closed
                # to them now
                await self.coordinator.cleanup()
                raise
            self.initialized = True
            self._opening = None  # whoever waits for it has it
        if self.parent_id is not None:
            await self._announce_fork(self.parent_id)

    async def cleanup(self, *, cascade_children: bool = True) -> None:
        """Release everything, last mounted first; a second call does nothing.

        A running turn is cancelled first, then what works in the background, then the children are cleaned up.
        `session:end` is sent before the modules are released. Each step has `cleanup_timeout` seconds and runs even
        when the caller is cancelled.

        Args:
            cascade_children: clean up the children that are open; else they live on by themselves.
        """
        if self._closed:
            return
        self._close()
        # No shield holds an interrupt or the cancellation of an asyncio task: what that breaks off is one step alone.
        with anyio.CancelScope(shield=True):
            async with AsyncExitStack() as steps:
                # last pushed runs first: the turn, the children, the end, and then the
                # modules
                steps.push_async_callback(self.coordinator.cleanup)
                steps.push_async_callback(self._announce_end)
                if cascade_children:
                    steps.push_async_callback(self.family.cleanup)
                if self._background is not None:
                    steps.push_async_callback(self._background.cleanup)
                with anyio.move_on_after(self.plan.session.limits.cleanup_timeout):
                    await self._stop_turn()

    async def cancel(self, *, immediate: bool = False) -> None:
        """Ask the running turn to stop, and every turn that runs or is about to begin below the session.

        Children are reached whether or not this session runs a turn. Where nothing runs this does nothing: a turn
        that is asked for afterwards is new work. What works in the background goes on.

        Args:
            immediate: cancel the running step, instead of only starting no new one.
        """
        if self._busy:
            await self.coordinator.request_cancel(immediate)
        else:
            await self.family.cancel(immediate=immediate)

    def suspend(self, *, immediate: bool = False) -> None:
        """Leave the running turn to whoever continues it from its journal; where nothing runs this does nothing.

        The calls that run may end first; nothing new begins, and nothing is closed.

        Args:
            immediate: leave the calls that run as well: they are in doubt.
        """
        self.coordinator.decisions.suspension.request(immediate=immediate)

    # -- turns

    @overload
    async def execute(
        self,
        prompt: Prompt,
        limits: LimitChanges | None = None,
        *,
        metadata: Mapping[str, JSONValue] | None = None,
        sink: EventFunction | None = None,
    ) -> str: ...
    @overload
    async def execute(
        self,
        prompt: Prompt,
        limits: LimitChanges | None = None,
        *,
        metadata: Mapping[str, JSONValue] | None = None,
        sink: EventFunction | None = None,
        output: type[T],
        output_retries: int = ...,
    ) -> T: ...
    @overload
    async def execute(
        self,
        prompt: Prompt,
        limits: LimitChanges | None = None,
        *,
        metadata: Mapping[str, JSONValue] | None = None,
        sink: EventFunction | None = None,
        output: object,
        output_retries: int = ...,
    ) -> object: ...
    async def execute(
        self,
        prompt: Prompt,
        limits: LimitChanges | None = None,
        *,
        metadata: Mapping[str, JSONValue] | None = None,
        sink: EventFunction | None = None,
        output: object = None,
        output_retries: int = 2,
    ) -> object:
        """Run one turn in the caller's task and return its answer.

        Args:
            prompt: what the person asks: a text, or texts and media, as in `["Describe", Image.file(path)]`.
            limits: limits of this turn in place of the session's, for example `{"tokens": 20_000}`.
            metadata: what handlers of `prompt:submit` see besides the prompt; `provider`, `model` and `role` in it
                say whom the loop asks in this turn.
            sink: gets each event of the turn as it happens, `TurnFinished` last, in the task in which it happens; what
                it returns is awaited, which holds the turn back, and what it raises ends the turn. It costs a third of
                what `stream` does, and an event waits for no other task.
            output: what the answer has to be, as in `Agent`; default text.
            output_retries: how often the model may try again after an answer that does not fit.

        Raises:
            OutputError: no answer was of the output type.
            MediaError: media of the prompt are not of their kind, or too large.
            SessionBusyError: a turn is running.
            SessionClosedError: the session was cleaned up.
            TurnCancelled: `cancel` stopped the turn; the history is closed and has the partial text.
            BudgetExceededError: nothing is left of a budget, or the turn took its `wall_time`.
            Exception: whatever a provider or the loop raised, unchanged.
        """
        if output is not None:
            return await self._execute_typed(
                prompt, limits, metadata, sink, output, output_retries
            )
        self._claim()
        if sink is None:
            return await self._run(prompt, limits, metadata)
        events = EventFunctionSink(sink)
        answer = await self._run(prompt, limits, metadata, events)
        end = self.last_turn
        assert end is not None
        await events.send(end)
        return answer

    async def _execute_typed(
        self,
        prompt: Prompt,
        limits: LimitChanges | None,
        metadata: Mapping[str, JSONValue] | None,
        sink: EventFunction | None,
        output: object,
        retries: int,
    ) -> object:
        """Run one turn whose answer is of a type."""
        # most turns answer with text
        from amplifier.kernel.sessions.answers import AnswerCheck
        from amplifier_sdk.output_schema import OutputSchema

        check = AnswerCheck(OutputSchema.of(output), retries=retries)
        more = {**(metadata or {}), **check.metadata}
        with check.registered(self.coordinator):
            text = await self.execute(prompt, limits, metadata=more, sink=sink)
        end = self.last_turn
        assert end is not None
        return await check.take(self.coordinator, text, end.usage)

    @asynccontextmanager
    async def stream(
        self,
        prompt: Prompt,
        limits: LimitChanges | None = None,
        *,
        metadata: Mapping[str, JSONValue] | None = None,
        recorded: RecordedTurn | None = None,
    ) -> AsyncIterator[TurnStream]:
        """Run one turn in a task and read its events as they happen; `limits` and `metadata` as in `execute`.

        With what the journal has `recorded` of a turn, that one is continued: what is recorded of it is neither
        repeated nor reported again. The turn raises `TurnSuspendedError` when it waits for an answer that comes later.

        The last event is `TurnFinished`. What the turn raises is raised to the reader, after all that came
        before. Leaving the block cancels a turn that still runs.
        """
        reading = TurnStream()

        async def run() -> None:
            try:
                await self._run(prompt, limits, metadata, reading, recorded)
                end = self.last_turn
                assert end is not None
                await reading.send(end)
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                # whatever ended the turn is the reader's
                # and out of a task the last two would end asyncio's event loop
                reading.close(error)
            finally:
                reading.close()

        self._claim()
        async with open_group() as group:
            group.start_soon(run)
            try:
                yield reading
            finally:
                group.cancel_scope.cancel()
        # a reader that left early would otherwise never learn of a failed turn
        reading.raise_unseen()

    async def continue_turn(
        self,
        prompt: Prompt,
        recorded: RecordedTurn,
        limits: LimitChanges | None = None,
    ) -> str:
        """Continue a turn that was left in the middle, and return its answer; see `stream`."""
        self._claim()
        return await self._run(prompt, limits, None, None, recorded)

    def _claim(self) -> None:
        """Take the session for one turn; from here on `cancel` is meant for it."""
        if self._busy:
            raise SessionBusyError(
                f"Session {self.session_id} runs a turn; wait for it or cancel it"
            )
        # before the first wait, so that two tasks cannot both find it free
        self._busy = True
        self.family.begin_turn()

    async def _run(
        self,
        prompt: Prompt,
        limits: LimitChanges | None,
        metadata: Mapping[str, JSONValue] | None,
        stream: EventSink | None = None,
        recorded: RecordedTurn | None = None,
    ) -> str:
        """Run the turn for which the session was taken."""
        try:
            if self.family.parent is None:
                if not self.initialized:
                    await self.initialize()
                return await self._turns.run(prompt, limits, metadata, stream, recorded)
            async with self.family.turn():
                await self.initialize()
                return await self._turns.run(prompt, limits, metadata, stream, recorded)
        finally:
            self._busy = False
            if self._idle is not None:
                self._idle.set()

    def steer(self, text: str) -> bool:
        """Say something to the agent while it works; it reads it before its next request: `session.steer`.

        What comes too late for the running turn waits for the next one and is in `TurnFinished.unread`.

        Args:
            text: what the person typed. What a module says, also by the capability, is not taken for that: nothing
                is looked for that it mentions.

        Returns:
            Whether a turn runs that may still read it; else it waits for a turn of a loop that reads it.

        Raises:
            SessionClosedError: the session was cleaned up.
            SessionError: 32 texts are waiting.
            ValueError: the text is empty.
        """
        # A module that holds the session speaks for itself, not for a person.
        return self._steer(text, is_typed=current_module.get() is None)

    def _steer(self, text: str, *, is_typed: bool) -> bool:
        self._refuse_closed()
        self.coordinator.services.inbox.put(text, is_typed=is_typed)
        return (
            self._busy
            and getattr(self.coordinator.orchestrator, "takes_steering", False) is True
        )

    def withdraw_steering(self) -> tuple[str, ...]:
        """Take back the texts that no turn has read yet, for example to make a prompt of them, and return them."""
        return self.coordinator.services.inbox.withdraw()

    # -- children

    def fork(
        self,
        overlay: Mapping[str, object] | None = None,
        *,
        session_id: str | None = None,
    ) -> AmplifierSession:
        """Make a child session, which the caller opens: it is this session's plan with another laid over it.

        It shares the approval system, the display, the budgets and the cancellation of this session, what the
        application has registered on it, and is cleaned up with it. Its history is its own.

        Args:
            overlay: a partial mount plan; see `docs/concepts/child-sessions.md`. It is the application's, which may do
                here what no agent may: leave a guard out, configure a tool anew, raise a limit. Do not make it of what
                a model or a file of a project says.
            session_id: default one made from this session's.

        Raises:
            ConfigError: the plan that results has problems.
            BudgetExceededError: the session may have no child: its `delegation_depth` or a budget is reached.
            SessionClosedError: the session was cleaned up.
        """
        return self.family.children.fork(overlay, session_id=session_id)

    async def spawn(self, **options: Unpack[SpawnOptions]) -> ChildResult:
        """Run one turn in a new child session: the capability `session.spawn`; see `SessionSpawn`."""
        # few sessions delegate
        from amplifier.kernel.sessions.child_plans import SpawnRequest

        return await self.family.children.spawn(SpawnRequest(**options))

    async def resume(self, **options: Unpack[ResumeOptions]) -> ChildResult:
        """Run another turn in a child session: the capability `session.resume`; see `ChildResume`."""
        return await self.family.children.resume(**options)

    def background(
        self, function: Callable[[], Awaitable[object]], /, *, name: str
    ) -> BackgroundTask:
        """Run a function in a task of the session's own, which outlives the running turn; see `SessionBackground`.

        An application that holds the session open between its turns may offer it to modules as the capability
        `session.background`.
        """
        # few sessions have a background
        from amplifier.kernel.sessions.background import Background

        if self._background is None:
            self._background = Background(self)
        return self._background.start(function, name=name)

    async def _announce_fork(self, parent_id: str) -> None:
        """Emit `session:fork`, with what the plan asks for."""
        settings = self.plan.session
        payload = SessionFork(parent=parent_id)
        if settings.metadata is not None:
            payload["metadata"] = settings.metadata
        if settings.raw:
            payload["config"] = withhold(self.config)
        await self.coordinator.hooks.emit(SESSION_FORK, payload)

    async def _announce_end(self) -> None:
        """Emit `session:end` for a session that was initialized."""
        if self.initialized:
            self.initialized = False
            payload = SessionEnd(
                status=self._turns.status, stats=self.spending.to_dict()
            )
            with anyio.move_on_after(self.plan.session.limits.cleanup_timeout):
                await self.coordinator.hooks.emit(SESSION_END, payload)

    def _close(self) -> None:
        """Refuse everything from here on; the parent forgets the session."""
        self._closed = True
        self._ended_at = time()
        self.family.leave()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise SessionClosedError(
                f"Session {self.session_id} was cleaned up; make a new one"
            )

    async def _stop_turn(self) -> None:
        """Cancel a running turn and wait until it has ended."""
        if self._busy:
            # only somebody who waits needs it, and few sessions are closed while busy
            self._idle = anyio.Event()
            await self.cancel(immediate=True)
            await self._idle.wait()
