"""Sources that are folders: named in a plan, relative to the file it stands in."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from amplifier.app.modules import list_modules
from amplifier.app.plans import PlanOptions, make_plan
from amplifier.app.sessions import open_session
from amplifier.app.sources.anchoring import anchor_sources
from amplifier.app.sources.folders import FolderResolver, FolderSource
from amplifier_sdk.contracts import ModuleSource, ModuleSourceResolver
from amplifier_sdk.errors import ModuleNotFoundError
from amplifier_sdk.jsontypes import JSONObject
from tests.app.projects import composed

TOOL = """
from amplifier_sdk import tool

@tool
def shout(text: str) -> str:
    return text.upper()
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project `tool-app-test` in a folder of its own."""
    folder = tmp_path / "plans" / "amplifier-module-tool-app-test"
    folder.mkdir(parents=True)
    (folder / "amplifier_module_tool_app_test.py").write_text(TOOL, "utf-8")
    yield folder
    sys.modules.pop("amplifier_module_tool_app_test", None)


def a_plan(**tool: str) -> JSONObject:
    return {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-scripted", "config": {"responses": ["hi"]}}],
        "tools": [{"module": "tool-app-test", **tool}],
    }


def test_they_are_what_the_contracts_ask_for(tmp_path: Path) -> None:
    assert isinstance(FolderResolver(tmp_path), ModuleSourceResolver)
    assert isinstance(FolderSource(module_id="x", path=tmp_path), ModuleSource)


@pytest.mark.parametrize("form", ["relative", "absolute", "url", "path object", "home"])
def test_a_folder_may_be_written_in_several_ways(
    tmp_path: Path, project: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    name = f"plans/{project.name}"
    hints: dict[str, object] = {
        "relative": f"./{name}",
        "absolute": str(project),
        "url": project.as_uri(),
        "path object": Path(name),
        "home": f"~/{name}",
    }

    assert FolderResolver(tmp_path).resolve("tool-x", hints[form]).resolve().samefile(project)


def test_a_url_s_escapes_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()

    assert FolderResolver(tmp_path).resolve("tool-x", folder.as_uri()).resolve() == folder


@pytest.mark.parametrize("hint", ["git+https://example.org/x", "git@example.org:x.git", "https://a/b", "", 3, {}])
def test_another_kind_of_source_is_not_known(tmp_path: Path, hint: object) -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        FolderResolver(tmp_path).resolve("tool-x", hint)

    assert f"the source {hint!r} is no path; a folder can be named as 'source'" in str(caught.value)


def test_a_module_without_a_source_is_left_to_what_is_installed(tmp_path: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="the plan names no source"):
        FolderResolver(tmp_path).resolve("tool-x")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        FolderResolver(tmp_path).resolve("tool-x", "./gone").resolve()

    assert f"its source '{tmp_path / 'gone'}' is no folder" in str(caught.value)


def test_paths_of_a_plan_become_absolute_and_nothing_else_changes(tmp_path: Path) -> None:
    plan: JSONObject = {
        "session": {
            "orchestrator": "o",
            "orchestrator_source": "./loop",
            "context": {"module": "c", "source": "context", "config": {"source": "./data"}},
            "metadata": {"source": "./stays"},
        },
        "context": {"config": {"source": "./stays"}},
        "tools": ["a", {"module": "b", "source": "git+https://a/b"}, {"module": "c", "source": None}, 3],
        "agents": {"scout": {"tools": [{"module": "d", "source": "../d"}]}, "odd": 3},
        "hooks": None,
    }

    anchored = anchor_sources(plan, tmp_path)

    assert anchored == {
        **plan,
        "session": {
            "orchestrator": "o",
            "orchestrator_source": str(tmp_path / "loop"),
            "context": {"module": "c", "source": str(tmp_path / "context"), "config": {"source": "./data"}},
            "metadata": {"source": "./stays"},
        },
        "agents": {"scout": {"tools": [{"module": "d", "source": str(tmp_path / "../d")}]}, "odd": 3},
    }


def test_a_plan_file_s_sources_are_relative_to_the_file(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project.parent / "plan.json"
    file.write_text(json.dumps(a_plan(source=f"./{project.name}")), "utf-8")
    monkeypatch.chdir(tmp_path)

    plan = make_plan(PlanOptions(file=Path("plans/plan.json")), [])

    assert plan["tools"] == [{"module": "tool-app-test", "source": str(project)}]


async def test_a_session_loads_a_module_from_the_folder_that_its_plan_names(tmp_path: Path, project: Path) -> None:
    plan = a_plan(source=f"plans/{project.name}")

    async with open_session(composed(plan, tmp_path)) as opened:
        assert list(opened.session.coordinator.tools) == ["shout"]
        assert await opened.session.execute("go") == "hi"


async def test_a_session_whose_plan_names_no_source_asks_nobody(tmp_path: Path) -> None:
    plan = a_plan()
    plan["tools"] = []

    async with open_session(composed(plan, tmp_path)) as opened:
        assert opened.session.coordinator.get("module-source-resolver") is None


def test_modules_below_the_search_paths_are_listed(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMPLIFIER_MODULES", str(project.parent))

    (found,) = [module for module in list_modules("tool") if module.id == "tool-app-test"]

    assert (found.distribution, found.version) == ("amplifier-module-tool-app-test", None)
    assert found.location == str(project)
    assert found.target == "amplifier_module_tool_app_test"
