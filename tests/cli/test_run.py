"""`amplifier run`: what reaches standard output, what standard error, and the exit code."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import structlog
from click.testing import CliRunner, Result

from amplifier.app.directories import AppDirs
from amplifier.app.sessions.given_prompts import GivenPrompt
from amplifier.cli import main
from amplifier.cli._logs import configure_logs
from amplifier_kit.installation import install_command
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.cli.programs import BACKENDS, PROGRAM, run, start, write_plan

TOKEN: Final = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
AWS: Final = "AKIA2E0A8F3B244C9986"


def _call(name: str, **arguments: JSONValue) -> JSONObject:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def _invoke(*arguments: str, input: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["run", *arguments], input=input)


@BACKENDS
def test_an_answer_is_all_that_standard_output_carries(
    tmp_path: Path, backend: str
) -> None:
    plan = write_plan(
        tmp_path,
        [_call("speak"), {"deltas": ["Hel", "lo,\n", "world", "\n\n"]}],
        "tool-trials",
    )

    result = _invoke("hi", "--plan", str(plan), "--backend", backend)

    assert (result.exit_code, result.stdout) == (0, "Hello,\nworld\n")
    assert sorted(result.stderr.splitlines()) == ["printed by a tool", "tool speak"]


def test_text_before_a_tool_call_stands_on_a_line_of_its_own(tmp_path: Path) -> None:
    first: JSONValue = {
        "text": "Let me look.",
        "tool_calls": [{"name": "speak", "arguments": {}}],
    }

    result = _invoke(
        "hi",
        "--plan",
        str(write_plan(tmp_path, [first, "It is there."], "tool-trials")),
    )

    assert result.stdout == "Let me look.\nIt is there.\n"


@pytest.mark.process
def test_text_is_written_as_it_comes(tmp_path: Path) -> None:
    first: JSONObject = {"deltas": ["begin"], **_call("wait")}
    plan = write_plan(tmp_path, [first], "tool-trials")

    with start("run", "hi", "--plan", str(plan)) as process:
        assert process.stdout is not None
        assert os.read(process.stdout.fileno(), 5) == b"begin"


def test_a_failing_tool_is_one_plain_line_on_standard_error(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, [_call("fail"), "I could not."], "tool-trials")

    result = _invoke("hi", "--plan", str(plan))

    assert result.stdout == "I could not.\n"
    assert result.stderr.splitlines() == [
        "tool fail",
        r"tool fail failed: the \x1b[31mdisk is full",
    ]


def test_what_a_model_writes_is_never_obeyed_by_the_terminal(tmp_path: Path) -> None:
    result = _invoke(
        "hi",
        "--plan",
        str(write_plan(tmp_path, ["\x1b]0;title\x07 \x9b1m \u202e\ud800 tab\there"])),
    )

    assert result.stdout == "\\x1b]0;title\\x07 \\x9b1m \\u202e\\ud800 tab\there\n"


@pytest.mark.process
def test_a_terminal_that_lacks_characters_gets_their_escapes(tmp_path: Path) -> None:
    result = run(
        "run",
        "hi",
        "--plan",
        str(write_plan(tmp_path, ["café"])),
        PYTHONIOENCODING="ascii",
    )

    assert result.stdout == "caf\\xe9\n"


def test_an_answer_that_did_not_stream_is_written(tmp_path: Path) -> None:
    result = _invoke(
        "hi", "--plan", str(write_plan(tmp_path, ["never"], "hooks-denies"))
    )

    assert (result.exit_code, result.stdout) == (0, "Operation denied: not today\n")


def test_an_empty_answer_writes_nothing(tmp_path: Path) -> None:
    result = _invoke("hi", "--plan", str(write_plan(tmp_path, [""])))

    assert (result.exit_code, result.stdout) == (0, "")


def test_messages_of_hooks_are_lines_on_standard_error(tmp_path: Path) -> None:
    result = _invoke("hi", "--plan", str(write_plan(tmp_path, ["done"], "hooks-tells")))

    assert result.stdout == "done\n"
    assert result.stderr.startswith("warning: hello \\x1b[1m you (")
    assert result.stderr.count("\n") == 1


def test_an_observer_that_fails_is_one_line_of_the_log(tmp_path: Path) -> None:
    result = _invoke("hi", "--plan", str(write_plan(tmp_path, ["done"], "hooks-fails")))

    (line,) = result.stderr.splitlines()
    assert result.stdout == "done\n"
    assert line.startswith("warning: ")
    assert "RuntimeError: an observer failed" in line


@pytest.mark.parametrize("words", [("--debug", "run", "hi"), ("run", "hi", "--debug")])
def test_debug_shows_the_log_with_tracebacks(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    plan = write_plan(tmp_path, ["done"], "hooks-fails")

    result = CliRunner().invoke(main, [*words, "--plan", str(plan)])

    assert result.stdout == "done\n"
    assert "Traceback (most recent call last)" in result.stderr
    assert "RuntimeError: an observer failed" in result.stderr


@pytest.mark.parametrize("debug", [(), ("--debug",)], ids=["", "debug"])
def test_an_error_is_told_without_secrets(
    tmp_path: Path, debug: tuple[str, ...]
) -> None:
    response: JSONValue = {
        "error": {"type": "AuthenticationError", "message": f"refused: {TOKEN}"}
    }

    result = _invoke("hi", *debug, "--plan", str(write_plan(tmp_path, [response])))

    assert result.exit_code == 1
    assert (
        "Error: provider scripted: refused: [REDACTED:github-token]\n" in result.stderr
    )
    assert TOKEN not in result.stderr


@pytest.mark.parametrize(
    ("reported", "hidden"),
    [
        ({"error": "x" * 180 + f" {TOKEN}"}, TOKEN[:8]),
        ({"error": f"a\r{AWS}"}, AWS),
        ({"exception": f"Traceback\n\x0b{AWS}"}, AWS),
        ({"api_key": "swordfish"}, "swordfish"),
    ],
)
def test_the_log_shows_no_part_of_a_secret(
    capsys: pytest.CaptureFixture[str], reported: dict[str, str], hidden: str
) -> None:
    configure_logs(debug=False)

    structlog.get_logger().warning("it failed", **reported)

    line = capsys.readouterr().err
    assert line.startswith("warning: it failed")
    assert hidden not in line


# -- JSON


@BACKENDS
def test_json_is_one_object(tmp_path: Path, backend: str) -> None:
    first: JSONValue = {
        "text": "Looking.",
        "tool_calls": [{"name": "fail", "arguments": {}}],
        "usage": [5, 7],
    }
    plan = write_plan(
        tmp_path, [first, {"text": "done \ud800\x9b", "usage": [1, 2]}], "tool-trials"
    )

    result = _invoke(
        "hi", "--plan", str(plan), "--output", "json", "--backend", backend
    )

    assert result.stdout.count("\n") == 1
    assert "\x9b" not in result.stdout
    record = json.loads(result.stdout)
    assert len(record.pop("session_id")) == 36
    assert record == {
        "text": "done \ufffd\x9b",
        "usage": {"input_tokens": 6, "output_tokens": 9, "total_tokens": 15},
        "iterations": 2,
        "finish_reason": "stop",
        "limit": None,
        "degradations": [],
        "tools": [{"name": "fail", "arguments": {}, "success": False}],
    }
    assert result.stderr == ""


@BACKENDS
def test_ndjson_is_a_line_for_each_event(tmp_path: Path, backend: str) -> None:
    calls: JSONValue = [{"name": "speak", "arguments": {}, "id": "c1"}]
    first: JSONValue = {
        "thinking": "hm",
        "text": "a",
        "tool_calls": calls,
        "usage": [1, 2],
    }
    plan = write_plan(tmp_path, [first, {"text": "b", "usage": [1, 2]}], "tool-trials")
    used = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    twice = {"input_tokens": 2, "output_tokens": 4, "total_tokens": 6}

    result = _invoke(
        "hi", "--plan", str(plan), "--output", "ndjson", "--backend", backend
    )

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    session_id = lines[-1].pop("session_id")
    assert len(session_id) == 36
    assert lines[-1].pop("usage") == twice
    assert lines == [
        {"type": "thinking_delta", "text": "hm", "index": 0},
        {"type": "text_delta", "text": "a", "index": 1},
        {
            "type": "tool_call_delta",
            "id": "c1",
            "name": "speak",
            "arguments": "{}",
            "index": 2,
        },
        {"type": "usage", "provider": "scripted", "usage": used, "total": used},
        {"type": "tool_started", "id": "c1", "name": "speak", "arguments": {}},
        {
            "type": "tool_finished",
            "id": "c1",
            "name": "speak",
            "arguments": {},
            "success": True,
            "output": "said",
        },
        {"type": "text_delta", "text": "b", "index": 0},
        {"type": "usage", "provider": "scripted", "usage": used, "total": twice},
        {
            "type": "turn_finished",
            "text": "b",
            "iterations": 2,
            "finish_reason": "stop",
            "limit": None,
            "degradations": [],
            "unread": [],
        },
    ]
    assert result.stderr == "printed by a tool\n"


def test_an_error_is_the_last_line_of_ndjson(tmp_path: Path) -> None:
    response: JSONValue = {
        "deltas": ["half"],
        "error": {"type": "RateLimitError", "message": "slow \x1b down"},
    }

    result = _invoke(
        "hi", "--output", "ndjson", "--plan", str(write_plan(tmp_path, [response]))
    )

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert [line["type"] for line in lines] == ["text_delta", "error"]
    assert lines[-1]["error"] == "RateLimitError"
    assert (
        lines[-1]["message"]
        == "provider scripted: slow \x1b down; trying again may help"
    )
    assert (
        result.stderr
        == "Error: provider scripted: slow \\x1b down; trying again may help\n"
    )


def test_error_stands_in_json_object_with_text_there_was(
    tmp_path: Path,
) -> None:
    response: JSONValue = {"deltas": ["half"], "error": "no more"}

    result = _invoke(
        "hi", "--output", "json", "--plan", str(write_plan(tmp_path, [response]))
    )

    record = json.loads(result.stdout)
    assert result.exit_code == 1
    assert record["text"] == "half"
    assert record["error"] == {
        "type": "LLMError",
        "message": "provider scripted: no more",
    }


def test_an_error_before_the_session_is_in_json_too(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("session: {}", "utf-8")

    result = _invoke("hi", "--output", "ndjson", "--plan", str(plan))

    assert json.loads(result.stdout)["error"] == "ConfigError"
    assert result.exit_code == 1


# -- the prompt


class _Prompt:
    """Keeps the prompt of a turn that is not run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.text: str | None = None
        monkeypatch.setattr("amplifier.cli._turns.answer", self._take)

    def _take(self, prompt: GivenPrompt, *_: object, **__: object) -> None:
        self.text = prompt.text


