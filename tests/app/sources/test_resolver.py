"""Where a module comes from: the layers in their order, and nothing of a folder that nobody trusted."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.directories import AppDirs
from amplifier.app.modules.provenance import trace_module
from amplifier.app.modules.resolver import LayeredResolver, make_resolver
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.sessions.opened import open_session
from amplifier.app.settings.settings import load_settings
from amplifier_sdk.contracts import ModuleSource, ModuleSourceResolver
from amplifier_sdk.errors import (
    ModuleConflictError,
    ModuleLoadError,
    ModuleNotFoundError,
)
from amplifier_sdk.jsontypes import JSONObject
from tests.app.conftest import InstallModule
from tests.app.projects import composed, trust, write
from tests.app.repositories import TOOL_FILES, commit

VARIABLE = "AMPLIFIER_MODULE_TOOL_ACME"


def resolver_of(dirs: AppDirs) -> LayeredResolver:
    project = ProjectFiles(dirs)
    settings = load_settings(dirs, project=project)
    return make_resolver(dirs, project, settings, CollectionLibrary(dirs, project))


def put(folder: Path, files: Mapping[str, str] = TOOL_FILES) -> Path:
    for name, text in files.items():
        write(folder / name, text)
    return folder


def test_it_is_what_the_contracts_ask_for(dirs: AppDirs) -> None:
    resolver = resolver_of(dirs)

    assert isinstance(resolver, ModuleSourceResolver)
    assert isinstance(resolver.resolve("tool-acme", "./x"), ModuleSource)


@pytest.mark.parametrize(
    "form", ["relative", "absolute", "url", "path object", "mapping"]
)
def test_a_folder_may_be_written_in_several_ways(dirs: AppDirs, form: str) -> None:
    folder = put(dirs.working_dir / "a tool")
    hints: dict[str, object] = {
        "relative": "./a tool",
        "absolute": str(folder),
        "url": folder.as_uri(),
        "path object": Path("a tool"),
        "mapping": {"type": "file", "path": "a tool"},
    }

    assert resolver_of(dirs).resolve("tool-acme", hints[form]).resolve() == folder


def test_a_folder_that_is_not_there_is_named(dirs: AppDirs) -> None:
    with pytest.raises(ModuleNotFoundError, match=r"gone' is no folder"):
        resolver_of(dirs).resolve("tool-acme", "./gone").resolve()


def test_every_layer_wins_over_those_after_it(
    dirs: AppDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each layer is added in turn, the weakest first, and wins from then on."""
    hint = "./hint"
    asked = [("plan", dirs.working_dir / "hint")]
    collection = dirs.home / "collections/acme"
    write(collection / "pyproject.toml", '[project]\nname = "acme"\n')
    asked.append(("collections", put(collection / "modules/tool-acme")))
    write(dirs.home / "settings.yaml", "sources: {tool-acme: ./user}\n")
    asked.append(("settings (user)", dirs.home / "user"))
    project = dirs.root / ".amplifier"
    write(
        project / "settings.yaml",
        "sources: {tool-acme: ./weaker}\nmodules: {tools: [{module: tool-acme, source: ./p}]}",
    )
    asked.append(("settings (project)", dirs.root / "p"))
    write(
        project / "settings.local.yaml", "overrides: {tool-acme: {source: ./local}}\n"
    )
    asked.append(("settings (local)", dirs.root / "local"))
    trust(dirs, "settings")
    asked.append(("workspace", put(project / "modules/tool-acme")))
    trust(dirs, "modules")
    monkeypatch.setenv(VARIABLE, "./env")
    asked.append(("environment", dirs.working_dir / "env"))

    found = [
        tried for tried in resolver_of(dirs).why("tool-acme", hint) if tried.is_found
    ]

    assert [(tried.layer, str(tried.location)) for tried in found] == [
        (layer, str(path)) for layer, path in reversed(asked)
    ]


def test_a_damaged_module_of_a_collection_fails_itself_alone(dirs: AppDirs) -> None:
    write(dirs.home / "collections/acme/modules/tool-broken/pyproject.toml", "[")

    with pytest.raises(ModuleLoadError, match="collections"):
        resolver_of(dirs).resolve("tool-broken")
    assert not resolver_of(dirs).why("tool-acme")[2].is_refused


