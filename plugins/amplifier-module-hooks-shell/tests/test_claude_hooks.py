"""Hooks of plugin folders, as the pages of Claude Code show them: each event, and what each answer does."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import anyio
import pytest

from amplifier import AmplifierSession
from amplifier.testing import (
    MockApprovalSystem,
    MockDisplaySystem,
    MockTool,
    ScriptedProvider,
)
from amplifier_sdk import ChatResponse, Coordinator, HookResult, ToolResult, hook, on
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.content import ToolCallBlock
from amplifier_sdk.decisions import HOOK_DECIDED, HookDecided
from amplifier_sdk.errors import LLMError
from amplifier_sdk.events import CONTEXT_PRE_COMPACT, USER_NOTIFICATION
from amplifier_sdk.jsontypes import JSONValue

pytestmark = pytest.mark.process

OpenSession = Callable[..., AmplifierSession]  # type: ignore[explicit-any]  # its options go by name
Run = Callable[..., Awaitable[ToolResult]]  # type: ignore[explicit-any]  # likewise
HookOf = Callable[..., dict[str, JSONValue]]  # type: ignore[explicit-any]  # likewise
WritePlugin = Callable[..., Path]  # type: ignore[explicit-any]  # likewise
Texts = Callable[[AmplifierSession], Awaitable[list[str]]]
Answering = Callable[[JSONValue], str]
ONE_BACKEND: Final = pytest.mark.parametrize(
    "anyio_backend", ["asyncio"], scope="session"
)
CALL = ChatResponse(
    content=[ToolCallBlock(id="c1", name="bash", input={"command": "ls"})],
    tool_calls=[ToolCall(id="c1", name="bash", arguments={"command": "ls"})],
    finish_reason="tool_calls",
)


@pytest.fixture
def spy() -> MockTool:
    return MockTool("bash", "done")


def decision(value: str, **more: JSONValue) -> JSONValue:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": value,
            **more,
        }
    }


# -- PreToolUse


async def test_hook_before_tool_is_told_call_in_claude_codes_words(
    work: Path, hook_of: HookOf, open_session: OpenSession, run: Run
) -> None:
    config = hook_of(
        "PreToolUse",
        'cat > "$CLAUDE_PROJECT_DIR/told.json"; echo "$CLAUDE_PLUGIN_ROOT" > root',
        "Write",
    )
    async with open_session(config, tools=[MockTool("write_file")]) as session:
        await run(session, "write_file", file_path="src/../a.txt", content="x")

    text = json.loads((work / "told.json").read_text())
    assert text["tool_input"] == {
        "file_path": f"{work}/src/../a.txt",
        "content": "x",
    }
    assert (
        text["tool_name"],
        text["hook_event_name"],
        text["tool_use_id"],
    ) == (
        "Write",
        "PreToolUse",
        "c1",
    )
    assert (text["session_id"], text["cwd"], text["permission_mode"]) == (
        "test-session",
        str(work),
        "default",
    )
    assert text["transcript_path"].endswith(".jsonl")
    assert (work / "root").read_text().strip().endswith("/guard")


@ONE_BACKEND
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("exit 0", "done"),
        ("echo plain text", "done"),
        ("echo 'no rm here' >&2; exit 2", "Denied by hooks-shell: plugin guard: no rm here"),
        ("""echo '{"decision": "deny", "reason": "unsafe"}' >&2; exit 2""", "unsafe"),
        ("exit 1", "done"),
        ("exit 200", "done"),
        ("exit 127", "a hook failed: it could not be run"),
        ("${CLAUDE_PLUGIN_ROOT}/missing.sh", "a hook failed: it could not be run"),
        ("kill -9 $$", "a hook failed: it was ended by signal 9"),
        ("echo '{broken'", "a hook failed: its output is no answer"),
        ("""echo '{"decision": "perhaps"}'""", "a hook failed: its output is no answer"),
        ("""echo '{"continue": "no"}'""", "a hook failed: its output is no answer"),
        ("""echo '{"hookSpecificOutput": 3}'""", "a hook failed: its output is no answer"),
        ("""echo '{"decision": "block", "reason": "old words"}'""", "plugin guard: old words"),
        ("""echo '{"decision": "approve"}'""", "done"),
    ],
    ids=[
        "exits well", "plain text", "exits with 2", "JSON and 2", "exits with 1", "exits with 200", "exits with 127",
        "missing", "is killed", "broken JSON", "unknown word", "wrong type", "no object", "blocks", "approves",
    ],
)  # fmt: skip
async def test_what_a_hook_before_a_tool_says_decides(
    spy: MockTool,
    hook_of: HookOf,
    open_session: OpenSession,
    run: Run,
    command: str,
    expected: str,
) -> None:
    async with open_session(
        hook_of("PreToolUse", command, "Bash"), tools=[spy]
    ) as session:
        output = (await run(session, "bash", command="ls")).get_serialized_output()

    assert expected in output
    assert bool(spy.calls) is (expected == "done")


DENYING = '{"decision": "block", "reason": "unsafe"}'


@ONE_BACKEND
@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (f"\ufeff{DENYING}".encode(), "plugin guard: unsafe"),
        (f"\n \ufeff {DENYING}\n".encode(), "plugin guard: unsafe"),
        (DENYING.encode("utf-16"), "its output is no answer"),
        (f"debug\n{DENYING}".encode(), "its output is no answer"),
        (f"{DENYING} {DENYING}".encode(), "its output is no answer"),
        (f"[{DENYING}]".encode(), "its output is no answer"),
        (b"{'decision': 'block'}", "its output is no answer"),
        (b'{"Decision": "block"}', "is written 'decision'"),
        (
            b'{"hookSpecificOutput": {"permission_decision": "deny"}}',
            "is written 'permissionDecision'",
        ),
        (b'{"decision": "block", "decision": "approve"}', "a key stands there twice"),
        (b'{"unknown": 1}', "done"),
    ],
)
async def test_an_answer_is_heard_however_it_is_written_or_denies(
    tmp_path: Path,
    hook_of: HookOf,
    open_session: OpenSession,
    run: Run,
    spy: MockTool,
    output: bytes,
    expected: str,
) -> None:
    (tmp_path / "answer").write_bytes(output)
    async with open_session(
        hook_of("PreToolUse", f"cat {tmp_path}/answer"), tools=[spy]
    ) as session:
        assert (
            expected
            in (await run(session, "bash", command="ls")).get_serialized_output()
        )
    assert bool(spy.calls) is (expected == "done")


@ONE_BACKEND
@pytest.mark.parametrize(
    ("matcher", "tool", "arguments"),
    [
        (matcher, tool, arguments)
        for matcher in (
            "Write|Edit|MultiEdit|Bash",
            "Write|Edit",
            "Bash",
            "NotebookEdit",
            "Write.*",
            "*",
        )
        for tool, arguments in (
            ("move", {"source": "a", "destination": "keep/b"}),
            ("move", {"source": "keep/a", "destination": "b"}),
            ("delete", {"path": "keep/a"}),
        )
    ],
)
async def test_hook_that_guards_files_sees_those_moved_and_deleted(
    hook_of: HookOf,
    open_session: OpenSession,
    run: Run,
    matcher: str,
    tool: str,
    arguments: dict[str, str],
) -> None:
    guarding = "grep -q keep/ && { echo guarded >&2; exit 2; }; exit 0"
    moved = MockTool(tool, "done")
    async with open_session(
        hook_of("PreToolUse", guarding, matcher), tools=[moved]
    ) as session:
        assert (
            "guarded" in (await run(session, tool, **arguments)).get_serialized_output()
        )
        other = dict.fromkeys(arguments, "x")
        assert "done" in (await run(session, tool, **other)).get_serialized_output()


async def test_a_change_that_cannot_be_brought_back_denies(
    hook_of: HookOf, open_session: OpenSession, run: Run
) -> None:
    change = json.dumps(decision("allow", updatedInput={"command": "true"}))
    moved = MockTool("move", "done")
    async with open_session(
        hook_of("PreToolUse", f"echo '{change}'", "Bash"), tools=[moved]
    ) as session:
        output = (
            await run(session, "move", source="a", destination="b")
        ).get_serialized_output()

    assert "knows by other ones" in output
    assert not moved.calls


async def test_exit_code_that_means_nothing_denies_where_wanted(
    spy: MockTool, hook_of: HookOf, open_session: OpenSession, run: Run
) -> None:
    config = {**hook_of("PreToolUse", "echo oops >&2; exit 1", "Bash"), "strict": True}
    async with open_session(config, tools=[spy]) as session:
        assert (
            "exit code 1: oops"
            in (await run(session, "bash", command="ls")).get_serialized_output()
        )

    assert not spy.calls


async def test_a_hook_that_takes_too_long_before_a_tool_denies(
    spy: MockTool, hook_of: HookOf, open_session: OpenSession, run: Run
) -> None:
    async with open_session(
        hook_of("PreToolUse", "sleep 1234", "Bash", timeout=0.2), tools=[spy]
    ) as session:
        assert (
            "it took longer than 0.2 s"
            in (await run(session, "bash", command="ls")).get_serialized_output()
        )

    assert not spy.calls


async def test_a_hook_denies_changes_and_has_the_person_asked(
    spy: MockTool,
    hook_of: HookOf,
    open_session: OpenSession,
    run: Run,
    answering: Answering,
) -> None:
    person = MockApprovalSystem("Allow", "Deny")
    changed = decision(
        "ask",
        permissionDecisionReason="sure?",
        updatedInput={"command": "ls -a", "timeout": 5_000},
    )
    config = hook_of("PreToolUse", answering(changed), "Bash")
    async with open_session(config, tools=[spy], approval_system=person) as session:
        assert (await run(session, "bash", command="ls", timeout=3)).success
        assert not (await run(session, "bash", command="ls", timeout=3)).success

    assert spy.calls == [{"command": "ls -a", "timeout": 5.0}]
    assert "sure?" in person.questions[0].prompt
    assert "ls -a" in person.questions[0].prompt


async def test_a_hook_that_allows_overrides_nobody_who_asks(
    spy: MockTool,
    hook_of: HookOf,
    open_session: OpenSession,
    run: Run,
    answering: Answering,
) -> None:
    @hook
    class Asks:
        @on("tool:pre")
        def ask(self, event: str, data: dict[str, object]) -> HookResult:
            return HookResult.ask("may it?")

    config = hook_of("PreToolUse", answering(decision("allow")), "Bash")
    async with open_session(config, tools=[spy], hooks=[Asks]) as session:
        assert not (await run(session, "bash", command="ls")).success

    assert not spy.calls


async def test_two_hooks_that_change_one_argument_differently_deny(
    spy: MockTool,
    write_plugin: WritePlugin,
    open_session: OpenSession,
    run: Run,
    answering: Answering,
) -> None:
    first, second = (
        decision("allow", updatedInput={"command": text}) for text in ("a", "b")
    )
    hooks = [
        {"type": "command", "command": answering(value)} for value in (first, second)
    ]
    config = {"plugins": [str(write_plugin({"PreToolUse": [{"hooks": hooks}]}))]}
    async with open_session(config, tools=[spy]) as session:
        output = (await run(session, "bash", command="ls")).get_serialized_output()

    assert "another hook changes 'command' to something else" in output


async def test_hooks_of_one_event_run_beside_each_other(
    work: Path, write_plugin: WritePlugin, open_session: OpenSession, run: Run
) -> None:
    meet = "touch $0.{}; until [ -e $0.{} ]; do sleep 0.01; done"
    commands = [
        meet.replace("$0.{}", str(work / one), 1).replace("$0.{}", str(work / two))
        for one, two in ("ab", "ba")
    ]
    hooks = [{"type": "command", "command": command} for command in commands]
    config = {"plugins": [str(write_plugin({"PreToolUse": [{"hooks": hooks}]}))]}
    async with open_session(config, tools=[MockTool("bash")]) as session:
        with anyio.fail_after(10):
            assert (await run(session, "bash", command="ls")).success


async def test_a_hook_stops_the_agent_altogether(
    spy: MockTool, hook_of: HookOf, open_session: OpenSession, answering: Answering
) -> None:
    config = hook_of(
        "PreToolUse", answering({"continue": False, "stopReason": "enough"}), "Bash"
    )
    async with open_session(config, CALL, "never", "later", tools=[spy]) as session:
        with pytest.raises(LLMError, match="plugin guard: enough"):
            await session.execute("go")
        assert await session.execute("again") == "never"

    assert not spy.calls


# -- PostToolUse


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo 'run the formatter' >&2; exit 2", "run the formatter"),
        ("""echo '{"decision": "block", "reason": "format it"}'""", "format it"),
        ("""echo '{"systemMessage": "looks fine"}'""", "looks fine"),
        (
            """echo '{"hookSpecificOutput": {"additionalContext": "3 warnings"}}'""",
            "3 warnings",
        ),
    ],
    ids=["exits with 2", "blocks", "message", "context"],
)
async def test_a_hook_after_a_tool_speaks_to_the_model(
    hook_of: HookOf,
    open_session: OpenSession,
    texts: Texts,
    spy: MockTool,
    command: str,
    expected: str,
) -> None:
    async with open_session(
        hook_of("PostToolUse", command, "Bash"), CALL, "well", tools=[spy]
    ) as session:
        await session.execute("go")

        assert (await texts(session))[-2] == f"[plugin guard] {expected}"


async def test_a_hook_after_a_tool_is_told_its_result(
    work: Path, hook_of: HookOf, open_session: OpenSession, run: Run
) -> None:
    config = hook_of("PostToolUse", "cat > told.json")
    async with open_session(config, tools=[MockTool("grep", "3 lines")]) as session:
        await run(session, "grep", pattern="x", ignore_case=True)

    text = json.loads((work / "told.json").read_text())
    assert (text["tool_name"], text["tool_result"]) == ("Grep", "3 lines")
    assert text["tool_input"] == {"pattern": "x", "-i": True}
    assert text["tool_response"] == {"success": True, "output": "3 lines"}


# -- prompts, sessions, turns


async def test_a_hook_refuses_a_prompt_or_adds_to_it(
    hook_of: HookOf, open_session: OpenSession, texts: Texts
) -> None:
    command = """grep -q '"user_prompt": "bad"' && { echo 'not this' >&2; exit 2; }; echo 'today is Monday'"""
    async with open_session(hook_of("UserPromptSubmit", command), "hello") as session:
        assert (
            await session.execute("bad") == "Operation denied: plugin guard: not this"
        )
        await session.execute("good")

        assert (await texts(session))[:2] == ["[plugin guard] today is Monday", "good"]


@pytest.mark.parametrize("is_suppressed", [False, True], ids=["logged", "suppressed"])
@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "UserPromptSubmit"])
async def test_suppressed_output_reaches_the_model_and_no_log(
    hook_of: HookOf,
    open_session: OpenSession,
    answering: Answering,
    event: str,
    is_suppressed: bool,
) -> None:
    logged: list[HookDecided] = []

    @hook
    class Log:
        @on(HOOK_DECIDED)
        async def decided(self, _: str, data: HookDecided) -> None:
            logged.append(data)

    specific: dict[str, JSONValue] = {"additionalContext": "The door code is WILLOW."}
    if event == "PreToolUse":
        specific["updatedInput"] = {"command": "echo WILLOW"}
    command = answering(
        {"hookSpecificOutput": specific, "suppressOutput": is_suppressed}
    )
    spy = MockTool("bash", "done")
    async with open_session(
        hook_of(event, command), CALL, "done", tools=[spy], hooks=[Log()]
    ) as session:
        await session.execute("go")

        messages = await session.coordinator.context.get_messages()
        assert "The door code is WILLOW." in repr(messages)
    assert ("WILLOW" in repr(logged)) is not is_suppressed


async def test_a_hook_keeps_the_agent_at_work_until_it_is_done(
    work: Path, hook_of: HookOf, open_session: OpenSession, texts: Texts
) -> None:
    again = "grep -q '\"stop_hook_active\": true' told.json && exit 0"
    command = f"cat > told.json; {again}; echo 'run the tests' >&2; exit 2"
    async with open_session(
        hook_of("Stop", command, "*"), "Done.", "Tests ran."
    ) as session:
        assert await session.execute("go") == "Tests ran."

        assert "Do not stop yet: [plugin guard] run the tests" in await texts(session)
    assert (
        json.loads((work / "told.json").read_text())["last_assistant_message"]
        == "Tests ran."
    )


async def test_hook_that_never_lets_agent_stop_is_not_asked_for_ever(
    hook_of: HookOf, open_session: OpenSession, texts: Texts
) -> None:
    config = {**hook_of("Stop", "exit 2"), "max_stops": 2}
    async with open_session(config, "one", "two", "three") as session:
        assert await session.execute("go") == "three"


async def test_what_fails_lets_the_agent_stop(
    hook_of: HookOf, open_session: OpenSession
) -> None:
    shown = MockDisplaySystem()
    async with open_session(
        hook_of("Stop", "echo '{'"), "one", display_system=shown
    ) as session:
        assert await session.execute("go") == "one"

    assert "a hook failed: its output is no answer" in shown.messages[0].message


async def test_a_hook_reads_the_conversation_without_its_secrets(
    work: Path, hook_of: HookOf, open_session: OpenSession
) -> None:
    command = 'cp "$(python3 -c \'import json,sys; print(json.load(sys.stdin)["transcript_path"])\')" transcript'
    async with open_session(hook_of("Stop", command), "one", "two") as session:
        await session.execute("the key is ghp_16C7e42F292c6912E7710c838347Ae178B4a")
        await session.execute("and more")

    lines = [
        json.loads(line) for line in (work / "transcript").read_text().splitlines()
    ]
    assert [line["type"] for line in lines] == [
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert "ghp_" not in (work / "transcript").read_text()


async def test_a_child_session_has_its_own_end_and_no_person(
    work: Path, write_plugin: WritePlugin, open_session: OpenSession
) -> None:
    groups: JSONValue = [
        {"hooks": [{"type": "command", "command": "cat >> seen; echo >> seen"}]}
    ]
    events = (
        "Stop",
        "SubagentStop",
        "SessionStart",
        "SessionEnd",
        "UserPromptSubmit",
        "Notification",
    )
    config = {"plugins": [str(write_plugin(dict.fromkeys(events, groups)))]}
    async with open_session(config, "one", parent_id="parent") as session:
        await session.execute("go")

    assert [
        json.loads(line)["hook_event_name"]
        for line in (work / "seen").read_text().splitlines()
    ] == ["SubagentStop"]


@pytest.mark.parametrize("is_resumed", [False, True], ids=["new", "resumed"])
async def test_hooks_hear_a_session_begin_and_end(
    work: Path,
    write_plugin: WritePlugin,
    open_session: OpenSession,
    texts: Texts,
    is_resumed: bool,
) -> None:
    source = "resume" if is_resumed else "startup"
    start: JSONValue = [
        {
            "matcher": source,
            "hooks": [{"type": "command", "command": "cat > start; echo 'use pnpm'"}],
        }
    ]
    end: JSONValue = [{"hooks": [{"type": "command", "command": "cat > end"}]}]
    config = {
        "plugins": [str(write_plugin({"SessionStart": start, "SessionEnd": end}))]
    }
    async with open_session(config, "hello", is_resumed=is_resumed) as session:
        await session.execute("hi")

        assert (await texts(session))[0] == "[plugin guard] use pnpm"
    assert json.loads((work / "start").read_text())["source"] == source
    assert json.loads((work / "end").read_text())["reason"] == "other"


async def test_session_start_variables_reach_later_hooks(
    work: Path, write_plugin: WritePlugin, open_session: OpenSession
) -> None:
    start = """{ echo "export PROJECT_TYPE='node js'"; echo 'export PATH="$PATH:/more"'; } >> "$CLAUDE_ENV_FILE\""""
    hooks: JSONValue = {
        "SessionStart": [{"hooks": [{"type": "command", "command": start}]}],
        "Stop": [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": 'echo "$PROJECT_TYPE" > type; echo "$PATH" > path',
                    }
                ]
            }
        ],
    }
    async with open_session(
        {"plugins": [str(write_plugin(hooks))]}, "hello"
    ) as session:
        await session.execute("hi")
        offered = session.coordinator.get_capability("session.environment")

    assert (work / "type").read_text() == "node js\n"
    assert (work / "path").read_text().endswith(":/more\n")
    assert isinstance(offered, dict)
    assert offered["PROJECT_TYPE"] == "node js"


