"""Hooks of the configuration: what a command is told, and what its answer does."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Final

import anyio
import pytest

from amplifier import AmplifierSession
from amplifier.testing import MockApprovalSystem, MockDisplaySystem, MockTool
from amplifier_sdk import ConfigError, ToolResult, hook, on
from amplifier_sdk.decisions import HOOK_DECIDED, HookDecided
from amplifier_sdk.jsontypes import JSONValue

pytestmark = pytest.mark.process

OpenSession = Callable[..., AmplifierSession]  # type: ignore[explicit-any]  # its options go by name
Run = Callable[..., Awaitable[ToolResult]]  # type: ignore[explicit-any]  # likewise
Texts = Callable[[AmplifierSession], Awaitable[list[str]]]
Answering = Callable[[JSONValue], str]
RunWith = Callable[..., Coroutine[None, None, str]]  # type: ignore[explicit-any]  # likewise
ONE_BACKEND: Final = pytest.mark.parametrize(
    "anyio_backend", ["asyncio"], scope="session"
)


def config_of(
    event: str, command: JSONValue, **more: JSONValue
) -> dict[str, JSONValue]:
    return {"hooks": [{"event": event, "command": command, **more}]}


@pytest.fixture
def spy() -> MockTool:
    return MockTool("bash", "done")


@pytest.fixture
def run_with(open_session: OpenSession, run: Run, spy: MockTool) -> RunWith:
    """Run a call with one hook before it, and return what the model reads."""

    async def run_with(
        command: JSONValue,
        *,
        settings: Mapping[str, JSONValue] | None = None,
        **more: JSONValue,
    ) -> str:
        config = {**config_of("tool:pre", command, **more), **(settings or {})}
        async with open_session(config, tools=[spy]) as session:
            return (await run(session, "bash", command="ls")).get_serialized_output()

    return run_with


async def test_a_command_is_told_the_event_as_json(
    work: Path, spy: MockTool, run_with: RunWith
) -> None:
    await run_with("cat > told.json")

    text = json.loads((work / "told.json").read_text())
    assert (text["event"], text["working_dir"]) == ("tool:pre", str(work))
    assert text["data"]["tool_input"] == {"command": "ls"}
    assert "tool_obj" not in text["data"]
    assert spy.calls == [{"command": "ls"}]


DENY = """printf '{"action": "deny", "reason": "no"}'"""
MAYBE = """printf '{"action": "maybe"}'"""
MISSPELT = """printf '{"action": "continue", "resaon": "x"}'"""


@ONE_BACKEND
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("true", "done"),
        ("echo; echo", "done"),
        ("echo not allowed >&2; exit 2", "Error: Denied by hooks-shell:tool:pre: hooks-shell:tool:pre: not allowed"),
        (DENY, "hooks-shell:tool:pre: no"),
        ("""printf '"continue"'""", "done"),
        ("exit 1", "hooks-shell:tool:pre failed: exit code 1"),
        ("kill -9 $$", "hooks-shell:tool:pre failed: it was ended by signal 9"),
        ("echo perhaps", "its output is no answer"),
        (MAYBE, "its output is no answer"),
        (MISSPELT, "did you mean 'reason'"),
        (["./missing"], "it could not be started"),
        (["true"], "done"),
        ("missing-program", "it could not be run"),
    ],
    ids=[
        "exits well", "says nothing", "exits with 2", "denies", "a word", "exits with 1", "is killed", "no JSON",
        "unknown action", "unknown key", "no such program", "program", "no such program in the shell",
    ],
)  # fmt: skip
async def test_whatever_is_no_clear_answer_of_a_deciding_hook_denies(
    spy: MockTool, run_with: RunWith, command: JSONValue, expected: str
) -> None:
    assert expected in await run_with(command)
    assert bool(spy.calls) is (expected == "done")


async def test_a_hook_that_takes_too_long_denies(
    spy: MockTool, run_with: RunWith
) -> None:
    with anyio.fail_after(10):
        output = await run_with(
            "trap '' TERM; (sleep 1234 &) ; sleep 1234", timeout=0.3
        )

    assert "it took longer than 0.3 s" in output
    assert not spy.calls


async def test_arguments_are_changed(
    spy: MockTool, run_with: RunWith, answering: Answering
) -> None:
    await run_with(
        answering({"action": "modify", "data": {"tool_input": {"command": "pwd"}}})
    )

    assert spy.calls == [{"command": "pwd"}]


async def test_a_hook_has_the_person_asked(
    spy: MockTool, open_session: OpenSession, run: Run, answering: Answering
) -> None:
    person = MockApprovalSystem("Allow", "Deny")
    config = config_of(
        "tool:pre", answering({"action": "ask_user", "reason": "Really?"})
    )
    async with open_session(config, tools=[spy], approval_system=person) as session:
        assert (await run(session, "bash", command="ls")).success
        assert not (await run(session, "bash", command="rm")).success

    assert spy.calls == [{"command": "ls"}]
    assert "Really?" in person.questions[0].prompt


async def test_hook_adds_to_conversation_and_speaks_to_person(
    open_session: OpenSession, texts: Texts, answering: Answering
) -> None:
    shown = MockDisplaySystem()
    command = answering(
        {
            "action": "inject_context",
            "context_injection": "It is Monday.",
            "user_message": "told",
        }
    )
    async with open_session(
        config_of("prompt:submit", command), "hello", display_system=shown
    ) as session:
        await session.execute("hi")

        assert (await texts(session))[:2] == ["It is Monday.", "hi"]
    assert [message.message for message in shown.messages] == ["told"]


@pytest.mark.parametrize("is_suppressed", [False, True], ids=["logged", "suppressed"])
async def test_a_hook_keeps_what_it_adds_out_of_logs(
    open_session: OpenSession, texts: Texts, answering: Answering, is_suppressed: bool
) -> None:
    logged: list[HookDecided] = []

    @hook
    class Log:
        @on(HOOK_DECIDED)
        async def decided(self, _: str, data: HookDecided) -> None:
            logged.append(data)

    command = answering(
        {
            "action": "inject_context",
            "context_injection": "The door code is WILLOW.",
            "suppress_output": is_suppressed,
        }
    )
    async with open_session(
        config_of("prompt:submit", command), "hello", hooks=[Log()]
    ) as session:
        await session.execute("hi")

        assert "The door code is WILLOW." in await texts(session)
    assert ("WILLOW" in repr(logged)) is not is_suppressed


async def test_a_hook_decides_on_another_event_where_it_is_told_to(
    open_session: OpenSession, run: Run
) -> None:
    config = config_of("tool:post", "echo withheld >&2; exit 2", decides=True)
    async with open_session(config, tools=[MockTool("bash")]) as session:
        assert (
            "withheld"
            in (await run(session, "bash", command="ls")).get_serialized_output()
        )


@ONE_BACKEND
@pytest.mark.parametrize(
    ("match", "runs"),
    [
        ({"tool_name": "bash"}, True),
        ({"tool_name": "read_*|bash"}, True),
        ({"tool_name": "read_*"}, False),
        ({"tool_input.command": "*rm*"}, False),
        ({"tool_input.command": ["rm", "ls"]}, True),
        ({"tool_input.times": 1}, False),
        ({"tool_input.command.x": "*"}, False),
        ({"tool_name": "bash", "tool_input.command": "l?"}, True),
    ],
    ids=["name", "either", "other", "argument", "list", "missing", "too deep", "both"],
)
async def test_a_hook_is_about_what_it_matches(
    spy: MockTool, run_with: RunWith, match: Mapping[str, JSONValue], runs: bool
) -> None:
    await run_with("exit 2", match=dict(match))

    assert bool(spy.calls) is not runs


async def test_observing_hook_runs_concurrently_until_session_end(
    work: Path, open_session: OpenSession, run: Run
) -> None:
    config = config_of("tool:*", "cat >> seen; echo >> seen", name="watch")
    async with open_session(config, tools=[MockTool("bash")]) as session:
        await run(session, "bash", command="ls")

    events = [
        json.loads(line)["event"] for line in (work / "seen").read_text().splitlines()
    ]
    assert events == ["tool:pre", "tool:post"]


async def test_failing_observer_denies_nothing_and_is_reported_once(
    spy: MockTool, open_session: OpenSession, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_session(
        config_of("tool:pre", "exit 2", decides=False), tools=[spy]
    ) as session:
        await run(session, "bash", command="ls")
        await run(session, "bash", command="ls")

    assert len(spy.calls) == 2
    assert caplog.text.count("hooks-shell:tool:pre failed") == 1


async def test_session_without_task_of_own_waits_for_observing_hooks(
    work: Path, open_session: OpenSession, run: Run
) -> None:
    session = open_session(
        config_of("tool:post", "cat > seen"), tools=[MockTool("bash")]
    )
    await session.initialize()
    await run(session, "bash", command="ls")

    assert (work / "seen").exists()
    await session.cleanup()


async def test_command_is_given_ordinary_variables_and_those_listed(
    work: Path, run_with: RunWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "canary")
    monkeypatch.setenv("LISTED_ONE", "1")
    await run_with(
        "env > env.txt",
        env={"OWN": "2"},
        settings={"env_allow": ["LISTED_*"], "env": {"ALL": "3"}},
    )

    text = dict(
        line.split("=", 1)
        for line in (work / "env.txt").read_text().splitlines()
        if "=" in line
    )
    assert (text["LISTED_ONE"], text["OWN"], text["ALL"]) == ("1", "2", "3")
    assert text["CLAUDE_PROJECT_DIR"] == str(work)
    assert "canary" not in (work / "env.txt").read_text()


async def test_an_event_that_is_too_long_denies(
    spy: MockTool, run_with: RunWith
) -> None:
    assert "max_input_bytes is 20" in await run_with(
        "true", settings={"max_input_bytes": 20}
    )
    assert not spy.calls


async def test_an_event_that_is_too_long_is_cut_for_those_who_look_on(
    work: Path, open_session: OpenSession, run: Run
) -> None:
    config = {**config_of("tool:post", "cat > seen"), "max_input_bytes": 2_000}
    async with open_session(config, tools=[MockTool("bash")]) as session:
        await run(session, "bash", command="x" * 5_000)

    assert (
        "more characters"
        in json.loads((work / "seen").read_text())["data"]["tool_input"]["command"]
    )


async def test_what_has_no_json_form_denies(open_session: OpenSession) -> None:
    async with open_session(config_of("app:event", "true", decides=True)) as session:
        emission = await session.coordinator.hooks.emit(
            "app:event", {"figure": float("nan")}
        )

    assert emission.denied
    assert "cannot be written as JSON" in (emission.reason or "")


async def test_a_text_of_a_hook_is_cut_to_what_may_be_added(
    open_session: OpenSession, texts: Texts, answering: Answering
) -> None:
    command = answering({"action": "inject_context", "context_injection": "x" * 5_000})
    async with open_session(
        {**config_of("prompt:submit", command), "max_context": 500}, "hello"
    ) as session:
        await session.execute("hi")

        assert len((await texts(session))[0]) == 500


async def test_output_beyond_the_limit_is_no_answer(
    spy: MockTool, run_with: RunWith
) -> None:
    output = await run_with("yes | head -c 5000", settings={"max_output_bytes": 1_000})

    assert "it put out 5000 bytes; max_output_bytes is 1000" in output
    assert not spy.calls


async def test_a_cancelled_turn_ends_the_command(work: Path, run_with: RunWith) -> None:
    async with anyio.create_task_group() as turn:
        turn.start_soon(run_with, "echo $$ > starting; mv starting pid; sleep 1234")
        with anyio.fail_after(15):
            while not (work / "pid").exists():  # noqa: ASYNC110  # what another process does has no event
                await anyio.sleep(0.005)
        turn.cancel_scope.cancel()

    pid = (work / "pid").read_text().strip()
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    "hook",
    [
        {"event": "tool:pre"},
        {"event": "", "command": "true"},
        {"event": "tool:pre", "command": ""},
        {"event": "tool:pre", "command": []},
        {"event": "tool:pre", "command": "true\0"},
        {"event": "tool:pre", "command": "true", "timeout": 0},
        {"event": "tool:pre", "command": "true", "timeuot": 3},
    ],
    ids=["no command", "no event", "empty", "no words", "NUL", "no time", "misspelt"],
)
async def test_a_hook_that_cannot_be_read_ends_the_start(
    open_session: OpenSession, hook: Mapping[str, JSONValue]
) -> None:
    session = open_session({"hooks": [dict(hook)]})
    with pytest.raises(Exception, match="hook") as caught:
        await session.initialize()

    assert isinstance(caught.value, ConfigError) or isinstance(
        caught.value.__cause__, ConfigError
    )
    await session.cleanup()


CLEAN: Final = """python3 -c 'import json, sys; data = json.load(sys.stdin)["data"]
data["tool_result"]["output"] = data["tool_result"]["output"].replace("swordfish", "***")
print(json.dumps({"action": "modify", "data": data}))'"""


@ONE_BACKEND
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (CLEAN, "the word is ***"),
        (
            """printf '{"action": "modify", "data": {"result": {"output": "withheld"}}}'""",
            "withheld",
        ),
        (
            """printf '{"action": "modify", "data": {"result": "withheld"}}'""",
            "tool:post, result: expected an object",
        ),
        (
            """printf '{"action": "modify", "data": {"result": {"text": "withheld"}}}'""",
            "text: unknown",
        ),
    ],
)
async def test_a_command_may_change_a_result(
    open_session: OpenSession, run: Run, command: str, expected: str
) -> None:
    spy = MockTool("bash", "the word is swordfish")
    async with open_session(
        config_of("tool:post", command, decides=True), tools=[spy]
    ) as session:
        text = (await run(session, "bash", command="ls")).get_serialized_output()

    assert expected in text
    assert "swordfish" not in text
