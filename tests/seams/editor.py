"""An editor that takes one turn over the Agent Client Protocol, in this process."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path

import anyio
import attrs
from anyio.abc import AnyByteReceiveStream, AnyByteSendStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["OneTurnEditor"]


@attrs.define(eq=False)
class OneTurnEditor:
    """Opens a session, or loads one, prompts it once, denies what it is asked, and leaves.

    One that `is_left` waits for the end of a turn that was left until somebody answers, and prompts nothing.

    Args:
        prompt: what is asked.
        is_attached: it is the text of a file that the person attached, rather than typed.
        session: the stored session that is loaded; a new one is begun without.
        files: what is shown with it.
        text: what the agent said.
        told: what it thought, and what the person is told of the session.
        error: what it answered instead.
    """

    prompt: str
    is_attached: bool = False
    session: str | None = None
    text: str = ""
    reported: str = ""
    error: str = ""
    files: tuple[Path, ...] = attrs.field(default=(), kw_only=True)
    is_left: bool = attrs.field(default=False, kw_only=True)

    @asynccontextmanager
    async def streams(
        self,
    ) -> AsyncIterator[tuple[AnyByteReceiveStream, AnyByteSendStream]]:
        """Give the agent the two ends of a connection."""
        to_agent, incoming = anyio.create_memory_object_stream[bytes](inf)
        outgoing, from_agent = anyio.create_memory_object_stream[bytes](inf)
        async with incoming, outgoing, anyio.create_task_group() as group:
            group.start_soon(self._drive, to_agent, from_agent)
            yield incoming, outgoing
            group.cancel_scope.cancel()

    async def _drive(
        self,
        to_agent: MemoryObjectSendStream[bytes],
        from_agent: MemoryObjectReceiveStream[bytes],
    ) -> None:
        place: JSONObject = {"cwd": os.getcwd(), "mcpServers": []}
        method = "session/new"
        if self.session is not None:
            place["sessionId"], method = self.session, "session/load"
        async with to_agent, from_agent:
            await to_agent.send(_frame("open", method=method, params=place))
            async for data in from_agent:
                message: JSONObject = json.loads(data)
                params = as_object(message.get("params"))
                update = as_object(params.get("update"))
                self._note(update)
                if message.get("method") == "session/request_permission":
                    denied = _denial(params, is_stored=self.is_left)
                    await to_agent.send(_frame(message["id"], result=denied))
                if "error" in message:
                    self.error = str(as_object(message["error"])["message"])
                    return
                if message.get("id") == "prompt" or self._is_over:
                    return
                if message.get("id") == "open":
                    opened = as_object(message["result"])
                    self.text = self.reported = ""
                    if not self.is_left:
                        await to_agent.send(self._prompt(opened.get("sessionId")))

    def _note(self, update: JSONObject) -> None:
        said = str(as_object(update.get("content")).get("text", ""))
        kind = update.get("sessionUpdate")
        if kind == "agent_message_chunk":
            self.text += said
        if kind == "tool_call":
            self.reported += f"{update['title']}\n"
        if kind == "agent_thought_chunk":
            self.reported += said

    @property
    def _is_over(self) -> bool:
        return self.is_left and bool(
            re.search("^The turn (is|fail|was)", self.reported, re.MULTILINE)
        )

    def _prompt(self, session: object) -> bytes:
        block: JSONObject = {"type": "text", "text": self.prompt}
        if self.is_attached:
            resource: JSONObject = {"uri": "file:///piped", "text": self.prompt}
            block = {"type": "resource", "resource": resource}
        params: JSONObject = {
            "sessionId": self.session or str(session),
            "prompt": [block, *map(_shown, self.files)],
        }
        return _frame("prompt", method="session/prompt", params=params)


def _denial(params: JSONObject, *, is_stored: bool) -> JSONObject:
    """Deny a call; only a choice is stored, so that the turn continues with it."""
    if not is_stored:
        return {"outcome": {"outcome": "cancelled"}}
    options = map(as_object, as_list(params["options"]))
    id_ = next(each["optionId"] for each in options if each["kind"] == "reject_once")
    return {"outcome": {"outcome": "selected", "optionId": id_}}


def _shown(path: Path) -> JSONObject:
    """Write a file as an editor does: an image, or a resource with its bytes or its text."""
    data = path.read_bytes()
    written = base64.b64encode(data).decode()
    if path.suffix == ".png":
        return {"type": "image", "mimeType": "image/png", "data": written}
    resource: JSONObject = {"uri": path.as_uri(), "text": data.decode()}
    return {"type": "resource", "resource": resource}


def _frame(number: object, **rest: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, **rest}).encode() + b"\n"