async def test_a_hook_says_what_must_not_be_forgotten(
    hook_of: HookOf, open_session: OpenSession
) -> None:
    provider = ScriptedProvider("hello")

    @hook
    class Compacts:
        def __init__(self, coordinator: Coordinator) -> None:
            self.hooks = coordinator.hooks

        @on("provider:request")
        async def compact(self, event: str, data: dict[str, object]) -> None:
            await self.hooks.emit(
                str(CONTEXT_PRE_COMPACT), {"message_count": 3, "token_count": 9}
            )

    config = hook_of("PreCompact", "echo 'keep the plan'", "auto")
    async with open_session(config, provider=provider, hooks=[Compacts]) as session:
        await session.execute("hi")

    assert provider.requests[0].messages[-1].text == "[plugin guard] keep the plan"


async def test_hooks_hear_what_person_told_without_being_waited_for(
    work: Path,
    write_plugin: WritePlugin,
    open_session: OpenSession,
    spy: MockTool,
    run: Run,
    answering: Answering,
) -> None:
    hooks: JSONValue = {
        "Notification": [
            {"hooks": [{"type": "command", "command": "cat >> seen; echo >> seen"}]}
        ],
        "PreToolUse": [
            {"hooks": [{"type": "command", "command": answering(decision("ask"))}]}
        ],
    }
    config = {"plugins": [str(write_plugin(hooks))]}
    async with open_session(
        config, tools=[spy], approval_system=MockApprovalSystem()
    ) as session:
        await session.coordinator.hooks.emit(
            USER_NOTIFICATION, {"message": "look here"}
        )
        await run(session, "bash", command="ls")

    text = [json.loads(line) for line in (work / "seen").read_text().splitlines()]
    assert [line["notification_type"] for line in text] == [
        "notification",
        "permission_prompt",
    ]
    assert text[0]["message"] == "look here"


