"""What is checked, and how: `nox` runs it all, `nox -l` lists it, `nox -s lint` runs one part.

`nox --no-venv -s lint typing` uses the environment that is active instead of making one.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2025.10.14"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = [
    "lint",
    "typing",
    "tests",
    "plugins",
    "scaffold",
    "docs",
    "repository",
]

ROOT = Path(__file__).resolve().parent
PLUGINS = {
    path.parent.name.removeprefix("amplifier-module-"): f"plugins/{path.parent.name}"
    for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))
}
PYTHONS = ["3.11", "3.12", "3.13"]
DEFAULT = PYTHONS[0]
PACKAGES = ("amplifier", "amplifier_kit", "amplifier_sdk")
FULL_COVERAGE = ["src/amplifier_sdk", "src/amplifier_kit", "src/amplifier/kernel"]
KINDS = ["context", "hook", "orchestrator", "provider", "tool"]
NIGHTLY = [
    *("coverage", "tests-3.12", "tests-3.13"),
    *(f"plugins({name})" for name in PLUGINS),
    *(f"scaffold({kind})" for kind in KINDS),
    *(
        "kill_points",
        "turn_kills",
        "serve_load",
        "conformance",
        "cancel_matrix",
        "bad_modules",
        "soak",
        "tables",
        "races",
        "shell_oracle",
        "mutants",
    ),
]
"""What `nightly` runs, each by a name of its own: nox takes the first of several that share one."""

SCHEMAS = {
    "github-workflows": ".github/workflows/*.yml",
    "github-actions": ".github/actions/*/action.yml",
    "dependabot": ".github/dependabot.yml",
    "github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
    "github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
}
ALL_CELLS = {"AMPLIFIER_ALL_CELLS": "1"}
"""The great tables run in full: see `tests/sample.py`."""

COVERAGE_ENV = {
    "COVERAGE_PROCESS_START": str(ROOT / "pyproject.toml"),
    "COVERAGE_FILE": str(ROOT / ".coverage"),
    "COVERAGE_ROOT": str(ROOT),
}


@nox.session(python=DEFAULT)
def lint(session: nox.Session) -> None:
    """Check style, format and who imports whom."""
    install_workspace(session)
    run_all(
        session,
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        [
            "pytest",
            "-q",
            "tests/architecture/test_layers.py",
            "tests/architecture/test_backends.py",
        ],
    )


@nox.session(python=DEFAULT)
def typing(session: nox.Session) -> None:
    """Check the types of everything, and that the public API is wholly typed."""
    install_workspace(session)
    run_all(
        session,
        [
            "mypy",
            "noxfile.py",
            "conftest.py",
            *with_python("src", "tests", "benchmarks", "examples", "scripts"),
        ],
        *(
            ["mypy", *with_python(f"{folder}/src", f"{folder}/tests")]
            for folder in PLUGINS.values()
        ),
        [
            "pytest",
            "-q",
            "tests/architecture/test_typing.py",
            "tests/docs/test_typed_pages.py",
        ],
        *(
            ["pyright", "--ignoreexternal", "--verifytypes", package]
            for package in PACKAGES
        ),
        env={
            "MYPYPATH": os.pathsep.join(f"{folder}/src" for folder in PLUGINS.values())
        },
    )


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests: all of them on the oldest Python, those of the SDK, the kit and the kernel on the others."""
    install_workspace(session, "dev" if session.python == DEFAULT else "test")
    folders = (
        () if session.python == DEFAULT else ("tests/sdk", "tests/kit", "tests/kernel")
    )
    session.run("python", "-m", "pytest", *folders, *session.posargs, env=ALL_CELLS)


@nox.session(python=False)
def nightly(session: nox.Session) -> None:
    """Run what is too long for each change, one session after another: an hour or two on two cores."""
    for name in NIGHTLY:
        session.notify(name)


@nox.session(python=DEFAULT)
def kill_points(session: nox.Session) -> None:
    """Kill a turn, and refuse it the disk, at every system call; needs strace."""
    install_workspace(session)
    tests = [
        "tests/reliability/test_kill_points.py",
        "tests/reliability/test_store_kill_points.py",
        "tests/reliability/test_store_files.py",
        "tests/kit/files/appendlog/test_processes.py",
    ]
    run_full(session, *tests, AMPLIFIER_KILL_POINTS="1")


@nox.session(python=DEFAULT)
def worker_kills(session: nox.Session) -> None:
    """Kill workers of the engine while they run 200 runs of 20 steps; a row of counts for each test."""
    install_workspace(session)
    run_full(
        session,
        "-s",
        "plugins/amplifier-module-engine-dbos/tests/test_kills.py",
        AMPLIFIER_KILL_RUNS="200",
        AMPLIFIER_KILL_STEPS="20",
        AMPLIFIER_KILLS="60",
    )


