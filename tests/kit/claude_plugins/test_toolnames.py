"""One call under Claude Code's names and under ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.claude_plugins import CALLS, claude_calls, to_claude, tool_named
from amplifier_sdk.jsontypes import JSONObject, JSONValue


@pytest.mark.parametrize(
    ("name", "given", "theirs", "shown"),
    [
        (
            "bash",
            {"command": "ls", "timeout": 2.5},
            "Bash",
            {"command": "ls", "timeout": 2500},
        ),
        (
            "bash",
            {"command": "ls", "timeout": True},
            "Bash",
            {"command": "ls", "timeout": True},
        ),
        (
            "read_file",
            {"file_path": "a", "limit": 3},
            "Read",
            {"file_path": "/w/a", "limit": 3},
        ),
        ("read_file", {"file_path": "/etc/x"}, "Read", {"file_path": "/etc/x"}),
        ("read_file", {"file_path": 3}, "Read", {"file_path": 3}),
        (
            "edit_file",
            {"file_path": "a", "edits": [{}]},
            "MultiEdit",
            {"file_path": "/w/a", "edits": [{}]},
        ),
        (
            "edit_file",
            {"file_path": "a", "old_string": "x"},
            "Edit",
            {"file_path": "/w/a", "old_string": "x"},
        ),
        (
            "task",
            {"agent": "a", "instruction": "b"},
            "Task",
            {"subagent_type": "a", "prompt": "b"},
        ),
        (
            "grep",
            {"pattern": "x", "ignore_case": True},
            "Grep",
            {"pattern": "x", "-i": True},
        ),
        ("mcp_asana_create_task", {"a": 1}, "mcp__asana__create_task", {"a": 1}),
        ("mcp__asana__create", {}, "mcp__asana__create", {}),
        ("own_tool", {"a": 1}, "own_tool", {"a": 1}),
    ],
)
def test_a_call_is_written_in_their_words(
    name: str, given: JSONObject, theirs: str, shown: JSONObject
) -> None:
    call = to_claude(name, given, "/w")

    assert (call.name, call.arguments) == (theirs, shown)
    assert {theirs, name} <= set(call.names)


@pytest.mark.parametrize(
    ("name", "given", "changes", "expected"),
    [
        (
            "bash",
            {"command": "ls", "timeout": 2},
            {"timeout": 500},
            {"command": "ls", "timeout": 0.5},
        ),
        (
            "read_file",
            {"file_path": "a"},
            {"file_path": "/w/a", "limit": 3},
            {"file_path": "a", "limit": 3},
        ),
        ("read_file", {"file_path": "a"}, {"file_path": "/w/b"}, {"file_path": "/w/b"}),
        (
            "task",
            {"agent": "a"},
            {"subagent_type": "b", "prompt": "c"},
            {"agent": "b", "instruction": "c"},
        ),
        ("own_tool", {"a": 1}, {"a": 2, "b": 3}, {"a": 2, "b": 3}),
    ],
)
def test_changes_come_back_in_our_words_and_the_rest_stays(
    name: str, given: JSONObject, changes: JSONObject, expected: JSONObject
) -> None:
    assert to_claude(name, given, "/w").with_changes(changes) == expected


@given(
    st.sampled_from([pair.ours for pair in CALLS]),
    st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()),
)
def test_a_call_that_is_sent_back_whole_is_unchanged(
    name: str, arguments: dict[str, JSONValue]
) -> None:
    call = to_claude(name, arguments, "/w")

    assert call.with_changes(call.arguments) == arguments


@pytest.mark.parametrize(
    ("written", "ours"),
    [
        ("Read", "read_file"),
        (" Bash(git:*) ", "bash"),
        ("MultiEdit", "edit_file"),
        ("Agent", "task"),
        ("mcp__srv__x", "mcp__srv__x"),
        ("a b", "a b"),
    ],
)
def test_a_tool_that_is_named_is_ours(written: str, ours: str) -> None:
    assert tool_named(written) == ours


@pytest.mark.parametrize(
    ("name", "given", "reported"),
    [
        (
            "move",
            {"source": "a b", "destination": "/x"},
            [("Bash", "mv -- 'a b' /x"), ("Write", "/w/a b"), ("Write", "/x")],
        ),
        ("delete", {"path": "a"}, [("Bash", "rm -r -- a"), ("Write", "/w/a")]),
        ("web_fetch", {"url": "u", "save_to_file": "a"}, [("Write", "/w/a")]),
        ("web_fetch", {"url": "u"}, []),
        ("move", {}, [("Bash", "mv -- ")]),
        ("read_file", {"file_path": "a"}, []),
    ],
)
def test_a_call_is_also_what_their_agent_would_do_instead(
    name: str, given: JSONObject, reported: list[tuple[str, str]]
) -> None:
    first, *others = claude_calls(name, given, "/w")

    assert first == to_claude(name, given, "/w")
    found = [
        (call.name, call.arguments.get("command", call.arguments.get("file_path")))
        for call in others
    ]
    assert found == reported
    assert all(
        {"Edit", "MultiEdit", "NotebookEdit"} <= set(call.names)
        for call in others
        if call.name == "Write"
    )
