"""Bad packages: each is named with its module and its cause, and everything else loads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import anyio
import pytest

from amplifier import AmplifierSession, ModuleLoader
from amplifier_sdk.errors import (
    ModuleConflictError,
    ModuleError,
    ModuleLoadError,
    ModuleNotFoundError,
    ModuleValidationError,
)
from tests.doubles import (
    EchoLoop,
    MemoryContext,
    ScriptedProvider,
    Worker,
    build_plan,
    mounting,
)
from tests.kernel.packages import install, tool_source

Write = Callable[[Path, str], None]


def one(source: str, target: str = ":mount") -> Write:
    """A distribution `bad-dist` with the module `tool-bad` in a package of this source."""

    def write(site: Path, package: str) -> None:
        install(
            site,
            "bad-dist",
            {"tool-bad": f"{package}{target}"},
            {f"{package}.py": source},
        )

    return write


def two_with_one_id(site: Path, package: str) -> None:
    for name in ("bad-dist", "other-dist"):
        install(
            site,
            name,
            {"tool-bad": f"{package}:mount"},
            {f"{package}.py": tool_source("bad")},
        )


def one_name_in_two_packages(site: Path, package: str) -> None:
    """Another folder of the path comes first and has a package of the same name."""
    first = site / "first"
    first.mkdir()
    sys.path.insert(0, str(first))
    (first / f"{package}.py").write_text(tool_source("first"))
    one(tool_source("bad"))(site, package)


def spoilt_metadata(site: Path, package: str) -> None:
    folder = site / "bad_dist-1.0.dist-info"
    folder.mkdir()
    (folder / "entry_points.txt").write_bytes(
        b"[amplifier.modules]\ntool-bad = \xff\xfe:mount\n"
    )


def not_utf8(site: Path, package: str) -> None:
    one("")(site, package)
    (site / f"{package}.py").write_bytes(b"x = '\xff'")


def empty_entry_point(site: Path, package: str) -> None:
    install(site, "bad-dist", {"tool-bad": ""}, {})


HANGS = "import bad_packages_gate\nbad_packages_gate.event.wait(20)"
WRONG_VERSION = "from amplifier_sdk import SomethingOfALaterVersion"
NOT_ASYNC = "def mount(coordinator, config): ..."
NO_ARGUMENTS = "async def mount(): ..."
WRONG_TYPE = "__amplifier_module_type__ = 'provider'\n" + tool_source("bad")
INCOMPLETE = "async def mount(coordinator, config):\n    return type('Half', (), {'name': 'half'})()"
RAISES_IN_MOUNT = "async def mount(coordinator, config):\n    raise OSError('no key')"
EXITS_IN_MOUNT = "async def mount(coordinator, config):\n    raise SystemExit(3)"
NEVER_MOUNTS = "import anyio\nasync def mount(coordinator, config):\n    await anyio.sleep_forever()"
TAKES_A_NAME = tool_source("good")

BAD: Mapping[str, tuple[Write, type[ModuleError], str]] = {
    "import error": (
        one("raise ImportError('broken')"),
        ModuleLoadError,
        "ImportError: broken",
    ),
    "missing dependency": (
        one("import not_installed"),
        ModuleLoadError,
        "No module named 'not_installed'",
    ),
    "wrong version": (one(WRONG_VERSION), ModuleLoadError, "SomethingOfALaterVersion"),
    "syntax": (one("def broken(:"), ModuleLoadError, "SyntaxError: "),
    "not utf-8": (not_utf8, ModuleLoadError, "SyntaxError: "),
    "hangs": (one(HANGS), ModuleLoadError, "took longer than 0.1 s"),
    "exits": (one("raise SystemExit(3)"), ModuleLoadError, "SystemExit: 3"),
    "wrong object": (
        one("mount = 3"),
        ModuleValidationError,
        "names int 3, which has no 'mount' function",
    ),
    "no such name": (one("x = 1"), ModuleLoadError, "has no attribute 'mount'"),
    "mount not async": (
        one(NOT_ASYNC),
        ModuleValidationError,
        "write 'async def mount(coordinator, config)'",
    ),
    "mount without arguments": (
        one(NO_ARGUMENTS),
        ModuleValidationError,
        "called with (coordinator, config)",
    ),
    "another type": (
        one(WRONG_TYPE),
        ModuleValidationError,
        "declares the type 'provider'",
    ),
    "incomplete instance": (
        one(INCOMPLETE),
        ModuleValidationError,
        "Half is no tool: description: missing",
    ),
    "mount raises": (one(RAISES_IN_MOUNT), ModuleLoadError, "OSError: no key"),
    "mount exits": (one(EXITS_IN_MOUNT), ModuleLoadError, "SystemExit: 3"),
    "mount never ends": (
        one(NEVER_MOUNTS),
        ModuleLoadError,
        "its mount took longer than 0.1 s",
    ),
    "two with one name": (
        one(TAKES_A_NAME),
        ModuleConflictError,
        "the name 'good' at 'tools' is taken by 'tool-good'",
    ),
    "two with one id": (two_with_one_id, ModuleConflictError, "bad-dist"),
    "one name in two packages": (
        one_name_in_two_packages,
        ModuleConflictError,
        "that name is taken by",
    ),
    "spoilt metadata": (spoilt_metadata, ModuleLoadError, "No module named"),
    "empty entry point": (
        empty_entry_point,
        ModuleLoadError,
        "importing '' failed: ValueError",
    ),
    "no package": (lambda site, package: None, ModuleNotFoundError, "not found"),
}


@pytest.fixture(autouse=True)
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Lets the import that hangs end with its test."""
    event = Event()
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "bad_packages_gate", SimpleNamespace(event=event))
    yield event
    event.set()


@pytest.mark.parametrize("case", BAD)
async def test_bad_package_is_named_with_its_cause_and_others_load(
    site: Path, package: str, case: str
) -> None:
    write, kind, cause = BAD[case]
    write(site, package)
    modules = {
        "loop": mounting(EchoLoop()),
        "context": mounting(MemoryContext()),
        "provider": mounting(ScriptedProvider("hi")),
        "tool-good": mounting(Worker("good")),
        "tool-last": mounting(Worker("last")),
    }
    limits = {
        "import_timeout": 0.1 if case == "hangs" else 10,
        "mount_timeout": 0.1 if "never" in case else 10,
    }
    plan = build_plan(
        providers=["provider"],
        tools=["tool-good", "tool-bad", "tool-last"],
        limits=limits,
    )
    session = AmplifierSession(
        plan, ModuleLoader(modules=modules, path=[str(site)], search_paths=[])
    )

    with anyio.fail_after(10):
        async with session:
            assert await session.execute("go") == "hi"
            assert list(session.coordinator.tools) == ["good", "last"]
            (failure,) = session.failures

    assert type(failure) is kind
    assert (failure.module_id, failure.path) == ("tool-bad", "tools[1]")
    assert cause in str(failure)
    assert str(failure).endswith("(at tools[1] in the mount plan)")
    if case not in {"no package", "two with one id"}:
        assert failure.distribution == "bad-dist"


def test_there_are_at_least_fifteen_kinds_of_bad_packages() -> None:
    assert len(BAD) >= 15
