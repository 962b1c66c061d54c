"""The commands that only tell, and what starting the program costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from amplifier.cli import main
from amplifier.cli._root import COMMANDS
from amplifier.cli.module_sources import TYPES
from amplifier_sdk.hookspecs import KINDS


def test_without_a_terminal_the_bare_command_prints_its_help() -> None:
    result = CliRunner().invoke(main, [])

    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: ")
    assert [
        name
        for name in ("chat", "module", "run", "version")
        if name not in result.stdout
    ] == []


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help(command: str) -> None:
    result = CliRunner().invoke(main, [command, "--help"])

    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: main {command}")


def test_an_unknown_command_names_the_nearest() -> None:
    result = CliRunner().invoke(main, ["vresion"])

    assert result.exit_code == 2
    assert "'version'" in result.stderr


def test_an_unknown_option_is_wrong_usage() -> None:
    assert CliRunner().invoke(main, ["--colour"]).exit_code == 2


def test_the_version_names_what_a_report_needs() -> None:
    result = CliRunner().invoke(main, ["version"])

    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0].startswith("amplifier ")
    assert lines[1].startswith(f"python {sys.version_info[0]}.{sys.version_info[1]}")
    assert "cli-trials 1.0" in lines


def test_the_version_is_json_on_demand() -> None:
    result = CliRunner().invoke(main, ["version", "--json"])

    assert json.loads(result.stdout)["modules"]["cli-trials"] == "1.0"


def test_modules_are_listed_in_columns() -> None:
    result = CliRunner().invoke(main, ["module", "list"])

    header, *rows = [line.split() for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert header == ["ID", "TYPE", "DISTRIBUTION", "LOCATION"]
    assert ["tool-trials", "tool", "cli-trials", "1.0"] in [row[:4] for row in rows]


def test_modules_are_json_on_demand_and_may_be_of_one_type() -> None:
    result = CliRunner().invoke(main, ["module", "list", "--json", "--type", "hook"])

    found = json.loads(result.stdout)
    assert {module["type"] for module in found} == {"hook"}
    assert {"hooks-denies", "hooks-tells", "hooks-fails"} <= {
        module["id"] for module in found
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "No module is installed.\n"),
        (("--type", "context"), "No context is installed.\n"),
    ],
)
def test_an_empty_list_says_so(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    def none(kind: str | None) -> list[object]:
        return []

    monkeypatch.setattr("amplifier.app.modules.own.list_modules", none)

    result = CliRunner().invoke(main, ["module", "list", *arguments])

    assert (result.exit_code, result.stdout, result.stderr) == (0, "", message)


def test_the_types_are_those_of_the_kernel() -> None:
    assert set(TYPES) == {kind.name for kind in KINDS}


@pytest.mark.process
@pytest.mark.parametrize(
    "arguments",
    [
        ["version"],
        ["--help"],
        ["run", "--help"],
        ["doctor", "--help"],
        ["init", "--help"],
        [],
    ],
)
def test_what_needs_no_session_loads_no_runtime(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom amplifier.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "heavy = {'anyio', 'asyncio', 'yaml', 'structlog', 'cattrs', 'rich', 'prompt_toolkit', 'trio'}\n"
        "packages = ('amplifier.kernel', 'amplifier_kit.', 'amplifier_sdk.')\n"
        "ours = {name for name in sys.modules if name.startswith(packages)}\n"
        "print(sorted(heavy & set(sys.modules) | ours), file=sys.stderr)"
    )

    result = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=True,
        input="",
    )

    # What makes text fit for a terminal, what finds programs, and by what packages load their names: all stand alone.
    light = [
        "amplifier_kit.processes",
        "amplifier_kit.processes.programs",
        "amplifier_kit.terminal",
        "amplifier_sdk.lazy",
        "amplifier_sdk.legible",
    ]
    assert result.stderr == f"{light}\n"


@pytest.mark.process
def test_a_file_of_the_working_directory_takes_no_modules_place(tmp_path: Path) -> None:
    (tmp_path / "attrs.py").write_text("raise SystemExit('it ran')\n")
    (tmp_path / "platform.py").write_text("raise SystemExit('it ran')\n")
    done = subprocess.run(
        [sys.executable, "-m", "amplifier", "version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("amplifier "), done.stderr


@pytest.mark.process
def test_with_safe_path_nothing_of_working_dir_is_imported(
    tmp_path: Path,
) -> None:
    for name in (
        *sys.stdlib_module_names,
        "amplifier",
        "amplifier_sdk",
        "attrs",
        "click",
    ):
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
        )

    done = subprocess.run(
        [sys.executable, "-P", "-m", "amplifier", "version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "ran").exists()
