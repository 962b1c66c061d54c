"""A session with the module under test in it, and doubles for everything else."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

import attrs

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier.kernel.modules.imports import ImportPaths
from amplifier.kernel.modules.loader import ModuleLoader
from amplifier.kernel.modules.shapes import ImportedModule
from amplifier.kernel.plans.plan import ModuleSpec
from amplifier.kernel.sessions.session import AmplifierSession
from amplifier.validation.behaviors._doubles import (
    Approver,
    ListContext,
    PlainLoop,
    RecordingTool,
)
from amplifier.validation.behaviors.behavior import scenario
from amplifier.validation.behaviors.subject import Samples, Subject
from amplifier_kit.scripted import ScriptedProvider, Step
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.contracts import (
    Cleanup,
    ContextManager,
    Orchestrator,
    Provider,
    Tool,
)
from amplifier_sdk.decisions import HOOK_DECIDED
from amplifier_sdk.events import ALL_EVENTS
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.limits import Limits
from amplifier_sdk.loops.events import BASE_EVENTS
from amplifier_sdk.results import HookResult, ToolResult

__all__ = [
    "Handler",
    "Harness",
    "RegisteredHandler",
    "SessionSetup",
    "mounting",
    "open_harness",
    "session",
]

Handler: TypeAlias = Callable[
    [str, dict[str, object]], Awaitable[HookResult | None] | HookResult | None
]
"""What is called for an event."""

LISTENER: Final = "amplifier.validation"
"""How the names of the checks' own handlers begin."""


@attrs.frozen(kw_only=True)
class SessionSetup:
    """How a session is set up around the module under test.

    Args:
        steps: the scripted provider's.
        config: the module's configuration; default the subject's.
        tools: what makes the tools beside, or without, those of the module.
        provider: what makes another provider than the scripted one.
        answers: what a handler answers to an event, the first times; then nothing.
        approval: what the person answers to every question; `None` means that there is nobody.
        limits: the session's.
        parent_id: the parent's id, for a child session.
        is_resumed: whether the session resumes a stored one.
        instances: the ids of several instances of the module; default one without an id.
        is_bare: whether the module gets no capability but those of its samples.
        directory: the session's directory; default one that is removed at the end.
        session_id: the session's id; default one of its own.
    """

    steps: tuple[Step, ...] = ()
    config: Mapping[str, JSONValue] | None = None
    tools: tuple[Callable[[], RecordingTool], ...] = ()
    provider: Callable[[], Provider] | None = None
    answers: Mapping[str, tuple[HookResult, ...]] = attrs.field(factory=dict)
    approval: str | None = None
    limits: Mapping[str, JSONValue] = attrs.field(factory=dict)
    parent_id: str | None = None
    is_resumed: bool = False
    instances: tuple[str, ...] = ()
    is_bare: bool = False
    directory: Path | None = None
    session_id: str | None = None


@attrs.frozen(kw_only=True)
class RegisteredHandler:
    """A handler that the module registered."""

    event: str
    handler: Handler
    priority: object
    name: str
    decides: bool | None
    failures: list[BaseException] = attrs.field(factory=list, eq=False)

    async def call(self, event: str, data: dict[str, object]) -> HookResult | None:
        """Call the handler as the registry does."""
        answer = self.handler(event, data)
        if inspect.isawaitable(answer):
            return await answer
        return answer

    async def watch(self, event: str, data: dict[str, object]) -> HookResult | None:
        """Call the handler, and note what it raises."""
        try:
            return await self.call(event, data)
        except Exception as error:
            self.failures.append(error)
            raise


