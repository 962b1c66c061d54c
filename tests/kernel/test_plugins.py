"""Mounting: what modules return, what pluggy knows, what an application adds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, MutableMapping
from types import SimpleNamespace
from typing import Final, Protocol, runtime_checkable

import attrs
import pytest
from pluggy import HookimplMarker, HookspecMarker

from amplifier import AmplifierSession, ModuleCoordinator
from amplifier.kernel.modules.mounts import MountedInstance
from amplifier.kernel.modules.plugins import Plugins
from amplifier_sdk import (
    hook,
    hookspec,
    module,
    on,
    orchestrator,
    provider,
    tool,
    toolset,
)
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import (
    ConfigError,
    HookspecError,
    ModuleConfigError,
    ModuleConflictError,
    ModuleLoadError,
    ModuleValidationError,
    Problem,
)
from amplifier_sdk.events import TOOL_PRE, ToolPre
from amplifier_sdk.hookspecs import KINDS, Config, ModuleKind
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import HookResult
from tests.doubles import (
    EchoLoop,
    MemoryContext,
    Recorder,
    ScriptedProvider,
    Worker,
    build_loader,
    build_plan,
    build_session,
    call,
    calling,
    mounted_context,
    mounting,
    only_result,
)

Reports = list[MutableMapping[str, object]]


def a_session(modules: Mapping[str, object], **sections: object) -> AmplifierSession:
    """A session of a loop, a context and the modules given; `sections` are the plan's lists."""
    basis = {"loop": EchoLoop(), "context": MemoryContext()}
    return AmplifierSession(build_plan(**sections), build_loader({**basis, **modules}))  # type: ignore[arg-type]


# -- what modules return


async def test_a_module_may_return_one_instance_or_several_or_none() -> None:
    modules = {
        "one": Worker("one"),
        "several": mounting([Worker("two"), Worker("three")]),
        "none": mounting(None),
    }

    async with a_session(modules, tools=["one", "several", "none"]) as session:
        assert list(session.coordinator.tools) == ["one", "two", "three"]
        assert session.failures == ()


async def test_a_module_may_mount_by_itself_and_return_a_cleanup() -> None:
    order: list[str] = []

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        await coordinator.mount("tools", Worker("mine"), name="by-name")
        return lambda: order.append("released")

    async with a_session({"own": mount}, tools=["own"]) as session:
        assert list(session.coordinator.tools) == ["by-name"]

    assert order == ["released"]


async def test_instance_that_is_mounted_and_returned_is_mounted_once() -> None:
    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        worker = Worker("mine")
        await coordinator.mount("tools", worker, name="other-name")
        return worker

    async with a_session({"own": mount}, tools=["own"]) as session:
        assert list(session.coordinator.tools) == ["other-name"]


async def test_mounting_instance_again_at_its_place_changes_nothing() -> None:
    coordinator = ModuleCoordinator()
    worker, context = Worker("mine"), MemoryContext()

    for _ in range(2):
        await coordinator.mount("tools", worker)
        await coordinator.mount("context", context)

    assert coordinator.tools == {"mine": worker}
    assert coordinator.context is context


async def test_callable_returned_by_hook_module_is_its_cleanup() -> None:
    order: list[str] = []
    hooks = {
        "a": mounting(lambda: order.append("released")),
        "b": mounting("not a handler"),
        "c": mounting(None),
    }

    async with a_session(hooks, hooks=["a", "b", "c"]):
        assert order == []

    assert order == ["released"]


async def test_instance_that_lacks_member_is_named_with_what_it_lacks() -> None:
    class Half:
        name = "half"
        description = "Half a tool."

    async with a_session({"half": mounting(Half())}, tools=["half"]) as session:
        (failure,) = session.failures

    assert isinstance(failure, ModuleValidationError)
    assert str(failure).startswith("Module 'half': ")
    assert failure.reason.endswith(
        "Half is no tool: execute: missing; it is an async method"
    )


