"""`ModuleLoader.load`: a module as a function that mounts it, without a session."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from amplifier import AmplifierModuleLoader, ModuleCoordinator, ModuleLoader
from amplifier.kernel.modules.shapes import ImportedModule
from amplifier_sdk import tool
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import (
    ModuleLoadError,
    ModuleNotFoundError,
    ModuleValidationError,
)
from amplifier_sdk.hookspecs import amplifier_provider, amplifier_tool
from amplifier_sdk.jsontypes import JSONValue
from tests.doubles import MemoryContext, ScriptedProvider, Worker, mounting
from tests.kernel.packages import conventional, project, tool_source


def a_loader(module: object, name: str = "tool-x") -> ModuleLoader:
    return ModuleLoader(modules={name: module}, path=[], search_paths=[])


async def test_loaded_module_mounts_what_it_returns_with_config() -> None:
    seen: list[object] = []

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        seen.append(config)
        return Worker("x")

    coordinator = ModuleCoordinator()
    loaded = await a_loader(mount).load("tool-x", {"size": 3})

    assert await loaded(coordinator) is None
    assert list(coordinator.tools) == ["x"]
    assert seen == [{"size": 3}]


async def test_annotation_alone_makes_no_module_of_another_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hinted(coordinator: ModuleCoordinator, config: object) -> object:
        return worker

    worker, coordinator = Worker("x"), ModuleCoordinator()
    # as in a process in which nobody imported the other kernel
    monkeypatch.delitem(sys.modules, "amplifier_core", raising=False)
    for name, module in {"tool-x": hinted, "tool-y": mounting(Worker("y"))}.items():
        await (await a_loader(module, name).load(name))(coordinator)

    assert coordinator.tools["x"] is worker
    assert list(coordinator.tools) == ["x", "y"]


async def test_each_loaded_function_has_a_configuration_of_its_own() -> None:
    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        return Worker(str(config.get("name", "none")))

    loader = a_loader(mount)
    one, other = (
        await loader.load("tool-x", {"name": "one"}),
        await loader.load("tool-x"),
    )

    for loaded, name in ((one, "one"), (other, "none")):
        coordinator = ModuleCoordinator()
        await loaded(coordinator)
        assert list(coordinator.tools) == [name]


async def test_a_returned_cleanup_is_run_by_the_coordinator_once() -> None:
    calls: list[str] = []

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        await coordinator.mount("tools", Worker("x"))
        return lambda: calls.append("released")

    coordinator = ModuleCoordinator()
    assert await (await a_loader(mount).load("tool-x"))(coordinator) is None
    await coordinator.cleanup()
    await coordinator.cleanup()

    assert calls == ["released"]


@tool
def shout(text: str) -> str:
    return text.upper()


class Foreign:
    """A coordinator that is not ours: it has what `mount` uses of it."""

    def get(self, mount_point: str, name: str | None = None) -> object:
        raise ValueError(f"Unknown mount point: {mount_point}")


class ProviderPlugin:
    @amplifier_provider.impl
    async def anything(
        self, coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        return ScriptedProvider()


class TwoTools:
    @amplifier_tool.impl
    async def first(
        self, coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        return "one"

    @amplifier_tool.impl
    async def second(
        self, coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        return "two"


@pytest.mark.parametrize(
    ("module", "answer"),
    [(mounting("cleanup"), "cleanup"), (TwoTools(), ["two", "one"])],
)
async def test_another_coordinator_gets_what_module_s_mount_returns(
    module: object, answer: object
) -> None:
    foreign = Foreign()
    loaded = await a_loader(module).load("tool-x", coordinator=foreign)  # type: ignore[arg-type]  # the point of it

    assert await loaded(foreign) == answer  # type: ignore[arg-type]  # likewise


@pytest.mark.parametrize(
    ("name", "module", "point"),
    [
        ("provider-x", mounting(ScriptedProvider()), "providers"),
        ("my-context", mounting(MemoryContext()), "context"),
        ("whatever", mounting(Worker("x")), "tools"),
        ("tool-x", mounting(ScriptedProvider(), declared="provider"), "providers"),
        ("context-x", shout, "tools"),
    ],
)
async def test_the_type_is_declared_or_suggested_by_the_id_or_a_tool(
    name: str, module: object, point: str
) -> None:
    coordinator = ModuleCoordinator()

    await (await a_loader(module, name).load(name))(coordinator)

    assert coordinator.get(point)


async def test_an_unknown_type_is_named_with_the_nearest() -> None:
    with pytest.raises(
        ModuleLoadError, match="unknown type 'toool'; did you mean 'tool'"
    ):
        await a_loader(mounting(Worker(), declared="toool")).load("tool-x")


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        (3, "names int 3, which has no 'mount'"),
        (
            ProviderPlugin(),
            "the call of load.* needs amplifier_tool, but it implements amplifier_provider",
        ),
    ],
)
async def test_what_cannot_be_mounted_is_refused_as_it_is_loaded(
    module: object, problem: str
) -> None:
    with pytest.raises(ModuleValidationError, match=problem):
        await a_loader(module).load("tool-x")


@pytest.mark.parametrize("keyword", ["source_hint", "profile_source", "profile_hint"])
@pytest.mark.parametrize("where", ["the loader", "the call"])
async def test_the_resolver_of_a_coordinator_is_asked(
    tmp_path: Path, module_id: str, keyword: str, where: str
) -> None:
    folder = project(
        tmp_path / "code", {f"{conventional(module_id)}.py": tool_source("resolved")}
    )
    coordinator = ModuleCoordinator()
    hints: list[object] = []

    def resolve(module_id: str, source_hint: object = None) -> object:
        hints.append(source_hint)
        return SimpleNamespace(resolve=lambda: folder)

    await coordinator.mount("module-source-resolver", SimpleNamespace(resolve=resolve))
    loader = AmplifierModuleLoader(coordinator if where == "the loader" else None)
    given = {keyword: "here"}

    loaded = await loader.load(
        module_id,
        coordinator=None if where == "the loader" else coordinator,
        **given,  # type: ignore[arg-type]  # a hint may be anything
    )
    await loaded(coordinator)

    assert hints == ["here"]
    assert list(coordinator.tools) == ["resolved"]
    assert str(folder) in sys.path
    loader.cleanup()
    assert str(folder) not in sys.path


async def test_the_hint_may_be_the_third_argument() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"Its source '\./x' was not used"):
        await ModuleLoader(path=[], search_paths=[]).load("tool-x", {}, "./x")


@pytest.mark.parametrize(
    ("id", "kind"),
    [
        ("hooks-toolguard", "hook"),
        ("hook-x", "hook"),
        ("tool-provider", "tool"),
        ("loop-x", "orchestrator"),
        ("orchestrator-x", "orchestrator"),
        ("context-provider-x", "context"),
        ("provider-x", "provider"),
        ("resolver-x", "resolver"),
        ("my-orchestration", "orchestrator"),
        ("my-loop-tool", "orchestrator"),
        ("acme-provider-tools", "provider"),
        ("acme-toolkit", "tool"),
        ("acme-hooks", "hook"),
        ("acme-context", "context"),
        ("acme", "unknown"),
    ],
)
def test_id_suggests_type_by_beginning_and_else_by_word_in_it(
    id: str, kind: str
) -> None:
    assert ModuleLoader().type_of(id) == kind


def test_a_module_without_a_package_declares_nothing() -> None:
    imported = ImportedModule(id="x", target=3)

    assert (imported.declared_type, imported.on_session_ready) == (None, None)