@pytest.fixture
def prompt(monkeypatch: pytest.MonkeyPatch) -> _Prompt:
    return _Prompt(monkeypatch)


def test_the_prompt_may_be_piped_in(prompt: _Prompt) -> None:
    assert _invoke(input=b"\xef\xbb\xbfone\ntwo \xff\n\n").exit_code == 0
    assert prompt.text == "one\ntwo \ufffd"


def test_a_prompt_that_is_no_utf8_can_still_be_sent(prompt: _Prompt) -> None:
    assert _invoke("caf\udce9", input="").exit_code == 0
    assert prompt.text == "caf\ufffd"


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_no_prompt_is_wrong_usage(text: str | None) -> None:
    result = _invoke(input=text)

    assert result.exit_code == 2
    assert (
        "there is no prompt; give one as argument or on standard input" in result.stderr
    )


ECHO = """
import sys
import amplifier.cli._turns
amplifier.cli._turns.answer = lambda prompt, *_, **__: sys.stdout.write(repr(prompt.text))
from amplifier.cli import main
main()
"""


@pytest.mark.process
def test_what_is_piped_in_stands_below_the_argument() -> None:
    command = [sys.executable, "-c", ECHO, "run", "Summarize:"]

    result = subprocess.run(
        command, input="a\nb\n", capture_output=True, text=True, check=True
    )

    assert result.stdout == repr("Summarize:\n\na\nb")


