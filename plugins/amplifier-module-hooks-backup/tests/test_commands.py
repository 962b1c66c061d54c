"""What commands change is copied before they run, as what file tools change is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from amplifier.testing import TestCoordinator
from amplifier_module_hooks_backup import BACKUPS, Backups, mount
from amplifier_sdk import JSONValue
from amplifier_sdk.assessments import Assessment
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import Emission

pytestmark = pytest.mark.anyio
pytest.importorskip("tree_sitter_bash")


class Shell:
    """A tool that runs commands, in a folder that it names."""

    name: Final = "bash"
    effects: Final = ("exec",)

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory

    async def assess_call(self, input: JSONObject, /) -> Assessment:
        if self.directory is None:
            return Assessment()
        return Assessment(directory=str(self.directory))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A project with files, and with what programs make again."""
    folder = tmp_path / "work"
    for name in ("src/deep", "build", "src/.hidden", "src/node_modules"):
        (folder / name).mkdir(parents=True)
    for name in ("a.txt", "src/a.py", "src/deep/b.py", "src/.hidden/c.py"):
        (folder / name).write_text("one\n")
    for name in ("src/node_modules/d.py", "build/made", "out.log"):
        (folder / name).write_text("one\n")
    return folder


@asynccontextmanager
async def session(work: Path, **config: JSONValue) -> AsyncIterator[TestCoordinator]:
    coordinator = TestCoordinator(session_id="s1")
    coordinator.register_capability("session.working_dir", str(work))
    async with coordinator:
        await mount(coordinator, config)
        yield coordinator


async def run(
    coordinator: TestCoordinator, command: str, tool: object | None = None
) -> Emission:
    """Let a command be about to run."""
    payload = {
        "tool_name": "bash",
        "tool_input": {"command": command},
        "tool_obj": tool or Shell(),
        "tool_call_id": "c1",
    }
    return await coordinator.hooks.emit("tool:pre", payload)


async def stored(coordinator: TestCoordinator, work: Path) -> Mapping[str, str]:
    backups = coordinator.get_capability(BACKUPS)
    assert isinstance(backups, Backups)
    entries = await backups.entries()
    return {
        str(entry.path.relative_to(work.resolve())): entry.state.kind
        for entry in entries
        if entry.state.kind != "directory"
    }


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat a.txt", {}),
        ("echo x > a.txt", {"a.txt": "file"}),
        ("echo x >> a.txt", {"a.txt": "file"}),
        ("echo x > new.txt", {"new.txt": "absent"}),
        ("echo x | tee a.txt", {"a.txt": "file"}),
        ("sed -i s/a/b/ src/*.py", {"src/a.py": "file", "src/*.py": "absent"}),
        ("truncate -s 0 a.txt", {"a.txt": "file"}),
        ("cp a.txt src/a.py", {"src/a.py": "file"}),
        ("mv a.txt src/a.py", {"a.txt": "file", "src/a.py": "file"}),
        ("rm -rf src/deep", {"src/deep/b.py": "file"}),
        ("echo x > build/made; rm -f out.log", {}),
        ("ruff format src", {"src/a.py": "file", "src/deep/b.py": "file"}),
        ("isort src/a.py", {"src/a.py": "file"}),
        ("ruff check src", {}),
        ("perl -pi -e 1 a.txt", {"a.txt": "file"}),
        ("perl -pi -e 1 src", {}),
        ("pytest src/a.py", {}),
        ("cd src && echo x > a.py", {"src/a.py": "file"}),
        ("bash -c 'echo x > a.txt'", {"a.txt": "file"}),
    ],
)
async def test_what_a_command_changes_is_kept(
    work: Path, command: str, expected: Mapping[str, str]
) -> None:
    async with session(work) as coordinator:
        emission = await run(coordinator, command)
        found = await stored(coordinator, work)

    words = ("-pi", "-e", "1", "i", "e")
    assert not emission.denied
    assert {name: kind for name, kind in found.items() if name not in words} == expected


async def test_a_command_is_read_where_its_shell_works(work: Path) -> None:
    async with session(work) as coordinator:
        await run(coordinator, "echo x > a.py", Shell(work / "src"))

        assert await stored(coordinator, work) == {"src/a.py": "file"}


async def test_what_cannot_be_kept_is_not_written_over(work: Path) -> None:
    async with session(work, max_file_bytes=2) as coordinator:
        emission = await run(coordinator, "echo x > a.txt")

    assert emission.denied
    assert "larger than 2 bytes" in str(emission.reason)


@pytest.mark.parametrize(
    ("command", "config"),
    [
        ("perl -pi -e s/a/b/ a.txt", {"max_file_bytes": 2}),
        ("ruff format src", {"max_files": 1}),
    ],
)
async def test_changeable_files_run_without_copy_and_warn_once(
    work: Path, command: str, config: Mapping[str, JSONValue]
) -> None:
    async with session(work, **config) as coordinator:
        first = await run(coordinator, command)
        again = await run(coordinator, command)

    assert not first.denied
    (message,) = first.user_messages
    assert message.text.startswith("No backup: ")
    assert again.user_messages == ()


async def test_what_a_command_wrote_over_is_restored(work: Path) -> None:
    async with session(work) as coordinator:
        await run(coordinator, "echo two > a.txt; echo two > new.txt")
        (work / "a.txt").write_text("two\n")
        (work / "new.txt").write_text("two\n")
        backups = coordinator.get_capability(BACKUPS)
        assert isinstance(backups, Backups)
        await backups.restore(await backups.entries())

    assert (work / "a.txt").read_text() == "one\n"
    assert not (work / "new.txt").exists()
