"""The chat, typed at a pseudo terminal."""

from __future__ import annotations

import os
import re
import signal
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from click.testing import CliRunner

from amplifier.cli import main
from amplifier_kit.installation import install_command
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.cli.programs import BACKENDS, PROGRAM, Terminal, open_terminal, write_plan

pytestmark = pytest.mark.process


def _calling(name: str, **arguments: JSONValue) -> JSONObject:
    return {"deltas": ["begin"], "tool_calls": [{"name": name, "arguments": arguments}]}


def _chat(
    plan: Path, *arguments: str, backend: str = "asyncio"
) -> AbstractContextManager[Terminal]:
    return open_terminal(
        *PROGRAM, "chat", "--plan", str(plan), "--backend", backend, *arguments
    )


@BACKENDS
def test_lines_are_turns_and_lines_typed_meanwhile_queue(
    tmp_path: Path, backend: str
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    plan = write_plan(
        tmp_path,
        [_calling("receive", path=str(pipe)), "one", "two", "three"],
        "tool-trials",
    )

    with _chat(plan, backend=backend) as terminal:
        terminal.read_prompt()
        terminal.type("a\r")
        terminal.read_until("begin")
        terminal.type("b\r")
        pipe.write_text("go on", "utf-8")
        terminal.read_until("one")
        terminal.read_until("two")
        terminal.read_prompt()
        terminal.type("c\r")
        terminal.read_until("three")
        terminal.read_prompt()
        terminal.type("\x04")

        assert terminal.wait() == 0


def test_what_stays_is_shown_in_one_piece_with_the_prompt(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, ["one\n\nand the rest"])

    with _chat(plan) as terminal:
        terminal.read_prompt()
        terminal.type("a\r")
        shown = terminal.read_until("tokens") + terminal.read_until("\x1b[?2026l")
        terminal.type("\x04")
        assert terminal.wait() == 0

    pieces = re.findall(r"\x1b\[\?2026h(.*?)\x1b\[\?2026l", shown, re.DOTALL)
    assert any("and the rest" in piece for piece in pieces)
    assert "and the rest" not in re.sub(r"(?s)\x1b\[\?2026h.*?\?2026l", "", shown)


@BACKENDS
def test_ctrl_c_stops_the_turn_and_the_chat_goes_on(
    tmp_path: Path, backend: str
) -> None:
    plan = write_plan(tmp_path, [_calling("wait"), "still here"], "tool-trials")

    with _chat(plan, backend=backend) as terminal:
        terminal.read_prompt()
        terminal.type("a\r")
        terminal.read_until("tool wait")
        terminal.type("\x03")
        terminal.read_until("Stopped.")
        terminal.read_prompt()
        terminal.type("b\r")
        terminal.read_until("still here")
        terminal.read_prompt()
        terminal.type("/exit\r")

        assert terminal.wait() == 0


@BACKENDS
def test_sigterm_at_prompt_ends_chat_and_restores_terminal(
    tmp_path: Path, backend: str
) -> None:
    with _chat(write_plan(tmp_path, ["never"]), backend=backend) as terminal:
        terminal.read_prompt()
        os.kill(terminal.process, signal.SIGTERM)
        terminal.read_until("\x1b[?2004l")

        assert terminal.wait() == 128 + signal.SIGTERM


def test_ctrl_c_at_the_prompt_drops_the_line(tmp_path: Path) -> None:
    with _chat(write_plan(tmp_path, ["answer"])) as terminal:
        terminal.read_prompt()
        terminal.type("/exi")
        terminal.read_until("/exi")
        terminal.type("\x03")
        terminal.type("hello\r")
        terminal.read_until("answer")
        terminal.read_prompt()
        terminal.type("\x04")

        assert terminal.wait() == 0


@pytest.mark.parametrize("debug", [False, True], ids=["plain", "debug"])
def test_what_fails_and_what_is_mistyped_ends_no_chat(
    tmp_path: Path, debug: bool
) -> None:
    plan = write_plan(
        tmp_path, [{"deltas": ["half"], "error": "out of paper"}, "about a path"]
    )

    with _chat(plan, *(["--debug"] if debug else [])) as terminal:
        terminal.read_prompt()
        terminal.type("a\r")
        reported = terminal.read_until("Error: provider scripted: out of paper")
        terminal.read_prompt()
        terminal.type("/hlp\r")
        terminal.read_until("There is no command /hlp; did you mean '/help'?")
        terminal.read_prompt()
        terminal.type("   \r")
        terminal.type("/etc/hosts\r")
        terminal.read_until("about a path")
        terminal.read_prompt()
        terminal.type("/exit\r")

        assert terminal.wait() == 0
    assert ("Traceback" in reported) is debug


def test_plan_that_cannot_be_opened_ends_chat_before_it_begins(
    tmp_path: Path,
) -> None:
    with _chat(write_plan(tmp_path, [], "hooks-missing")) as terminal:
        terminal.read_until("Error: Module 'hooks-missing': not found")

        assert terminal.wait() == 1


def test_a_terminal_that_hangs_up_ends_the_chat(tmp_path: Path) -> None:
    with _chat(write_plan(tmp_path, ["never"])) as terminal:
        terminal.read_prompt()
        terminal.hang_up()

        # which code it is depends on whether the signal or the end of input comes first
        assert terminal.wait() > 0


WITHOUT = "import sys\nsys.modules['prompt_toolkit'] = None\nfrom amplifier.cli import main\nmain()"


def test_bare_command_at_terminal_is_chat_and_names_extra() -> None:
    with open_terminal(sys.executable, "-c", WITHOUT) as terminal:
        terminal.read_until(
            f"a chat needs the package prompt_toolkit: {install_command('amplifier[cli]')}"
        )

        assert terminal.wait() == 1


def test_a_chat_needs_a_terminal() -> None:
    result = CliRunner().invoke(main, ["chat"], input="hello\n")

    assert result.exit_code == 2
    assert "a chat needs a terminal" in result.stderr


def test_a_chat_needs_a_terminal_to_write_to(tmp_path: Path) -> None:
    program = "import os\nos.dup2(os.open(os.devnull, os.O_WRONLY), 1)\nfrom amplifier.cli import main\nmain()"

    with open_terminal(sys.executable, "-c", program, "chat") as terminal:
        terminal.read_until("a chat needs a terminal")

        assert terminal.wait() == 2
