"""What the published contracts say of loading modules and of the mount plan in more than one way.

Each test names its row in the table that settles the matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from types import SimpleNamespace

import pytest

import amplifier
from amplifier import AmplifierModuleLoader, AmplifierSession, ModuleCoordinator, ModuleLoader, MountPlanValidator
from amplifier.kernel.plans.plan import MountPlan
from amplifier_sdk.contracts import (
    ContextManager,
    Coordinator,
    HookHandler,
    ModuleSourceResolver,
    Orchestrator,
    Provider,
    Tool,
)
from amplifier_sdk.errors import ConfigError, ModuleLoadError, ModuleNotFoundError, ModuleValidationError
from amplifier_sdk.jsontypes import JSONValue
from tests.doubles import (
    EchoLoop,
    MemoryContext,
    PlainLoop,
    PlainProvider,
    Recorder,
    Sentry,
    Worker,
    build_session,
    mounting,
)
from tests.kernel.packages import conventional, install, project, tool_source

Reports = list[MutableMapping[str, object]]
LEAST = {"session": {"orchestrator": "loop", "context": "context"}}


def a_session(plan: Mapping[str, object], **options: object) -> AmplifierSession:
    modules = {"loop": mounting(EchoLoop()), "context": mounting(MemoryContext())}
    return AmplifierSession(plan, ModuleLoader(modules=modules, search_paths=[], **options))  # type: ignore[arg-type]


# -- what mount returns


async def test_row_13_a_returned_instance_is_mounted_unless_it_is_already() -> None:
    async def mount_and_return(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> object:
        worker = Worker("itself")
        await coordinator.mount("tools", worker)
        return worker

    async with build_session("hi", tools=[mounting(Worker("returned")), mount_and_return]) as session:
        assert list(session.coordinator.tools) == ["returned", "itself"]
        assert session.failures == ()


async def test_row_13_a_returned_function_is_a_cleanup_and_an_instance_that_can_be_called_is_not() -> None:
    called: list[str] = []

    class Callable(Worker):
        def __call__(self) -> None:
            called.append("instance")

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> object:
        await coordinator.mount("tools", Worker("x"))
        return lambda: called.append("cleanup")

    async with build_session("hi", tools=[mount, mounting(Callable("y"))]) as session:
        assert list(session.coordinator.tools) == ["x", "y"]

    assert called == ["cleanup"]


async def test_row_14_returning_nothing_is_no_failure_and_only_told() -> None:
    session = build_session("hi", tools=[mounting(None)])
    recorder = Recorder.of(session.coordinator.hooks, "module:*")

    async with session:
        assert await session.execute("go") == "hi"
        assert session.failures == ()

    assert recorder.names == ["module:skipped"]


@pytest.mark.parametrize("kind", ["sync", "async", "returns an awaitable"])
async def test_row_16_a_cleanup_may_be_of_any_kind(kind: str, reports: Reports) -> None:
    called: list[str] = []

    async def release() -> None:
        called.append(kind)

    cleanups: dict[str, Callable[[], object]] = {
        "sync": lambda: called.append(kind),
        "async": release,
        "returns an awaitable": lambda *_: release(),
    }

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> object:
        await coordinator.mount("tools", Worker("x"))
        return cleanups[kind]

    async with build_session("hi", tools=[mount]):
        pass

    assert called == [kind]
    assert reports == []


@pytest.mark.parametrize(
    ("contract", "instance"),
    [
        (Tool, Worker()),
        (Provider, PlainProvider()),
        (ContextManager, MemoryContext()),
        (Orchestrator, EchoLoop()),
        (HookHandler, Sentry()),
        (ModuleSourceResolver, SimpleNamespace(resolve=print)),
    ],
)
def test_row_17_the_contracts_can_be_asked_for_at_run_time(contract: type, instance: object) -> None:
    assert isinstance(instance, contract)
    assert not isinstance(3, contract)


# -- sources and the loader


@pytest.mark.parametrize("keyword", ["source_hint", "profile_source", "profile_hint"])
async def test_row_18_the_hint_has_three_names_and_a_resolver_gets_those_that_it_takes(
    keyword: str, tmp_path: Path, module_id: str
) -> None:
    folder = project(tmp_path / "code", {f"{conventional(module_id)}.py": tool_source("x")})
    seen: list[object] = []

    class Resolver:
        def resolve(self, module_id: str, profile_hint: object = None) -> object:
            seen.append(profile_hint)
            return SimpleNamespace(resolve=lambda: folder)

    coordinator = ModuleCoordinator()
    await coordinator.mount("module-source-resolver", Resolver())
    loader = ModuleLoader(coordinator)

    await loader.load(module_id, {}, **{keyword: "hint"})  # type: ignore[arg-type]  # a hint may be anything
    loader.cleanup()

    assert seen == ["hint"]


def test_row_19_the_loader_is_one_class_under_two_names_and_needs_no_coordinator() -> None:
    assert AmplifierModuleLoader is ModuleLoader is amplifier.ModuleLoader
    coordinator = ModuleCoordinator()

    assert ModuleLoader().coordinator is None
    assert ModuleLoader(coordinator).coordinator is coordinator


# -- sessions


async def test_row_35_a_turn_without_a_provider_fails_and_says_why_there_is_none() -> None:
    plan = {**LEAST, "providers": ["provider-missing"]}

    async with a_session(plan, path=[]) as session:
        with pytest.raises(ConfigError, match="no provider is mounted: Module 'provider-missing': not found"):
            await session.execute("go")


async def test_row_35_a_loop_may_declare_that_it_needs_none() -> None:
    class Alone(PlainLoop):
        needs_provider = False

    async def answer(*arguments: object) -> str:
        return "alone"

    modules = {"loop": mounting(Alone(answer)), "context": mounting(MemoryContext())}

    async with AmplifierSession(LEAST, ModuleLoader(modules=modules, path=[])) as session:
        assert await session.execute("go") == "alone"


async def test_row_36_what_a_module_raised_is_the_cause_of_what_the_session_raises() -> None:
    cause = OSError("no key")
    modules = {"loop": mounting(EchoLoop()), "context": mounting(cause)}

    with pytest.raises(ModuleLoadError) as caught:
        await AmplifierSession(LEAST, ModuleLoader(modules=modules, path=[])).initialize()

    assert caught.value.__cause__ is cause


async def test_row_37_a_second_start_mounts_nothing_and_a_second_cleanup_releases_nothing() -> None:
    calls: list[str] = []

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> object:
        calls.append("mounted")
        await coordinator.mount("tools", Worker("x"))
        return lambda: calls.append("released")

    session = build_session("hi", tools=[mount])
    for _ in range(2):
        await session.initialize()
    for _ in range(2):
        await session.cleanup()

    assert calls == ["mounted", "released"]


# -- the plan, and the types of modules


@pytest.mark.parametrize(
    "plan",
    [
        {"session": {"orchestrator": "loop", "context": "context"}},
        {"session": {"orchestrator": {"module": "loop"}, "context": {"module": "context", "config": {"a": 1}}}},
        {
            "session": {"orchestrator": "loop", "orchestrator_source": "git+x", "context": "context"},
            "orchestrator": {"config": {"model": "m"}},
            "context": {"config": {"max_tokens": 5}},
        },
    ],
)
def test_row_40_the_validator_accepts_what_a_session_accepts(plan: dict[str, object]) -> None:
    result = MountPlanValidator().validate(plan)

    assert result.passed
    assert (result.errors, result.warnings, result.format_errors()) == ((), (), "")
    assert result.summary() == "The mount plan has no problems"
    assert MountPlan.read(plan).modules["orchestrator"][0].module == "loop"


def test_row_40_what_is_wrong_is_told_in_a_line_each() -> None:
    result = MountPlanValidator().validate({"session": {"orchestrator": "loop"}, "toools": []})

    assert not result.passed
    assert result.errors == tuple(result)
    assert result.summary() == "The mount plan has 2 problems"
    assert MountPlanValidator().validate(3).summary() == "The mount plan has 1 problem"
    assert result.format_errors().splitlines() == [
        "toools: unknown key; did you mean 'tools'?",
        "session.context: missing; name the session's context module, for example 'context-simple'",
    ]


@pytest.mark.parametrize(
    ("id", "kind"), [("hooks-toolguard", "hook"), ("context-provider-x", "context"), ("acme-toolbox", "tool")]
)
def test_row_41_an_id_suggests_a_type_by_its_beginning_before_any_word_in_it(id: str, kind: str) -> None:
    assert ModuleLoader().type_of(id) == kind


async def test_row_41_the_declared_type_wins_over_the_id_also_for_an_entry_point(site: Path, package: str) -> None:
    source = tool_source("x") + "\n__amplifier_module_type__ = 'tool'\n"
    install(site, "a-dist", {"provider-named": f"{package}:mount"}, {f"{package}.py": source})

    async with a_session({**LEAST, "tools": ["provider-named"]}, path=[str(site)]) as session:
        assert list(session.coordinator.tools) == ["x"]
    async with a_session({**LEAST, "providers": ["provider-named"]}, path=[str(site)]) as session:
        (failure,) = session.failures
        assert "providers[0] is a place for a provider, but the module declares the type 'tool'" in str(failure)


async def test_row_42_a_module_is_mounted_once_and_checked_on_that_mount(site: Path, package: str) -> None:
    source = """
    async def mount(coordinator, config):
        coordinator.session_state["mounts"] = coordinator.session_state.get("mounts", 0) + 1
        return object()
    """
    install(site, "a-dist", {"tool-x": f"{package}:mount"}, {f"{package}.py": source})

    async with a_session({**LEAST, "tools": ["tool-x"]}, path=[str(site)]) as session:
        assert session.coordinator.session_state["mounts"] == 1
        (failure,) = session.failures

    assert isinstance(failure, ModuleValidationError)
    assert "object is no tool: name: missing" in str(failure)


@pytest.mark.parametrize("way", ["installed", "beside", "resolved"])
async def test_row_43_a_module_is_checked_whichever_way_it_is_found(way: str, tmp_path: Path, module_id: str) -> None:
    files = {f"{conventional(module_id)}.py": "def mount(coordinator, config): ..."}
    folder = project(tmp_path / f"amplifier-module-{module_id}", files)
    session = a_session({**LEAST, "tools": [module_id]}, path=[])
    match way:
        case "installed":
            install(folder, "a-dist", {module_id: f"{conventional(module_id)}:mount"}, {})
            session = a_session({**LEAST, "tools": [module_id]}, path=[str(folder)])
        case "beside":
            modules = {"loop": mounting(EchoLoop()), "context": mounting(MemoryContext())}
            loader = ModuleLoader(search_paths=[tmp_path], modules=modules, path=[])
            session = AmplifierSession({**LEAST, "tools": [module_id]}, loader)
        case _:
            source = SimpleNamespace(resolve=lambda: folder)
            resolver = SimpleNamespace(resolve=lambda module_id: source)
            await session.coordinator.mount("module-source-resolver", resolver)
    with pytest.MonkeyPatch.context() as patch:
        if way == "installed":
            patch.syspath_prepend(folder)
        async with session:
            (failure,) = session.failures

    assert isinstance(failure, ModuleValidationError)
    assert "'mount' is not a coroutine function" in str(failure)


async def test_row_43_a_module_in_a_search_path_can_be_loaded(tmp_path: Path, module_id: str) -> None:
    """Found and never put on the path would mean: listed, and not importable."""
    project(tmp_path / f"amplifier-module-{module_id}", {f"{conventional(module_id)}.py": tool_source("beside")})
    loader = ModuleLoader(search_paths=[tmp_path], path=[])
    coordinator = ModuleCoordinator()

    assert [info.id for info in loader.discover()] == [module_id]
    await (await loader.load(module_id))(coordinator)
    loader.cleanup()

    assert list(coordinator.tools) == ["beside"]


@pytest.mark.parametrize("error", [ModuleNotFoundError, ModuleLoadError])
async def test_row_52_the_loader_s_errors_are_value_errors_as_well(error: type[ValueError]) -> None:
    module = {"tool-x": 3} if error is ModuleLoadError else {}
    loader = ModuleLoader(modules=module, path=[], search_paths=[])

    with pytest.raises(error) as caught:
        await loader.load("tool-x")

    assert isinstance(caught.value, ValueError)