def test_module_that_no_layer_has_is_left_to_what_is_installed(
    dirs: AppDirs,
) -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        resolver_of(dirs).resolve("tool-acme")

    for layer in ("environment", "workspace", "collections", "plan"):
        assert layer in str(caught.value)


@pytest.mark.parametrize("files", [{}, {"README.md": "x"}], ids=["empty", "no Python"])
def test_a_workspace_without_code_is_passed_over(
    dirs: AppDirs, files: dict[str, str]
) -> None:
    folder = dirs.root / ".amplifier/modules/tool-acme"
    folder.mkdir(parents=True)
    put(folder, files)
    trust(dirs, "modules")
    said = {tried.layer: tried for tried in resolver_of(dirs).why("tool-acme")}

    assert not said["workspace"].is_found
    assert "no Python files" in said["workspace"].result


def test_a_workspace_that_nobody_trusted_is_not_used(dirs: AppDirs) -> None:
    put(dirs.root / ".amplifier/modules/tool-acme")
    said = {tried.layer: tried for tried in resolver_of(dirs).why("tool-acme")}

    assert not said["workspace"].is_found
    assert "run 'amplifier trust'" in said["workspace"].result
    trust(dirs, "modules")
    assert resolver_of(dirs).why("tool-acme")[1].is_found
    write(dirs.root / ".amplifier/modules/tool-acme/more.py", "")
    assert not resolver_of(dirs).why("tool-acme")[1].is_found


def put_module(folder: Path, answer: str) -> Path:
    """Write a module whose tool answers a word."""
    code = (
        "from amplifier_sdk import tool\n\n@tool\nasync def strange() -> str:\n"
        f"    'Say a word.'\n    return {answer!r}\n\n"
        "async def mount(coordinator, config):\n    await coordinator.mount('tools', strange)\n"
    )
    return put(folder, {**named("strange"), "amplifier_module_tool_strange.py": code})


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("settings", "settings.yaml", "sources: {tool-strange: ./mod}\n"),
        (
            "settings",
            "settings.local.yaml",
            "overrides: {tool-strange: {source: {type: file, path: mod}}}\n",
        ),
        ("modules", "modules/README.md", ""),
    ],
)
async def test_code_named_by_project_files_is_imported_as_trusted(
    dirs: AppDirs, kind: str, name: str, text: str
) -> None:
    code = dirs.root / (
        ".amplifier/modules/tool-strange" if kind == "modules" else "mod"
    )
    put_module(code, "trusted")
    write(dirs.root / ".amplifier" / name, text)
    trust(dirs, kind)
    resolver = resolver_of(dirs)
    first = resolver.resolve("tool-strange").resolve()
    assert not first.is_relative_to(dirs.root)

    put_module(code, "changed")

    assert (
        "trusted"
        in (
            resolver.resolve("tool-strange").resolve()
            / "amplifier_module_tool_strange.py"
        ).read_text()
    )
    assert "it changed since it was trusted" in ProjectFiles(dirs).explain(kind)
    # A folder of the module's own name claims it; settings merely say where it would be.
    refused = ModuleLoadError if kind == "modules" else ModuleNotFoundError
    with pytest.raises(refused):
        resolver_of(dirs).resolve("tool-strange")


@pytest.mark.parametrize("kind", ["agents", "profiles"])
def test_code_that_agents_and_profiles_name_trusted_with_them(
    dirs: AppDirs, kind: str
) -> None:
    put_module(dirs.root / "mod", "trusted")
    text = "---\nname: a\ndescription: d\ntools: [{module: tool-strange, source: ../../mod}]\n---\nHi.\n"
    write(dirs.root / ".amplifier" / kind / "a.md", text)
    hint = str(dirs.root / "mod")
    with pytest.raises(ModuleLoadError, match="nobody trusted"):
        resolver_of(dirs).resolve("tool-strange", hint)

    trust(dirs, kind)
    assert (
        not resolver_of(dirs)
        .resolve("tool-strange", hint)
        .resolve()
        .is_relative_to(dirs.root)
    )

    put_module(dirs.root / "mod", "changed")
    with pytest.raises(ModuleLoadError, match="changed since it was trusted"):
        resolver_of(dirs).resolve("tool-strange", hint)