async def test_a_class_instead_of_an_instance_is_named() -> None:
    async with a_session({"cls": mounting(dict)}, tools=["cls"]) as session:
        (failure,) = session.failures

    assert isinstance(failure, ModuleValidationError)
    assert "type is no tool: name: missing" in str(failure)


async def test_tool_claiming_taken_name_fails_naming_both_modules() -> None:
    modules = {"first": Worker("same"), "second": Worker("same")}

    async with a_session(modules, tools=["first", "second"]) as session:
        (failure,) = session.failures
        assert isinstance(failure, ModuleConflictError)
        assert failure.module_id == "second"
        assert "the name 'same' at 'tools' is taken by 'first'" in str(failure)
        assert list(session.coordinator.tools) == ["same"]


async def test_name_that_module_wrote_into_table_itself_is_taken_too() -> None:
    coordinator = ModuleCoordinator()
    coordinator.tools["same"] = Worker("same")

    with pytest.raises(ModuleConflictError, match="is taken by 'Worker'"):
        await coordinator.mount("tools", Worker("same"))


async def test_what_a_failing_module_had_mounted_is_taken_away_again() -> None:
    order: list[str] = []

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        coordinator.register_cleanup(lambda: order.append("released"))
        await coordinator.mount("tools", Worker("half"))
        raise ConnectionError("cannot connect")

    async with a_session(
        {"half": mount, "fine": Worker("fine")}, tools=["half", "fine"]
    ) as session:
        assert list(session.coordinator.tools) == ["fine"]

    assert order == ["released"]


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (
            OSError("no key"),
            ModuleLoadError,
            "Module 'broken': mounting failed: OSError: no key",
        ),
        (
            SystemExit(4),
            ModuleLoadError,
            "Module 'broken': mounting failed: SystemExit: 4",
        ),
        (
            HookspecError("bad"),
            ModuleLoadError,
            "Module 'broken': mounting failed: HookspecError: bad",
        ),
        (
            ModuleConflictError("x", "taken"),
            ModuleConflictError,
            "Module 'broken': taken",
        ),
        (
            ModuleLoadError("x", "why", distribution="d"),
            ModuleLoadError,
            "Module 'x' (from d): why",
        ),
    ],
)
async def test_a_provider_that_fails_to_mount_is_kept_as_a_failure(
    error: BaseException, kind: type[Exception], text: str, reports: Reports
) -> None:
    session = a_session(
        {"broken": mounting(error), "fine": ScriptedProvider("hi")},
        providers=["broken", "fine"],
    )
    recorder = Recorder.of(session.coordinator.hooks, "module:load_failed")
    async with session:
        assert await session.execute("go") == "hi"
        (failure,) = session.failures

    assert type(failure) is kind
    assert str(failure) == f"{text} (at providers[0] in the mount plan)"
    announced = recorder.one("module:load_failed")
    assert announced["error"] == str(failure)
    is_conflict = kind is ModuleConflictError
    assert announced["reason_code"] == (
        "invalid_module_metadata" if is_conflict else "invalid_entry_point"
    )
    assert [report["event"] for report in reports] == ["module.load_failed"]


# -- configuration


@attrs.frozen(kw_only=True)
class Colours:
    colour: str = "red"
    weight: int = 1


@toolset
class Paint:
    """Tools with a configuration."""

    def __init__(self, config: Colours) -> None:
        self.config = config

    @tool
    async def paint(self) -> str:
        """Paint."""
        return self.config.colour

    @tool
    async def weigh(self) -> int:
        """Weigh."""
        return self.config.weight


async def test_a_configuration_reaches_its_module() -> None:
    plan = [{"module": "paint", "config": {"colour": "blue"}}]
    session = a_session(
        {"paint": Paint, "provider": ScriptedProvider(calling(call("paint")), "end")},
        tools=plan,
        providers=["provider"],
    )
    async with session:
        await session.execute("go")

        assert list(session.coordinator.tools) == ["paint", "weigh"]
        assert only_result(mounted_context(session.coordinator).messages) == "blue"