async def test_hook_that_is_said_to_be_asynchronous_is_not_waited_for(
    work: Path, hook_of: HookOf, open_session: OpenSession, spy: MockTool, run: Run
) -> None:
    config = hook_of("PostToolUse", "cat > seen; exit 2", "Bash", **{"async": True})
    async with open_session(config, tools=[spy]) as session:
        assert (
            await run(session, "bash", command="ls")
        ).get_serialized_output() == "done"

    assert (work / "seen").exists()


async def test_a_session_without_plugins_hears_nothing(
    open_session: OpenSession,
) -> None:
    async with open_session({}) as session:
        hooks = session.coordinator.hooks

        assert not any(
            map(
                hooks.has_handlers,
                ("tool:pre", "tool:post", "prompt:submit", "orchestrator:stopping"),
            )
        )
        assert not session.coordinator.tools


async def test_arguments_that_are_no_object_deny(
    hook_of: HookOf, open_session: OpenSession
) -> None:
    async with open_session(hook_of("PreToolUse", "exit 0")) as session:
        emission = await session.coordinator.hooks.emit(
            "tool:pre", {"tool_name": "bash", "tool_input": "ls"}
        )

    assert emission.denied
    assert "The arguments of 'bash' are no object" in (emission.reason or "")


async def test_a_hook_is_about_the_tools_that_it_matches(
    work: Path, hook_of: HookOf, open_session: OpenSession, run: Run
) -> None:
    tools = [MockTool("bash"), MockTool("write_file")]
    async with open_session(
        hook_of("PreToolUse", "exit 2", "Write|Edit"), tools=tools
    ) as session:
        assert (await run(session, "bash", command="ls")).success
        assert not (await run(session, "write_file", file_path="a")).success


