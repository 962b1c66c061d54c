"""An editor in memory: it sends lines to an agent and keeps what comes back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path
from typing import TypeAlias

import anyio
import attrs
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from amplifier.acp import AcpAgent
from amplifier.app.plans.base_plans import PlanOptions
from amplifier_kit.open_data import as_list, as_object
from amplifier_kit.rpc.received import RpcLimits
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.cli.programs import write_plan

__all__ = ["Answer", "Editor", "editing", "options_of", "text_block"]

Answer: TypeAlias = Callable[[JSONObject], JSONValue]
"""Answers a request for a permission."""


def text_block(text: str) -> JSONObject:
    return {"type": "text", "text": text}


def options_of(question: JSONObject) -> list[JSONObject]:
    return [as_object(option) for option in as_list(question.get("options"))]


def choosing(kind: str) -> Answer:
    """Answer with the first option of a kind."""

    def answer(question: JSONObject) -> JSONValue:
        chosen = next(each for each in options_of(question) if each["kind"] == kind)
        return {"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}}

    return answer


@attrs.define(eq=False)
class Editor:
    """The editor's end."""

    project: Path
    send_bytes: MemoryObjectSendStream[bytes]
    received: MemoryObjectReceiveStream[bytes]
    answer: Answer = attrs.field(factory=lambda: choosing("allow_once"))
    updates: list[JSONObject] = attrs.field(factory=list)
    questions: list[JSONObject] = attrs.field(factory=list)
    replies: dict[object, JSONObject] = attrs.field(factory=dict)
    refused: list[JSONObject] = attrs.field(factory=list)
    last_id: int = 0
    is_over: anyio.Event = attrs.field(factory=anyio.Event)
    _news: anyio.Event = attrs.field(factory=anyio.Event)

    async def listen(self) -> None:
        async for data in self.received:
            for line in data.splitlines():
                await self._take(json.loads(line))

    async def _take(self, message: JSONObject) -> None:
        assert message["jsonrpc"] == "2.0"
        method, params = message.get("method"), as_object(message.get("params"))
        if method == "session/update":
            self.updates.append(as_object(params["update"]))
        elif method == "session/request_permission":
            self.questions.append(params)
            result = self.answer(params)
            if result is not None:
                reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
                await self.send_line(json.dumps(reply).encode())
        elif message["id"] is None:
            self.refused.append(as_object(message["error"]))
        else:
            self.replies[message["id"]] = message
        self._news.set()
        self._news = anyio.Event()

    async def until(self, found: Callable[[], bool]) -> None:
        with anyio.fail_after(20):
            while not found():
                await self._news.wait()

    async def send_line(self, line: bytes) -> None:
        await self.send_bytes.send(line + b"\n")

    async def begin_request(self, method: str, **params: JSONValue) -> int:
        self.last_id += 1
        message = {"jsonrpc": "2.0", "id": self.last_id, "method": method}
        await self.send_line(json.dumps({**message, "params": params}).encode())
        return self.last_id

    async def reply(self, number: int) -> JSONObject:
        await self.until(lambda: number in self.replies)
        return self.replies[number]

    async def request(self, method: str, **params: JSONValue) -> JSONObject:
        return await self.reply(await self.begin_request(method, **params))

    async def notify(self, method: str, **params: JSONValue) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        await self.send_line(json.dumps(message).encode())

    async def new(self, **params: JSONValue) -> str:
        given = {"cwd": str(self.project), "mcpServers": [], **params}
        result = as_object((await self.request("session/new", **given)).get("result"))
        return str(result["sessionId"])

    async def prompt(self, session: str, *blocks: JSONObject) -> JSONObject:
        return await self.reply(await self.begin_prompt(session, *blocks))

    async def begin_prompt(self, session: str, *blocks: JSONObject) -> int:
        return await self.begin_request(
            "session/prompt", sessionId=session, prompt=list(blocks)
        )

    def of_kind(self, kind: str) -> list[JSONObject]:
        return [each for each in self.updates if each["sessionUpdate"] == kind]

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(
            str(as_object(each["content"])["text"]) for each in self.of_kind(kind)
        )


@asynccontextmanager
async def editing(
    project: Path,
    responses: Sequence[JSONValue] = (),
    *modules: str,
    answer: str = "allow_once",
    limits: RpcLimits | None = None,
    keep: bool | None = None,
    accept_edits: bool = False,
) -> AsyncIterator[Editor]:
    """Connect an editor with an agent whose sessions are made of a plan; it is gone at the end."""
    plan = write_plan(project.parent, responses, *modules)
    agent = AcpAgent(
        PlanOptions(file=plan),
        keep,
        accept_edits=accept_edits,
        limits=limits or RpcLimits(),
    )
    to_agent, from_editor = anyio.create_memory_object_stream[bytes](inf)
    to_editor, from_agent = anyio.create_memory_object_stream[bytes](inf)
    editor = Editor(project, to_agent, from_agent, choosing(answer))

    async def serve() -> None:
        await agent.serve(from_editor, to_editor)
        editor.is_over.set()

    async with (
        to_agent,
        from_editor,
        to_editor,
        from_agent,
        anyio.create_task_group() as group,
    ):
        group.start_soon(editor.listen)
        group.start_soon(serve)
        yield editor
        group.cancel_scope.cancel()