async def test_invalid_config_skips_module_with_paths_of_plan() -> None:
    plan = [
        {"module": "paint", "config": {"color": "blue", "weight": "heavy"}},
        "speak",
    ]
    session = a_session({"paint": Paint, "speak": Worker("speak")}, tools=plan)
    failed = Recorder.of(session.coordinator.hooks, "module:*")

    async with session:
        assert list(session.coordinator.tools) == ["speak"]
        (failure,) = session.failures

    assert isinstance(failure, ModuleConfigError)
    assert str(failure).startswith("The configuration of module 'paint' has 2 problems")
    assert (failure.module_id, failure.path) == ("paint", "tools[0]")
    assert sorted(problem.path for problem in failure.problems) == [
        "tools[0].config.color",
        "tools[0].config.weight",
    ]
    (announced,) = failed.all("module:load_failed")
    assert (announced["module_id"], announced["reason_code"]) == (
        "paint",
        "validation_failed",
    )


async def test_a_loop_s_configuration_is_named_where_the_plan_has_it() -> None:
    @orchestrator
    class Strict(EchoLoop):
        """A loop without a configuration."""

    plan = {
        **build_plan(providers=["provider"]),
        "orchestrator": {"config": {"speed": 1}},
    }
    modules = {
        "loop": Strict,
        "context": MemoryContext(),
        "provider": ScriptedProvider(),
    }
    session = AmplifierSession(plan, build_loader(modules))

    with pytest.raises(ConfigError) as caught:
        await session.initialize()

    assert [problem.path for problem in caught.value.problems] == [
        "orchestrator.config.speed"
    ]


async def test_problem_of_whole_configuration_has_path_of_it() -> None:
    session = a_session(
        {"odd": mounting(ConfigError([Problem("", "one of 'a' and 'b' is needed")]))},
        tools=["odd"],
    )

    async with session:
        (failure,) = session.failures

    assert failure.reason == "tools[0].config: one of 'a' and 'b' is needed"


async def test_a_hook_that_refuses_its_configuration_ends_the_start() -> None:
    refusal = ConfigError([Problem("rules", "no list")])
    session = a_session({"guard": mounting(refusal)}, hooks=["guard"])

    with pytest.raises(ModuleConfigError, match=r"hooks\[0\].config.rules: no list"):
        await session.initialize()


async def test_module_mutating_its_config_leaves_plan_unchanged() -> None:
    async def mount(coordinator: Coordinator, config: dict[str, JSONValue]) -> object:
        return Worker(str(config.pop("name")))

    plan = [{"module": "greedy", "config": {"name": "x"}}]
    for _ in range(2):
        async with a_session({"greedy": mount}, tools=plan) as session:
            assert list(session.coordinator.tools) == ["x"]


# -- pluggy


async def test_unregistering_mounted_instance_from_pluggy_unmounts_it() -> None:
    async with a_session(
        {"one": Worker("one"), "two": Worker("two")}, tools=["one", "two"]
    ) as session:
        coordinator = session.coordinator
        manager = coordinator.plugins.manager
        assert {
            "tools/one",
            "tools/two",
            "session/context",
            "session/orchestrator",
            "one",
            "loop",
        } <= {name for name, _ in manager.list_name_plugin()}

        manager.unregister(name="tools/one")
        assert list(coordinator.tools) == ["two"]
        manager.unregister(manager.get_plugin("session/context"))
        assert coordinator.get("context") is None


