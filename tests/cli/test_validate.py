"""`amplifier module validate`, `types` and `new` as a person uses them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jsonschema_rs
import pytest
from click.testing import CliRunner, Result

from amplifier.cli import main
from amplifier.validation.checks import CHECKS
from tests.cli.programs import open_terminal, run
from tests.validation.projects import write_project

ROOT = Path(__file__).resolve().parents[2]
BROKEN = (
    "async def Main(coordinator, config):\n    raise RuntimeError('no \x1b[31mdisk')\n"
)


def _validate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["module", "validate", *map(str, arguments)])


@pytest.mark.process
def test_sound_package_is_valid_and_what_passed_shown_on_demand(
    tmp_path: Path,
) -> None:
    project = write_project(tmp_path)

    result = _validate(project)

    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "amplifier-module-tool-sound"
    assert "tool-sound (tool)" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("valid: ")
    assert "module.typed" not in result.stdout
    assert "passed  module.typed" in _validate(project, "--detail").stdout


@pytest.mark.process
def test_a_finding_is_told_with_its_place_and_its_fix(tmp_path: Path) -> None:
    result = _validate(write_project(tmp_path, source=BROKEN))

    lines = result.stdout.splitlines()
    start = lines.index("  error  module.mounting")
    assert result.exit_code == 1
    assert (
        lines[start + 1]
        == r"    It cannot be mounted: mounting failed: RuntimeError: no \x1b[31mdisk"
    )
    assert lines[start + 2] == "    at src/amplifier_module_tool_sound/__init__.py:2"
    assert lines[start + 3].startswith("    fix: ")
    assert lines[-1].startswith("not valid: ")


@pytest.mark.process
def test_what_is_alike_on_both_event_loops_is_told_once(tmp_path: Path) -> None:
    project = write_project(
        tmp_path, more="\n[tool.amplifier.validate.tool-sound.samples]\nno_such = {}\n"
    )

    result = _validate(project, "--behavioral")

    assert result.exit_code == 1
    assert result.stdout.count("  error  module.samples on asyncio and trio\n") == 1


@pytest.mark.process
@pytest.mark.parametrize("source", [None, BROKEN])
def test_the_json_report_follows_the_published_schema(
    tmp_path: Path, source: str | None
) -> None:
    schema = json.loads(
        (ROOT / "docs" / "reference" / "validation-report.schema.json").read_text(
            "utf-8"
        )
    )

    result = _validate(write_project(tmp_path, source=source), "--json")

    report = json.loads(result.stdout)
    jsonschema_rs.validator_for(schema, offline=True).validate(report)
    assert result.exit_code == (0 if source is None else 1)
    assert report["passed"] == (source is None)


@pytest.mark.process
def test_the_modules_own_output_does_not_reach_ours(tmp_path: Path) -> None:
    project = write_project(tmp_path, source=f"print('mine')\n{BROKEN}")

    result = run("module", "validate", str(project), "--json")

    assert (
        json.loads(result.stdout)["modules"][0]["results"][-1]["message"]
        == "It printed 'mine'."
    )
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no-such-module"], "no such folder"),
        (["tool", "here", "there"], "Give one PATH"),
        (["gadget", "."], "Give one PATH"),
        (["tool", ".", "--type", "hook"], "given twice"),
        ([".", "--type", "gadget"], "Invalid value"),
        ([".", "--timeout", "0"], "Invalid value"),
        ([], "Missing argument"),
    ],
)
def test_wrong_usage_is_code_2(arguments: list[str], words: str) -> None:
    result = _validate(*arguments)

    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.process
def test_the_older_spelling_names_the_type_first(tmp_path: Path) -> None:
    """Row 49: `validate TYPE PATH` is the same as `validate PATH --type TYPE`."""
    project = write_project(tmp_path)

    older = _validate("tool", project)

    assert older.exit_code == 0
    assert older.stdout == _validate(project, "--type", "tool").stdout
    assert _validate("hook", project).exit_code == 1


@pytest.mark.process
def test_a_configuration_may_come_from_a_file(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    (tmp_path / "wrong.yaml").write_text("size: large\n")
    (tmp_path / "right.json").write_text('{"size": 2}')

    assert (
        "size: expected an integer"
        in _validate(project, "--config", tmp_path / "wrong.yaml").stdout
    )
    assert _validate(project, "--config", tmp_path / "right.json").exit_code == 0


def test_a_configuration_that_is_no_mapping_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text("- 1\n")

    result = _validate(write_project(tmp_path), "--config", tmp_path / "list.yaml")

    assert result.exit_code == 1
    assert "a mapping; got a list" in result.stderr


@pytest.mark.process
def test_at_a_terminal_the_report_is_coloured_and_wrapped(tmp_path: Path) -> None:
    project = write_project(tmp_path, source=BROKEN)
    command = (sys.executable, "-m", "amplifier", "module", "validate", str(project))

    with open_terminal(
        *command, environment={"NO_COLOR": "", "COLUMNS": "50"}
    ) as terminal:
        shown = terminal.read_until("not valid")
        code = terminal.wait()

    assert code == 1
    assert "\x1b[1;31merror  module.mounting" in shown
    assert r"\x1b[31mdisk" in shown


def test_the_page_names_every_check() -> None:
    page = (ROOT / "docs/reference/api/validation.md").read_text("utf-8")

    assert [check for check in CHECKS if f"`{check}`" not in page] == []


def test_the_types_are_listed_with_their_place_in_a_plan() -> None:
    result = CliRunner().invoke(main, ["module", "types"])

    header, *rows = [line.split() for line in result.stdout.splitlines()]
    assert header == ["TYPE", "PLAN", "IDS"]
    assert ["orchestrator", "session.orchestrator"] in [row[:2] for row in rows]
    assert [row[0] for row in rows] == [
        "context",
        "hook",
        "orchestrator",
        "provider",
        "tool",
    ]


def test_the_types_are_json_on_demand() -> None:
    result = CliRunner().invoke(main, ["module", "types", "--json"])

    assert {
        "name": "hook",
        "plan": "hooks",
        "prefixes": ["hooks-", "hook-"],
    } in json.loads(result.stdout)


def test_a_new_module_prints_its_folder_alone(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        main, ["module", "new", "week days", "--type", "tool", "--path", str(tmp_path)]
    )

    folder = tmp_path / "amplifier-module-tool-week-days"
    assert result.exit_code == 0
    assert result.stdout == f"{folder}\n"
    assert (folder / "pyproject.toml").is_file()
    assert "src/amplifier_module_tool_week_days/py.typed" in result.stderr


def test_a_new_module_never_overwrites(tmp_path: Path) -> None:
    (tmp_path / "amplifier-module-tool-days").mkdir()

    result = CliRunner().invoke(
        main, ["module", "new", "tool-days", "--path", str(tmp_path)]
    )

    assert result.exit_code == 1
    assert "exists" in result.stderr
    assert list((tmp_path / "amplifier-module-tool-days").iterdir()) == []
