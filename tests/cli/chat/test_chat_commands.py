"""The commands about one chat: what it opens, what it shows whole, and how it is followed by another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.sessions.choices import SessionChoices
from amplifier.app.settings.schema import DisplaySettings
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier.cli._chat._commands import ChatCommands
from amplifier.cli._chat._keys import Shortcut
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import MessageDict
from tests.cli.chat.conftest import OpenChat


async def stored(
    folder: Path,
    session_id: str,
    name: str,
    *said: str,
    parent_id: str | None = None,
) -> None:
    """Store a session of the chat's project."""
    store = ProjectSessions.of(AppDirs.find(folder))
    record = SessionRecord(
        session_id=session_id, name=name, prompt=said[0], parent_id=parent_id
    )
    async with store.open(record) as saved:
        messages: list[MessageDict] = [
            {"role": role, "content": text}
            for role, text in zip(("user", "assistant"), said, strict=True)
        ]
        await saved.note_turn(messages)


def picking(
    chosen: str | None, seen: list[SessionChoices]
) -> Callable[[SessionChoices], Awaitable[str | None]]:
    async def pick(choices: SessionChoices) -> str | None:
        seen.append(choices)
        return chosen

    return pick


async def test_another_session_is_picked_and_follows(
    open_chat: OpenChat, tmp_path: Path
) -> None:
    await stored(tmp_path / "shop", "s-milk", "groceries", "Buy milk.", "Bought.")
    seen: list[SessionChoices] = []
    async with open_chat([]) as chat:
        commands = ChatCommands(chat.conversation, picking("s-milk", seen))
        await commands.waiting()[1].make("")
        with anyio.fail_after(10):
            chat.conversation.waiting.wake()
            await chat.ended.wait()
    assert chat.conversation.followed_by == "s-milk"
    (choices,) = seen
    (session,) = choices.sessions
    assert "groceries" in choices.row(session, 79)
    assert "Bought." in choices.preview(session)


async def test_nothing_picked_goes_on_here(open_chat: OpenChat, tmp_path: Path) -> None:
    async with open_chat(["one"]) as chat:
        chat.screen.type("/resume")
        await chat.screen.until_written("no other stored session")
        await stored(tmp_path / "shop", "s-milk", "groceries", "Buy milk.", "Bought.")
        # a terminal of whole lines gets a list
        chat.screen.type("/resume")
        await chat.screen.until_written("s-milk", "groceries", "/resume SESSION")
        await ChatCommands(chat.conversation, picking(None, [])).waiting()[1].make("")
        chat.screen.type("/resume nowhere", "hello")
        await chat.screen.until_written("nowhere", "> hello", "one")
        assert chat.conversation.followed_by is None
        chat.screen.type("/resume groceries")
        await chat.screen.until_written("On to session s-milk.")


async def test_sessions_are_searched_by_what_was_said(tmp_path: Path) -> None:
    (tmp_path / "shop/.amplifier").mkdir(parents=True)
    await stored(tmp_path / "shop", "s-milk", "groceries", "Buy milk.", "\x1b[2JNo.")
    await stored(tmp_path / "shop", "s-bread", "bakery", "Bake.", "Baked.")
    choices = SessionChoices.of(ProjectSessions.of(AppDirs.find(tmp_path / "shop")))

    assert len(choices.matching("")) == 2
    for text, found in (
        ("MILK", "s-milk"),
        ("baked", "s-bread"),
        ("bakery", "s-bread"),
    ):
        assert [one.record.session_id for one in choices.matching(text)] == [found]
    assert choices.matching("cheese") == []
    (milk,) = choices.matching("milk")
    assert "\x1b" not in choices.preview(milk)


@pytest.mark.process
async def test_all_that_a_tool_put_out_is_shown_on_request(
    open_chat: OpenChat,
) -> None:
    script = "for i in $(seq 30); do echo line $i; done"
    call: JSONValue = {"name": "bash", "arguments": {"command": script}}
    async with open_chat([{"tool_calls": [call]}, "done"], "tool-bash") as chat:
        chat.screen.press(Shortcut("expand"))
        await chat.screen.until_written("Outputs of tools that are there: 0")
        chat.screen.type("go")
        await chat.screen.until_written("22 more lines, Ctrl-O", "done")
        assert "line 30" not in chat.screen.text
        chat.screen.press(Shortcut("expand"))
        await chat.screen.until_written("line 1\n", "line 30\n")
        chat.screen.type("/expand x")
        await chat.screen.until_written("Expected a number")


async def test_children_are_listed_and_opened(open_chat: OpenChat) -> None:
    async with open_chat([]) as chat:
        chat.screen.type("/agents")
        await chat.screen.until_written("There are no agents.")
        session = chat.talk.opened.session
        async with session.fork() as child:
            await child.coordinator.context.add_message(
                {"role": "user", "content": "Look around."}
            )
            assert chat.conversation.status.text("", 100).endswith("1 child")
            chat.screen.type("/agents")
            await chat.screen.until_written("1  fork  waits  Look around.", "/agents N")
            chat.screen.type("/agents 1")
            await chat.screen.until_written("## You\n\nLook around.")
            chat.screen.type("/agents 2")
            await chat.screen.until_written("in the list: 1")


async def test_children_that_ended_are_listed_and_opened(
    open_chat: OpenChat, tmp_path: Path
) -> None:
    async with open_chat(["Hello."]) as chat:
        chat.screen.type("hi")
        await chat.screen.until_written("Hello.")
        own = chat.talk.opened.session.session_id
        await stored(
            tmp_path / "shop", "s-1_finder", "", "Find milk.", "Found.", parent_id=own
        )
        await stored(tmp_path / "shop", own, "", "hi", "Hello.")
        await stored(tmp_path / "shop", "s-2_other", "", "Not ours.", "No.")
        chat.screen.type("/agents")
        await chat.screen.until_written("1  finder  done  Find milk.", "/agents N")
        chat.screen.type("/agents 1")
        await chat.screen.until_written("Found.")
        chat.screen.type("/agents 2")
        await chat.screen.until_written("in the list: 1")
    assert "Not ours." not in chat.screen.text


async def test_an_editor_takes_the_draft(open_chat: OpenChat) -> None:
    async with open_chat([]) as chat:
        chat.screen.press(Shortcut("editor"))
        await chat.screen.until_written("shows whole lines alone")
        edited = anyio.Event()

        async def edit() -> None:
            edited.set()

        chat.conversation.edit = edit
        chat.screen.press(Shortcut("editor"))
        with anyio.fail_after(10):
            await edited.wait()


@pytest.mark.parametrize(
    ("settings", "written"),
    [
        (DisplaySettings(), "\a"),
        (DisplaySettings(notification="desktop"), "\x1b]9;Amplifier: look\a"),
        (DisplaySettings(notification="none"), ""),
    ],
    ids=["bell", "desktop", "none"],
)
async def test_a_person_is_called_as_they_wish(
    open_chat: OpenChat, settings: DisplaySettings, written: str
) -> None:
    async with open_chat([]) as chat:
        chat.conversation.screen.call_attention("look", settings)
        assert chat.screen.text == written