async def test_unregistering_in_pluggy_removes_mounts_and_handlers() -> None:
    heard: list[str] = []
    released: list[str] = []

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        async def on_start(event: str, data: dict[str, object]) -> None:
            heard.append(f"{config['named']}: {event}")

        name = str(config["named"])
        coordinator.hooks.register("own:event", on_start)
        coordinator.register_cleanup(lambda: released.append(name))
        await coordinator.mount("tools", Worker(f"{name}-first"))
        return [Worker(f"{name}-second")]

    tools = [{"module": name, "config": {"named": name}} for name in ("gone", "kept")]
    async with a_session({"gone": mount, "kept": mount}, tools=tools) as session:
        coordinator = session.coordinator
        coordinator.hooks.register(
            "own:event", lambda event, data: heard.append(f"application: {event}")
        )
        await coordinator.mount("tools", Worker("of-the-application"))

        coordinator.plugins.manager.unregister(name="gone")

        assert list(coordinator.tools) == [
            "kept-first",
            "kept-second",
            "of-the-application",
        ]
        assert not [
            name
            for name, _ in coordinator.plugins.manager.list_name_plugin()
            if "gone" in name
        ]
        await coordinator.hooks.emit("own:event", {})
        assert heard == ["kept: own:event", "application: own:event"]
        assert released == []

    assert released == ["kept", "gone"]


async def test_unregistering_module_leaves_alone_what_replaced_own() -> None:
    async with a_session({}) as session:
        coordinator, other = session.coordinator, EchoLoop()
        await coordinator.mount("orchestrator", other)

        coordinator.plugins.manager.unregister(name="loop")

        assert coordinator.orchestrator is other


async def test_unregistering_a_guard_s_module_in_a_turn_ends_its_say() -> None:
    worker = Worker()

    @hook
    class Guard:
        @on(TOOL_PRE)
        async def decide(self, event: str, data: ToolPre) -> HookResult:
            return HookResult.deny("no")

    steps = (calling(call("work")), "first", calling(call("work")), "second")
    session = build_session(*steps, tools=[worker], hooks=[Guard])
    async with session:
        await session.execute("go")
        assert worker.inputs == []

        session.coordinator.plugins.manager.unregister(name="hook-0")
        await session.execute("go")

    assert worker.inputs == [{}]


async def test_a_name_that_pluggy_does_not_know_unmounts_nothing() -> None:
    coordinator = ModuleCoordinator()
    await coordinator.mount("tools", Worker("mine"))

    coordinator.plugins.manager.set_blocked("unknown")

    assert list(coordinator.tools) == ["mine"]


async def test_module_with_name_of_its_mount_point_keeps_its_handlers() -> None:
    heard: list[str] = []

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        coordinator.hooks.register("x:heard", lambda event, _: heard.append(event))
        await coordinator.mount("context", MemoryContext())

    async with a_session({"context": mount}) as session:
        await session.coordinator.hooks.emit("x:heard", {})

    assert heard == ["x:heard"]


async def test_replacing_a_single_instance_forgets_the_one_before() -> None:
    coordinator = ModuleCoordinator()
    first, second = MemoryContext(), MemoryContext()
    await coordinator.mount("context", first)
    before = coordinator.plugins.manager.get_plugin("session/context")
    await coordinator.mount("context", second)

    plugin = coordinator.plugins.manager.get_plugin("session/context")

    assert coordinator.context is second
    assert isinstance(plugin, MountedInstance)
    assert plugin.instance is second
    assert not coordinator.plugins.manager.is_registered(before)


async def test_a_blocked_plugin_is_reported_and_never_imported() -> None:
    session = a_session({"tool": Worker("one")}, tools=["tool", "no-such-tool"])
    manager = session.coordinator.plugins.manager
    manager.set_blocked("tool")
    manager.set_blocked("no-such-tool")
    assert manager.register(Offering(), name="tool") is None

    async with session, session.fork() as child:
        tools = {*session.coordinator.tools, *child.coordinator.tools}
        failures = (session.failures, child.failures)

    assert tools == set()
    for failed in failures:
        assert [failure.module_id for failure in failed] == ["tool", "no-such-tool"]
        assert "the application blocked it with 'set_blocked('tool')'" in str(failed[0])


