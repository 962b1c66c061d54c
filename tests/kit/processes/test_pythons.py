"""Child Pythons, and the search for programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from amplifier_kit.processes import (
    allowed_environment,
    find_program,
    open_python,
    python_argv,
    python_environment,
    safe_path,
    start_python,
)
from amplifier_sdk.jsontypes import JSONValue

REPORT: Final = """
import json, os, sys
names = sorted(os.environ.keys() - {"LC_CTYPE"})
print(json.dumps({"argv": sys.argv[1:], "path": sys.path, "environment": names, "folder": os.getcwd(),
                  "isolated": sys.flags.isolated, "written": not sys.dont_write_bytecode}))
"""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder that shadows what Python imports, by each of the ways that lead there."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in ("json", "runpy", "site", "sitecustomize", "usercustomize", "report"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / name)!r}, 'w')\n")
    (tmp_path / "trusted").mkdir()
    indented = REPORT.replace("\n", "\n    ")
    (tmp_path / "trusted" / "report.py").write_text(
        f"def main():{indented}\nif __name__ == '__main__': main()\n"
    )
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("PYTHONSTARTUP", str(folder / "site.py"))
    monkeypatch.setattr(
        sys,
        "path",
        ["", "relative", str(tmp_path / "trusted"), *filter(os.path.isabs, sys.path)],
    )
    return folder


def run(argv: tuple[str, ...], **options: str) -> dict[str, JSONValue]:
    child = start_python(argv, environment=python_environment() | options)
    out, _ = child.communicate(timeout=20)
    assert child.returncode == 0
    found: dict[str, JSONValue] = json.loads(out)
    return found


def traces(hostile: Path) -> list[str]:
    return sorted(os.listdir(hostile.parent))


@pytest.mark.process
@pytest.mark.parametrize("program", ["report", "report:main", "{}/trusted/report.py"])
def test_child_with_packages_inherits_only_search_path(
    hostile: Path, program: str
) -> None:
    found = run(
        python_argv(program.format(hostile.parent), "a", "b", packages=True),
        PYTHONPATH=str(hostile),
    )

    assert found["argv"] == ["a", "b"]
    assert found["path"] == [
        folder for folder in sys.path if folder not in ("", "relative")
    ]
    assert found["folder"] == "/"
    assert found["isolated"] == 1
    assert traces(hostile) == ["hostile", "trusted"]


@pytest.mark.process
def test_a_child_without_packages_has_the_standard_library(hostile: Path) -> None:
    file = str(hostile.parent / "trusted" / "report.py")
    plain = run(python_argv(file, "a"))
    rooted = run(python_argv("report:main", root=str(hostile.parent / "trusted")))

    assert plain["argv"] == ["a"]
    assert "site-packages" not in str(plain["path"])
    assert rooted["path"] == [*_list(plain["path"]), str(hostile.parent / "trusted")]
    assert traces(hostile) == ["hostile", "trusted"]


def _list(value: JSONValue) -> list[JSONValue]:
    assert isinstance(value, list)
    return value


@pytest.mark.process
@pytest.mark.parametrize("is_writing", [True, False])
def test_a_child_writes_bytecode_where_this_process_does(
    hostile: Path, monkeypatch: pytest.MonkeyPatch, is_writing: bool
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", not is_writing)
    found = run(python_argv(str(hostile.parent / "trusted" / "report.py")))

    assert found["written"] is is_writing


@pytest.mark.process
async def test_a_child_s_streams_can_be_awaited(hostile: Path) -> None:
    async with await open_python(
        python_argv(str(hostile.parent / "trusted" / "report.py"))
    ) as child:
        assert child.stdout is not None
        found = json.loads(b"".join([piece async for piece in child.stdout]))

    assert found["environment"] == []
    assert found["folder"] == "/"


def test_environment_has_what_is_listed_and_nothing_for_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {
        "PATH": "/bin",
        "PYTHONPATH": "x",
        "PYTHONHOME": "x",
        "SECRET": "x",
        "HTTPS_PROXY": "p",
        "PIP_X": "1",
    }

    assert python_environment(
        ("PIP_*", "PYTHON*"), {"PYTHONUTF8": "1", "A": "b"}, of=given
    ) == {
        "PATH": "/bin",
        "HTTPS_PROXY": "p",
        "PIP_X": "1",
        "A": "b",
    }


def test_search_path_has_no_entry_that_working_dir_decides() -> None:
    assert safe_path(":.:bin:/usr/bin:./x::/bin:..") == "/usr/bin:/bin"
    assert allowed_environment(of={"PATH": ".:/usr/bin"})["PATH"] == "/usr/bin"
    assert allowed_environment(of={"PATH": "."})["PATH"] == os.defpath


def test_a_program_of_the_working_directory_is_not_found(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (hostile, hostile / "bin", tmp_path / "tools"):
        folder.mkdir(exist_ok=True)
        (folder / "git").write_text("#!/bin/sh\n")
        (folder / "git").chmod(0o755)
    (tmp_path / "linked").symlink_to(hostile / "bin")
    path = os.pathsep.join(
        (
            ".",
            "",
            "bin",
            str(hostile / "bin"),
            str(tmp_path / "linked"),
            str(tmp_path / "tools"),
        )
    )

    assert find_program("git", environ={"PATH": path}) == str(
        tmp_path / "tools" / "git"
    )
    assert find_program("git", environ={"PATH": path}, directory="/") == str(
        hostile / "bin" / "git"
    )
    assert find_program("git", environ={"PATH": "."}) is None
    monkeypatch.setattr(sys, "executable", str(hostile / "bin" / "python"))
    assert find_program("git", environ={"PATH": path}) == str(hostile / "bin" / "git")
    monkeypatch.setenv("PATH", str(tmp_path / "tools"))
    assert find_program("git") == str(tmp_path / "tools" / "git")


@pytest.mark.process
def test_pip_runs_isolated(hostile: Path) -> None:
    pytest.importorskip("pip", reason="this environment was made without pip")
    child = start_python(
        python_argv("pip", "--version", packages=True),
        environment=python_environment(),
        stderr=subprocess.STDOUT,
    )
    out, _ = child.communicate(timeout=20)

    assert out.startswith(b"pip "), out
    assert traces(hostile) == ["hostile", "trusted"]