@nox.session(python=DEFAULT)
def turn_kills(session: nox.Session) -> None:
    """Kill, pause and cut off workers: in 200 turns of 20 steps, in each of 1,000 steps of one, at each write."""
    install_workspace(session)
    run_full(
        session,
        "-s",
        "tests/server/test_kill_points.py",
        "tests/server/test_killed_steps.py",
        AMPLIFIER_KILL_STRIDE="1",
        AMPLIFIER_STEP_KILLS="1000",
    )
    run_full(
        session,
        "-s",
        "tests/server/test_worker_kills.py",
        AMPLIFIER_KILL_WORKERS="4",
        AMPLIFIER_KILL_SESSIONS="200",
        AMPLIFIER_KILL_STEPS="20",
        AMPLIFIER_KILL_PAUSE="2",
        AMPLIFIER_KILLS="60",
        AMPLIFIER_KILL_RESTARTS="2",
        AMPLIFIER_KILL_CUT="30",
    )


@nox.session(python=DEFAULT)
def serve_load(session: nox.Session) -> None:
    """Have 500 readers follow a session, 10,000 want to, 1,000 turns wait for a person, and one take 10,000 steps."""
    install_workspace(session)
    run_full(
        session,
        "-s",
        "tests/server/test_load.py",
        "tests/server/test_queue_load.py",
        AMPLIFIER_FOLLOWERS="500",
        AMPLIFIER_CROWD="10000",
        AMPLIFIER_TURNS="100",
        AMPLIFIER_QUEUED_TURNS="200",
        AMPLIFIER_QUESTIONS="1000",
        AMPLIFIER_LONG_STEPS="10000",
    )


@nox.session(python=DEFAULT)
def conformance(session: nox.Session) -> None:
    """Run the kits of stores and engines on all that there are, and print a table of what passed."""
    install_workspace(session)
    session.run("python", "-m", "scripts.conformance")


@nox.session(python=DEFAULT)
def cancel_matrix(session: nox.Session) -> None:
    """Cancel a turn at nine places, with three loops, on both backends, twenty times each."""
    install_workspace(session)
    run_full(
        session, "tests/reliability/test_cancel_matrix.py", AMPLIFIER_CANCEL_RUNS="20"
    )


@nox.session(python=DEFAULT)
def bad_modules(session: nox.Session) -> None:
    """Let handlers and tools misbehave in every way at every event."""
    install_workspace(session)
    run_full(
        session, "tests/reliability/test_bad_modules.py", AMPLIFIER_BAD_MODULES="1"
    )


@nox.session(python=DEFAULT)
def soak(session: nox.Session) -> None:
    """Run 10,000 turns in which now and then something goes wrong, and read 10,000 streams with one token.

    `AMPLIFIER_SOAK_SEED` repeats a run.
    """
    install_workspace(session)
    run_full(
        session,
        "tests/reliability/test_soak.py",
        "tests/serving/test_attacks.py",
        AMPLIFIER_SOAK_TURNS="10000",
        AMPLIFIER_STREAMS="10000",
    )


@nox.session(python=DEFAULT)
def tables(session: nox.Session) -> None:
    """Send every odd text, secret, hostile folder and huge thing through every route."""
    install_workspace(session)
    names = (
        "strings",
        "app_strings",
        "canaries",
        "environment",
        "hostile_folders",
        "injection",
        "names",
        "sizes",
    )
    run_full(
        session,
        *(f"tests/reliability/test_{name}.py" for name in names),
        AMPLIFIER_TABLES="1",
    )


@nox.session(python=DEFAULT)
def races(session: nox.Session) -> None:
    """Swap directories and files while they are used, ten seconds for each race."""
    install_workspace(session)
    run_full(session, "tests/kit/files/test_path_races.py", AMPLIFIER_RACE_SECONDS="10")


@nox.session(python=DEFAULT)
def shell_oracle(session: nox.Session) -> None:
    """Run 200,000 shell texts that the policy allows, and check each program and file; `TEXTS SEED FILE` say others."""
    install_workspace(session)
    session.run("python", "-m", "tests.shell_oracle", *session.posargs)


@nox.session(python=DEFAULT)
def mutants(session: nox.Session) -> None:
    """Break the SDK, the kernel, the shell policy and netguard in 40 places; `COUNT SEED FOLDER` say others."""
    install_workspace(session)
    session.run("python", "-m", "tests.mutants", *session.posargs)