async def test_pre_tool_hook_adds_context_and_messages(
    hook_of: HookOf,
    open_session: OpenSession,
    texts: Texts,
    spy: MockTool,
    answering: Answering,
) -> None:
    shown = MockDisplaySystem()
    said: JSONValue = {
        "systemMessage": "careful",
        "hookSpecificOutput": {"additionalContext": "it is Friday"},
    }
    config = hook_of("PreToolUse", answering(said), "Bash")
    async with open_session(
        config, CALL, "well", tools=[spy], display_system=shown
    ) as session:
        await session.execute("go")

        assert "[plugin guard] it is Friday\ncareful" in await texts(session)
    assert shown.messages[0].message == "plugin guard: careful"


async def test_a_hook_after_a_tool_stops_the_agent(
    hook_of: HookOf, open_session: OpenSession, spy: MockTool, answering: Answering
) -> None:
    config = hook_of("PostToolUse", answering({"continue": False}), "Bash")
    async with open_session(config, CALL, "never", tools=[spy]) as session:
        with pytest.raises(LLMError, match="plugin guard: a hook stopped the agent"):
            await session.execute("go")


async def test_a_hook_has_the_person_asked_about_a_prompt(
    hook_of: HookOf, open_session: OpenSession, answering: Answering
) -> None:
    person = MockApprovalSystem("Allow", "Deny")
    config = hook_of(
        "UserPromptSubmit", answering(decision("ask", permissionDecisionReason="sure?"))
    )
    async with open_session(config, "hello", approval_system=person) as session:
        assert await session.execute("go") == "hello"
        assert "denied" in await session.execute("go")


async def test_an_agent_that_is_told_to_stop_altogether_stops(
    hook_of: HookOf, open_session: OpenSession, answering: Answering
) -> None:
    config = hook_of(
        "Stop", answering({"continue": False, "decision": "block", "reason": "no"})
    )
    async with open_session(config, "one") as session:
        assert await session.execute("go") == "one"


async def test_unreadable_session_start_output_changes_nothing(
    hook_of: HookOf, open_session: OpenSession
) -> None:
    async with open_session(
        hook_of("SessionStart", "echo 'exit 3' >> $CLAUDE_ENV_FILE"), "hello"
    ) as session:
        await session.execute("hi")

        assert session.coordinator.get_capability("session.environment") is None


async def test_what_fails_beside_the_turn_is_logged(
    hook_of: HookOf, open_session: OpenSession, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_session(hook_of("Notification", "exit 3")) as session:
        await session.coordinator.hooks.emit(
            USER_NOTIFICATION, {"message": "look here"}
        )

    assert "plugin guard: a hook of Notification: exit code 3" in caplog.text
