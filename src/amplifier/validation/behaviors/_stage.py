"""A session with the module under test in it, and stand-ins for everything else."""

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
from amplifier.validation.behaviors._parts import Memory, PlainLoop
from amplifier.validation.behaviors.behavior import NotApplicable
from amplifier.validation.behaviors.subject import Samples, Subject
from amplifier_kit.scripted import ScriptedProvider, Step
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.contracts import ApprovalSystem, Cleanup, ContextManager, Orchestrator, Provider, Tool
from amplifier_sdk.decisions import HOOK_DECIDED
from amplifier_sdk.events import ALL_EVENTS
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.limits import Limits
from amplifier_sdk.loops.events import BASE_EVENTS
from amplifier_sdk.results import HookResult, ToolResult

Handler: TypeAlias = Callable[[str, dict[str, object]], Awaitable[HookResult | None] | HookResult | None]
"""What listens to an event."""

EAR: Final = "amplifier.validation"
"""The name of the handler that listens for the checks."""


@attrs.frozen(kw_only=True)
class Setting:
    """What is about the module under test.

    Args:
        steps: the scripted provider's.
        config: the module's configuration; default the subject's.
        tools: stand-ins beside, or without, those of the module.
        provider: a stand-in for the scripted provider.
        handlers: further handlers by event.
        limits: the session's.
        approval: who is asked.
        parent_id: the parent's id, for a child session.
        is_resumed: whether the session goes on from a stored one.
        instances: the ids of several instances of the module; default one without an id.
        bare: give the module no capability that it was not told to be given.
        directory: the session's directory; default one that is removed at the end.
        session_id: the session's id; default one of its own.
    """

    steps: tuple[Step, ...] = ()
    config: Mapping[str, JSONValue] | None = None
    tools: tuple[Tool, ...] = ()
    provider: Provider | None = None
    handlers: Mapping[str, Handler] = attrs.field(factory=dict)
    limits: Mapping[str, JSONValue] = attrs.field(factory=dict)
    approval: ApprovalSystem | None = None
    parent_id: str | None = None
    is_resumed: bool = False
    instances: tuple[str, ...] = ()
    bare: bool = False
    directory: Path | None = None
    session_id: str | None = None


@attrs.frozen(kw_only=True)
class Registered:
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
        return await answer if inspect.isawaitable(answer) else answer

    async def watch(self, event: str, data: dict[str, object]) -> HookResult | None:
        """Call the handler, and note what it raises."""
        try:
            return await self.call(event, data)
        except Exception as error:
            self.failures.append(error)
            raise


@attrs.define(eq=False, kw_only=True)
class Stage:
    """An open session: the module under test, its stand-ins, and what was heard and registered."""

    kind: str
    session: AmplifierSession
    model: ScriptedProvider
    memory: Memory
    directory: Path
    heard: list[tuple[str, dict[str, object]]] = attrs.field(factory=list)
    handlers: list[Registered] = attrs.field(factory=list)
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
        match self.kind:
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

    async def call(self, name: str, arguments: Mapping[str, JSONValue]) -> ToolResult:
        """Run one call of a tool as a turn does, whatever the arguments."""
        call = ToolCall(id=f"call-{name}", name=name, arguments=dict(arguments))
        return await self.coordinator.host.run_tool(call, self.tools)

    async def turn(self, prompt: str = "Begin.") -> str:
        """Run one turn."""
        return await self.session.execute(prompt)

    def all(self, event: str) -> list[dict[str, object]]:
        """Return the data of an event as often as it was heard."""
        return [data for name, data in self.heard if name == event]

    @property
    def events(self) -> list[str]:
        """The names of the events heard, in order."""
        return [name for name, _ in self.heard]

    @property
    def unknown_events(self) -> list[str]:
        """The events heard that are none of the canonical ones and none of every loop's."""
        return sorted(
            {name for name in self.events if name not in ALL_EVENTS and name not in (*BASE_EVENTS, HOOK_DECIDED)}
        )


class _Loader(ModuleLoader):
    """Knows the stand-ins, and leaves the module under test to its own loader."""

    def __init__(self, stand_ins: Mapping[str, object], own: ModuleLoader) -> None:
        super().__init__(search_paths=(), modules=stand_ins, kinds=own.kinds, path=[])
        self._stand_ins = frozenset(stand_ins)
        self._own = own

    async def find(
        self, spec: ModuleSpec, *, resolver: object = None, limits: Limits = Limits(), paths: ImportPaths
    ) -> ImportedModule:
        if spec.module in self._stand_ins:
            return await super().find(spec, resolver=resolver, limits=limits, paths=paths)
        return await self._own.find(spec, resolver=resolver, limits=limits, paths=paths)