@attrs.define(eq=False, kw_only=True)
class Harness:
    """An open session: the module under test, its doubles, and what was emitted and registered."""

    subject: Subject
    session: AmplifierSession
    model: ScriptedProvider
    memory: ListContext
    directory: Path
    workers: list[RecordingTool]
    person: Approver | None = None
    heard: list[tuple[str, dict[str, object]]] = attrs.field(factory=list)
    handlers: list[RegisteredHandler] = attrs.field(factory=list)
    cleanups: list[Cleanup] = attrs.field(factory=list)

    @property
    def coordinator(self) -> ModuleCoordinator:
        """The session's coordinator."""
        return self.session.coordinator

    @property
    def tools(self) -> dict[str, Tool]:
        """What is mounted as tools."""
        return self.coordinator.tools

    @property
    def provider(self) -> Provider:
        """The one mounted provider."""
        (provider,) = self.coordinator.providers.values()
        return provider

    @property
    def context(self) -> ContextManager:
        """The mounted context manager."""
        return self.coordinator.context

    @property
    def loop(self) -> Orchestrator:
        """The mounted loop."""
        return self.coordinator.orchestrator

    @property
    def instances(self) -> list[object]:
        """What the module mounted; a hook mounts nothing."""
        match self.subject.kind:
            case "tool":
                return list(self.tools.values())
            case "provider":
                return list(self.coordinator.providers.values())
            case "orchestrator":
                return [self.loop]
            case "context":
                return [self.context]
            case _:
                return []

    @property
    def named(self) -> Mapping[str, object]:
        """What is mounted by name where the module's type is; nothing for the other types."""
        mounted: dict[str, Mapping[str, object]] = {
            "tool": self.tools,
            "provider": self.coordinator.providers,
        }
        return mounted.get(self.subject.kind, {})

    @property
    def own_handlers(self) -> list[str]:
        """The names of the handlers that are registered and not those of the checks."""
        listing = self.coordinator.hooks.list_handlers()
        return sorted(
            {
                name
                for names in listing.values()
                for name in names
                if not name.startswith(LISTENER)
            }
        )

    @property
    def events(self) -> list[str]:
        """The names of the events heard, in order."""
        return [name for name, _ in self.heard]

    @property
    def unknown_events(self) -> list[str]:
        """The events heard that are neither canonical nor those of every loop."""
        known = {*ALL_EVENTS, *BASE_EVENTS, HOOK_DECIDED}
        return sorted(set(self.events) - known)

    def data_of(self, event: str) -> list[dict[str, object]]:
        """Return the data of an event as often as it was heard."""
        return [data for name, data in self.heard if name == event]

    async def contributions(self) -> list[object]:
        """Return what is contributed to `observability.events`."""
        return await self.coordinator.collect_contributions("observability.events")

    async def declared_events(self) -> list[str]:
        """Return the names in all lists that are contributed there."""
        return [
            name
            for names in await self.contributions()
            if isinstance(names, (list, tuple))
            for name in names
        ]

    async def call(self, name: str, arguments: Mapping[str, JSONValue]) -> ToolResult:
        """Run one call of a tool as a turn does, whatever the arguments."""
        call = ToolCall(id=f"call-{name}", name=name, arguments=dict(arguments))
        return await self.coordinator.host.run_tool(call, self.tools)

    async def turn(self, prompt: str = "Begin.") -> str:
        """Run one turn."""
        return await self.session.execute(prompt)


class _Loader(ModuleLoader):
    """Knows the doubles, and leaves the module under test to its own loader."""

    def __init__(self, doubles: Mapping[str, object], own: ModuleLoader) -> None:
        super().__init__(search_paths=(), modules=doubles, kinds=own.kinds, path=[])
        self._doubles = frozenset(doubles)
        self._own = own

    async def find(
        self,
        spec: ModuleSpec,
        *,
        resolver: object = None,
        limits: Limits = Limits(),
        paths: ImportPaths,
    ) -> ImportedModule:
        if spec.module in self._doubles:
            return await super().find(
                spec, resolver=resolver, limits=limits, paths=paths
            )
        return await self._own.find(spec, resolver=resolver, limits=limits, paths=paths)


@scenario
async def session(
    subject: Subject, setup: SessionSetup = SessionSetup()
) -> AsyncIterator[tuple[Harness]]:
    """Open a session: the plainest scenario."""
    async with open_harness(subject, setup) as harness:
        yield (harness,)


@asynccontextmanager
async def open_harness(
    subject: Subject,
    setup: SessionSetup = SessionSetup(),
    *,
    opened: list[Harness] | None = None,
) -> AsyncIterator[Harness]:
    """Mount the module in a session of its own, in a directory of its own, and release it at the end.

    Args:
        subject: the module.
        setup: what is about it.
        opened: takes the harness, also when the module cannot be mounted.

    Raises:
        AmplifierError: the module cannot be mounted with this configuration.
    """
    samples = subject.samples_as(Samples)
    async with AsyncExitStack() as stack:
        directory = setup.directory
        if directory is None:
            directory = Path(
                stack.enter_context(TemporaryDirectory(prefix="amplifier-behavior-"))
            )
        for name, text in samples.files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            # as bytes: a text file would get the line ends of the system
            path.write_bytes(text.encode())
        config = dict(subject.config if setup.config is None else setup.config)
        if samples.around is not None:
            more = await stack.enter_async_context(samples.around())
            config.update({} if more is None else more)
        # built and listened to before it is opened: what happens while it mounts counts
        harness = _build(subject, setup, config, directory)
        if opened is not None:
            opened.append(harness)
        _offer(harness, samples, setup)
        await stack.enter_async_context(harness.session)
        # a session opens without a module that fails; here that module is all there is
        if harness.session.failures:
            raise harness.session.failures[0]
        yield harness