@pytest.mark.process
def test_a_file_as_standard_input_stands_below_the_argument(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("from a file", "utf-8")
    command = [sys.executable, "-c", ECHO, "run", "Summarize:"]

    with (tmp_path / "notes").open() as notes:
        result = subprocess.run(
            command, stdin=notes, capture_output=True, text=True, check=True
        )

    assert result.stdout == repr("Summarize:\n\nfrom a file")


@pytest.mark.process
def test_an_open_socket_as_standard_input_is_not_waited_for() -> None:
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-c", ECHO, "run", "Hello"]

    with ours, theirs:
        result = subprocess.run(
            command,
            stdin=theirs.fileno(),
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )

    assert result.stdout == repr("Hello")


@pytest.mark.process
def test_a_closed_standard_input_is_no_prompt() -> None:
    script = '"$0" -m amplifier run "$@" <&-'

    result = subprocess.run(
        ["sh", "-c", script, sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 2
    assert "there is no prompt" in result.stderr


# -- choices


def test_the_first_tool_is_forced(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, ["ok"], "tool-trials")

    assert _invoke("hi", "--tool", "speak", "--plan", str(plan)).stdout == "ok\n"


def test_an_unknown_first_tool_names_the_nearest(tmp_path: Path) -> None:
    result = _invoke(
        "hi",
        "--tool",
        "speek",
        "--plan",
        str(write_plan(tmp_path, ["ok"], "tool-trials")),
    )

    assert result.exit_code == 1
    assert result.stderr.startswith(
        "Error: session: tool 'speek': no such tool is mounted; mounted: block, fail"
    )
    assert result.stderr.endswith("; did you mean 'speak'?\n")


def test_unknown_provider_names_nearest_and_where_was_searched(
    tmp_path: Path,
) -> None:
    result = _invoke("hi", "-p", "forevr", "--plan", str(write_plan(tmp_path, ["ok"])))

    assert result.exit_code == 1
    assert (
        "Module 'provider-forevr': not found; did you mean 'provider-forever'?"
        in result.stderr
    )
    assert "amplifier.modules" in result.stderr


def test_session_goes_on_without_tool_missing_and_says_so(
    tmp_path: Path,
) -> None:
    result = _invoke("hi", "--plan", str(write_plan(tmp_path, ["ok"], "tool-missing")))

    assert (result.exit_code, result.stdout) == (0, "ok\n")
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: not mounted: Module 'tool-missing': not found")


def test_provider_without_key_is_named_and_another_one_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    plan = write_plan(tmp_path, ["ok"])
    content = json.loads(plan.read_text("utf-8"))
    content["providers"].insert(0, {"module": "provider-anthropic"})
    plan.write_text(json.dumps(content), "utf-8")

    result = _invoke("hi", "--plan", str(plan))

    assert (result.exit_code, result.stdout) == (0, "ok\n")
    assert "warning: not mounted:" in result.stderr
    assert "ANTHROPIC_API_KEY" in result.stderr


def test_tool_that_refuses_config_is_named_and_rest_works(
    tmp_path: Path,
) -> None:
    plan = write_plan(tmp_path, ["ok"])
    content = json.loads(plan.read_text("utf-8"))
    content["tools"] = [{"module": "tool-filesystem", "config": {"colour": "red"}}]
    plan.write_text(json.dumps(content), "utf-8")

    result = _invoke("hi", "--plan", str(plan))

    assert (result.exit_code, result.stdout) == (0, "ok\n")
    assert "warning: not mounted:" in result.stderr
    assert "tools[0].config.colour" in result.stderr


def test_what_a_tool_is_called_with_is_shown_without_secrets(tmp_path: Path) -> None:
    response: JSONValue = {
        "tool_calls": [{"name": "receive", "arguments": {"path": f"/nowhere/{TOKEN}"}}]
    }

    result = _invoke(
        "hi", "--plan", str(write_plan(tmp_path, [response, "ok"], "tool-trials"))
    )

    assert result.stdout == "ok\n"
    assert "tool receive /nowhere/[REDACTED" in result.stderr
    assert "tool receive failed:" in result.stderr
    assert TOKEN not in result.stderr


def test_a_server_list_that_nothing_reads_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {}}', "utf-8")

    result = _invoke("hi", "--plan", str(write_plan(tmp_path, ["ok"])))

    (line,) = result.stderr.splitlines()
    reported = (
        "Not read in this session: .mcp.json; to use it: name tool-mcp in the plan"
    )
    assert line == reported


def test_a_plan_may_be_written_in_yaml(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "session: {orchestrator: loop-basic, context: context-simple}\n"
        "providers:\n- {module: provider-scripted, config: {responses: [yes]}}\n",
        "utf-8",
    )

    assert _invoke("hi", "--plan", str(plan)).stdout == "yes\n"


def test_a_configuration_that_does_not_fit_is_one_line(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "session: {orchestrator: loop-basic, context: context-simple}\n"
        "providers:\n- {module: provider-scripted, config: {responses: [], repet: true}}\n",
        "utf-8",
    )

    result = _invoke("hi", "--plan", str(plan))

    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "providers[0].config.repet" in line
    assert "did you mean 'repeat'?" in line


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (
            ("--profile", "dev", "--bundle", "kit"),
            "--profile and --bundle say what the session is made of",
        ),
        (("-P", "dev", "--plan", "PLAN"), "--profile and --plan say"),
        (
            ("-B", "kit", "-P", "dev", "--plan", "PLAN"),
            "--profile and --bundle and --plan say",
        ),
    ],
    ids=["bundle", "plan", "all"],
)
def test_one_thing_alone_says_what_a_session_is_made_of(
    tmp_path: Path, words: tuple[str, ...], reported: str
) -> None:
    plan = str(write_plan(tmp_path, ["ok"]))

    result = _invoke("hi", *(plan if word == "PLAN" else word for word in words))

    assert result.exit_code == 2
    assert reported in result.stderr


