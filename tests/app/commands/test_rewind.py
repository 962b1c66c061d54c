"""Going back: the conversation, the files, or both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from amplifier.app.commands.registry import CommandRegistry
from amplifier.app.commands.talk import Talk
from amplifier.app.directories import AppDirs
from amplifier_kit.commands import CommandAnswer
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.app.commands.test_session_commands import (
    conversation,
    prompts_of,
    refused,
    say,
    take,
)


def _writing(name: str, content: str) -> list[JSONValue]:
    arguments: JSONValue = {"file_path": name, "content": content}
    calls: list[JSONValue] = [{"name": "write_file", "arguments": arguments}]
    return [{"tool_calls": calls}, "done"]


def _plan() -> JSONObject:
    read: JSONValue = {"name": "read_file", "arguments": {"file_path": "a.txt"}}
    looks: JSONValue = {"tool_calls": [read]}
    script = [looks, *_writing("a.txt", "two\n"), "talk", *_writing("b.txt", "new\n")]
    return {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [{"module": "provider-scripted", "config": {"responses": script}}],
        "tools": ["tool-filesystem"],
        "hooks": ["hooks-backup"],
    }


@asynccontextmanager
async def changed(
    dirs: AppDirs, *, turns: int = 3
) -> AsyncIterator[tuple[Talk, CommandRegistry]]:
    """A conversation whose first and third turns changed files."""
    (dirs.working_dir / "a.txt").write_text("one\n")
    async with conversation(dirs, plan=_plan()) as (talk, registry):
        await say(registry, "/mode accept-edits")
        for prompt in ("first", "second", "third")[:turns]:
            await take(talk, prompt)
        yield talk, registry


async def test_undo_restores_what_the_turn_changed(dirs: AppDirs) -> None:
    async with changed(dirs) as (talk, registry):
        text = await say(registry, "/undo")
        assert text.startswith("1 turn taken back, 2 left.\nrestored: ")
        assert not (dirs.working_dir / "b.txt").exists()
        assert (dirs.working_dir / "a.txt").read_text() == "two\n"
        # a turn that changed no file
        assert await say(registry, "/undo") == "1 turn taken back, 1 left."
        await say(registry, "/undo")
        assert (dirs.working_dir / "a.txt").read_text() == "one\n"
        assert await prompts_of(talk) == []


async def test_the_conversation_alone_goes_back(dirs: AppDirs) -> None:
    async with changed(dirs) as (_, registry):
        text = await say(registry, "/undo 3 conversation")
        assert text == "3 turns taken back, 0 left. Files stay as they are."
        assert (dirs.working_dir / "a.txt").read_text() == "two\n"


async def test_the_files_alone_go_back(dirs: AppDirs) -> None:
    async with changed(dirs) as (talk, registry):
        await say(registry, "/rewind 1 files")
        assert (dirs.working_dir / "a.txt").read_text() == "one\n"
        assert not (dirs.working_dir / "b.txt").exists()
        assert await prompts_of(talk) == ["first", "second", "third"]


async def test_rewind_lists_turns_with_the_files_they_changed(dirs: AppDirs) -> None:
    async with conversation(dirs) as (_, registry):
        assert await say(registry, "/rewind") == "There are no turns yet."
    async with changed(dirs) as (talk, registry):
        lines = (await say(registry, "/rewind")).splitlines()
        assert lines[:3] == [
            "1  1 file  first",
            "2          second",
            "3  1 file  third",
        ]
        assert "counted from 1; got 4" in await refused(registry, "/rewind 4")
        assert (await say(registry, "/rewind 2")).startswith(
            "2 turns taken back, 1 left."
        )
        assert await prompts_of(talk) == ["first"]


async def test_a_resumed_session_goes_back_as_well(dirs: AppDirs) -> None:
    async with changed(dirs) as (talk, _):
        session = talk.opened.session.session_id
    async with conversation(dirs, plan=_plan(), session=session) as (talk, registry):
        await say(registry, "/rewind 1")
        assert (dirs.working_dir / "a.txt").read_text() == "one\n"


async def test_diff_compares_with_what_was_there_before(dirs: AppDirs) -> None:
    async with changed(dirs) as (_, registry):
        made = await registry.find("diff").make("")
        assert isinstance(made, CommandAnswer)
        assert made.is_diff
        assert "-one\n+two" in made.text
        assert "b.txt: was not there" in made.text
        assert "a.txt" not in await say(registry, "/diff 1")
        await say(registry, "/undo 3")
        assert "-one" not in await say(registry, "/diff")


async def test_without_backups_files_cannot_go_back(dirs: AppDirs) -> None:
    async with conversation(dirs, "one") as (_, registry):
        assert "hooks-backup does" in await refused(registry, "/undo 1 files")
        assert "hooks-backup does" in await refused(registry, "/diff")
        assert (await say(registry, "/undo")).endswith("Files stay as they are.")
