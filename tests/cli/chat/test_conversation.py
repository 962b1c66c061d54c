"""What is typed becomes turns, texts for the agent that works, or commands."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from amplifier.app.store.reader import words_of
from amplifier.cli._chat._keys import NextMode, Stop
from amplifier.cli._terminal import OutputClosedError
from amplifier_kit.commands import CommandAnswer, CommandPrompt, SessionCommand
from amplifier_kit.scripted import ScriptedProvider, answer
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.cli.chat.conftest import Chat, OpenChat


def calls(name: str, **arguments: JSONValue) -> JSONObject:
    return {"deltas": ["begin"], "tool_calls": [{"name": name, "arguments": arguments}]}


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A pipe that the tool `receive` reads: the turn goes on when something is written."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


async def release(pipe: Path) -> None:
    await anyio.to_thread.run_sync(pipe.write_text, "go on")


async def said(chat: Chat) -> list[tuple[object, str]]:
    return [
        (message["role"], words_of(message))
        for message in await chat.talk.said()
        if message["role"] != "tool"
    ]


async def test_lines_are_turns_and_what_was_typed_stays_on_the_screen(
    open_chat: OpenChat,
) -> None:
    async with open_chat(["first answer", "second answer"]) as chat:
        chat.screen.type("one", "", "  ", "two\nlines")
        await chat.screen.until_written(
            "> one\n",
            "first answer\n",
            "> two\n  lines\n",
            "second answer",
            "out tokens",
        )


async def test_the_agent_reads_what_is_typed_while_it_works(
    open_chat: OpenChat, pipe: Path, tmp_path: Path
) -> None:
    (tmp_path / "shop/notes.md").write_text("Milk.")
    async with open_chat(
        [calls("receive", path=str(pipe)), "read"], "tool-trials"
    ) as chat:
        chat.screen.type("start")
        await chat.screen.until(lambda screen: "tool receive" in screen.above)
        chat.screen.type("and @notes.md")
        await chat.screen.until(
            lambda screen: "(accepted) and @notes.md" in screen.above
        )
        await release(pipe)
        await chat.screen.until_written(
            "> start", "begin", "tool receive", "> and @notes.md", "read"
        )
        history = await said(chat)
        roles = "-".join(str(role) for role, _ in history)
        assert roles == "user-assistant-developer-user-assistant"
        assert "Milk." in history[2][1]
        assert "accepted" not in chat.screen.above


async def test_what_comes_too_late_for_the_turn_is_the_next_prompt(
    open_chat: OpenChat,
) -> None:
    async with open_chat(["one", "two"]) as chat:
        chat.conversation.talk.opened.session.coordinator.hooks.register(
            "prompt:complete",
            lambda *_: chat.conversation.waiting.steer("too late"),
            decides=True,
        )
        chat.screen.type("start")
        await chat.screen.until_written("> start", "one", "> too late", "two")


async def test_lines_wait_where_the_loop_does_not_listen(
    open_chat: OpenChat, pipe: Path
) -> None:
    script: list[JSONValue] = [calls("receive", path=str(pipe)), "one", "two", "three"]
    async with open_chat(script, "tool-trials", loop="loop-basic") as chat:
        chat.screen.type("a")
        await chat.screen.until(lambda screen: "tool receive" in screen.above)
        chat.screen.type("b", "c", "/rename x", "", "/exit")
        await chat.screen.until(lambda screen: "... 1 more" in screen.above)
        assert (
            "(queued) b\n(queued) c\n(queued) /rename x\n... 1 more"
            in chat.screen.above
        )
        await release(pipe)
        await chat.screen.until_written(
            "> a", "one", "> b", "two", "> c", "three", "> /rename x", "not stored"
        )


async def test_commands_that_need_not_wait_run_at_once(
    open_chat: OpenChat, pipe: Path
) -> None:
    async with open_chat(
        [calls("receive", path=str(pipe)), "first", "second"], "tool-trials"
    ) as chat:
        chat.screen.type("a")
        await chat.screen.until(lambda screen: "tool receive" in screen.above)
        chat.screen.type("/mode plan think first")
        await chat.screen.until(
            lambda screen: (
                "plan mode" in screen.below and "(queued) /mode plan" in screen.above
            )
        )
        chat.screen.type("/status")
        await chat.screen.until_written("Mode:     plan")
        assert "first\n" not in chat.screen.text
        await release(pipe)
        await chat.screen.until_written("first\n", "> /mode plan think first", "second")


@pytest.mark.parametrize("loop", ["loop-basic", "loop-streaming"])
async def test_ctrl_c_stops_the_turn_and_drops_what_waits(
    open_chat: OpenChat, loop: str
) -> None:
    async with open_chat(
        [calls("wait"), "still here"], "tool-trials", loop=loop
    ) as chat:
        chat.screen.type("a")
        await chat.screen.until(lambda screen: "tool wait" in screen.above)
        chat.screen.type("b")
        chat.screen.press_ctrl_c()
        await chat.screen.until_written("Not sent: b", "Stopped.")
        chat.screen.type("c")
        await chat.screen.until_written("> c", "still here")


async def test_ctrl_c_works_during_commands_that_need_not_wait(
    open_chat: OpenChat,
) -> None:
    asking = anyio.Event()

    async def ask_the_vendor(_: str) -> CommandAnswer:
        asking.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with open_chat(
        [calls("wait"), "still here"], "tool-trials", loop="loop-basic"
    ) as chat:
        chat.conversation.registry.add(
            [SessionCommand(name="slow", make=ask_the_vendor)], at_once=True
        )
        chat.screen.type("a")
        await chat.screen.until(lambda screen: "tool wait" in screen.above)
        chat.screen.type("/slow", "/tools")
        with anyio.fail_after(10):
            await asking.wait()
        chat.screen.press(Stop())
        await chat.screen.until_written("Stopped.")
        await chat.screen.until_written("speak")
        chat.screen.type("b")
        await chat.screen.until_written("> b", "still here")


async def test_ctrl_c_between_turns_says_how_to_leave(open_chat: OpenChat) -> None:
    async with open_chat([]) as chat:
        chat.screen.press_ctrl_c()
        await chat.screen.until_written("Ctrl-C again ends the chat")


async def test_ctrl_c_stops_a_command(open_chat: OpenChat) -> None:
    async def wait(_: str) -> CommandAnswer:
        await anyio.sleep_forever()
        raise AssertionError

    async with open_chat([]) as chat:
        chat.conversation.registry.add([SessionCommand(name="wait", make=wait)])
        chat.screen.type("/wait")
        await chat.screen.until(lambda screen: "working" in screen.below)
        chat.screen.press_ctrl_c()
        await chat.screen.until_written("> /wait", "Stopped.")


async def test_an_unknown_command_is_an_error_and_no_prompt(
    open_chat: OpenChat,
) -> None:
    async with open_chat(["about a path"]) as chat:
        chat.screen.type("/hlp")
        await chat.screen.until_written(
            "There is no command /hlp; did you mean '/help'?"
        )
        chat.screen.type("/")
        await chat.screen.until_written("/status")
        assert await said(chat) == []
        chat.screen.type("/etc/hosts")
        await chat.screen.until_written("about a path")


async def test_command_of_module_makes_prompt_and_its_metadata(
    open_chat: OpenChat,
) -> None:
    async def shout(arguments: str) -> CommandPrompt:
        return CommandPrompt(text="/" + arguments.upper(), metadata={"model": "loud"})

    async def fail(_: str) -> CommandPrompt:
        raise RuntimeError("the \x1b[31mdisk")

    async with open_chat(["done"], debug=True) as chat:
        commands = [
            SessionCommand(name="shout", make=shout),
            SessionCommand(name="fail", make=fail),
        ]
        chat.conversation.registry.add(commands)
        chat.screen.type("/fail", "/shout it")
        await chat.screen.until_written(
            "Traceback", "Error: unexpected: the \\x1b[31mdisk", "> /shout it", "done"
        )
        assert (await said(chat))[0] == ("user", "/IT")
        assert chat.screen.text.count("shout it") == 1


async def test_foreign_text_in_command_is_not_followed(
    open_chat: OpenChat, tmp_path: Path
) -> None:
    (tmp_path / "shop/notes.md").write_text("Milk.")
    (tmp_path / "shop/diary.md").write_text("Dear diary.")

    async def make(arguments: str) -> CommandPrompt:
        return CommandPrompt(
            text=f'See @diary.md, Read:@diary.md and @"diary.md"; {arguments}'
        )

    async with open_chat(["answer"]) as chat:
        chat.conversation.registry.add(
            [SessionCommand(name="look", make=make, source="mcp:server")]
        )
        chat.screen.type("/look at @notes.md")
        await chat.screen.until_written("> /look at @notes.md", "answer")
        history = str(await said(chat))

    assert "Milk." in history
    assert "Dear diary." not in history


async def test_a_turn_that_fails_does_not_end_the_chat(open_chat: OpenChat) -> None:
    async with open_chat(
        [{"deltas": ["half"], "error": "out of paper"}, "fine again"]
    ) as chat:
        chat.screen.type("a")
        await chat.screen.until_written(
            "half", "Error: provider scripted: out of paper"
        )
        chat.screen.type("b")
        await chat.screen.until_written("> b", "fine again")


async def test_thinking_is_shown_when_it_is_asked_for(open_chat: OpenChat) -> None:
    script: list[JSONValue] = [
        {"thinking": "Hm hm.", "text": f"answer {number}"} for number in range(3)
    ]
    async with open_chat(script) as chat:
        chat.screen.type("a")
        await chat.screen.until_written("answer 0")
        assert "Hm hm." not in chat.screen.text
        chat.screen.type("/think maybe", "/think", "b")
        await chat.screen.until_written(
            "takes on or off", "is shown", "Hm hm.", "answer 1"
        )
        chat.screen.type("/think off", "c")
        await chat.screen.until_written("is hidden", "answer 2")
        assert chat.screen.text.count("Hm hm.") == 1


async def test_thinking_shown_from_moment_on_in_which_it_asked_for(
    open_chat: OpenChat, pipe: Path
) -> None:
    first = {**calls("receive", path=str(pipe)), "thinking": "Hidden."}
    async with open_chat(
        [first, {"thinking": "Hm hm.", "text": "answer"}], "tool-trials"
    ) as chat:
        chat.screen.type("a")
        await chat.screen.until(lambda screen: "tool receive" in screen.above)
        chat.screen.type("/think on")
        await chat.screen.until_written("is shown")
        await release(pipe)
        await chat.screen.until_written("Hm hm.", "answer")
        assert "Hidden." not in chat.screen.text


async def test_a_setting_of_what_is_shown_holds_at_once(
    open_chat: OpenChat, tmp_path: Path
) -> None:
    async with open_chat(["one"]) as chat:
        settings = chat.talk.opened.composition.dirs.home / "settings.yaml"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text("ui: {show_usage: false}")
        chat.screen.type("/config ui.show_usage")
        await chat.screen.until_written("user", "false")
        chat.screen.type("a", "/exit")
        await chat.screen.until_written("one", "/exit")
        assert "tokens" not in chat.screen.text


async def test_what_is_shown_has_no_secrets(open_chat: OpenChat) -> None:
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    async with open_chat(
        [{"deltas": ["the key is ghp_16C7e42F292c69", "12E7710c838347Ae178B4a, so"]}]
    ) as chat:
        chat.screen.type("a")
        await chat.screen.until_written("the key is", ", so", "tokens")
        assert secret[:20] not in chat.screen.text


async def test_terminal_without_live_rows_is_told_when_tool_starts(
    open_chat: OpenChat, pipe: Path
) -> None:
    async with open_chat(
        [calls("receive", path=str(pipe)), "one"], "tool-trials", live=False
    ) as chat:
        chat.screen.type("a")
        await chat.screen.until_written("begin", "tool receive")
        assert "> a" not in chat.screen.text
        await release(pipe)
        await chat.screen.until_written("one")


async def test_a_reader_that_is_gone_ends_the_chat(open_chat: OpenChat) -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        async with open_chat(["one"]) as chat:
            chat.screen.closed = OutputClosedError()
            chat.screen.type("a")
            await anyio.sleep_forever()
    assert caught.group_contains(OutputClosedError)


async def test_esc_keeps_what_arrived_as_incomplete(open_chat: OpenChat) -> None:
    hanging = answer("It is", anyio.Event(), " one.")
    async with open_chat([]) as chat:
        coordinator = chat.talk.opened.session.coordinator
        provider = ScriptedProvider(hanging, answer("fine"))
        await coordinator.mount("providers", provider, name="hanging")
        chat.screen.type("/provider hanging", "a")
        await chat.screen.until(lambda screen: "It " in screen.above)
        chat.screen.press(Stop())
        await chat.screen.until_written("It is", "Stopped. What arrived stays")
        last = (await chat.talk.said())[-1]
        assert (last["role"], words_of(last)) == ("assistant", "It is")
        assert last["metadata"] == {"incomplete": True}
        # Esc again is no word about leaving
        chat.screen.press(Stop())
        chat.screen.type("b")
        await chat.screen.until_written("> b", "fine")


async def test_a_second_ctrl_c_leaves_while_a_turn_runs(open_chat: OpenChat) -> None:
    async with open_chat([calls("wait")], "tool-trials") as chat:
        chat.screen.type("a")
        await chat.screen.until(lambda screen: "tool wait" in screen.above)
        chat.screen.press_ctrl_c()
        chat.screen.press_ctrl_c()
        with anyio.fail_after(10):
            await chat.ended.wait()


async def test_a_second_ctrl_c_at_the_prompt_leaves(open_chat: OpenChat) -> None:
    async with open_chat(["one"]) as chat:
        chat.screen.press_ctrl_c()
        chat.screen.type("a")
        await chat.screen.until_written("one", "tokens")
        await chat.screen.until(lambda screen: screen.below.startswith("ask"))
        # what was typed in between took the first one back
        chat.screen.press_ctrl_c()
        await chat.screen.until(
            lambda screen: screen.text.count("Ctrl-C again ends the chat") == 2
        )
        chat.screen.press_ctrl_c()
        with anyio.fail_after(10):
            await chat.ended.wait()


async def test_shift_tab_goes_through_the_modes(open_chat: OpenChat) -> None:
    async with open_chat([]) as chat:
        await chat.screen.until(lambda screen: screen.below.startswith("ask | "))
        chat.screen.press(NextMode())
        await chat.screen.until(lambda screen: screen.below.startswith("accept edits"))
        assert chat.talk.modes.current == "accept-edits"
        chat.screen.press(NextMode())
        await chat.screen.until(lambda screen: screen.below.startswith("plan mode"))
        chat.screen.press(NextMode())
        await chat.screen.until(lambda screen: screen.below.startswith("ask | "))


async def test_a_mode_is_named_where_no_status_is_shown(open_chat: OpenChat) -> None:
    async with open_chat([], live=False) as chat:
        chat.screen.press(NextMode())
        await chat.screen.until_written("Mode: accept edits")
