"""Lines with a mark: `!` runs a command, `#` adds a note."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier.app.store.reader import words_of
from amplifier.cli._chat._keys import EnteredLine
from amplifier_sdk.events import TOOL_PRE
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import HookResult
from tests.cli.chat.conftest import Chat, OpenChat

pytestmark = pytest.mark.process

SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


async def until_idle(chat: Chat) -> None:
    await chat.screen.until(lambda screen: screen.below.startswith("ask"))


async def test_a_command_runs_and_the_model_reads_its_output(
    open_chat: OpenChat, tmp_path: Path
) -> None:
    (tmp_path / "shop/notes.md").write_text("Milk.\n")
    async with open_chat(["I saw it"], "tool-bash") as chat:
        chat.screen.type("!cat notes.md")
        await chat.screen.until_written("> !cat notes.md", "Milk.", "tool bash")
        await until_idle(chat)
        loop = chat.talk.opened.session.coordinator.orchestrator
        chat.screen.type("what was it?")
        await chat.screen.until_written("I saw it")
        first = (await chat.talk.said())[0]
        assert first["role"] == "user"
        assert words_of(first).startswith("I ran this command myself:\n\ncat notes.md")
        assert "Milk." in words_of(first)
        # the loop of the session is there again
        assert chat.talk.opened.session.coordinator.orchestrator is loop
        assert len(chat.talk.starts) == 2
        await until_idle(chat)
        chat.screen.type("/rewind")
        await chat.screen.until_written("1    !cat notes.md\n", "2    what was it?")


async def test_a_session_without_a_shell_says_how_to_get_one(
    open_chat: OpenChat,
) -> None:
    async with open_chat([]) as chat:
        chat.screen.type("!ls")
        await chat.screen.until_written("runs commands with", "tool-bash'")


async def test_a_command_is_evaluated_as_a_call_of_the_model(
    open_chat: OpenChat,
) -> None:
    async with open_chat([], "tool-bash", "hooks-approval") as chat:
        chat.screen.type("!rm -rf /")
        await chat.screen.until_written("tool bash failed", "session may risk")
        hooks = chat.talk.opened.session.coordinator.hooks
        hooks.register(TOOL_PRE, lambda *_: HookResult.deny("not today"), decides=True)
        chat.screen.type("!ls")
        await chat.screen.until_written("tool bash failed", "not today")
        chat.screen.type("/plan", "!ls")
        await chat.screen.until_written("Mode plan", "Plan mode is on")


async def test_output_is_shown_without_secrets_and_controls(
    open_chat: OpenChat,
) -> None:
    async with open_chat([], "tool-bash") as chat:
        chat.screen.type(f"!printf 'red \\033[31m {SECRET[:20]}''{SECRET[20:]}\\n'")
        await chat.screen.until_written("| red")
        await until_idle(chat)
        shown = chat.screen.text[chat.screen.text.index("| red") :]
        assert "\x1b" not in shown
        assert SECRET not in shown


async def test_without_a_shell_it_says_so(open_chat: OpenChat) -> None:
    async with open_chat(["fine"]) as chat:
        chat.screen.type("!ls")
        await chat.screen.until_written("the tool bash, which this session does not")
        chat.screen.type("hello")
        await chat.screen.until_written("> hello", "fine")


async def test_a_note_is_added_while_a_turn_runs_as_well(
    open_chat: OpenChat, tmp_path: Path
) -> None:
    agents = tmp_path / "shop/AGENTS.md"
    call: JSONValue = {"tool_calls": [{"name": "wait", "arguments": {}}]}
    async with open_chat([call], "tool-trials") as chat:
        chat.screen.type("# Use tabs.")
        await chat.screen.until_written("> # Use tabs.", "Added to")
        chat.screen.type("go")
        await chat.screen.until(lambda screen: "tool wait" in screen.above)
        chat.screen.type("#Run the tests.")
        await chat.screen.until(lambda screen: screen.text.count("Added to") == 2)
        assert agents.read_text() == "- Use tabs.\n- Run the tests.\n"
        chat.screen.press_ctrl_c()
        await chat.screen.until_written("Stopped.")
        agents.unlink()
        agents.mkdir()
        chat.screen.type("# x")
        await chat.screen.until_written("instructions of this folder are not trusted")


async def test_headings_of_a_document_are_no_note(
    open_chat: OpenChat, tmp_path: Path
) -> None:
    async with open_chat(["read"]) as chat:
        chat.screen.type("# Title\n\nText.")
        await chat.screen.until_written("> # Title", "read")
    assert not (tmp_path / "shop/AGENTS.md").exists()


async def test_a_paste_is_shown_collapsed_and_sent_whole(open_chat: OpenChat) -> None:
    async with open_chat(["read"]) as chat:
        whole = "See " + "line\n" * 30
        chat.screen.press(EnteredLine(whole, "See [Pasted #1: 31 lines]"))
        await chat.screen.until_written("> See [Pasted #1: 31 lines]\n", "read")
        assert words_of((await chat.talk.said())[0]) == whole
        assert "line\n" not in chat.screen.text