def test_a_damaged_copy_of_trusted_code_is_replaced(dirs: AppDirs) -> None:
    put_module(dirs.root / "mod", "trusted")
    write(
        dirs.root / ".amplifier/settings.yaml",
        "sources: {tool-strange: ./mod, tool-gone: ./gone}\n",
    )
    trust(dirs, "settings")
    copy = resolver_of(dirs).resolve("tool-strange").resolve()
    (copy / "amplifier_module_tool_strange.py").write_text("evil")
    write(copy / "__pycache__/x.pyc", "compiled")

    assert resolver_of(dirs).resolve("tool-strange").resolve() == copy
    assert "trusted" in (copy / "amplifier_module_tool_strange.py").read_text()
    with pytest.raises(ModuleLoadError, match="is no folder"):
        resolver_of(dirs).resolve("tool-gone")


def test_compiled_files_in_trusted_code_folder_do_not_count(
    dirs: AppDirs,
) -> None:
    put_module(dirs.root / "mod", "trusted")
    write(dirs.root / ".amplifier/settings.yaml", "sources: {tool-strange: ./mod}\n")
    trust(dirs, "settings")
    write(
        dirs.root / "mod/__pycache__/amplifier_module_tool_strange.cpython-312.pyc",
        "evil",
    )

    assert not (
        resolver_of(dirs).resolve("tool-strange").resolve() / "__pycache__"
    ).exists()


def test_the_home_folder_is_no_workspace(dirs: AppDirs) -> None:
    home = AppDirs.find(dirs.home.parent)

    assert "no project" in resolver_of(home).why("tool-acme")[1].result


def test_settings_of_a_project_that_nobody_trusted_are_not_used(dirs: AppDirs) -> None:
    write(dirs.root / ".amplifier/settings.yaml", "sources: {tool-acme: ./evil}\n")

    assert not any(tried.is_found for tried in resolver_of(dirs).why("tool-acme"))


