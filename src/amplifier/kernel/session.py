"""A session: modules mounted from a plan, and turns run through them.

Nothing stays open between two calls, so `initialize`, `execute` and `cleanup` may come from different
tasks. `async with` gives the session a task group of its own, in which modules may keep resources that
need one.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Final, Literal
from uuid import uuid4

import anyio
from anyio.abc import TaskGroup

from amplifier.kernel.budgets import Spending
from amplifier.kernel.calls import first_cause
from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier.kernel.loader import LoadedModule, ModuleLoader
from amplifier.kernel.plan import ModuleSpec, MountPlan
from amplifier.kernel.proxies import ToolProxy
from amplifier.kernel.reports import report
from amplifier.kernel.spans import Span, current_span, current_turn_id
from amplifier.kernel.turnstream import TurnStream
from amplifier_sdk.contracts import ApprovalSystem, ContextManager, DisplaySystem, Orchestrator, Provider, Tool
from amplifier_sdk.errors import (
    AmplifierError,
    ConfigError,
    ModuleConflictError,
    ModuleError,
    ModuleLoadError,
    ModuleNotFoundError,
    ModuleValidationError,
    Problem,
    SessionBusyError,
    SessionClosedError,
    TurnCancelled,
)
from amplifier_sdk.events import (
    CANCEL_COMPLETED,
    MODULE_LOAD_FAILED,
    MODULE_ON_SESSION_READY_FAILED,
    SESSION_END,
    SESSION_FORK,
    SESSION_RESUME,
    SESSION_START,
    CancelCompleted,
    ModuleLoadFailed,
    ModuleOnSessionReadyFailed,
    SessionEnd,
    SessionFork,
    SessionStart,
)
from amplifier_sdk.history import closing_message, open_calls, tool_message
from amplifier_sdk.hookspecs import ModuleKind
from amplifier_sdk.journal import TurnEnded, TurnStarted
from amplifier_sdk.streaming import TurnFinished

__all__ = ["AmplifierSession"]

REQUIRED: Final = frozenset({"orchestrator", "context", "hook"})
"""The types without which a session does not start: the loop, the memory, and whatever guards it."""


class AmplifierSession:
    """One conversation with one set of modules.

    Args:
        config: the mount plan; see `docs/mount-plan.md`.
        loader: finds the modules; default one that knows what is installed.
        session_id: default a fresh UUID.
        parent_id: the id of the session this one is a child of.
        approval_system: asks the person; without one, what needs approval is denied.
        display_system: shows messages to the person.
        is_resumed: the session goes on where a stored one ended.
        task_group: where modules may keep tasks, when the session is not opened with `async with`.

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
    ) -> None:
        self.loader = loader or ModuleLoader()
        self.plan = MountPlan.read(config, self.loader.kinds)
        self.config = config
        self.session_id = session_id or str(uuid4())
        self.parent_id = parent_id
        self.is_resumed = is_resumed
        self.initialized = False
        self.failures: list[ModuleError] = []
        self.spending = Spending()
        self.coordinator = ModuleCoordinator(
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
        self._opening = anyio.Lock()
        self._started = False
        self._closed = False
        self._idle: anyio.Event | None = None
        self._passes_coordinator = False
        self._tools: dict[str, Tool] = {}
        self._proxies: dict[str, Tool] = {}
        self._opened: AbstractAsyncContextManager[AmplifierSession] | None = None

    # -- life

    async def __aenter__(self) -> AmplifierSession:
        self._opened = self._open()
        return await self._opened.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        opened, self._opened = self._opened, None
        return await opened.__aexit__(kind, error, traceback) if opened is not None else None

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[AmplifierSession]:
        """Open the session with a task group of its own around it."""
        try:
            async with anyio.create_task_group() as group:
                if self.coordinator.owners.task_group is None:
                    self.coordinator.owners.task_group = group
                try:
                    await self.initialize()
                    yield self
                finally:
                    await self.cleanup()
                    group.cancel_scope.cancel()
        except BaseExceptionGroup as failures:
            cause = first_cause(failures)
            if cause is failures:
                raise
            raise cause from cause.__cause__

    async def initialize(self) -> None:
        """Mount the plan's modules; a second call does nothing.

        The loop and the context come first, then providers, tools and hooks, each in the plan's order. A
        provider or tool that fails is kept in `failures` and announced; a loop, a context or a hook that
        fails ends the session's start, and what was mounted is released.

        Raises:
            SessionClosedError: the session was cleaned up.
            ModuleError: a module that the session cannot do without failed.
        """
        async with self._opening:
            if self.initialized:
                return
            if self._closed:
                raise SessionClosedError(f"Session {self.session_id} was cleaned up; make a new one")
            try:
                await self._mount_all()
            except BaseException:
                await self.coordinator.cleanup()
                raise
            self.initialized = True

    async def cleanup(self) -> None:
        """Release everything, last mounted first; a second call does nothing.

        A running turn is cancelled first. `session:end` is sent before the modules are released.
        """
        if self._closed:
            return
        self._closed = True
        await self._stop_turn()
        with anyio.CancelScope(shield=True):
            if self.initialized:
                stats = self.spending.to_dict()
                await self.coordinator.hooks.emit(SESSION_END, SessionEnd(status="completed", stats=stats))
            await self.coordinator.cleanup()
            self.initialized = False

    async def cancel(self, *, immediate: bool = False) -> None:
        """Ask the running turn to stop.

        Args:
            immediate: cancel the running step, instead of only starting no new one.
        """
        await self.coordinator.request_cancel(immediate)

    # -- turns

    async def execute(self, prompt: str) -> str:
        """Run one turn in the caller's task and return its answer.

        Raises:
            SessionBusyError: a turn is running.
            SessionClosedError: the session was cleaned up.
            TurnCancelled: `cancel` stopped the turn; the history is closed and the partial text kept.
            Exception: whatever a provider or the loop raised, unchanged.
        """
        if self._idle is not None:
            raise SessionBusyError(f"Session {self.session_id} runs a turn; wait for it or cancel it")
        if not self.initialized:
            await self.initialize()
        self._idle = anyio.Event()
        try:
            return await self._turn(prompt)
        finally:
            self.spending.add(self.coordinator.host.spending)
            self._idle.set()
            self._idle = None

    @asynccontextmanager
    async def stream(self, prompt: str) -> AsyncIterator[TurnStream]:
        """Run one turn in a task and read its events as they happen.

        The last event is `TurnFinished`. What the turn raises is raised to the reader, after all that came
        before. Leaving the block cancels a turn that still runs.
        """
        reading = TurnStream()

        async def run() -> None:
            try:
                text = await self.execute(prompt)
                spent = host.spending
                await reading.send(TurnFinished(text=text, usage=spent.usage, iterations=spent.provider_calls))
            except Exception as error:
                reading.close(error)
            finally:
                host.stream = None
                reading.close()

        if self._idle is not None:
            raise SessionBusyError(f"Session {self.session_id} runs a turn; wait for it or cancel it")
        host = self.coordinator.host
        host.stream = reading
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                try:
                    yield reading
                finally:
                    group.cancel_scope.cancel()
        except BaseExceptionGroup as failures:
            cause = first_cause(failures)
            if cause is failures:
                raise
            raise cause from cause.__cause__
        reading.raise_unseen()

    async def _turn(self, prompt: str) -> str:
        coordinator = self.coordinator
        coordinator.cancellation.reset()
        coordinator.reset_turn()
        token = current_span.set(Span(self.session_id, current_span.get()))
        try:
            await self._announce()
            if coordinator.host.journal is not None:
                await coordinator.host.journal.append(TurnStarted(turn_id=current_turn_id(), prompt=prompt))
            with anyio.CancelScope() as scope:
                coordinator.cancellation.attach(scope)
                try:
                    text = await self._orchestrate(prompt)
                finally:
                    coordinator.cancellation.attach(None)
            if scope.cancelled_caught:
                raise TurnCancelled("".join(coordinator.host.partial_text), immediate=True)
            if coordinator.host.journal is not None or coordinator.cancellation.is_cancelled:
                await self._end_turn("completed")
            return text
        except BaseException as error:
            failed = isinstance(error, Exception) and not isinstance(error, TurnCancelled)
            await self._end_turn("failed" if failed else "cancelled")
            raise
        finally:
            current_span.reset(token)

    async def _announce(self) -> None:
        """Emit `session:start` or `session:resume` before the first turn."""
        if self._started:
            return
        self._started = True
        settings = self.plan.session
        payload = SessionStart()
        if settings.metadata is not None:
            payload["metadata"] = settings.metadata
        if settings.raw:
            payload["config"] = self.config  # type: ignore[typeddict-item]  # a plan is JSON data
        await self.coordinator.hooks.emit(SESSION_RESUME if self.is_resumed else SESSION_START, payload)

    async def _orchestrate(self, prompt: str) -> str:
        """Call the loop with what is mounted now."""
        table = self.coordinator.mount_points
        orchestrator: Orchestrator = table["orchestrator"]  # type: ignore[assignment]  # checked when it was mounted
        context: ContextManager = table["context"]  # type: ignore[assignment]  # checked when it was mounted
        providers: dict[str, Provider] = table["providers"]  # type: ignore[assignment]  # checked as well
        if not providers and getattr(orchestrator, "needs_provider", True):
            raise ConfigError([Problem("providers", self._no_provider())], subject="session")
        arguments: dict[str, object] = {
            "prompt": prompt,
            "context": context,
            "providers": dict(providers),
            "tools": self._proxied(),
            "hooks": self.coordinator.hooks,
        }
        if self._passes_coordinator:
            arguments["coordinator"] = self.coordinator
        answer: object = await orchestrator.execute(**arguments)  # type: ignore[arg-type]  # the contract's five
        if not isinstance(answer, str):
            problem = f"its execute returned {type(answer).__name__}; it must return the answer's text"
            raise ModuleValidationError(self.plan.modules["orchestrator"][0].module, problem)
        return answer

    def _no_provider(self) -> str:
        failed = "; ".join(str(failure) for failure in self.failures)
        return "no provider is mounted" + (f": {failed}" if failed else "; name one in the plan's 'providers'")

    def _proxied(self) -> dict[str, Tool]:
        """Return the tools as proxies, made anew only when the tools changed."""
        tools: dict[str, Tool] = self.coordinator.mount_points["tools"]  # type: ignore[assignment]  # checked
        if tools != self._tools:
            self._tools = dict(tools)
            self._proxies = {name: ToolProxy(tool, self.coordinator.host) for name, tool in tools.items()}
        return dict(self._proxies)

    async def _end_turn(self, status: Literal["completed", "cancelled", "failed"]) -> None:
        """Close the history and tell everybody; runs to its end even when the caller is cancelled."""
        coordinator, journal = self.coordinator, self.coordinator.host.journal
        with anyio.CancelScope(shield=True), anyio.move_on_after(self.plan.session.limits.cleanup_timeout):
            if status != "completed":
                await self._close_history(status)
            if journal is not None:
                await journal.append(TurnEnded(turn_id=current_turn_id(), status=status))
            if coordinator.cancellation.is_cancelled:
                payload = CancelCompleted(was_immediate=coordinator.cancellation.is_immediate)
                await coordinator.hooks.emit(CANCEL_COMPLETED, payload)

    async def _close_history(self, status: str) -> None:
        """Answer every open call: with its result if it finished, else with a note that it did not.

        Text that the model had begun is kept as an incomplete answer.
        """
        context: ContextManager = self.coordinator.mount_points["context"]  # type: ignore[assignment]  # checked
        host = self.coordinator.host
        try:
            for call in open_calls(await context.get_messages()):
                result = host.finished.get(call.id)
                if result is not None:
                    message = tool_message(call.id, call.name, result.get_serialized_output())
                else:
                    message = closing_message(call, f"the call did not finish: the turn was {status}")
                await context.add_message(message)
            if host.partial_text:
                await context.add_message(
                    {"role": "assistant", "content": "".join(host.partial_text), "metadata": {"incomplete": True}}
                )
        except Exception as error:  # foreign code; the turn's own error matters more
            report("history.not_closed", error, session_id=self.session_id)

    async def _stop_turn(self) -> None:
        """Cancel a running turn and wait until it has ended, for as long as a cleanup may take."""
        if self._idle is not None:
            await self.cancel(immediate=True)
            with anyio.move_on_after(self.plan.session.limits.cleanup_timeout):
                await self._idle.wait()

    # -- mounting

    async def _mount_all(self) -> None:
        ready: list[LoadedModule] = []
        for kind in self.loader.kinds:
            for spec in self.plan.modules[kind.name]:
                try:
                    ready.append(await self._mount(spec, kind))
                except ModuleError as error:
                    if kind.name in REQUIRED:
                        raise
                    self.failures.append(error)
        self._check_mounted()
        for failure in self.failures:
            await self._announce_failure(failure)
        for module in ready:
            await self._tell_ready(module)
        if self.parent_id is not None:
            await self.coordinator.hooks.emit(SESSION_FORK, SessionFork(parent=self.parent_id))

    async def _mount(self, spec: ModuleSpec, kind: ModuleKind) -> LoadedModule:
        """Load and mount one module; every failure becomes an error that names it."""
        loaded = await self.loader.load(spec, kind, self.coordinator.plugins, self.plan.session.limits)
        try:
            await self.coordinator.mount_module(spec, kind, loaded.plugin)
        except ConfigError as error:
            problems = [Problem(f"{spec.path}.config.{problem.path}", problem.message) for problem in error.problems]
            raise ConfigError(problems, subject=f"configuration of module {spec.module!r}") from error
        except AmplifierError as error:
            if isinstance(error, ModuleError) and error.distribution is not None:
                raise
            raise _mount_error(loaded, error) from error
        except (Exception, SystemExit) as error:  # foreign code
            raise _mount_error(loaded, error) from error
        return loaded

    def _check_mounted(self) -> None:
        """Refuse to start without a loop or a context, and look once at how the loop is called."""
        table = self.coordinator.mount_points
        for kind in self.loader.kinds:
            if kind.single and table[kind.mount_point] is None:
                spec = self.plan.modules[kind.name][0]
                raise ModuleLoadError(spec.module, f"mounted no {kind.name}; the session cannot start without one")
        parameters = inspect.signature(table["orchestrator"].execute).parameters  # type: ignore[attr-defined]  # checked
        catches_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        self._passes_coordinator = catches_all or "coordinator" in parameters

    async def _announce_failure(self, failure: ModuleError) -> None:
        report("module.load_failed", failure, module=failure.module_id, distribution=failure.distribution)
        payload = ModuleLoadFailed(
            module_id=failure.module_id,
            module_type=self.loader.type_of(failure.module_id),
            error=str(failure),
            reason_code=_REASONS.get(type(failure), "unknown"),
        )
        await self.coordinator.hooks.emit(MODULE_LOAD_FAILED, payload)

    async def _tell_ready(self, module: LoadedModule) -> None:
        """Call a module's `on_session_ready`; a failure is announced and ends nothing."""
        if module.ready is None:
            return
        try:
            await module.ready(self.coordinator)
        except Exception as error:  # foreign code
            report("module.on_session_ready_failed", error, module=module.id)
            payload = ModuleOnSessionReadyFailed(module_id=module.id, error=f"{type(error).__name__}: {error}")
            await self.coordinator.hooks.emit(MODULE_ON_SESSION_READY_FAILED, payload)


_REASONS: Final[Mapping[type[ModuleError], str]] = {
    ModuleNotFoundError: "missing_source",
    ModuleLoadError: "invalid_entry_point",
    ModuleValidationError: "validation_failed",
    ModuleConflictError: "invalid_module_metadata",
}
"""The reason codes of `module:load_failed`."""


def _mount_error(loaded: LoadedModule, error: BaseException) -> ModuleError:
    """Name the module and its distribution in what went wrong while it mounted."""
    reason = error.reason if isinstance(error, ModuleError) else f"mounting failed: {type(error).__name__}: {error}"
    cls = type(error) if isinstance(error, (ModuleConflictError, ModuleValidationError)) else ModuleLoadError
    return cls(loaded.id, reason, distribution=loaded.distribution)
