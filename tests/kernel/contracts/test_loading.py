"""How modules are found, typed and checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

import amplifier
from amplifier import (
    AmplifierModuleLoader,
    AmplifierSession,
    ModuleCoordinator,
    ModuleLoader,
)
from amplifier_sdk.contracts import (
    ContextManager,
    HookHandler,
    ModuleSourceResolver,
    Orchestrator,
    Provider,
    Tool,
)
from amplifier_sdk.errors import (
    ModuleLoadError,
    ModuleNotFoundError,
    ModuleValidationError,
)
from tests.doubles import (
    EchoLoop,
    MemoryContext,
    PlainProvider,
    Sentry,
    Worker,
    mounting,
)
from tests.kernel.packages import conventional, install, project, tool_source

LEAST = {"session": {"orchestrator": "loop", "context": "context"}}


def a_session(plan: Mapping[str, object], **options: object) -> AmplifierSession:
    modules = {"loop": mounting(EchoLoop()), "context": mounting(MemoryContext())}
    return AmplifierSession(
        plan,
        ModuleLoader(modules=modules, search_paths=[], **options),  # type: ignore[arg-type]
    )


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
def test_the_contracts_can_be_checked_at_run_time(
    contract: type, instance: object
) -> None:
    assert isinstance(instance, contract)
    assert not isinstance(3, contract)


@pytest.mark.parametrize("keyword", ["source_hint", "profile_source", "profile_hint"])
async def test_a_resolver_gets_the_names_of_the_hint_it_takes(
    keyword: str, tmp_path: Path, module_id: str
) -> None:
    folder = project(
        tmp_path / "code", {f"{conventional(module_id)}.py": tool_source("x")}
    )
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


def test_the_loader_is_one_class_under_two_names() -> None:
    assert AmplifierModuleLoader is ModuleLoader is amplifier.ModuleLoader
    coordinator = ModuleCoordinator()

    assert ModuleLoader().coordinator is None
    assert ModuleLoader(coordinator).coordinator is coordinator


@pytest.mark.parametrize(
    ("id", "kind"),
    [
        ("hooks-toolguard", "hook"),
        ("context-provider-x", "context"),
        ("acme-toolbox", "tool"),
    ],
)
def test_an_id_suggests_a_type_by_its_beginning_first(id: str, kind: str) -> None:
    assert ModuleLoader().type_of(id) == kind


async def test_the_declared_type_wins_over_the_id(site: Path, package: str) -> None:
    source = tool_source("x") + "\n__amplifier_module_type__ = 'tool'\n"
    install(
        site,
        "a-dist",
        {"provider-named": f"{package}:mount"},
        {f"{package}.py": source},
    )

    async with a_session(
        {**LEAST, "tools": ["provider-named"]}, path=[str(site)]
    ) as session:
        assert list(session.coordinator.tools) == ["x"]
    async with a_session(
        {**LEAST, "providers": ["provider-named"]}, path=[str(site)]
    ) as session:
        (failure,) = session.failures
        assert (
            "providers[0] is a place for a provider, but the module declares the type 'tool'"
            in str(failure)
        )


async def test_a_module_is_mounted_once_and_checked_then(
    site: Path, package: str
) -> None:
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
async def test_a_module_is_checked_whichever_way_it_is_found(
    way: str, tmp_path: Path, module_id: str
) -> None:
    files = {f"{conventional(module_id)}.py": "def mount(coordinator, config): ..."}
    folder = project(tmp_path / f"amplifier-module-{module_id}", files)
    session = a_session({**LEAST, "tools": [module_id]}, path=[])
    match way:
        case "installed":
            install(
                folder, "a-dist", {module_id: f"{conventional(module_id)}:mount"}, {}
            )
            session = a_session({**LEAST, "tools": [module_id]}, path=[str(folder)])
        case "beside":
            modules = {
                "loop": mounting(EchoLoop()),
                "context": mounting(MemoryContext()),
            }
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


async def test_a_module_in_a_search_path_can_be_loaded(
    tmp_path: Path, module_id: str
) -> None:
    """Found and never put on the path would mean: listed, and not importable."""
    project(
        tmp_path / f"amplifier-module-{module_id}",
        {f"{conventional(module_id)}.py": tool_source("beside")},
    )
    loader = ModuleLoader(search_paths=[tmp_path], path=[])
    coordinator = ModuleCoordinator()

    assert [info.id for info in loader.discover()] == [module_id]
    await (await loader.load(module_id))(coordinator)
    loader.cleanup()

    assert list(coordinator.tools) == ["beside"]


@pytest.mark.parametrize("error", [ModuleNotFoundError, ModuleLoadError])
async def test_the_loaders_errors_are_value_errors_as_well(
    error: type[ValueError],
) -> None:
    module = {"tool-x": 3} if error is ModuleLoadError else {}
    loader = ModuleLoader(modules=module, path=[], search_paths=[])

    with pytest.raises(error) as caught:
        await loader.load("tool-x")

    assert isinstance(caught.value, ValueError)