@asynccontextmanager
async def open_stage(
    subject: Subject, setting: Setting | None = None, *steps: Step, kept: list[Stage] | None = None
) -> AsyncIterator[Stage]:
    """Mount the module in a session of its own, in a directory of its own, and release it at the end.

    Args:
        subject: the module.
        setting: what is about it.
        steps: the scripted provider's, instead of those of the setting.
        kept: takes the stage, also when the module cannot be mounted.

    Raises:
        AmplifierError: the module cannot be mounted with this configuration.
    """
    setting = attrs.evolve(setting or Setting(), steps=steps) if steps else setting or Setting()
    samples = subject.told(Samples)
    async with AsyncExitStack() as stack:
        directory = setting.directory
        if directory is None:
            directory = Path(stack.enter_context(TemporaryDirectory(prefix="amplifier-behavior-")))
        for name, text in samples.files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        more = await stack.enter_async_context(samples.around()) if samples.around is not None else None
        config = {**(subject.config if setting.config is None else setting.config), **(more or {})}
        stage = _build(subject, setting, config, directory)
        if kept is not None:
            kept.append(stage)
        _offer(stage, samples, setting)
        await stack.enter_async_context(stage.session)
        if stage.session.failures:
            raise stage.session.failures[0]
        yield stage


def _build(subject: Subject, setting: Setting, config: Mapping[str, JSONValue], directory: Path) -> Stage:
    model, memory = ScriptedProvider(*setting.steps), Memory()
    stand_ins: dict[str, object] = {
        "stand-in-loop": mounting(PlainLoop()),
        "stand-in-context": mounting(memory),
        "stand-in-provider": mounting(setting.provider or model),
        **{f"stand-in-tool-{index}": mounting(tool) for index, tool in enumerate(setting.tools)},
    }
    named = isinstance(subject.module, str)
    module = str(subject.module) if named else f"{subject.kind}-under-test"
    if not named:
        stand_ins[module] = subject.module
    entries: list[object] = [{"module": module, "config": dict(config)}]
    if setting.instances:
        entries = [{"module": module, "config": dict(config), "instance_id": name} for name in setting.instances]
    tools: list[object] = [f"stand-in-tool-{index}" for index in range(len(setting.tools))]
    plan: dict[str, object] = {
        "session": {
            "orchestrator": entries[0] if subject.kind == "orchestrator" else "stand-in-loop",
            "context": entries[0] if subject.kind == "context" else "stand-in-context",
            "limits": dict(setting.limits),
        },
        "providers": entries if subject.kind == "provider" else ["stand-in-provider"],
        "tools": [*entries, *tools] if subject.kind == "tool" else tools,
        "hooks": entries if subject.kind == "hook" else [],
    }
    session = AmplifierSession(
        plan,
        _Loader(stand_ins, subject.loader or ModuleLoader()),
        setting.session_id,
        parent_id=setting.parent_id,
        approval_system=setting.approval,
        is_resumed=setting.is_resumed,
    )
    return Stage(kind=subject.kind, session=session, model=model, memory=memory, directory=directory)


def _offer(stage: Stage, samples: Samples, setting: Setting) -> None:
    """Give the module its capabilities, and listen to what it does."""
    coordinator = stage.coordinator
    if not setting.bare:
        coordinator.register_capability("session.working_dir", str(stage.directory))
        coordinator.register_capability("session.dir", str(stage.directory / ".session"))
    for name, value in samples.capabilities.items():
        coordinator.register_capability(name, value)

    def hear(event: str, data: dict[str, object]) -> None:
        stage.heard.append((str(event), data))

    coordinator.hooks.register("*", hear, -(10**9), EAR)
    for event, handler in setting.handlers.items():
        coordinator.hooks.register(event, handler, 0, f"{EAR}.{event}")
    register, register_cleanup = coordinator.hooks.register, coordinator.register_cleanup

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
        noted = Registered(
            event=str(event), handler=handler, priority=priority, name=own if name is None else name, decides=decides
        )
        stage.handlers.append(noted)
        return register(event, noted.watch, priority, noted.name, decides=decides, timeout=timeout)

    def note_cleanup(cleanup: Cleanup) -> None:
        stage.cleanups.append(cleanup)
        register_cleanup(cleanup)

    vars(coordinator.hooks).update(register=note_handler, on=note_handler)
    vars(coordinator)["register_cleanup"] = note_cleanup


def mounting(instance: object) -> object:
    """Make a `mount` function that returns an instance."""

    async def mount(coordinator: object, config: object) -> object:
        return instance

    return mount


def skip_unless(value: object, why: str) -> None:
    """Go on when there is something to check.

    Raises:
        NotApplicable: there is not.
    """
    if not value:
        raise NotApplicable(why)
