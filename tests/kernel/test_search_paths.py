"""Modules in `amplifier-module-*` folders below search paths: found without being installed."""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping
from pathlib import Path

import pytest

from amplifier import AmplifierSession, ModuleLoader
from amplifier_sdk.errors import (
    ModuleConflictError,
    ModuleLoadError,
    ModuleNotFoundError,
)
from tests.doubles import (
    EchoLoop,
    MemoryContext,
    ScriptedProvider,
    build_plan,
    mounting,
)
from tests.kernel.packages import conventional, install, project, tool_source

Reports = list[MutableMapping[str, object]]

OWN = {
    "loop": mounting(EchoLoop()),
    "context": mounting(MemoryContext()),
    "provider": mounting(ScriptedProvider("hi")),
}


def a_session(loader: ModuleLoader, *tools: str) -> AmplifierSession:
    return AmplifierSession(build_plan(providers=["provider"], tools=tools), loader)


def a_loader(*folders: Path, site: Path | None = None) -> ModuleLoader:
    return ModuleLoader(
        search_paths=folders, modules=OWN, path=[] if site is None else [str(site)]
    )


async def the_tools(loader: ModuleLoader, *tools: str) -> list[str]:
    async with a_session(loader, *tools) as session:
        for failure in session.failures:
            raise failure
        return list(session.coordinator.tools)


async def test_a_module_is_loaded_from_the_folder_of_its_name(
    tmp_path: Path, module_id: str
) -> None:
    project(
        tmp_path / f"amplifier-module-{module_id}",
        {f"{conventional(module_id)}.py": tool_source("beside")},
    )

    assert await the_tools(a_loader(tmp_path), module_id) == ["beside"]


