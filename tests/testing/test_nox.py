"""The sessions that a module's noxfile registers, run by nox itself in the environment of these tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.validation.projects import write_project

pytestmark = pytest.mark.process

NOXFILE = """
from amplifier.testing import nox as sessions

sessions.lint()
sessions.typing()
sessions.tests(pythons=["{python}"])
sessions.validate(behavioral=False)
sessions.build()
"""

BUILD = """
import sys, zipfile
from pathlib import Path

folder = Path(sys.argv[sys.argv.index("--outdir") + 1])
folder.mkdir(parents=True)
(folder / "it-1.0.tar.gz").write_text("the source")
with zipfile.ZipFile(folder / "it-1.0-py3-none-any.whl", "w") as wheel:
    for name, text in {contents!r}.items():
        wheel.writestr(name, text)
"""
"""A stand-in for the front end `build`: it makes a wheel of these contents."""

CONTENTS = {
    "it/__init__.py": "",
    "it/py.typed": "",
    "it-1.0.dist-info/entry_points.txt": "[console_scripts]\nit = it:main\n[amplifier.modules]\ntool-it = it:Main\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A sound project with the noxfile of a new module."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return write_project(tmp_path, files={"noxfile.py": NOXFILE.format(python=python)})


def _nox(
    project: Path, *arguments: str, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    folders = [*([str(path)] if path else []), *filter(None, sys.path)]
    return subprocess.run(
        [sys.executable, "-m", "nox", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_line_of_the_noxfile_is_a_session(project: Path) -> None:
    listed = json.loads(_nox(project, "--list", "--json").stdout)

    assert [session["name"] for session in listed] == [
        "lint",
        "typing",
        "tests",
        "validate",
        "build",
    ]
    assert all(session["description"] for session in listed)


@pytest.mark.parametrize(
    ("session", "fault", "words"),
    [
        ("lint", "import os\n", "F401"),
        ("typing", "number: int = 'one'\n", "Incompatible types"),
        ("tests", "def test_it() -> None:\n    assert 1 == 2\n", "1 failed"),
        ("validate", "raise OSError('gone')\n", "OSError: gone"),
    ],
)
def test_a_session_fails_with_what_it_checks(
    project: Path, session: str, fault: str, words: str
) -> None:
    package = "src/amplifier_module_tool_sound/__init__.py"
    (project / ("tests/test_it.py" if session == "tests" else package)).write_text(
        fault
    )

    result = _nox(project, "--no-venv", "-s", session)

    assert result.returncode == 1
    assert words in result.stdout + result.stderr


def test_a_session_passes_where_there_is_nothing_to_find(project: Path) -> None:
    (project / "src/amplifier_module_tool_sound/__init__.py").write_text(
        '"""A module."""\n'
    )
    (project / "noxfile.py").write_text(
        f'"""The sessions."""\n{NOXFILE.format(python="3.11")}'
    )

    result = _nox(project, "--no-venv", "-s", "lint", "typing")

    assert result.returncode == 0, result.stderr


def test_what_stands_behind_two_hyphens_goes_to_pytest(project: Path) -> None:
    (project / "tests" / "test_it.py").write_text(
        "def test_one(): ...\n\ndef test_two(): ...\n"
    )

    result = _nox(project, "--no-venv", "-s", "tests", "--", "-k", "one")

    assert result.returncode == 0
    assert "1 passed, 1 deselected" in result.stdout


@pytest.mark.parametrize(
    ("without", "words"),
    [
        (None, ""),
        (
            "it-1.0.dist-info/entry_points.txt",
            "has no entry point in the group amplifier.modules",
        ),
        ("it/py.typed", "has no py.typed in it"),
    ],
)
def test_wheel_is_looked_into_before_it_is_put_into_folder(
    project: Path, tmp_path: Path, without: str | None, words: str
) -> None:
    contents = {name: text for name, text in CONTENTS.items() if name != without}
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "__main__.py").write_text(
        dedent(BUILD).format(contents=contents)
    )

    result = _nox(project, "--no-venv", "-s", "build", path=tmp_path)

    assert result.returncode == (0 if without is None else 1), result.stderr
    assert words in result.stderr
    built = ["it-1.0-py3-none-any.whl", "it-1.0.tar.gz"] if without is None else []
    assert sorted(path.name for path in project.glob("dist/*")) == built
