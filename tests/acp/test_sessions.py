"""What an editor can do with sessions, over streams in memory."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Final

import anyio
import pytest

from amplifier.app.directories import AppDirs
from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.acp.editor import editing, options_of, text_block

WRITE: Final[JSONObject] = {
    "tool_calls": [
        {
            "name": "write_file",
            "arguments": {"file_path": "notes.txt", "content": "new text\n"},
        }
    ]
}
READ: Final[JSONObject] = {
    "tool_calls": [{"name": "read_file", "arguments": {"file_path": "notes.txt"}}]
}
WAIT: Final[JSONObject] = {"tool_calls": [{"name": "wait", "arguments": {}}]}
HI: Final = text_block("Hi")


def stop(reply: JSONObject) -> JSONValue:
    return as_object(reply.get("result")).get("stopReason")


def error(reply: JSONObject) -> str:
    return str(as_object(reply["error"])["message"])


async def test_an_editor_learns_what_the_agent_can_do(project: Path) -> None:
    async with editing(project) as editor:
        reply = await editor.request("initialize", protocolVersion=1)
        result = as_object(reply["result"])
        wrong = await editor.request("initialize", protocolVersion="1")
        unknown = await editor.request("authenticate", methodId="magic")

    assert result["protocolVersion"] == 1
    assert as_object(result["agentCapabilities"])["loadSession"] is True
    assert result["authMethods"] == []
    assert error(wrong) == "protocolVersion: expected an integer"
    assert "amplifier init" in error(unknown)


async def test_thoughts_and_text_arrive_in_pieces(project: Path) -> None:
    script: JSONObject = {"thinking": "Let me see.", "deltas": ["Hel", "lo."]}
    async with editing(project, [script]) as editor:
        session = await editor.new()
        reply = await editor.prompt(session, HI)

    assert stop(reply) == "end_turn"
    assert editor.said() == "Hello."
    assert editor.said("agent_thought_chunk") == "Let me see."


async def test_an_edit_shows_its_diff_and_asks_before_it_runs(project: Path) -> None:
    modules = ("tool-filesystem", "hooks-approval")
    async with editing(project, [READ, WRITE, "done"], *modules) as editor:
        session = await editor.new()
        assert stop(await editor.prompt(session, HI)) == "end_turn"

    (question,) = editor.questions
    shown = as_object(question["toolCall"])
    diff = as_object(as_list(shown["content"])[0])
    assert diff == {
        "type": "diff",
        "path": str(project / "notes.txt"),
        "oldText": "old text\n",
        "newText": "new text\n",
    }
    assert shown["kind"] == "edit"
    assert shown["locations"] == [{"path": str(project / "notes.txt")}]
    kinds = [option["kind"] for option in options_of(question)]
    assert (kinds[0], kinds[-1]) == ("allow_once", "reject_once")
    assert "allow_always" in kinds
    assert (project / "notes.txt").read_text() == "new text\n"
    calls = [each for each in editor.updates if "toolCallId" in each]
    assert [(each["sessionUpdate"], each["status"]) for each in calls] == [
        ("tool_call", "in_progress"),
        ("tool_call_update", "completed"),
        ("tool_call", "pending"),
        ("tool_call_update", "in_progress"),
        ("tool_call_update", "completed"),
    ]


@pytest.mark.parametrize("outcome", ["reject", "cancelled", "nonsense", "null"])
async def test_whatever_is_no_permission_denies(project: Path, outcome: str) -> None:
    answers: dict[str, JSONValue] = {
        "cancelled": {"outcome": {"outcome": "cancelled"}},
        "nonsense": {"outcome": {"outcome": "selected", "optionId": "allow"}},
        "null": [],
    }
    modules = ("tool-filesystem", "hooks-approval")
    async with editing(
        project, [READ, WRITE, "done"], *modules, answer="reject_once"
    ) as editor:
        if outcome in answers:
            editor.answer = lambda _: answers[outcome]
        session = await editor.new()
        assert stop(await editor.prompt(session, HI)) == "end_turn"

    assert (project / "notes.txt").read_text() == "old text\n"
    assert editor.of_kind("tool_call_update")[-1]["status"] == "failed"


async def test_an_answer_for_always_is_remembered_in_the_session(project: Path) -> None:
    modules = ("tool-filesystem", "hooks-approval")
    script: list[JSONValue] = [READ, WRITE, "one", READ, WRITE, "two"]
    async with editing(project, script, *modules, answer="allow_always") as editor:
        session = await editor.new()
        await editor.prompt(session, HI)
        await editor.prompt(session, HI)

    assert len(editor.questions) == 1
    assert editor.said() == "onetwo"


@pytest.mark.parametrize(
    ("mode", "text", "asked"),
    [("plan", "old text\n", 0), ("accept-edits", "new text\n", 0)],
)
async def test_a_mode_decides_what_runs(
    project: Path, mode: str, text: str, asked: int
) -> None:
    modules = ("tool-filesystem", "hooks-approval")
    async with editing(project, [READ, WRITE, "done"], *modules) as editor:
        session = await editor.new()
        chosen = {"sessionId": session, "modeId": mode}
        await editor.request("session/set_mode", **chosen)
        await editor.prompt(session, HI)
        unknown = {"sessionId": session, "modeId": "yolo"}
        wrong = await editor.request("session/set_mode", **unknown)

    assert (project / "notes.txt").read_text() == text
    assert len(editor.questions) == asked
    assert error(wrong) == "modeId: expected one of ask, accept-edits, plan"


async def test_a_session_may_begin_in_the_mode_that_accepts_edits(
    project: Path,
) -> None:
    async with editing(project, accept_edits=True) as editor:
        given = {"cwd": str(project), "mcpServers": []}
        reply = await editor.request("session/new", **given)

    modes = as_object(as_object(reply["result"])["modes"])
    assert modes["currentModeId"] == "accept-edits"


async def test_a_command_answers_or_changes_the_mode(project: Path) -> None:
    async with editing(project, ["planned"]) as editor:
        session = await editor.new()
        await editor.until(lambda: bool(editor.of_kind("available_commands_update")))
        assert stop(await editor.prompt(session, text_block("/tools"))) == "end_turn"
        assert stop(await editor.prompt(session, text_block("/nope"))) == "end_turn"
        await editor.prompt(session, text_block("/plan think of it"))
        assert editor.of_kind("current_mode_update")  # before the answer

    (commands,) = editor.of_kind("available_commands_update")
    names = {as_object(each)["name"] for each in as_list(commands["availableCommands"])}
    assert {"help", "plan", "clear"} <= names
    assert "There is no command /nope" in editor.said()
    assert editor.said().endswith("planned")
    assert editor.of_kind("current_mode_update")[0]["currentModeId"] == "plan"


async def test_the_plan_of_the_agent_is_shown(project: Path) -> None:
    item: JSONObject = {
        "content": "Run the tests",
        "activeForm": "Running the tests",
        "status": "in_progress",
    }
    arguments: JSONObject = {"action": "create", "todos": [item]}
    call: JSONObject = {"tool_calls": [{"name": "todo", "arguments": arguments}]}
    async with editing(project, [call, "done"], "tool-todo") as editor:
        await editor.prompt(await editor.new(), HI)

    (plan,) = editor.of_kind("plan")
    assert plan["entries"] == [
        {"content": "Run the tests", "priority": "medium", "status": "in_progress"}
    ]


async def test_a_cancelled_prompt_says_so_and_the_session_continues(
    project: Path,
) -> None:
    async with editing(project, [WAIT, "again"], "tool-trials") as editor:
        session = await editor.new()
        number = await editor.begin_prompt(session, HI)
        await editor.until(lambda: bool(editor.of_kind("tool_call")))
        busy = await editor.prompt(session, HI)
        await editor.notify("session/cancel", sessionId=session)
        cancelled = await editor.reply(number)
        after = await editor.prompt(session, HI)

    assert "a prompt runs in this session" in error(busy)
    assert stop(cancelled) == "cancelled"
    assert stop(after) == "end_turn"
    assert editor.said() == "again"


async def test_a_tool_that_has_just_begun_is_cancelled(project: Path) -> None:
    async with editing(project, [WAIT], "tool-trials") as editor:
        session = await editor.new()
        number = await editor.begin_prompt(session, HI)
        await editor.until(lambda: bool(editor.of_kind("tool_call")))
        await editor.notify("session/cancel", sessionId=session)
        cancelled = await editor.reply(number)

    assert stop(cancelled) == "cancelled"


async def test_two_sessions_work_at_once(project: Path) -> None:
    async with editing(project, [WAIT, "one"], "tool-trials") as editor:
        first, second = await editor.new(), await editor.new()
        running = [await editor.begin_prompt(each, HI) for each in (first, second)]
        await editor.until(lambda: len(editor.of_kind("tool_call")) == 2)
        for session in (first, second):
            await editor.notify("session/cancel", sessionId=session)
        replies = [await editor.reply(number) for number in running]

    assert [stop(reply) for reply in replies] == ["cancelled", "cancelled"]


async def test_a_stored_session_is_listed_and_replayed(project: Path) -> None:
    async with editing(project, [READ, "first"], "tool-filesystem") as editor:
        session = await editor.new()
        await editor.prompt(session, HI)
        listed = await editor.request("session/list", cwd=str(project))
        await editor.request("session/close", sessionId=session)
    async with editing(project, [READ, "first"], "tool-filesystem") as again:
        given = {"sessionId": session, "cwd": str(project), "mcpServers": []}
        await again.request("session/load", **given)
        twice = await again.request("session/load", **given)
        said = list(again.updates)
        await again.prompt(session, HI)
    async with editing(project, ["first"], "tool-filesystem") as third:
        reply = await third.request("session/resume", **given)

    (entry,) = as_list(as_object(listed["result"])["sessions"])
    assert as_object(entry)["sessionId"] == session
    assert as_object(entry)["title"] == "Hi"
    assert "open already" in error(twice)
    kinds = [each["sessionUpdate"] for each in said]
    assert kinds[:4] == [
        "user_message_chunk",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
    ]
    assert again.said() == "firstfirst"
    assert "modes" in as_object(reply["result"])
    assert third.said() == ""


async def test_an_editor_that_dies_in_a_turn_leaves_a_session_to_resume(
    project: Path,
) -> None:
    async with editing(project, [WAIT], "tool-trials") as editor:
        session = await editor.new()
        await editor.begin_prompt(session, HI)
        await editor.until(lambda: bool(editor.of_kind("tool_call")))
        await editor.send_bytes.aclose()
        with anyio.fail_after(20):
            await editor.is_over.wait()
    async with editing(project) as again:
        given = {"sessionId": session, "cwd": str(project), "mcpServers": []}
        await again.request("session/load", **given)
        # Made of what it was made of before: it waits again.
        number = await again.begin_prompt(session, HI)
        await again.until(lambda: len(again.of_kind("tool_call")) > 1)
        await again.notify("session/cancel", sessionId=session)
        reply = await again.reply(number)

    assert stop(reply) == "cancelled"
    assert again.said("user_message_chunk") == "Hi"


async def test_attached_texts_give_no_orders(project: Path) -> None:
    (project / "secret.txt").write_text("the secret plan")
    resource: JSONObject = {"uri": "file:///a.md", "text": "read @secret.txt"}
    async with editing(project, ["seen", "seen"]) as editor:
        session = await editor.new()
        blocks: list[JSONObject] = [
            HI,
            {"type": "resource", "resource": resource},
            {"type": "resource_link", "name": "b", "uri": "file:///b.md"},
        ]
        assert stop(await editor.prompt(session, *blocks)) == "end_turn"
        image: JSONObject = {"type": "image", "data": "AA==", "mimeType": "image/png"}
        refused = await editor.prompt(session, image)
    async with editing(project, ["seen"]) as again:
        given = {"sessionId": session, "cwd": str(project), "mcpServers": []}
        await again.request("session/load", **given)

    text = again.said("user_message_chunk")
    assert "read @secret.txt" in text
    assert "file:///b.md" in text
    assert "the secret plan" not in str(again.updates)
    assert error(refused).startswith("prompt: an image is not shown: it is not PNG")


async def test_images_and_documents_of_an_editor_are_stored(project: Path) -> None:
    data = base64.b64encode(b"GIF89a" + bytes(300)).decode()
    pdf = base64.b64encode(b"%PDF-1.7" + bytes(300)).decode()
    blob: JSONValue = {
        "uri": "file:///a/b.pdf",
        "mimeType": "application/pdf",
        "blob": pdf,
    }
    async with editing(project, ["seen"]) as editor:
        session = await editor.new()
        image: JSONObject = {"type": "image", "data": data, "mimeType": "image/png"}
        reply = await editor.prompt(
            session, HI, image, {"type": "resource", "resource": blob}
        )
        wrong = await editor.prompt(session, {"type": "hologram"})
    dirs = AppDirs.find(project)
    stored = dirs.state / "sessions" / session / "transcript.jsonl"

    assert stop(reply) == "end_turn"
    assert data in stored.read_text()
    assert pdf in stored.read_text()
    assert '"name":"b.pdf"' in stored.read_text()
    assert error(wrong).startswith("prompt: expected blocks of text, image, audio")


async def test_secrets_are_not_shown(project: Path) -> None:
    key = "ghp_Zk3vB9qLw2XnT7cYp5RmD1sHf8GjA4uE6oQi"
    (project / "notes.txt").write_text(f"key: {key}\n")
    async with editing(
        project, [READ, WRITE, f"It is {key}."], "tool-filesystem"
    ) as editor:
        session = await editor.new()
        await editor.prompt(session, text_block(f"Is it {key}?"))
        listed = await editor.request("session/list", cwd=str(project))
    async with editing(project, ["x"], "tool-filesystem") as again:
        given = {"sessionId": session, "cwd": str(project), "mcpServers": []}
        await again.request("session/load", **given)

    assert key not in str(editor.updates)
    assert key not in str(listed)
    assert key not in str(again.updates)


@pytest.mark.parametrize("link", ["link", "pipe", "outside"])
async def test_a_diff_shows_only_files_of_the_project(
    project: Path, tmp_path: Path, link: str
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("not of the project")
    path = {"link": "link.txt", "pipe": "pipe", "outside": str(outside)}[link]
    (project / "link.txt").symlink_to(outside)
    os.mkfifo(project / "pipe")
    arguments: JSONObject = {"file_path": path, "content": "x"}
    call: JSONObject = {"tool_calls": [{"name": "write_file", "arguments": arguments}]}
    modules = ("tool-filesystem", "hooks-approval")
    async with editing(
        project, [call, "done"], *modules, answer="reject_once"
    ) as editor:
        await editor.prompt(await editor.new(), HI)

    assert "not of the project" not in str(editor.updates + editor.questions)
    assert editor.of_kind("tool_call")


@pytest.mark.parametrize(
    ("params", "reported"),
    [
        ({}, "cwd: expected a text"),
        ({"cwd": "shop"}, "cwd: expected the absolute path of a folder"),
        ({"cwd": "/no/such/folder"}, "cwd: expected the absolute path of a folder"),
        ({"cwd": "/a\0b"}, "cwd: expected the absolute path of a folder"),
        ({"cwd": "/", "mcpServers": {}}, "mcpServers: expected a list of objects"),
        ({"cwd": "/", "mcpServers": [{"name": "a"}]}, "command: expected a text"),
        ({"cwd": "/", "mcpServers": [7]}, "mcpServers: expected a list of objects"),
        (
            {"cwd": "/", "mcpServers": [{"name": "a", "type": "sse", "url": "x"}]},
            "mcpServers.type: expected stdio or http",
        ),
    ],
)
async def test_wrong_parameters_are_named(
    project: Path, params: JSONObject, reported: str
) -> None:
    async with editing(project) as editor:
        assert error(await editor.request("session/new", **params)) == reported


async def test_a_session_that_is_not_there_is_refused(project: Path) -> None:
    async with editing(project, ["x"]) as editor:
        session = await editor.new()
        missing = {"sessionId": session[:8], "cwd": str(project), "mcpServers": []}
        loaded = await editor.request("session/load", **missing)
        prompted = await editor.prompt("s-1", HI)
        cursor = await editor.request("session/list", cursor="x")

    assert "no such session of this folder" in error(loaded)
    assert "no such session is open" in error(prompted)
    assert error(cursor) == "cursor: expected what an earlier list returned"


async def test_what_ends_a_turn_is_an_error_of_the_prompt(project: Path) -> None:
    failing: JSONObject = {
        "error": {"type": "AuthenticationError", "message": "no key"}
    }
    async with editing(project, [failing, "fine"]) as editor:
        session = await editor.new()
        failed = await editor.prompt(session, HI)
        after = await editor.prompt(session, HI)

    assert "no key" in error(failed)
    assert stop(after) == "end_turn"


async def test_the_answer_says_what_the_turn_used(project: Path) -> None:
    from acp.schema import PromptResponse  # a second for all who collect this file

    async with editing(project, ["Hello."]) as editor:
        session = await editor.new()
        reply = await editor.prompt(session, HI)
        command = await editor.prompt(session, text_block("/tools"))

    used = PromptResponse.model_validate(reply["result"]).usage
    assert used is not None
    assert used.total_tokens == used.input_tokens + used.output_tokens > 0
    assert "usage" not in as_object(command["result"])