async def test_environment_names_folders_where_loader_does_not(
    tmp_path: Path, module_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(
        tmp_path / f"amplifier-module-{module_id}",
        {f"{conventional(module_id)}.py": tool_source("beside")},
    )
    monkeypatch.setenv(
        "AMPLIFIER_MODULES",
        os.pathsep.join([str(tmp_path / "other"), "", str(tmp_path)]),
    )

    assert await the_tools(ModuleLoader(modules=OWN, path=[]), module_id) == ["beside"]
    with pytest.raises(ModuleNotFoundError):
        await the_tools(a_loader(), module_id)


async def test_modules_of_one_project_differ_by_entry_point(
    tmp_path: Path, package: str
) -> None:
    source = (
        tool_source("a")
        + "\nasync def mount_b(coordinator, config):\n    tool = Tool()\n    tool.name = 'b'\n"
    )
    modules = {"tool-a": f"{package}:mount", "tool-b": f"{package}:mount_b [extra]"}
    project(
        tmp_path / "amplifier-module-both",
        {f"src/{package}.py": source + "    return tool\n"},
        modules,
    )

    assert await the_tools(a_loader(tmp_path), "tool-a", "tool-b") == ["a", "b"]


async def test_a_project_written_after_the_last_look_is_found(
    tmp_path: Path, module_id: str
) -> None:
    loader = a_loader(tmp_path)
    assert [info.id for info in loader.discover() if info.location] == []

    project(
        tmp_path / f"amplifier-module-{module_id}",
        {f"{conventional(module_id)}.py": tool_source("late")},
    )

    assert await the_tools(loader, module_id) == ["late"]


async def test_project_that_is_installed_from_folder_is_one_module(
    site: Path, tmp_path: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editable installation leaves the metadata elsewhere and the project's `src` folder on the path."""
    modules = {"tool-a": f"{package}:mount"}
    folder = project(
        tmp_path / "amplifier-module-tool-a",
        {f"src/{package}/__init__.py": tool_source("a")},
        modules,
    )
    install(site, "amplifier-module-tool-a", modules, {})
    monkeypatch.syspath_prepend(folder / "src")

    assert await the_tools(a_loader(tmp_path, site=site), "tool-a") == ["a"]


async def test_project_and_installed_module_of_one_id_are_both_named(
    site: Path, tmp_path: Path, package: str
) -> None:
    install(
        site,
        "a-tool",
        {"tool-a": f"{package}:mount"},
        {f"{package}.py": tool_source("installed")},
    )
    folder = project(
        tmp_path / "amplifier-module-tool-a", {}, {"tool-a": "another_package:mount"}
    )

    with pytest.raises(ModuleConflictError) as caught:
        await the_tools(a_loader(tmp_path, site=site), "tool-a")

    assert "claimed by a-tool (" in str(caught.value)
    assert f"and amplifier-module-tool-a ({folder})" in str(caught.value)
    assert package not in sys.modules


@pytest.mark.parametrize("target", ["no_such_package:mount", ":mount"])
async def test_an_installed_module_without_a_package_is_no_project_of_a_folder(
    site: Path, tmp_path: Path, package: str, target: str
) -> None:
    """What a broken installation names cannot be compared: both stay."""
    install(site, "a-tool", {"tool-a": target}, {})
    project(
        tmp_path / "amplifier-module-tool-a",
        {f"{package}.py": tool_source("beside")},
        {"tool-a": f"{package}:mount"},
    )

    with pytest.raises(ModuleConflictError, match="claimed by a-tool"):
        await the_tools(a_loader(tmp_path, site=site), "tool-a")


async def test_two_projects_of_one_id_are_both_named(
    tmp_path: Path, module_id: str
) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        project(
            folder / f"amplifier-module-{module_id}",
            {f"{conventional(module_id)}.py": tool_source("x")},
        )

    with pytest.raises(ModuleConflictError, match=r"first.*second"):
        await the_tools(a_loader(*folders), module_id)


async def test_project_that_cannot_be_read_reported_and_others_load(
    tmp_path: Path, module_id: str, reports: Reports
) -> None:
    project(
        tmp_path / f"amplifier-module-{module_id}",
        {f"{conventional(module_id)}.py": tool_source("fine")},
    )
    project(tmp_path / "amplifier-module-tool-broken", {"pyproject.toml": "[project"})
    loader = a_loader(tmp_path)

    assert await the_tools(loader, module_id) == ["fine"]
    assert [info.id for info in loader.discover() if info.location] == [module_id]
    with pytest.raises(
        ModuleLoadError, match=r"'tool-broken': .*pyproject\.toml cannot be read"
    ):
        await the_tools(loader, "tool-broken")
    assert {report["event"] for report in reports} == {
        "module.folder_unreadable",
        "module.load_failed",
    }


def test_what_lies_beside_is_listed_without_importing_it(
    tmp_path: Path, module_id: str, reports: Reports
) -> None:
    project(
        tmp_path / f"amplifier-module-{module_id}",
        {f"src/{conventional(module_id)}.py": tool_source("x")},
    )
    project(
        tmp_path / "amplifier-module-misc",
        {},
        {"hooks-x": "nowhere.at_all:mount", "resolver-y": "nowhere:y"},
    )
    project(tmp_path / "amplifier-module-empty", {"README.md": ""})
    (tmp_path / "amplifier-module-file").write_text("")
    loader = a_loader(tmp_path, tmp_path / "not-there")

    listed = [info for info in loader.discover() if info.location]

    assert [
        (info.id, info.type, info.mount_point, info.distribution) for info in listed
    ] == [
        ("hooks-x", "hook", "hooks", "amplifier-module-misc"),
        ("resolver-y", "resolver", "module-source-resolver", "amplifier-module-misc"),
        (module_id, "tool", "tools", f"amplifier-module-{module_id}"),
    ]
    assert listed[0].location == str(tmp_path / "amplifier-module-misc")
    assert listed[0].version is None
    assert conventional(module_id) not in sys.modules
    assert [(report["event"], report["path"]) for report in reports] == [
        ("module.search_path_missing", str(tmp_path / "not-there"))
    ]


async def test_the_message_names_the_folders_that_were_searched(tmp_path: Path) -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        await the_tools(a_loader(tmp_path, tmp_path), "tool-x")

    assert (
        f"and the folders 'amplifier-module-*' in {tmp_path}{os.pathsep}{tmp_path}."
        in str(caught.value)
    )


async def test_package_of_conventional_name_needs_no_entry_point(
    site: Path, module_id: str
) -> None:
    (site / f"{conventional(module_id)}.py").write_text(tool_source("importable"))

    assert await the_tools(ModuleLoader(search_paths=[], modules=OWN), module_id) == [
        "importable"
    ]


async def test_an_id_that_no_package_can_have_is_just_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        await the_tools(ModuleLoader(search_paths=[], modules=OWN), "tool/../x")


async def test_the_path_is_free_again_when_the_session_ends(
    tmp_path: Path, module_id: str
) -> None:
    folder = project(
        tmp_path / f"amplifier-module-{module_id}",
        {f"{conventional(module_id)}.py": tool_source("x")},
    )

    async with a_session(a_loader(tmp_path), module_id):
        assert str(folder) in sys.path

    assert str(folder) not in sys.path
