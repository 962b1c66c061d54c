"""Validations that try the behaviours as well."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from amplifier.validation import Report, validate
from amplifier.validation.behaviors import behaviors
from amplifier.validation.checks import CHECKS
from amplifier_sdk.hookspecs import KINDS
from tests.validation.projects import write_project

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

FAULTY: Final = """
import os
from amplifier_sdk import tool

@tool
async def repeat(text: str) -> str:
    '''Repeat a text.

    Args:
        text: what is repeated.
    '''
    print("repeating", text.encode("utf-8", "replace"))
    if "\\x1b" in text:
        raise KeyError(text)
    if any("\\ud800" <= letter <= "\\udfff" for letter in text):
        os._exit(7)
    return text

Main = repeat
"""
"""A tool that prints, fails on some texts and ends the process on others."""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, temporary: Path) -> Report:
    """The report about the faulty tool."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        patch.setattr("tempfile.tempdir", str(temporary))
        return validate(
            write_project(tmp_path_factory.mktemp("faulty"), source=FAULTY),
            behavioral=True,
        )


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for temporary files while the faulty tool is validated."""
    return tmp_path_factory.mktemp("temporary")


def _of(report: Report, check: str) -> list[tuple[str, str | None]]:
    return [
        (result.status, result.backend)
        for result in report.all_results
        if result.check == check
    ]


def test_every_behaviour_is_tried_on_both_event_loops(tmp_path: Path) -> None:
    more = "\n[tool.amplifier.validate.tool-sound.samples]\narguments = { repeat = [{ text = 'a' }] }\n"

    report = validate(write_project(tmp_path, more=more), behavioral=True)

    assert [
        result for result in report.all_results if result.status in ("error", "warning")
    ] == []
    tried = {
        (result.check, result.backend)
        for result in report.all_results
        if result.backend is not None
    }
    assert tried == {
        (behavior.id, backend)
        for behavior in behaviors("tool")
        for backend in ("asyncio", "trio")
    }


def test_no_behaviour_has_the_id_of_a_check() -> None:
    ids = {behavior.id for kind in KINDS for behavior in behaviors(kind.name)}

    assert ids & set(CHECKS) == set()


def test_behaviour_that_ends_process_is_error_and_others_tried(
    faulty: Report,
) -> None:
    broken = [
        result
        for result in faulty.all_results
        if "ended the process with exit code 7" in result.message
    ]

    assert {result.backend for result in broken} == {"asyncio", "trio"}
    assert all(result.status == "error" and result.fix for result in broken)
    for behavior in behaviors("tool"):
        assert [backend for _, backend in _of(faulty, behavior.id)] == [
            "asyncio",
            "trio",
        ]


def test_a_behaviour_that_ends_the_process_leaves_no_folder(
    faulty: Report, temporary: Path
) -> None:
    assert any("ended the process" in result.message for result in faulty.all_results)
    assert list(temporary.iterdir()) == []


def test_a_failed_behaviour_is_an_error_with_its_fix(faulty: Report) -> None:
    fixes = {behavior.id: behavior.fix for behavior in behaviors("tool")}

    failed = [result for result in faulty.all_results if "KeyError" in result.message]

    assert failed
    assert [result.fix for result in failed] == [
        fixes[result.check] for result in failed
    ]
    assert {result.status for result in failed} == {"error"}


def test_what_is_printed_while_a_behaviour_is_tried_is_told(faulty: Report) -> None:
    assert _of(faulty, "module.stdout") == [("warning", None)]


def test_without_a_mount_no_behaviour_is_tried(tmp_path: Path) -> None:
    source = "async def Main(coordinator, config):\n    raise OSError('no disk')\n"

    report = validate(write_project(tmp_path, source=source), behavioral=True)

    assert _of(report, "module.mounting") == [("error", None), ("skipped", None)]
    assert all(result.backend is None for result in report.all_results)


def test_a_behaviour_may_be_left_out_with_a_reason(tmp_path: Path) -> None:
    ids = [behavior.id for behavior in behaviors("tool")]
    more = "\n[tool.amplifier.validate.tool-sound.leave_out]\n" + "".join(
        f"'{id_}' = 'too slow'\n" for id_ in ids
    )

    report = validate(write_project(tmp_path, more=more), behavioral=True)

    left_out = [result for result in report.all_results if result.backend is not None]
    assert len(left_out) == 2 * len(ids)
    assert {(result.status, result.message) for result in left_out} == {
        ("skipped", "Left out by pyproject.toml: too slow")
    }


@pytest.mark.parametrize(
    "more", ["samples]\nargumnets = {}", "leave_out]\n'tool.no-such' = 'x'"]
)
def test_what_is_told_in_vain_is_an_error(tmp_path: Path, more: str) -> None:
    more = f"\n[tool.amplifier.validate.tool-sound.{more}\n"

    report = validate(write_project(tmp_path, more=more), behavioral=True)

    assert _of(report, "module.samples") == [("error", "asyncio"), ("error", "trio")]


def test_a_module_that_is_imported_only_once_is_told(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    source = f"from pathlib import Path\nPath({str(trace)!r}).touch(exist_ok=False)\n{FAULTY}"

    report = validate(write_project(tmp_path, source=source), behavioral=True)

    assert _of(report, "module.imports") == [
        ("passed", None),
        ("error", "asyncio"),
        ("error", "trio"),
    ]
