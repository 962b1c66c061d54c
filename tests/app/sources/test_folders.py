"""Sources that are folders: named in a plan, relative to the file it stands in."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from amplifier.app.modules.own import list_modules
from amplifier.app.plans.base_plans import PlanOptions, make_plan
from amplifier.app.sessions.opened import open_session
from amplifier.app.sources.absolute_sources import anchor_sources
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


def test_paths_of_plan_become_absolute_and_nothing_else_changes(
    tmp_path: Path,
) -> None:
    plan: JSONObject = {
        "session": {
            "orchestrator": "o",
            "orchestrator_source": "./loop",
            "context": {
                "module": "c",
                "source": "some/context",
                "config": {"source": "./data"},
            },
            "metadata": {"source": "./stays"},
        },
        "context": {"config": {"source": "./stays"}},
        "tools": [
            "a",
            {"module": "b", "source": "git+https://a/b"},
            {"module": "c", "source": None},
            {"module": "d", "source": "the-package>=1"},
            {"module": "e", "source": {"type": "package", "name": "e"}},
            3,
        ],
        "agents": {"scout": {"tools": [{"module": "d", "source": "../d"}]}, "odd": 3},
        "hooks": None,
    }

    anchored = anchor_sources(plan, tmp_path)

    assert anchored == {
        **plan,
        "session": {
            "orchestrator": "o",
            "orchestrator_source": str(tmp_path / "loop"),
            "context": {
                "module": "c",
                "source": str(tmp_path / "some/context"),
                "config": {"source": "./data"},
            },
            "metadata": {"source": "./stays"},
        },
        "agents": {
            "scout": {"tools": [{"module": "d", "source": str(tmp_path / "../d")}]},
            "odd": 3,
        },
    }


def test_a_bare_name_is_a_folder_where_one_is_there(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    plan: JSONObject = {
        "tools": [
            {"module": "a", "source": "notes"},
            {"module": "b", "source": {"path": "./b"}},
        ]
    }

    assert anchor_sources(plan, tmp_path)["tools"] == [
        {"module": "a", "source": str(tmp_path / "notes")},
        {"module": "b", "source": {"path": str(tmp_path / "b")}},
    ]


def test_a_plan_file_s_sources_are_relative_to_the_file(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project.parent / "plan.json"
    file.write_text(json.dumps(a_plan(source=f"./{project.name}")), "utf-8")
    monkeypatch.chdir(tmp_path)

    plan = make_plan(PlanOptions(file=Path("plans/plan.json")), [])

    assert plan["tools"] == [{"module": "tool-app-test", "source": str(project)}]


async def test_session_loads_module_from_folder_that_its_plan_names(
    tmp_path: Path, project: Path
) -> None:
    plan = a_plan(source=f"plans/{project.name}")

    async with open_session(composed(plan, tmp_path)) as opened:
        assert list(opened.session.coordinator.tools) == ["shout"]
        assert await opened.session.execute("go") == "hi"


def test_modules_below_the_search_paths_are_listed(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMPLIFIER_MODULES", str(project.parent))

    (found,) = [
        module for module in list_modules("tool") if module.id == "tool-app-test"
    ]

    assert (found.distribution, found.version) == (
        "amplifier-module-tool-app-test",
        None,
    )
    assert found.location == str(project)
    assert found.target == "amplifier_module_tool_app_test"
