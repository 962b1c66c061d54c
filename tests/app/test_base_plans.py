"""The plan of a session: defaults, plan files, and what the person chose on top."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from amplifier import MountPlanValidator
from amplifier.app.plans.base_plans import PlanOptions, make_plan, provider_and_model
from amplifier_kit.installation import install_command
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

DEFAULTS: Final = (
    "context-simple",
    "loop-basic",
    "provider-local",
    "provider-scripted",
)


def _file(folder: Path, plan: JSONValue) -> Path:
    path = folder / "plan.json"
    path.write_text(json.dumps(plan), "utf-8")
    return path


def test_the_default_plan_takes_what_is_installed() -> None:
    plan = make_plan(
        PlanOptions(),
        [*DEFAULTS, "tool-filesystem", "tool-other", "hooks-logging", "hooks-other"],
    )

    assert plan == {
        "session": {
            "orchestrator": "loop-basic",
            "context": "context-simple",
            "ask_before_changes": True,
        },
        "providers": [{"module": "provider-local"}],
        "tools": [{"module": "tool-filesystem"}],
        "hooks": [{"module": "hooks-logging"}],
    }
    assert MountPlanValidator().validate(plan) == ()


def test_the_loop_that_listens_while_it_works_is_preferred() -> None:
    plan = make_plan(PlanOptions(), [*DEFAULTS, "loop-streaming"])

    assert plan["session"] == {
        "orchestrator": "loop-streaming",
        "context": "context-simple",
        "ask_before_changes": True,
    }


def test_tools_are_left_out_when_they_are_not_installed() -> None:
    assert make_plan(PlanOptions(), DEFAULTS)["tools"] == []


def test_missing_modules_are_one_error_with_install_command() -> None:
    with pytest.raises(ConfigError) as caught:
        make_plan(PlanOptions(), ["context-simple", "provider-b", "provider-a"])

    (problem,) = caught.value.problems
    assert problem.path == "loop-basic, provider-local"
    missing = ("amplifier-module-loop-basic", "amplifier-module-provider-local")
    assert problem.message == (
        f"not installed; install with: {install_command(*missing)};"
        " or choose an installed provider: provider-a, provider-b"
    )


def test_another_provider_is_no_remedy_for_a_missing_loop() -> None:
    with pytest.raises(ConfigError, match=r"context-simple$"):
        make_plan(PlanOptions(), ["loop-basic", "provider-local"])


@pytest.mark.parametrize("installed", [DEFAULTS, (*DEFAULTS, "tool-filesystem")])
def test_the_default_plan_uses_the_modules_of_this_interpreter(
    monkeypatch: pytest.MonkeyPatch, installed: tuple[str, ...]
) -> None:
    class Loader:
        def discover(self) -> list[Found]:
            return [Found(name) for name in installed]

    monkeypatch.setattr("amplifier.app.plans.base_plans.ModuleLoader", Loader)

    assert make_plan(PlanOptions()) == make_plan(PlanOptions(), installed)


class Found:
    """A found module, of which only the id is looked at."""

    def __init__(self, id: str) -> None:
        self.id = id


@pytest.mark.parametrize(
    ("asked", "mounted"),
    [
        ("provider-scripted", "provider-scripted"),
        ("scripted", "provider-scripted"),
        ("scriptd", "provider-scriptd"),
        ("provider-scriptd", "provider-scriptd"),
        ("house-model", "house-model"),
    ],
)
def test_a_provider_may_be_named_without_its_prefix(asked: str, mounted: str) -> None:
    plan = make_plan(PlanOptions(provider=asked), [*DEFAULTS, "house-model"])

    assert plan["providers"] == [{"module": mounted}]


def test_choices_go_into_the_loop_of_the_default_plan() -> None:
    plan = make_plan(PlanOptions(model="m", first_tool="t"), DEFAULTS)

    assert plan["orchestrator"] == {"config": {"model": "m", "first_tool": "t"}}


def test_a_plan_file_replaces_the_default_plan(tmp_path: Path) -> None:
    written: JSONValue = {
        "session": {"orchestrator": "o", "context": "c"},
        "providers": ["p"],
    }

    assert make_plan(PlanOptions(file=_file(tmp_path, written)), []) == written


def test_choices_win_over_the_configuration_beside_the_loop(tmp_path: Path) -> None:
    loop: JSONValue = {"module": "o", "config": {"model": "old", "temperature": 1}}
    path = _file(tmp_path, {"session": {"orchestrator": loop, "context": "c"}})

    plan = make_plan(PlanOptions(file=path, model="new"), [])

    assert plan["session"] == {
        "orchestrator": {"module": "o", "config": {"model": "new", "temperature": 1}},
        "context": "c",
    }
    assert "orchestrator" not in plan


def test_choices_win_over_the_configuration_of_the_section(tmp_path: Path) -> None:
    section: JSONValue = {"config": {"model": "old", "temperature": 1}}
    path = _file(
        tmp_path,
        {"session": {"orchestrator": "o", "context": "c"}, "orchestrator": section},
    )

    plan = make_plan(PlanOptions(file=path, model="new"), [])

    assert plan["orchestrator"] == {"config": {"model": "new", "temperature": 1}}


def test_provider_of_plan_keeps_configuration_when_it_is_chosen(
    tmp_path: Path,
) -> None:
    entries: JSONValue = ["provider-a", {"module": "provider-b", "config": {"k": 1}}]
    path = _file(
        tmp_path,
        {"session": {"orchestrator": "o", "context": "c"}, "providers": entries},
    )

    def providers(name: str) -> JSONValue:
        return make_plan(PlanOptions(file=path, provider=name), ["provider-b"])[
            "providers"
        ]

    assert providers("b") == [{"module": "provider-b", "config": {"k": 1}}]
    assert providers("provider-a") == [{"module": "provider-a"}]
    assert providers("provider-c") == [{"module": "provider-c"}]


def test_a_plan_without_providers_gets_the_chosen_one(tmp_path: Path) -> None:
    path = _file(tmp_path, {"session": {"orchestrator": "o", "context": "c"}})

    assert make_plan(PlanOptions(file=path, provider="p"), [])["providers"] == [
        {"module": "provider-p"}
    ]


def test_every_problem_of_a_plan_file_is_named_with_the_file(tmp_path: Path) -> None:
    path = _file(
        tmp_path, {"session": {"orchestrator": "o", "contxt": "c"}, "tool": []}
    )

    with pytest.raises(ConfigError) as caught:
        make_plan(PlanOptions(file=path, model="m"), [])

    assert caught.value.subject == f"mount plan {str(path)!r}"
    assert {problem.path for problem in caught.value.problems} == {
        "session.context",
        "session.contxt",
        "tool",
    }


@pytest.mark.parametrize("plan", [None, [], "text"])
def test_a_plan_file_holds_a_mapping(tmp_path: Path, plan: JSONValue) -> None:
    with pytest.raises(ConfigError, match="a mount plan is a mapping"):
        make_plan(PlanOptions(file=_file(tmp_path, plan)), [])


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ({}, (None, None)),
        ({"providers": ["p"]}, ("p", None)),
        (
            {"providers": [{"module": "p"}, "q"], "session": {"orchestrator": "loop"}},
            (None, None),
        ),
        (
            {
                "session": {
                    "orchestrator": {
                        "module": "loop",
                        "config": {"model": "m", "default_provider": "q"},
                    }
                }
            },
            ("q", "m"),
        ),
        ({"providers": ["p"], "orchestrator": {"config": {"model": "m"}}}, ("p", "m")),
    ],
    ids=["empty", "one", "several", "chosen", "section"],
)
def test_a_plan_tells_which_provider_and_model_are_asked(
    plan: JSONObject, expected: tuple[str, str]
) -> None:
    assert provider_and_model(plan) == expected
