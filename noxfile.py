"""What is checked, and how: `nox` runs it all, `nox -l` lists it, `nox -s lint` runs one part.

`nox --no-venv -s lint typing` uses the environment that is active instead of making one.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import nox

nox.needs_version = ">=2025.10.14"
nox.options.default_venv_backend = "virtualenv"
nox.options.download_python = "never"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["lint", "typing", "tests", "coverage", "plugins", "docs"]

ROOT = Path(__file__).resolve().parent
PLUGINS = {
    path.parent.name.removeprefix("amplifier-module-"): path.parent
    for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))
}
PYTHONS = ["3.11", "3.12", "3.13"]
DEFAULT = PYTHONS[0]
FULL_COVERAGE = ["src/amplifier_sdk", "src/amplifier/kernel"]
COVERAGE_ENV = {
    "COVERAGE_PROCESS_START": str(ROOT / "pyproject.toml"),
    "COVERAGE_FILE": str(ROOT / ".coverage"),
    "COVERAGE_ROOT": str(ROOT),
}


@nox.session(python=DEFAULT)
def lint(session: nox.Session) -> None:
    """Check style, format and who imports whom."""
    install_workspace(session)
    session.run("python", "-m", "ruff", "check", ".")
    session.run("python", "-m", "ruff", "format", "--check", ".")
    session.run(
        "python", "-m", "pytest", "-q", "tests/architecture/test_layers.py", "tests/architecture/test_backends.py"
    )


@nox.session(python=DEFAULT)
def typing(session: nox.Session) -> None:
    """Check the types of everything, and that the public API is wholly typed."""
    install_workspace(session)
    env = {"MYPYPATH": os.pathsep.join(str(plugin / "src") for plugin in PLUGINS.values())}
    session.run("python", "-m", "mypy", "src", "tests", "noxfile.py", *existing("scripts", "benchmarks"), env=env)
    for plugin in PLUGINS.values():
        session.run(
            "python", "-m", "mypy", *existing(f"plugins/{plugin.name}/src", f"plugins/{plugin.name}/tests"), env=env
        )
    session.run("python", "-m", "pytest", "-q", "tests/architecture/test_typing.py")
    for package in ("amplifier", "amplifier_sdk"):
        session.run("python", "-m", "pyright", "--ignoreexternal", "--verifytypes", package)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests: all of them on the oldest Python, those of the SDK and the kernel on the others."""
    install_workspace(session)
    if session.python == DEFAULT:
        session.run("python", "-m", "coverage", "erase")
        session.run("python", "-m", "pytest", *session.posargs, env=COVERAGE_ENV)
        return
    session.run("python", "-m", "pytest", *existing("tests/sdk", "tests/kernel"), *session.posargs)


@nox.session(python=DEFAULT)
def coverage(session: nox.Session) -> None:
    """Hold what `tests` measured against the gates: all branches of the SDK and the kernel, 95 % elsewhere."""
    install(session, "coverage>=7.13")
    run = ("python", "-m", "coverage")
    session.run(*run, "combine", "--quiet", env=COVERAGE_ENV)
    for area in FULL_COVERAGE:
        session.run(*run, "report", f"--include={area}/*", "--fail-under=100", env=COVERAGE_ENV)
    omit = ",".join(f"{area}/*" for area in FULL_COVERAGE)
    for area in ("src/amplifier", *(f"plugins/{plugin.name}/src" for plugin in PLUGINS.values())):
        session.run(*run, "report", f"--include={area}/*", f"--omit={omit}", "--fail-under=95", env=COVERAGE_ENV)


@nox.session(python=DEFAULT, reuse_venv=False)
@nox.parametrize("plugin", [nox.param(plugin, id=name) for name, plugin in PLUGINS.items()])
def plugins(session: nox.Session, plugin: Path) -> None:
    """Check and test one plugin alone, against the wheels as they would be published."""
    alone = Path(session.create_tmp()).resolve() / "alone"
    shutil.rmtree(alone, ignore_errors=True)
    session.run("python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(alone), str(ROOT), str(plugin))
    session.install(
        *(f"{wheel}[test]" if wheel.name.startswith("amplifier-") else str(wheel) for wheel in alone.glob("*.whl"))
    )
    for name in ("pyproject.toml", "typings"):
        copy(ROOT / name, alone / name)
    copy(plugin / "tests", alone / "tests")
    copy(plugin / "src", alone / "unpacked")
    with session.chdir(alone):
        session.run("python", "-m", "mypy", "unpacked", "tests", env={"MYPYPATH": "unpacked"})
        shutil.rmtree("unpacked")
        session.run("python", "-m", "pytest", "tests", *session.posargs)


@nox.session(python=DEFAULT)
def docs(session: nox.Session) -> None:
    """Build the site, links checked; refuse a page that would ask another host for something."""
    install(session, *nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), "docs"))
    session.run("zensical", "build", "--strict", "--clean")
    if foreign := sorted(set(foreign_assets(ROOT / "site"))):
        session.error(f"Pages load from other hosts: {', '.join(foreign)}")
    session.run("towncrier", "build", "--draft", "--version", "0.0.0", silent=True)


@nox.session(python=DEFAULT)
def bench(session: nox.Session) -> None:
    """Measure the runtime; the arguments go to `benchmarks/run.py`."""
    install_workspace(session)
    session.run("python", "benchmarks/run.py", *session.posargs)


def install(session: nox.Session, *requirements: str) -> None:
    """Install into the session's own environment; one that it was given stays as it is."""
    if session.venv_backend != "none":
        session.install(*requirements)


def install_workspace(session: nox.Session) -> None:
    """Install the root distribution and every plugin, editable."""
    install(session, "-e", ".[dev]", *(word for plugin in PLUGINS.values() for word in ("-e", str(plugin))))


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder, if it exists."""
    if source.is_dir():
        shutil.copytree(source, target)
    elif source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def existing(*paths: str) -> list[str]:
    """Return the paths that exist."""
    return [path for path in paths if (ROOT / path).exists()]


def foreign_assets(site: Path) -> Iterator[str]:
    """Yield the addresses on other hosts from which a page would load scripts, styles, fonts or pictures."""
    tags = re.compile(r"<(?:iframe|img|link|script)\b[^>]*>")
    address = re.compile(r"""\b(?:href|src)=["']?(https?://[^"'\s>]+)""")
    for page in site.rglob("*.html"):
        for tag in tags.findall(page.read_text("utf-8")):
            if 'rel="canonical"' not in tag:
                yield from address.findall(tag)
