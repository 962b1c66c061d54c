"""`amplifier compat check`: what a module needs of the original, found in its source alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amplifier.compat.check import check_module
from tests.cli.programs import call

MODULES = Path(__file__).parent / "modules"


def write(folder: Path, source: str) -> Path:
    package = folder / "amplifier_module_x"
    package.mkdir()
    (package / "__init__.py").write_text(source)
    return package


@pytest.mark.parametrize("name", ["tool", "provider", "hook", "context", "loop"])
def test_our_own_modules_in_the_original_shape_pass(name: str) -> None:
    report = check_module(MODULES / f"{name}.py")

    assert report.is_original
    assert report.passed
    assert report.backends == ("asyncio", "trio")


def test_what_is_missing_is_named_with_its_place(tmp_path: Path) -> None:
    package = write(
        tmp_path,
        "from amplifier_core import ToolResult, Coordinator\n"
        "from amplifier_core._engine import json_to_proto_chat_response\n",
    )
    report = check_module(package)

    assert [(found.text, found.line) for found in report.missing] == [
        ("amplifier_core.Coordinator", 1),
        ("amplifier_core._engine.json_to_proto_chat_response", 2),
    ]


def test_submodules_and_what_only_checkers_see(tmp_path: Path) -> None:
    package = write(
        tmp_path,
        "from typing import TYPE_CHECKING\n"
        "import amplifier_core.utils.retry\n"
        "from amplifier_core import llm_errors\n"
        "if TYPE_CHECKING:\n    from amplifier_core import Nonsense\n"
        "def late():\n    from amplifier_core.utils import redact_secrets\n",
    )
    report = check_module(package)

    assert report.passed
    assert [found.text for found in report.imports] == [
        "amplifier_core.utils.retry",
        "amplifier_core.llm_errors",
        "amplifier_core.utils.redact_secrets",
    ]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('hooks.register("tool:pre", f)', "blocking-hooks-fail-closed"),
        ("hooks.on(PROMPT_SUBMIT, f)", "blocking-hooks-fail-closed"),
        ('hooks.register("*", f)', "patterns-match"),
        ('c.mount("storage", x)', "mount-points-are-fixed"),
        ("def input_schema(self): ...", "arguments-are-validated"),
        ('c.get_capability("session.spawn")', "children-are-narrower"),
        ('__amplifier_module_type__ = "hook"', "failed-hooks-end-the-start"),
        ('coordinator.hooks.unregister("x")', "handlers-of-the-session-stay"),
        (
            "try: f()\nexcept asyncio.CancelledError: pass",
            "cancellation-is-not-swallowed",
        ),
    ],
)
def test_a_difference_that_concerns_a_module_is_shown(
    tmp_path: Path, source: str, name: str
) -> None:
    report = check_module(write(tmp_path, source))

    assert [found.name for found in report.differences] == [name]


@pytest.mark.parametrize(
    "source",
    [
        'hooks.register("tool:post", f)',
        'c.mount("tools", x)',
        "c.mount(point, x)",
        "try: f()\nexcept asyncio.CancelledError: raise",
        "register()",
        "hooks.register(*given)",
        "not python at all (",
    ],
)
def test_what_concerns_no_difference_shows_none(tmp_path: Path, source: str) -> None:
    assert check_module(write(tmp_path, source)).differences == ()


def test_the_command_for_people_and_programs(tmp_path: Path) -> None:
    package = write(
        tmp_path, "import asyncio\nfrom amplifier_core import Coordinator\n"
    )
    text = call("compat", "check", str(package), expect=1).stdout
    data = json.loads(call("compat", "check", str(package), "--json", expect=1).stdout)

    assert "MISSING amplifier_core.Coordinator (__init__.py:2)" in text
    assert "runs on asyncio alone: it imports asyncio (__init__.py:1)" in text
    assert data["passed"] is False
    assert data["backends"] == ["asyncio"]
    assert data["imports"][0]["exists"] is False


def test_an_installed_module_is_checked_by_its_id() -> None:
    text = call("compat", "check", "loop-basic").stdout

    assert "imports nothing of the original" in text
    assert "runs on asyncio and trio" in text


def test_a_module_that_is_nowhere_is_an_error() -> None:
    result = call("compat", "check", "no-such-module", expect=1)

    assert "neither a path nor an installed module" in result.stderr