SCHEMA: Final[JSONObject] = {
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
}


@pytest.fixture
def schema(tmp_path: Path) -> str:
    """A file with the schema of an answer."""
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA), "utf-8")
    return str(path)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_answer_fits_the_schema_that_was_asked_for(
    tmp_path: Path, schema: str, backend: str
) -> None:
    plan = write_plan(tmp_path, ["nine", '```json\n{"x": 9}\n```'])

    result = _invoke(
        "hi", "--plan", str(plan), "--schema", schema, "--backend", backend
    )

    assert (result.exit_code, result.stdout) == (0, '{"x": 9}\n')


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_answer_that_never_fits_is_an_error(
    tmp_path: Path, schema: str, form: str
) -> None:
    plan = write_plan(tmp_path, ["a", "b", "c"])

    result = _invoke("hi", "--plan", str(plan), "--schema", schema, "--output", form)

    assert result.exit_code == 1
    assert "None of 3 answers was of the wanted type" in result.stderr
    if form == "text":
        assert result.stdout == ""
    else:
        assert json.loads(result.stdout)["error"]["type"] == "OutputError"


@pytest.mark.parametrize(
    ("text", "said"),
    [("[1]", "expected a JSON Schema"), ("{", "line 1"), ('{"type": 5}', "not valid")],
)
def test_a_schema_that_is_none_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text, "utf-8")

    result = _invoke("hi", "--schema", str(path))

    assert result.exit_code == 1
    assert str(path) in result.stderr
    assert said in result.stderr