async def test_session_starts_without_blocked_hook_but_needs_its_loop() -> None:
    @hook
    class Guard:
        @on(TOOL_PRE)
        async def decide(self, event: str, data: ToolPre) -> HookResult:
            return HookResult.deny("no")

    session = a_session({"guard": Guard}, hooks=["guard"])
    session.coordinator.plugins.manager.set_blocked("guard")
    async with session:
        assert [failure.module_id for failure in session.failures] == ["guard"]

    session = a_session({})
    session.coordinator.plugins.manager.set_blocked("loop")
    with pytest.raises(ModuleLoadError, match="'loop': the application blocked it"):
        await session.initialize()


# -- what an application registers with pluggy itself

implements: Final = HookimplMarker("amplifier")


class Offering:
    """A plugin as pluggy's users write one: a tool, and a handler that denies it."""

    @implements
    async def amplifier_tool(self, coordinator: Coordinator) -> object:
        return [Worker("offered"), Worker(f"for-{coordinator.session_id}")]

    @implements
    async def amplifier_hook(self, coordinator: Coordinator) -> None:
        coordinator.hooks.register(TOOL_PRE, self.decide)

    async def decide(self, event: str, data: ToolPre) -> HookResult:
        return HookResult.deny("not offered today")


async def test_what_an_application_registers_with_pluggy_is_mounted() -> None:
    worker = Worker("work")
    session = build_session(calling(call("work")), "done", tools=[worker])
    session.coordinator.plugins.manager.register(Offering(), name="offering")

    async with session:
        assert list(session.coordinator.tools) == [
            "work",
            "offered",
            f"for-{session.session_id}",
        ]
        await session.execute("go")
        assert worker.inputs == []

        session.coordinator.plugins.manager.unregister(name="offering")

        assert list(session.coordinator.tools) == ["work"]
        assert not session.coordinator.hooks.has_handlers(TOOL_PRE)


async def test_a_child_has_of_its_parent_s_plugins_the_handlers_alone() -> None:
    session = a_session({})
    session.coordinator.plugins.manager.register(Offering(), name="offering")
    toolbox = SimpleNamespace(amplifier_tool=Offering().amplifier_tool)
    session.coordinator.plugins.manager.register(toolbox, name="toolbox")

    async with session, session.fork() as child, child.fork() as grandchild:
        for below in (child, grandchild):
            assert below.coordinator.tools == {}
            assert below.coordinator.hooks.has_handlers(TOOL_PRE)


async def test_a_plugin_that_comes_too_late_is_refused() -> None:
    async with a_session({}) as session:
        manager = session.coordinator.plugins.manager
        with pytest.raises(
            HookspecError,
            match=r"late: .*nobody would call its amplifier_tool, amplifier_hook; register it before",
        ):
            manager.register(Offering(), name="late")

        assert not manager.has_plugin("late")
        assert manager.register(SimpleNamespace(), name="no module") == "no module"


async def test_pluggy_s_order_holds_among_an_application_s_plugins() -> None:
    order: list[str] = []

    def noting(name: str, *, first: bool = False, last: bool = False) -> object:
        @implements(specname="amplifier_tool", tryfirst=first, trylast=last)
        async def mount() -> None:
            order.append(name)

        return SimpleNamespace(mount=mount)

    session = a_session({})
    manager = session.coordinator.plugins.manager
    manager.register(noting("last", last=True))
    manager.register(noting("second"))
    manager.register(noting("third"))
    manager.register(noting("first", first=True))

    async with session:
        assert order == ["first", "second", "third", "last"]


async def test_a_plugin_that_fails_is_among_the_failures() -> None:
    class Broken:
        @implements
        async def amplifier_tool(self) -> object:
            raise RuntimeError("out of order")

    session = a_session({})
    session.coordinator.plugins.manager.register(Broken(), name="broken")

    async with session:
        (failure,) = session.failures

    assert "'broken': mounting failed: RuntimeError: out of order" in str(failure)