@nox.session(python=DEFAULT)
def coverage(session: nox.Session) -> None:
    """Run all tests and cells, with ten times the examples, and hold their coverage to the gates: all, or 95 %."""
    install_workspace(session)
    omit = ",".join(f"{area}/*" for area in FULL_COVERAGE)
    rest = ["src/amplifier", *(f"{folder}/src" for folder in PLUGINS.values())]
    run_all(
        session,
        ["coverage", "erase"],
        ["pytest", "-n", "auto", "--hypothesis-profile=nightly", *session.posargs],
        ["coverage", "combine", "--quiet"],
        *(
            ["coverage", "report", f"--include={area}/*", "--fail-under=100"]
            for area in FULL_COVERAGE
        ),
        *(
            [
                "coverage",
                "report",
                f"--include={area}/*",
                f"--omit={omit}",
                "--fail-under=95",
            ]
            for area in rest
        ),
        env=COVERAGE_ENV | ALL_CELLS,
    )


@nox.session(python=DEFAULT, reuse_venv=False)
@nox.parametrize(
    "folder", [nox.param(folder, id=name) for name, folder in PLUGINS.items()]
)
def plugins(session: nox.Session, folder: str) -> None:
    """Check and test one plugin alone, against the wheels as they would be published."""
    alone = empty_folder(session)
    session.install(
        f"{wheel(session, ROOT, alone)}[test]",
        wheel(session, ROOT / folder, alone),
        "pip",
    )
    root = {"pyproject.toml": ".", "conftest.py": ".", "typings": "typings"}
    for source, target in (
        root | {f"{folder}/README.md": ".", f"{folder}/tests": "tests"}
    ).items():
        copy(ROOT / source, alone / target)
    copy(ROOT / folder / "src", alone / "unpacked")
    with session.chdir(alone):
        session.run(
            "python", "-m", "mypy", "unpacked", "tests", env={"MYPYPATH": "unpacked"}
        )
        shutil.rmtree("unpacked")
        session.run("python", "-m", "pytest", "tests", *session.posargs)


@nox.session(python=DEFAULT, reuse_venv=False)
@nox.parametrize("kind", [nox.param(kind, id=kind) for kind in KINDS])
def scaffold(session: nox.Session, kind: str) -> None:
    """Make a new module of one type and run all that it comes with, against the wheel as it would be published."""
    alone = empty_folder(session)
    session.install(wheel(session, ROOT, alone))
    session.run(
        "amplifier", "module", "new", "week-days", "--type", kind, "--path", str(alone)
    )
    (folder,) = alone.glob("amplifier-module-*")
    session.install("-e", f"{folder}[dev]")
    with session.chdir(folder):
        for name in ("lint", "typing", "tests", "validate", "build"):
            session.run("nox", "--no-venv", "-s", name)
    session.install(
        "--force-reinstall", "--no-deps", *map(str, folder.glob("dist/*.whl"))
    )
    session.run(
        "amplifier", "module", "validate", folder.name.removeprefix("amplifier-module-")
    )


@nox.session(python=DEFAULT)
def docs(session: nox.Session) -> None:
    """Build the site, links checked; refuse a page that would ask another host for something."""
    install(session, *group("docs"))
    session.run("zensical", "build", "--strict", "--clean")
    if foreign := sorted(set(foreign_assets(ROOT / "site"))):
        session.error(f"Pages load from other hosts: {', '.join(foreign)}")
    session.run("towncrier", "build", "--draft", "--version", "0.0.0", silent=True)