AGENTS: Final = """
from amplifier import Agent
from amplifier_kit.scripted import ScriptedProvider, call
from amplifier_sdk import tool

@tool(effects=("write",))
def water(plant: str) -> str:
    return "watered"

text = Agent(ScriptedProvider("hello"))
number = Agent(ScriptedProvider("no", '{"value": 3}'), output=int)
answers = {"module": "provider-scripted", "config": {"responses": ["exported"]}}
exported = Agent(plan={"providers": [answers]}, instructions="Be brief.")
guarded = Agent(
    ScriptedProvider("hello"),
    tools=[water, {"module": "tool-web", "config": {"api_key": "tulip"}}],
)
print("noise")
"""


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents in a module of the working directory, which is then forgotten."""
    (tmp_path / "garden.py").write_text(AGENTS, "utf-8")
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "garden", raising=False)


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(("name", "answer"), [("text", "hello\n"), ("number", "3\n")])
def test_an_agent_of_a_module_answers(name: str, answer: str, backend: str) -> None:
    result = _invoke("hi", "--agent", f"garden:{name}", "--backend", backend)

    assert (result.exit_code, result.stdout) == (0, answer)


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--agent", "garden"), "expects MODULE:NAME"),
        (("--agent", "nowhere.garden:text"), "there is no module 'nowhere.garden'"),
        (("--agent", "garden:missing"), "'missing' in 'garden' is no Agent"),
        (("--agent", "garden:water"), "'water' in 'garden' is no Agent"),
        (("--agent", "json:loads"), "'loads' in 'json' is no Agent"),
        (("--agent", "garden:text", "-p", "local"), "--agent says all of the session"),
        (("--agent", "garden:text", "--keep"), "--agent says all of the session"),
        (("--agent", "garden:text", "--resume", "x"), "--agent says all of"),
    ],
)
def test_what_is_no_agent_is_wrong_usage(words: tuple[str, ...], said: str) -> None:
    result = _invoke("hi", *words)

    assert result.exit_code == 2
    assert said in result.stderr


def test_a_plan_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    assert _invoke("hi", "--plan", str(tmp_path / "none.yaml")).exit_code == 2


def test_a_backend_that_is_not_installed_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "trio", None)

    result = _invoke(
        "hi", "--backend", "trio", "--plan", str(write_plan(tmp_path, ["ok"]))
    )

    assert result.exit_code == 1
    assert (
        result.stderr
        == f"Error: --backend trio needs a package: {install_command('amplifier[trio]')}\n"
    )


# -- ends


@pytest.mark.process
@pytest.mark.parametrize(
    "command", [("run", "hi", "--plan", "PLAN"), ("version",), ("module", "list"), ()]
)
def test_output_that_nobody_reads_ends_the_command_quietly(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    plan = str(write_plan(tmp_path, [{"deltas": ["a", "b", "c"]}]))

    with start(
        *(plan if word == "PLAN" else word for word in command), stdout=writing
    ) as process:
        os.close(writing)
        code = process.wait(30)
        assert process.stderr is not None
        complaint = process.stderr.read()

    assert (code, complaint) == (141, b"")


def test_a_broken_pipe_of_a_module_is_no_end_of_the_output(tmp_path: Path) -> None:
    result = _invoke(
        "hi", "--plan", str(write_plan(tmp_path, ["done"], "provider-broken"))
    )

    assert result.exit_code == 0
    assert "BrokenPipeError" in result.stderr


@pytest.mark.parametrize(
    ("words", "variable", "has_traceback"),
    [((), "", False), ((), "0", False), (("--debug",), "", True), ((), "1", True)],
    ids=["plain", "variable is 0", "option", "variable"],
)
def test_foreign_error_is_one_line_with_traceback_on_demand(
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    variable: str,
    has_traceback: bool,
) -> None:
    def choose_session(*_: object) -> None:
        raise OSError("no \x1b disk")

    monkeypatch.setattr("amplifier.cli._turns.choose_session", choose_session)
    monkeypatch.setenv("AMPLIFIER_DEBUG", variable)

    result = _invoke("hi", *words)

    *traceback, line = result.stderr.splitlines()
    assert result.exit_code == 1
    assert line == "Error: no \\x1b disk; --debug shows where it comes from"
    assert bool(traceback) is has_traceback


@pytest.mark.process
def test_the_module_runs_as_a_program() -> None:
    assert PROGRAM[1:] == ("-m", "amplifier")
    assert run("run", "--help").stdout.startswith("Usage: ")


@pytest.mark.process
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["run hi --plan", "logs --file", "chat --plan"])
def test_a_stream_may_be_closed_from_the_start(
    tmp_path: Path, command: str, closed: str
) -> None:
    plan = write_plan(tmp_path, ["done"])
    words = [*PROGRAM, *command.split(), str(plan)]

    ended = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *words],
        capture_output=True,
        check=False,
        text=True,
        timeout=30,
    )

    is_chat, is_run = command.startswith("chat"), command.startswith("run")
    assert ended.returncode == (2 if is_chat else 0)
    assert ended.stdout == ("done\n" if is_run and closed in ("2>&-", "<&-") else "")
    assert ("a chat needs a terminal" in ended.stderr) is (
        is_chat and "2>&-" not in closed
    )


HEAD: Final = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480)
PNG: Final = HEAD + bytes(range(256)) * 40


def test_files_reach_model_and_survive_a_resume(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "notes.md").write_text("token AKIAIOSFODNN7EXAMPLE\n")
    plan = write_plan(
        tmp_path, ["A dot.", "Still."], "hooks-redaction", "hooks-logging"
    )

    first = _invoke(
        *("Look", "--plan", str(plan), "--output", "json"),
        *("--file", str(tmp_path / "a.png"), "--file", str(tmp_path / "notes.md")),
    )
    session_id = str(json.loads(first.stdout)["session_id"])
    second = _invoke("Again", "--resume", session_id, "--output", "json")

    assert (first.exit_code, second.exit_code) == (0, 0), second.output
    folder = AppDirs.find().state / "sessions" / session_id
    assert b"AKIAIOSFODNN7EXAMPLE" not in b"".join(
        path.read_bytes() for path in folder.rglob("*") if path.is_file()
    )
    messages = [
        json.loads(line).get("data", {}).get("message", {})
        for line in (folder / "transcript.jsonl").read_text("utf-8").splitlines()
    ]
    (shown,) = (
        m["content"]
        for m in messages
        if isinstance(m.get("content"), list) and m["role"] == "user"
    )
    assert base64.b64decode(shown[1]["source"]["data"]) == PNG
    assert shown[2]["source"]["data"].startswith("token [REDACTED")
    log = (folder / "events.jsonl").read_text("utf-8")
    assert hashlib.sha256(PNG).hexdigest() in log
    assert base64.b64encode(PNG).decode()[:200] not in log


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "hi", "--file", "no.png"), "'no.png' does not exist"),
        (("run", "hi", "--file", "bad.png"), "--file: 'bad.png' is neither a PDF nor"),
        (("run", "hi", "--file", "huge.png"), "claims to have 2147483648 x 2147483648"),
    ],
    ids=["missing", "no media", "huge"],
)
def test_a_file_that_cannot_be_shown_is_refused(
    arguments: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.png").write_bytes(b"\0\1")
    head = struct.pack(">I4sII", 13, b"IHDR", 2**31, 2**31)
    (tmp_path / "huge.png").write_bytes(PNG[:8] + head)

    result = CliRunner().invoke(main, arguments)

    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.usefixtures("agents")
def test_an_agent_is_exported_as_a_plan_and_run(tmp_path: Path) -> None:
    exported = CliRunner().invoke(main, ["agent", "export", "garden:exported"])
    (tmp_path / "plan.yaml").write_text(exported.stdout, "utf-8")
    result = _invoke("hi", "--plan", "plan.yaml", "--no-keep")

    assert "system:\n  instruction: Be brief.\n" in exported.stdout
    assert "noise" in exported.stderr
    assert (result.exit_code, result.stdout) == (0, "exported\n")


@pytest.mark.usefixtures("agents")
def test_an_export_names_what_it_does_not_hold() -> None:
    exported = CliRunner().invoke(main, ["agent", "export", "garden:guarded"])

    assert exported.exit_code == 0
    assert "agent-tool-water, agent-provider-scripted: objects" in exported.stderr
    assert "keys named as secrets is withheld" in exported.stderr
    assert "tulip" not in exported.stdout
