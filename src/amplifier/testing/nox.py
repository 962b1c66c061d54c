"""nox sessions for module packages, one line each in a `noxfile.py`.

```python
from amplifier.testing import nox as sessions

sessions.lint()
sessions.typing()
sessions.tests()
sessions.validate()
sessions.build()
```

Each function registers a session of its own name. A session installs the package with its extra `dev` into an
environment of its own; with `nox --no-venv` it uses the one that is active.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import nox

from amplifier_kit.installation import PUBLISHED, clone_folder

__all__ = ["PYTHONS", "build", "lint", "tests", "typing", "validate"]

PYTHONS: Final = ("3.11", "3.12", "3.13")
"""The Pythons on which Amplifier runs."""

EDITABLE: Final = ("-e", ".[dev]")
"""What a session installs: the package as it is edited, with what its extra `dev` names."""


def lint(
    *, paths: Sequence[str] = (".",), requirements: Sequence[str] = EDITABLE
) -> None:
    """Register `lint`: ruff's rules and its format.

    Args:
        paths: what is checked.
        requirements: what is installed.
    """

    @nox.session
    def lint(session: nox.Session) -> None:
        """Check style and format."""
        _install(session, requirements)
        session.run("python", "-m", "ruff", "check", *paths)
        session.run("python", "-m", "ruff", "format", "--check", *paths)


def typing(
    *, paths: Sequence[str] = ("src", "tests"), requirements: Sequence[str] = EDITABLE
) -> None:
    """Register `typing`: mypy, strict.

    Args:
        paths: what is checked.
        requirements: what is installed.
    """

    @nox.session
    def typing(session: nox.Session) -> None:
        """Check the types."""
        _install(session, requirements)
        # the tests import the package by its name, as it is when it is installed
        session.run("python", "-m", "mypy", "--strict", *paths, env={"MYPYPATH": "src"})


def tests(
    *,
    pythons: Sequence[str] = PYTHONS,  # noqa: PT028  # this is no test, whatever its name
    requirements: Sequence[str] = EDITABLE,  # noqa: PT028  # likewise
) -> None:
    """Register `tests`: pytest, on each Python that is there; arguments behind `--` go to pytest.

    Args:
        pythons: the Pythons.
        requirements: what is installed.
    """

    @nox.session(python=list(pythons))
    def tests(session: nox.Session) -> None:
        """Run the tests."""
        _install(session, requirements)
        session.run("python", "-m", "pytest", *session.posargs)


def validate(
    *, path: str = ".", behavioral: bool = True, requirements: Sequence[str] = EDITABLE
) -> None:
    """Register `validate`: `amplifier module validate`.

    Args:
        path: what is validated.
        behavioral: try every behaviour of the modules' types as well.
        requirements: what is installed.
    """

    @nox.session
    def validate(session: nox.Session) -> None:
        """Check the modules against their contracts."""
        _install(session, requirements)
        _validate(session, path, behavioral=behavioral)


def build(*, folder: str = "dist") -> None:
    """Register `build`: the wheel and the source distribution, and whether the wheel works once it is installed.

    The wheel is made from the source distribution, so that both are whole. Without an environment of its own a
    session leaves out the installation.

    Args:
        folder: where the two files are put.
    """

    @nox.session
    def build(session: nox.Session) -> None:
        """Build the package and check what was built."""
        _install(session, ("build>=1.2",))
        # Built elsewhere: what the folder has already is not part of this build.
        made = Path(session.create_tmp()).resolve() / "built"
        shutil.rmtree(made, ignore_errors=True)
        session.run("python", "-m", "build", "--outdir", str(made))
        (wheel,) = made.glob("*.whl")
        modules, untyped = _read_wheel(wheel)
        if not modules:
            session.error(
                f"{wheel.name} has no entry point in the group amplifier.modules"
            )
        if untyped:
            session.error(f"{wheel.name} has no py.typed in {', '.join(untyped)}")
        if session.venv_backend != "none":
            session.install(*_unpublished(), str(wheel))
            for module in modules:
                # in the repository its sources would be imported instead
                with session.chdir(made):
                    _validate(session, module, behavioral=False)
        for file in made.iterdir():
            Path(folder).mkdir(exist_ok=True)
            shutil.copy(file, folder)


def _install(session: nox.Session, requirements: Sequence[str]) -> None:
    """Install into the session's own environment; one that it was given stays as it is."""
    # whoever gave the environment decides what is in it
    if session.venv_backend != "none":
        session.install(*_unpublished(), *requirements)


def _unpublished() -> tuple[str, ...]:
    """Return what installs Amplifier itself where it is on no index: the clone that this installation was made from."""
    clone = clone_folder()
    if PUBLISHED or clone is None:
        return ()
    return ("-e", str(clone))


def _validate(session: nox.Session, path: str, *, behavioral: bool) -> None:
    if behavioral:
        options = ["--behavioral"]
    else:
        options = []
    session.run("python", "-m", "amplifier", "module", "validate", path, *options)


def _read_wheel(wheel: Path) -> tuple[list[str], list[str]]:
    """Return the ids of a wheel's modules, and its packages without `py.typed`."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        points = next(
            (name for name in names if name.endswith(".dist-info/entry_points.txt")),
            None,
        )
        if points is None:
            lines = []
        else:
            lines = archive.read(points).decode().splitlines()
    section, modules = "", []
    for line in map(str.strip, lines):
        if line.startswith("["):
            section = line
        elif section == "[amplifier.modules]" and "=" in line:
            modules.append(line.partition("=")[0].strip())
    packages = sorted(
        {
            name.partition("/")[0]
            for name in names
            if name.count("/") == 1 and name.endswith("/__init__.py")
        }
    )
    return modules, [
        package for package in packages if f"{package}/py.typed" not in names
    ]