def _build(
    subject: Subject,
    setup: SessionSetup,
    config: Mapping[str, JSONValue],
    directory: Path,
) -> Harness:
    model, memory = ScriptedProvider(*setup.steps), ListContext()
    workers = [make() for make in setup.tools]
    if setup.approval is None:
        person = None
    else:
        person = Approver(setup.approval)
    doubles: dict[str, object] = {
        "double-loop": mounting(PlainLoop()),
        "double-context": mounting(memory),
        "double-provider": mounting(
            model if setup.provider is None else setup.provider()
        ),
        **{
            f"double-tool-{index}": mounting(worker)
            for index, worker in enumerate(workers)
        },
    }
    module = subject.module
    # an object is named by the plan like any module; an id is looked up as usual
    if not isinstance(module, str):
        doubles[f"{subject.kind}-under-test"] = module
        module = f"{subject.kind}-under-test"
    entries: list[object] = [{"module": module, "config": dict(config)}]
    if setup.instances:
        entries = [
            {"module": module, "config": dict(config), "instance_id": name}
            for name in setup.instances
        ]
    single: dict[str, object] = {
        "orchestrator": "double-loop",
        "context": "double-context",
    }
    several: dict[str, list[object]] = {
        "providers": ["double-provider"],
        "tools": [],
        "hooks": [],
    }
    if subject.kind in single:
        single[subject.kind] = entries[0]
    else:
        several[f"{subject.kind}s"] = entries
    several["tools"] += [f"double-tool-{index}" for index in range(len(workers))]
    session = AmplifierSession(
        {"session": {**single, "limits": dict(setup.limits)}, **several},
        _Loader(doubles, subject.loader or ModuleLoader()),
        setup.session_id,
        parent_id=setup.parent_id,
        approval_system=person,
        is_resumed=setup.is_resumed,
    )
    return Harness(
        subject=subject,
        session=session,
        model=model,
        memory=memory,
        directory=directory,
        workers=workers,
        person=person,
    )


def _offer(harness: Harness, samples: Samples, setup: SessionSetup) -> None:
    """Give the module its capabilities, and listen to what it does."""
    coordinator = harness.coordinator
    if not setup.is_bare:
        coordinator.register_capability("session.working_dir", str(harness.directory))
        coordinator.register_capability(
            "session.dir", str(harness.directory / ".session")
        )
    for name, value in samples.capabilities.items():
        coordinator.register_capability(name, value)

    def hear(event: str, data: dict[str, object]) -> None:
        harness.heard.append((str(event), data))

    # in front of every handler, which might deny and so hide the event from the others
    coordinator.hooks.register("*", hear, -(10**9), LISTENER)
    for event, results in setup.answers.items():
        coordinator.hooks.register(event, _answering(results), 0, f"{LISTENER}.{event}")
    register, register_cleanup = (
        coordinator.hooks.register,
        coordinator.register_cleanup,
    )

    def note_handler(
        event: str,
        handler: Handler,
        priority: int = 0,
        name: str | None = None,
        *,
        decides: bool | None = None,
        timeout: float | None = None,
    ) -> Callable[[], None]:
        own = str(getattr(handler, "__name__", type(handler).__name__))
        noted = RegisteredHandler(
            event=str(event),
            handler=handler,
            priority=priority,
            name=own if name is None else name,
            decides=decides,
        )
        harness.handlers.append(noted)
        return register(
            event, noted.watch, priority, noted.name, decides=decides, timeout=timeout
        )

    def note_cleanup(cleanup: Cleanup) -> None:
        harness.cleanups.append(cleanup)
        register_cleanup(cleanup)

    # On this one object: a subclass would be another coordinator than sessions have.
    vars(coordinator.hooks).update(register=note_handler, on=note_handler)
    vars(coordinator)["register_cleanup"] = note_cleanup


def _answering(results: tuple[HookResult, ...]) -> Handler:
    left = list(results)

    def answer(event: str, data: dict[str, object]) -> HookResult | None:
        if left:
            return left.pop(0)
        return None

    return answer


def mounting(instance: object) -> object:
    """Make a `mount` function that returns an instance."""

    async def mount(coordinator: object, config: object) -> object:
        return instance

    return mount
