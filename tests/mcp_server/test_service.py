"""What the official client of the protocol can do with a served session."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from mcp import MCPError
from mcp.client import Client
from mcp_types import CallToolResult, ElicitResult, TextContent

from amplifier.mcp_server.transport import message_streams
from amplifier_kit.rpc.received import RpcLimits
from amplifier_sdk.assessments import EDITS
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.acp.editor import editing, text_block
from tests.mcp_server.serving import served

FILES: Final = ("tool-filesystem", "hooks-approval")
TOOLS: Final = ("read_file", "write_file")
CHANGE: Final[dict[str, object]] = {"file_path": "notes.txt", "content": "new"}


@asynccontextmanager
async def _client(
    project: Path,
    responses: Sequence[JSONValue] = (),
    *modules: str,
    tools: Sequence[str] = (),
    accepted: frozenset[str] = frozenset(),
    answer: ElicitResult | None = None,
) -> AsyncIterator[Client]:
    async def elicit(context: object, params: object) -> ElicitResult:  # called by name
        assert answer is not None
        return answer

    async with served(
        project, responses, *modules, tools=tools, accepted=accepted
    ) as end:
        streams = message_streams(end.received, end.send, RpcLimits())
        asks = None if answer is None else elicit
        async with Client(streams, elicitation_callback=asks, mode="legacy") as client:
            yield client


def _text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_without_anybody_to_ask_only_tools_that_read_are_served(
    project: Path,
) -> None:
    async with _client(project, (), *FILES, tools=TOOLS) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        read = await client.call_tool("read_file", {"file_path": "notes.txt"})
        with pytest.raises(MCPError, match="there is no tool 'write_file'"):
            await client.call_tool("write_file", CHANGE)
        with pytest.raises(MCPError, match="there is no tool 'glob'"):
            await client.call_tool("glob", {"pattern": "*"})

    assert names == ["read_file", "agent_self"]
    assert "old text" in _text(read)
    assert (project / "notes.txt").read_text() == "old text\n"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (ElicitResult(action="accept", content={"answer": "Allow once"}), "new"),
        (ElicitResult(action="accept", content={"answer": "sure"}), "old text\n"),
        (ElicitResult(action="accept"), "old text\n"),
        (ElicitResult(action="decline"), "old text\n"),
    ],
)
async def test_the_person_at_the_client_is_asked(
    project: Path, answer: ElicitResult, text: str
) -> None:
    async with _client(project, (), *FILES, tools=TOOLS, answer=answer) as client:
        await client.call_tool("read_file", {"file_path": "notes.txt"})
        result = await client.call_tool("write_file", CHANGE)

    assert (project / "notes.txt").read_text() == text
    assert result.is_error is (text != "new")


async def test_edits_may_be_accepted_from_the_start(project: Path) -> None:
    accepted = frozenset({EDITS})
    async with _client(project, (), *FILES, tools=TOOLS, accepted=accepted) as client:
        await client.call_tool("read_file", {"file_path": "notes.txt"})
        result = await client.call_tool("write_file", CHANGE)

    assert not result.is_error
    assert (project / "notes.txt").read_text() == "new"


async def test_an_agent_works_and_its_calls_are_guarded(project: Path) -> None:
    read: JSONObject = {"name": "read_file", "arguments": {"file_path": "notes.txt"}}
    write: JSONObject = {"name": "write_file", "arguments": CHANGE}  # type: ignore[dict-item]  # JSON data
    script: list[JSONValue] = [
        {"tool_calls": [read]},
        {"tool_calls": [write]},
        "I could not.",
    ]
    async with _client(project, script, *FILES) as client:
        result = await client.call_tool("agent_self", {"instruction": "Change it"})
        empty = await client.call_tool("agent_self", {})
        long = {"instruction": "x" * 8_000_001}
        refused = await client.call_tool("agent_self", long)

    assert _text(result) == "I could not."
    assert _text(empty) == "instruction: expected a text"
    assert empty.is_error
    assert "more than 8 MB" in _text(refused)
    assert (project / "notes.txt").read_text() == "old text\n"


async def test_stored_sessions_are_resources_without_secrets(project: Path) -> None:
    key = "ghp_Zk3vB9qLw2XnT7cYp5RmD1sHf8GjA4uE6oQi"
    async with editing(project, [f"It is {key}."]) as editor:
        session = await editor.new()
        await editor.prompt(session, text_block("What is it?"))
    async with _client(project, ()) as client:
        (resource,) = (await client.list_resources()).resources
        contents = (await client.read_resource(resource.uri)).contents
        for uri in ("amplifier://session/../x", "amplifier://session/", "file:///x"):
            with pytest.raises(MCPError, match="there is no resource"):
                await client.read_resource(uri)

    assert resource.name == "What is it?"
    assert str(resource.uri).endswith(session)
    assert "What is it?" in str(contents)
    assert key not in str(contents)


async def test_command_files_are_prompts(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own" / "commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text(
        "---\ndescription: Review\n---\nReview $ARGUMENTS"
    )
    async with _client(project, (), *FILES) as client:
        prompts = (await client.list_prompts()).prompts
        made = await client.get_prompt("review", {"arguments": "notes.txt"})
        with pytest.raises(MCPError, match="no command /permissions"):
            await client.get_prompt("permissions", {"arguments": "revoke all"})

    assert [prompt.name for prompt in prompts] == ["review"]
    assert "Review notes.txt" in str(made.messages)


async def test_malformed_frames_are_answered(project: Path) -> None:
    frames = [
        b"{",
        b'{"jsonrpc": "2.0", "id": 5, "method": 7}',
        b'{"id": true}',
        b"",
        b'{"id":9,"method":"x","params":{"a":"' + b"x" * 17_000_000 + b'"}}',
    ]
    async with served(project, ()) as end:
        for frame in frames:
            await end.send.send(frame + b"\n")
        replies = [json.loads(await end.received.receive()) for _ in range(4)]

    assert [(reply["id"], reply["error"]["code"]) for reply in replies] == [
        (None, -32700),
        (5, -32600),
        (None, -32600),
        (9, -32600),
    ]
