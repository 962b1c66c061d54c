"""Questions of hooks at the terminal: asked where a person sits, whatever is piped, and denied elsewhere."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from click.testing import CliRunner

from amplifier.cli import main
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.cli.programs import (
    BACKENDS,
    PROGRAM,
    Terminal,
    open_terminal,
    read_until,
    start,
    write_plan,
)

pytestmark = pytest.mark.process

SPEAK: JSONObject = {
    "deltas": ["I will speak."],
    "tool_calls": [{"name": "speak", "arguments": {}}],
}
CHOICE = "Your choice (deny after 20 s): "


def a_plan(folder: Path, calls: int = 1) -> Path:
    return write_plan(
        folder, [*[SPEAK] * calls, "The end."], "tool-trials", "hooks-asks"
    )


def _run(plan: Path, backend: str = "asyncio") -> AbstractContextManager[Terminal]:
    return open_terminal(
        *PROGRAM, "run", "go", "--plan", str(plan), "--backend", backend
    )


def test_a_person_allows_a_call_by_number_or_by_name(tmp_path: Path) -> None:
    ways = ["1", "allow once", "ALLOW ONCE", "allow o"]
    answers: list[str] = []
    with _run(a_plan(tmp_path, calls=len(ways))) as terminal:
        seen = terminal.read_until(CHOICE)
        for way in ways:
            terminal.type(f"{way}\r")
            answers.append(
                terminal.read_until(
                    CHOICE if len(answers) < len(ways) - 1 else "The end."
                )
            )

        assert terminal.wait() == 0
    assert "I will speak." in seen
    assert [line.strip() for line in seen.splitlines()][-7:-1] == [
        "speak {}",
        "Shall it?",
        "Allow always covers: exactly this, in this session",
        "1  Allow once",
        "2  Allow always",
        "3  Deny",
    ]
    assert ["printed by a tool" in answer for answer in answers] == [True] * len(ways)


@BACKENDS
def test_a_person_denies_a_call_by_answer_or_by_leaving(
    tmp_path: Path, backend: str
) -> None:
    ways = ["3\r", "Deny\r", "d\r", "\x04"]
    answers: list[str] = []
    with _run(a_plan(tmp_path, calls=len(ways)), backend) as terminal:
        terminal.read_until(CHOICE)
        for way in ways:
            terminal.type(way)
            answers.append(
                terminal.read_until(
                    CHOICE if len(answers) < len(ways) - 1 else "The end."
                )
            )

        assert terminal.wait() == 0
    assert [
        "Denied by approval: User denied: Shall it?" in answer for answer in answers
    ] == [True] * len(ways)
    assert "printed by a tool" not in "".join(answers)


def test_an_answer_that_is_no_option_is_asked_for_again(tmp_path: Path) -> None:
    with _run(a_plan(tmp_path)) as terminal:
        terminal.read_until(CHOICE)
        for keys in ("", "allow", "0", "4", "sure"):
            terminal.type(f"{keys}\r")
            terminal.read_until("Choose by number or by name: ")
        terminal.type("1\r")
        terminal.read_until("The end.")

        assert terminal.wait() == 0


def test_allow_always_asks_once(tmp_path: Path) -> None:
    with _run(a_plan(tmp_path, calls=3)) as terminal:
        terminal.read_until(CHOICE)
        terminal.type("2\r")
        rest = terminal.read_until("The end.")

        assert terminal.wait() == 0
    assert "Shall it?" not in rest
    assert rest.count("printed by a tool") == 3


def test_what_was_typed_before_the_question_is_no_answer(tmp_path: Path) -> None:
    with _run(a_plan(tmp_path)) as terminal:
        terminal.type("1\r")
        terminal.read_until(CHOICE)
        terminal.type("3\r")

        assert "Denied by approval" in terminal.read_until("The end.")
        assert terminal.wait() == 0


@BACKENDS
def test_ctrl_c_at_the_question_cancels_the_turn(tmp_path: Path, backend: str) -> None:
    with _run(a_plan(tmp_path), backend) as terminal:
        terminal.read_until(CHOICE)
        terminal.type("\x03")
        rest = terminal.read_until("Cancelled.")

        assert terminal.wait() == 130
    assert "printed by a tool" not in rest


@BACKENDS
def test_the_chat_goes_on_after_a_question(tmp_path: Path, backend: str) -> None:
    plan = write_plan(
        tmp_path, [SPEAK, "one", SPEAK, "two"], "tool-trials", "hooks-asks"
    )
    with open_terminal(
        *PROGRAM, "chat", "--plan", str(plan), "--backend", backend
    ) as terminal:
        terminal.read_prompt()
        terminal.type("a\r")
        terminal.read_until(CHOICE)
        terminal.type("1\r")
        terminal.read_until("one")
        terminal.read_prompt()
        terminal.type("b\r")
        terminal.read_until(CHOICE)
        terminal.type("\x03")
        terminal.read_until("Stopped.")
        terminal.read_prompt()
        terminal.type("/exit\r")

        assert terminal.wait() == 0


PIPED = """
import subprocess, sys
output = open(sys.argv[1], "w")
sys.exit(subprocess.run(sys.argv[2:], input="go", text=True, stdout=output).returncode)
"""


def test_terminal_is_asked_though_input_and_output_are_pipes(
    tmp_path: Path,
) -> None:
    output = tmp_path / "answer.txt"
    command = (
        sys.executable,
        "-c",
        PIPED,
        str(output),
        *PROGRAM,
        "run",
        "--plan",
        str(a_plan(tmp_path)),
    )
    with open_terminal(*command) as terminal:
        terminal.read_until(CHOICE)
        terminal.type("1\r")

        assert terminal.wait() == 0
    assert output.read_text("utf-8").endswith("The end.\n")


def test_command_in_background_of_its_terminal_asks_nobody(
    tmp_path: Path,
) -> None:
    program = "import subprocess, sys\nsys.exit(subprocess.run(sys.argv[1:], process_group=0).returncode)"
    command = (
        sys.executable,
        "-c",
        program,
        *PROGRAM,
        "run",
        "go",
        "--plan",
        str(a_plan(tmp_path)),
    )
    with open_terminal(*command) as terminal:
        terminal.read_until(
            "Nobody can be asked: the command runs in the background of its terminal"
        )
        terminal.read_until("The end.")

        assert terminal.wait() == 0


def test_without_a_terminal_what_needs_approval_is_denied(tmp_path: Path) -> None:
    with start("run", "go", "--plan", str(a_plan(tmp_path))) as process:
        reported = read_until(
            process.stderr,
            "--accept-edits allows edits of files, --yes whatever is asked",
        )
        answer = read_until(process.stdout, "The end.")

        assert process.wait() == 0
    assert (
        "Denied by approval: Nobody can be asked: there is no terminal to ask at; --accept-edits"
        in reported
    )
    assert "printed" not in reported + answer


def test_yes_allows_what_is_asked_and_tells_it(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        main, ["run", "go", "--yes", "--plan", str(a_plan(tmp_path))]
    )

    assert result.exit_code == 0
    assert "printed by a tool" in result.stderr
    assert "allowed by --yes: speak {} Shall it? Allow always covers:" in result.stderr


@BACKENDS
def test_what_a_tool_asks_is_written_and_chosen_at_the_terminal(
    tmp_path: Path, backend: str
) -> None:
    script: list[JSONValue] = [
        {"tool_calls": [{"name": name, "arguments": {}}]}
        for name in ("inquire", "linger")
    ]
    plan = write_plan(tmp_path, [*script, "The end."], "tool-inquire", "tool-linger")
    with _run(plan, backend) as terminal:
        first = terminal.read_until("Your answer (empty for none): ")
        terminal.type("Ann\r")
        terminal.read_until("Your answer (empty for none): ")
        terminal.type("green\r")
        wrong = terminal.read_until("Your answer (empty for none): ")
        terminal.type("bl\r")
        form = terminal.read_until("Your answer (empty for none): ")
        terminal.type('{"size": 7}\r')
        rest = terminal.read_until("The end.")

        assert terminal.wait() == 0
    assert "The tool asks, in its own words: Which name?" in first
    assert "does not fit" in wrong
    assert "asked Ann blue" in form
    assert "JSON that fits" in form
    assert "heard {'size': 7}" in rest