def test_pluggy_s_relay_says_what_to_call_instead() -> None:
    plugins = Plugins()
    plugins.register_module("offering", Offering())
    plugins.manager.add_hookspecs(Foreign)
    plugins.manager.register(SimpleNamespace(sync=implements(lambda: "own")))

    with pytest.raises(
        HookspecError, match=r"await amplifier_sdk\.hookspecs\.amplifier_tool\.call"
    ):
        plugins.manager.hook.amplifier_tool(coordinator=None, config={})

    assert plugins.manager.hook.sync() == ["own"]


class Foreign:
    """Hooks of an application, which pluggy calls as it always does."""

    @staticmethod
    @HookspecMarker("amplifier")
    def sync() -> str:
        raise NotImplementedError


def test_a_plugin_s_name_and_object_are_registered_once() -> None:
    class Empty:
        pass

    plugins = Plugins()
    plugin = Empty()
    plugins.register_module("a", plugin)

    with pytest.raises(ModuleConflictError, match="Module 'a': "):
        plugins.register_module("a", Empty())
    with pytest.raises(ModuleConflictError, match="Module 'b': "):
        plugins.register_module("b", plugin)


class Misspelt:
    @implements
    async def amplifier_tol(self) -> None: ...


class MisspeltInItsMark:
    @implements(specname="amplifier_tol")
    async def mount(self) -> None: ...


class Unheard:
    fine = 1

    @implements
    async def mount_everything(self) -> None: ...


class WrongArgument:
    @implements
    async def amplifier_tool(self, confg: object) -> None: ...


class NotAsync:
    @implements
    def amplifier_tool(self, config: object) -> None: ...


class Yielding:
    @implements
    async def amplifier_tool(self, config: object) -> AsyncIterator[None]:
        yield


class Wrapping:
    @implements(wrapper=True)
    async def amplifier_tool(self, config: object) -> None: ...


