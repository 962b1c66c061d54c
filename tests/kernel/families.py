"""Sessions that delegate: a plan with agents, a tool that spawns, and modules that every child mounts anew."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import attrs

from amplifier import AmplifierSession, ModuleCoordinator
from amplifier_sdk.contracts import ApprovalSystem, Coordinator
from amplifier_sdk.delegation import (
    ChildResult,
    ChildResume,
    SessionSpawn,
    SpawnOptions,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import ToolResult
from tests.doubles import (
    EchoLoop,
    MemoryContext,
    Mount,
    Recorder,
    ScriptedProvider,
    Step,
    build_loader,
    build_plan,
)

__all__ = ["Delegate", "Family", "family", "fresh", "spawn_of"]


def fresh(make: Callable[[], object]) -> Mount:
    """Make a module that mounts a new instance each time."""

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        return make()

    return mount


def spawn_of(coordinator: Coordinator) -> SessionSpawn:
    """Return the capability `session.spawn` as a module sees it."""
    spawn: SessionSpawn = coordinator.get_capability("session.spawn")  # type: ignore[assignment]  # an open value
    return spawn


def resume_of(coordinator: Coordinator) -> ChildResume:
    """Return the capability `session.resume` as a module sees it."""
    resume: ChildResume = coordinator.get_capability("session.resume")  # type: ignore[assignment]  # likewise
    return resume


@attrs.define(eq=False)
class Delegate:
    """A tool that spawns a child with the agent and instruction of its input, and keeps the results."""

    coordinator: Coordinator
    options: SpawnOptions
    results: list[ChildResult]
    name: str = "delegate"
    description: str = "Delegates."
    input_schema: Mapping[str, JSONValue] = attrs.field(
        factory=lambda: {"type": "object"}
    )

    async def execute(self, input: JSONObject, /) -> ToolResult:
        options: SpawnOptions = {
            **self.options,
            "agent_name": str(input.get("agent", "helper")),
        }
        options["instruction"] = str(input.get("instruction", "help"))
        result = await spawn_of(self.coordinator)(**options)
        self.results.append(result)
        return ToolResult(output=result.to_dict())


@attrs.define(eq=False)
class Family:
    """A session that may delegate, its provider, and what became of it: every event of every session, by session."""

    session: AmplifierSession
    provider: ScriptedProvider
    results: list[ChildResult] = attrs.field(factory=list)
    coordinators: list[ModuleCoordinator] = attrs.field(factory=list)
    events: Recorder = attrs.field(factory=Recorder)

    def names(self, pattern: str, session_id: str) -> list[str]:
        """The events of one session whose names begin with a pattern."""
        return [
            name
            for name, data in self.events.events
            if name.startswith(pattern) and data["session_id"] == session_id
        ]

    @property
    def child(self) -> ModuleCoordinator:
        """The coordinator of the child that was made last."""
        return self.coordinators[-1]


def family(
    *steps: Step,
    agents: Mapping[str, object] | None = None,
    provider: ScriptedProvider | None = None,
    tools: Mapping[str, object] | None = None,
    hooks: Mapping[str, object] | None = None,
    limits: Mapping[str, object] | None = None,
    options: SpawnOptions | None = None,
    approval: ApprovalSystem | None = None,
    context: Callable[[], object] = MemoryContext,
    watch: Callable[[ModuleCoordinator], Awaitable[object] | object] | None = None,
    plan: Mapping[str, object] | None = None,
    others: Mapping[str, object] | None = None,
) -> Family:
    """Make a session with the tool `delegate`; `watch` is called with the coordinator of every session that mounts."""
    provider = provider or ScriptedProvider(*steps)
    made: list[Family] = []

    async def mount_delegate(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        given: SpawnOptions = options or {"agent_name": "", "instruction": ""}
        return Delegate(coordinator, given, made[0].results)

    async def mount_watch(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> None:
        assert isinstance(coordinator, ModuleCoordinator)
        made[0].coordinators.append(coordinator)
        coordinator.hooks.register(
            "*", made[0].events.hear, -1000, "recorder", decides=False
        )
        if watch is not None:
            watch(coordinator)

    modules = {
        "loop": fresh(EchoLoop),
        "context": fresh(context),
        "provider": provider,
        "tool-delegate": mount_delegate,
        "hooks-watch": mount_watch,
        **(tools or {}),
        **(hooks or {}),
    }
    whole = build_plan(
        providers=["provider"],
        tools=["tool-delegate", *(tools or {})],
        hooks=["hooks-watch", *(hooks or {})],
        limits=limits,
    )
    whole |= {"agents": {"helper": {}} if agents is None else agents, **(plan or {})}
    session = AmplifierSession(
        whole, build_loader({**modules, **(others or {})}), approval_system=approval
    )
    made.append(Family(session, provider))
    return made[0]


def texts(
    messages: Sequence[Mapping[str, JSONValue]],
) -> list[tuple[JSONValue, JSONValue]]:
    """The roles and contents of stored messages."""
    return [(message["role"], message["content"]) for message in messages]