@nox.session(python=DEFAULT)
def repository(session: nox.Session) -> None:
    """Check the workflows and forms in `.github`: their schemas, their expressions, what an attacker could use."""
    install(session, *group("repository"))
    for schema, files in SCHEMAS.items():
        names = [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob(files))]
        session.run("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *names)
    session.run("jactionlint", "--shellcheck=")
    session.run("zizmor", "--offline", "--quiet", "--min-severity", "medium", ".github")


@nox.session(python=DEFAULT)
def release(session: nox.Session) -> None:
    """Build, check and try all distributions; `-- X.Y.Z --write` sets their version and writes the changelog first."""
    install(session, "packaging", *group("release"))
    version = str(
        session.run(
            "python", "-m", "scripts.release", "version", *session.posargs, silent=True
        )
    ).strip()
    changelog = ["--yes"] if "--write" in session.posargs else ["--draft"]
    session.run("towncrier", "build", *changelog, "--version", version)
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    session.run(
        "uv",
        "build",
        "--quiet",
        "--all-packages",
        "--out-dir",
        str(dist),
        external=True,
    )
    projects = [
        "pyproject.toml",
        *(f"{folder}/pyproject.toml" for folder in PLUGINS.values()),
    ]
    session.run("validate-pyproject", *projects, silent=True, log=False)
    session.run(
        "twine",
        "check",
        "--strict",
        *map(str, sorted(dist.glob("amplifier*"))),
        silent=True,
        log=False,
    )
    wheels = str(
        session.run("python", "-m", "scripts.release", "order", str(dist), silent=True)
    ).split()
    try_release(session, wheels)
    session.log(
        f"{len(wheels)} distributions of version {version} are in dist/. To publish: git push origin v{version}"
    )


@nox.session(python=DEFAULT)
def bench(session: nox.Session) -> None:
    """Measure the runtime; the arguments go to `benchmarks/run.py`."""
    install_workspace(session)
    session.run("python", "benchmarks/run.py", *session.posargs)


def try_release(session: nox.Session, wheels: Sequence[str]) -> None:
    """Install wheels one by one, in an environment that has nothing else, and run the quick start from them."""
    alone = empty_folder(session)
    python = str(alone / ".venv/bin/python")
    session.run(
        "uv",
        "venv",
        "--quiet",
        "--python",
        str(session.python),
        str(alone / ".venv"),
        external=True,
    )
    for path in wheels:
        extras = "[cli,trio]" if Path(path).name.startswith("amplifier-") else ""
        session.run(
            "uv",
            "pip",
            "install",
            "--quiet",
            "--python",
            python,
            f"{path}{extras}",
            external=True,
        )
    session.run("uv", "pip", "check", "--python", python, external=True)
    copy(ROOT / "examples", alone / "examples")
    env = {"AMPLIFIER_HOME": str(alone / "home"), "PYTHONPATH": None}
    with session.chdir(alone):
        session.run(*quick_start(), external=True, env=env)
        for name in ("asyncio_app", "trio_app"):
            session.run(python, f"examples/{name}.py", external=True, env=env)


def quick_start() -> list[str]:
    """Return the command of the README that gives a first answer, without the installation before it."""
    block = re.search(
        r"<!-- run-command -->\n```console\n(.*?)\n```",
        (ROOT / "README.md").read_text("utf-8"),
        re.DOTALL,
    )
    assert block is not None, "README.md lacks a block below <!-- run-command -->"
    return shlex.split(block[1].rpartition(" && ")[2])


def install(session: nox.Session, *requirements: str) -> None:
    """Install into the session's own environment; one that it was given stays as it is."""
    if session.venv_backend != "none":
        session.install(*requirements)


def group(name: str) -> list[str]:
    """Return the requirements of a dependency group of `pyproject.toml`."""
    return list(
        nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), name)
    )


def install_workspace(session: nox.Session, extra: str = "dev") -> None:
    """Install the root distribution with an extra, and every plugin, editable."""
    install(
        session,
        "-e",
        f".[{extra}]",
        *(word for folder in PLUGINS.values() for word in ("-e", folder)),
    )


def empty_folder(session: nox.Session) -> Path:
    """Return a folder of the session's own, with nothing in it; temporary files stay outside the repository."""
    folder = Path(session.virtualenv.location).resolve() / "alone"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def wheel(session: nox.Session, source: Path, folder: Path) -> str:
    """Build the wheel of a distribution into a folder and return its path."""
    before = set(folder.glob("*.whl"))
    session.run(
        "uv",
        "build",
        "--quiet",
        "--wheel",
        "--out-dir",
        str(folder),
        str(source),
        external=True,
    )
    (built,) = set(folder.glob("*.whl")) - before
    return str(built)


def run_full(session: nox.Session, *tests: str, **sizes: str) -> None:
    """Run tests in their full size, unless the environment says another one."""
    sizes = {name: os.environ.get(name, size) for name, size in sizes.items()}
    session.run("python", "-m", "pytest", "-q", *tests, *session.posargs, env=sizes)


def run_all(
    session: nox.Session, *commands: Sequence[str], env: Mapping[str, str] | None = None
) -> None:
    """Run Python modules with their arguments, each whatever became of the one before; fail if one failed."""
    failed = []
    for command in commands:
        try:
            session.run("python", "-m", *command, env=env)
        except CommandFailed:
            failed.append(" ".join(command))
    if failed:
        session.error(f"Failed: {'; '.join(failed)}")


def with_python(*folders: str) -> list[str]:
    """Return the folders that hold Python files."""
    return [folder for folder in folders if any((ROOT / folder).rglob("*.py"))]


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder, if it exists."""
    if source.is_dir():
        shutil.copytree(source, target)
    elif source.exists():
        shutil.copy(source, target)


def foreign_assets(site: Path) -> Iterator[str]:
    """Yield the addresses on other hosts from which a page would load scripts, styles, fonts or pictures."""
    tags = re.compile(r"<(?:iframe|img|link|script)\b[^>]*>")
    address = re.compile(r"""\b(?:href|src)=["']?(https?://[^"'\s>]+)""")
    for page in site.rglob("*.html"):
        for tag in tags.findall(page.read_text("utf-8")):
            if 'rel="canonical"' not in tag:
                yield from address.findall(tag)