@pytest.mark.parametrize(
    ("plugin", "refusal"),
    [
        (
            Misspelt(),
            "there is no hook 'amplifier_tol'; did you mean 'amplifier_tool'?",
        ),
        (
            MisspeltInItsMark(),
            "there is no hook 'amplifier_tol'; did you mean 'amplifier_tool'?",
        ),
        (
            Unheard(),
            "there is no hook 'mount_everything'; the hooks are amplifier_orchestrator, amplifier_context,",
        ),
        (
            WrongArgument(),
            "amplifier_tool has no argument 'confg'; it has coordinator, config",
        ),
        (NotAsync(), "an implementation of amplifier_tool is an 'async def' function"),
        (
            Yielding(),
            "an implementation of amplifier_tool returns what it mounts; it cannot 'yield'",
        ),
        (Wrapping(), "Plugin 'mine' for hook 'amplifier_tool'"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_unfit_plugin_is_refused_by_name_and_unregistered(
    plugin: object, refusal: str
) -> None:
    plugins = Plugins()

    with pytest.raises(HookspecError) as caught:
        plugins.register_module("mine", plugin)

    assert str(caught.value).startswith(f"mine: {refusal}")
    assert not plugins.manager.is_registered(plugin)


def test_kinds_are_found_by_their_names() -> None:
    plugins = Plugins()

    assert plugins.kind("tool") is KINDS[3]
    assert plugins.kind("unheard of") is None


def test_a_mounted_instance_can_be_forgotten_without_a_session() -> None:
    plugins = Plugins()
    plugins.register_mounted(MountedInstance("tools", "x", Worker("x"), "m"))

    assert plugins.forget_mounted("tools", "x")
    assert not plugins.forget_mounted("tools", "x")


# -- mount points


async def test_mount_points_are_read_by_name_or_whole() -> None:
    coordinator = ModuleCoordinator()
    worker, context, loop = Worker("x"), MemoryContext(), EchoLoop()
    resolver = SimpleNamespace(resolve=lambda module_id, source_hint=None: None)

    await coordinator.mount("tools", worker)
    await coordinator.mount("session", context, name="context")
    await coordinator.mount("session", loop, name="orchestrator")
    await coordinator.mount("module-source-resolver", resolver)

    assert (
        coordinator.get("tools")
        is coordinator.mount_points["tools"]
        is coordinator.tools
    )
    assert coordinator.get("tools", "x") is worker
    assert coordinator.get("tools", "y") is None
    assert (
        coordinator.get("context") is coordinator.get("session", "context") is context
    )
    assert coordinator.orchestrator is loop
    assert coordinator.get("hooks") is coordinator.hooks
    assert coordinator.get("module-source-resolver") is resolver


async def test_unmounting_ignores_what_is_not_mounted() -> None:
    coordinator = ModuleCoordinator()
    await coordinator.mount("tools", Worker("x"))
    await coordinator.mount("context", MemoryContext())
    coordinator.tools["direct"] = Worker("direct")

    await coordinator.unmount("tools", "x")
    await coordinator.unmount("tools", "direct")
    await coordinator.unmount("tools", "never was")
    await coordinator.unmount("session", "context")
    await coordinator.unmount("context")

    assert coordinator.tools == {}
    assert coordinator.get("context") is None


async def test_instance_replaced_in_table_is_removed_by_name() -> None:
    coordinator = ModuleCoordinator()
    await coordinator.mount("tools", Worker("x"))
    coordinator.tools["x"] = Worker("x")

    await coordinator.unmount("tools", "x")

    assert coordinator.tools == {}


async def test_mount_point_that_is_not_there_is_named_with_nearest() -> None:
    coordinator = ModuleCoordinator()

    with pytest.raises(
        ValueError, match=r"Unknown mount point 'tool'; did you mean 'tools'\?"
    ):
        await coordinator.mount("tool", Worker())
    with pytest.raises(
        ValueError,
        match=r"Unknown mount point 'xyz'; known: orchestrator, context, providers",
    ):
        coordinator.get("xyz")
    with pytest.raises(ValueError, match="A name is required to unmount from 'tools'"):
        await coordinator.unmount("tools")


@pytest.mark.parametrize("name", [None, ""])
async def test_a_nameless_instance_needs_a_name(name: str | None) -> None:
    own = ModuleKind(name="own", section="owns", mount_point="owns", spec=amplifier_own)
    coordinator = ModuleCoordinator(kinds=(*KINDS, own))

    with pytest.raises(ValueError, match="A name is required to mount at 'owns'"):
        await coordinator.mount("owns", object(), name)


# -- an application's own module type


@runtime_checkable
class Judge(Protocol):
    name: str

    def judge(self, text: str) -> bool: ...


@hookspec
async def amplifier_judge(coordinator: Coordinator, config: Config) -> object:
    """Mount a judge."""


@hookspec
async def amplifier_own(coordinator: Coordinator, config: Config) -> object:
    """Mount anything."""


class Strict:
    name = "strict"

    def judge(self, text: str) -> bool:
        return False


def own_session(
    modules: Mapping[str, object], kind: ModuleKind, plan: Mapping[str, object]
) -> AmplifierSession:
    basis: dict[str, object] = {"loop": EchoLoop(), "context": MemoryContext()}
    return AmplifierSession(
        plan, build_loader({**basis, **modules}, kinds=(*KINDS, kind))
    )


async def test_an_application_adds_a_module_type_of_its_own() -> None:
    kind = ModuleKind(
        name="judge",
        section="judges",
        mount_point="judges",
        spec=amplifier_judge,
        protocol=Judge,
    )
    strict = Strict()
    plan = {**build_plan(), "judges": ["judge-strict", {"module": "judge-broken"}]}
    modules = {
        "judge-strict": mounting(strict),
        "judge-broken": mounting(OSError("no law")),
    }
    async with own_session(modules, kind, plan) as session:
        assert session.coordinator.get("judges") == {"strict": strict}
        assert [failure.module_id for failure in session.failures] == ["judge-broken"]
        assert session.loader.type_of("judge-strict") == "judge"


@module("judge")
class Lenient:
    """Made by the decorator for types of an application's own."""

    name = "lenient"

    def __init__(self, config: Mapping[str, JSONValue]) -> None:
        self.config = config

    def judge(self, text: str) -> bool:
        return True


class WithImplementation:
    @amplifier_judge.impl
    async def mount(self, coordinator: Coordinator, config: Config) -> object:
        return Strict()


async def test_a_module_of_such_a_type_may_be_written_in_every_way() -> None:
    kind = ModuleKind(
        name="judge",
        section="judges",
        mount_point="judges",
        spec=amplifier_judge,
        protocol=Judge,
    )
    plan = {
        **build_plan(),
        "judges": [{"module": "lenient", "config": {"x": 1}}, "strict"],
    }

    async with own_session(
        {"lenient": Lenient, "strict": WithImplementation()}, kind, plan
    ) as session:
        judges = session.coordinator.get("judges")
        assert isinstance(judges, dict)
        assert list(judges) == ["lenient", "strict"]
        assert judges["lenient"].config == {"x": 1}

        session.coordinator.plugins.manager.unregister(name="judges/strict")
        assert list(judges) == ["lenient"]


async def test_instance_of_such_type_is_held_against_its_protocol() -> None:
    kind = ModuleKind(
        name="judge",
        section="judges",
        mount_point="judges",
        spec=amplifier_judge,
        protocol=Judge,
    )
    plan = {**build_plan(), "judges": ["worker"]}

    async with own_session({"worker": mounting(Worker("w"))}, kind, plan) as session:
        assert session.coordinator.get("judges") == {}
        (failure,) = session.failures

    assert isinstance(failure, ModuleValidationError)
    assert "Worker is no judge: judge: missing; it is a method" in str(failure)


async def test_custom_type_may_require_one_instance_to_start() -> None:
    kind = ModuleKind(
        name="judge",
        section="judge",
        mount_point="judge",
        spec=amplifier_own,
        single=True,
    )
    plan = build_plan(judge="mine")
    instance = object()

    async with own_session({"mine": mounting(instance)}, kind, plan) as session:
        assert session.coordinator.get("judge") is instance

    with pytest.raises(
        ModuleLoadError, match="mounted no judge; the session cannot start without one"
    ):
        await own_session({"mine": mounting(None)}, kind, plan).initialize()


# -- what the SDK's decorators make


async def test_decorated_classes_and_functions_are_modules() -> None:
    heard: list[str] = []

    @tool
    def add(x: int) -> int:
        """Add."""
        return x + 1

    @hook
    class Audit:
        closed = False

        @on(TOOL_PRE)
        async def note(self, event: str, data: ToolPre) -> None:
            heard.append(data["tool_name"])

        async def aclose(self) -> None:
            heard.append("closed")

    @on(TOOL_PRE)
    async def guard(event: str, data: ToolPre) -> HookResult | None:
        heard.append("guard")
        return None

    @provider
    class Own(ScriptedProvider):
        def __init__(self) -> None:
            super().__init__(calling(call("add", {"x": 1})), "end")

    modules = {"add": add, "audit": Audit, "guard": guard, "own": Own}
    session = a_session(
        modules, tools=["add"], hooks=["audit", "guard"], providers=["own"]
    )
    async with session:
        assert await session.execute("go") == "end"
        assert only_result(mounted_context(session.coordinator).messages) == "2"

    assert heard == ["add", "guard", "closed"]


async def test_a_cleanup_that_cannot_be_called_is_ignored() -> None:
    coordinator = ModuleCoordinator()

    coordinator.register_cleanup(3)  # type: ignore[arg-type]
    await coordinator.cleanup()

    assert coordinator.tools == {}


async def test_returned_callable_also_whole_instance_is_mounted() -> None:
    class Callable(Worker):
        def __call__(self) -> None:
            raise AssertionError("it is no cleanup")

    async with build_session(tools=[Callable("both")]) as session:
        assert list(session.coordinator.tools) == ["both"]