def test_a_variable_is_filled_in(
    dirs: AppDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORK", "/srv")
    write(dirs.home / "settings.yaml", 'sources: {tool-acme: "${WORK}/acme"}\n')

    assert str(resolver_of(dirs).why("tool-acme")[2].location) == "/srv/acme"


def test_a_refused_source_is_not_passed_over(
    dirs: AppDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "git+https://me:s3cret@git.example/x")
    with pytest.raises(ModuleLoadError, match="environment") as caught:
        resolver_of(dirs).resolve("tool-acme", "./x")

    traced = trace_module("tool-acme", resolver=resolver_of(dirs))
    assert "s3cret" not in str(caught.value)
    assert traced.used is None
    assert traced.layers[0].is_refused


@pytest.mark.process
def test_a_repository_is_fetched_when_it_is_used(
    dirs: AppDirs, repository: Path
) -> None:
    source = resolver_of(dirs).resolve("tool-acme", f"git+file://{repository}@main")
    assert not (dirs.home / "cache").exists()

    assert (source.resolve() / "pyproject.toml").is_file()


@pytest.mark.process
def test_a_repository_that_cannot_be_fetched_is_named(
    dirs: AppDirs, tmp_path: Path
) -> None:
    source = resolver_of(dirs).resolve("tool-acme", f"git+file://{tmp_path / 'gone'}")

    with pytest.raises(ModuleLoadError, match="cannot be fetched"):
        source.resolve()


def test_a_profile_s_source_is_a_layer(dirs: AppDirs) -> None:
    write(
        dirs.home / "profiles/dev.md",
        "---\nprofile: {name: dev}\nsession: {orchestrator: {module: loop-acme, source: ./loop}, context: c,"
        " context_source: ./ctx}\ntools: [tool-x, {module: tool-acme, source: ./tool}]\n---\n",
    )
    used = {
        module: trace_module(module, "dev", resolver_of(dirs)).used
        for module in ("tool-acme", "loop-acme", "c", "tool-x")
    }

    assert {
        module: None if tried is None else tried.result
        for module, tried in used.items()
    } == {
        "tool-acme": str(dirs.home / "profiles/tool"),
        "loop-acme": str(dirs.home / "profiles/loop"),
        "c": str(dirs.home / "profiles/ctx"),
        "tool-x": None,
    }


def test_what_is_installed_is_the_last_layer(dirs: AppDirs) -> None:
    used = trace_module("loop-basic", resolver=resolver_of(dirs)).used

    assert used is not None
    assert used.layer == "installed"


def test_what_is_installed_twice_is_refused(
    dirs: AppDirs, install_module: InstallModule
) -> None:
    install_module("one", "tool-acme", "one")
    install_module("two", "tool-acme", "two")
    traced = trace_module("tool-acme", resolver=resolver_of(dirs))

    assert traced.used is None
    assert "claimed by one" in traced.layers[-1].result


# -- sessions


def a_plan(*tools: Mapping[str, str]) -> JSONObject:
    return {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-scripted", "config": {"responses": ["hi"]}}],
        "tools": [dict(tool) for tool in tools],
    }


def named(name: str) -> dict[str, str]:
    """Return the module under another name: what is imported once in a process keeps its place."""
    return {
        file.replace("acme", name): text.replace("acme", name)
        for file, text in TOOL_FILES.items()
    }


@pytest.fixture
def fetched(tmp_path: Path) -> Iterator[Path]:
    """A repository with the module `tool-fetched`."""
    commit(tmp_path / "fetched", named("fetched"))
    yield tmp_path / "fetched"
    sys.modules.pop("amplifier_module_tool_fetched", None)


@pytest.mark.process
async def test_a_session_loads_a_module_from_a_repository(
    dirs: AppDirs, fetched: Path
) -> None:
    plan = a_plan({"module": "tool-fetched", "source": f"git+file://{fetched}@main"})

    async with open_session(composed(plan, dirs.working_dir)) as opened:
        assert list(opened.session.coordinator.tools) == ["fetched"]
        assert await opened.session.execute("go") == "hi"


@pytest.mark.process
async def test_second_module_with_taken_package_names_both_paths(
    dirs: AppDirs, fetched: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    commit(
        other,
        {
            name: text.replace("tool-fetched", "tool-other")
            for name, text in named("fetched").items()
        },
    )
    plan = a_plan(
        {"module": "tool-fetched", "source": f"git+file://{fetched}"},
        {"module": "tool-other", "source": f"git+file://{other}"},
    )

    async with open_session(composed(plan, dirs.working_dir)) as opened:
        (failure,) = opened.session.failures
    assert isinstance(failure, ModuleConflictError)
    assert str(failure).count(str(dirs.home / "cache/sources")) == 2


async def test_nothing_of_an_untrusted_project_runs(
    dirs: AppDirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module named like a standard one, a configuration of sources, a collection with a module, and Python's own."""
    ran = tmp_path / "ran"
    evil = f"import pathlib\npathlib.Path({str(ran)!r}).touch()\n"
    root = dirs.root
    put(
        root / ".amplifier/modules/loop-basic", {"amplifier_module_loop_basic.py": evil}
    )
    put(
        root / ".amplifier/modules/tool-strange",
        {**named("strange"), "amplifier_module_tool_strange.py": evil},
    )
    put(
        root / ".amplifier/collections/x",
        {"pyproject.toml": '[project]\nname="x"\n', "modules/t/pyproject.toml": ""},
    )
    put(
        root / ".amplifier/collections/x/modules/tool-strange",
        {**named("strange"), "amplifier_module_tool_strange.py": evil},
    )
    write(
        root / ".amplifier/settings.yaml",
        f"sources: {{tool-strange: 'git+file://{tmp_path}/evil'}}\n",
    )
    for name in (
        "sitecustomize.py",
        "usercustomize.py",
        "amplifier_module_tool_strange.py",
        "structlog.py",
    ):
        write(root / name, evil)
    write(root / ".git/hooks/post-checkout", f"#!/bin/sh\ntouch {ran}\n").chmod(0o755)
    monkeypatch.chdir(root)
    # the tests are run as a module
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])

    with pytest.raises(
        ModuleLoadError,
        match="loop-basic in this folder has this name, and is not trusted",
    ):
        async with open_session(composed(a_plan({"module": "tool-strange"}), root)):
            raise AssertionError
    shutil.rmtree(root / ".amplifier/modules/loop-basic")
    async with open_session(
        composed(a_plan({"module": "tool-strange"}), root)
    ) as opened:
        (failure,) = opened.session.failures
        assert await opened.session.execute("go") == "hi"
    assert isinstance(failure, ModuleLoadError)
    assert not ran.exists()
    assert not (dirs.home / "cache").exists()
