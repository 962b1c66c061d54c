"""Whatever an editor sends, it gets an error of the protocol, and the connection stays."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amplifier_kit.open_data import as_object
from amplifier_kit.rpc.received import RpcLimits
from amplifier_sdk.jsontypes import JSONValue
from tests.acp.editor import editing

METHODS = (
    "initialize",
    "authenticate",
    "session/new",
    "session/load",
    "session/resume",
    "session/list",
    "session/close",
    "session/prompt",
    "session/set_mode",
    "session/cancel",
    "session/update",
)
KEYS = ("cwd", "sessionId", "prompt", "modeId", "mcpServers", "cursor", "methodId")
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from((*KEYS, "type", "uri")), inner, max_size=3)
    ),
    max_leaves=8,
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | LEAVES,
        "id": LEAVES,
        "method": st.sampled_from(METHODS) | LEAVES,
        "params": st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4) | VALUES,
        "result": VALUES,
        "error": VALUES,
    },
).map(lambda message: json.dumps(message).encode())
LINES = st.one_of(
    MESSAGES, st.binary(max_size=60), VALUES.map(json.dumps).map(str.encode)
)
FUZZ = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@FUZZ
@given(lines=st.lists(LINES, max_size=12))
def test_malformed_frames_end_nothing(project: Path, lines: list[bytes]) -> None:
    async def send() -> None:
        async with editing(project, keep=False) as editor:
            for line in lines:
                await editor.send_line(line)
            message = {"jsonrpc": "2.0", "id": "last", "method": "initialize"}
            params = {"protocolVersion": 1}
            await editor.send_line(json.dumps({**message, "params": params}).encode())
            await editor.until(lambda: "last" in editor.replies)
            assert "result" in editor.replies["last"]

    for backend in ("asyncio", "trio"):
        anyio.run(send, backend=backend)


async def test_each_kind_of_malformed_frame_has_its_error(project: Path) -> None:
    frames: list[tuple[bytes, JSONValue]] = [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 50_000, -32700),
        (b'{"id": NaN}', -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b'{"id": [], "method": "x"}', -32600),
        (b'{"id": true, "method": "x"}', -32600),
        (b"{}", -32600),
    ]
    async with editing(project) as editor:
        for line, _ in frames:
            await editor.send_line(line)
        await editor.until(lambda: len(editor.refused) == len(frames))
        unknown = await editor.request("session/fly")

    assert [error["code"] for error in editor.refused] == [code for _, code in frames]
    assert as_object(unknown["error"])["code"] == -32601


async def test_a_message_of_50_megabytes_is_refused_by_its_id(project: Path) -> None:
    async with editing(project) as editor:
        await editor.send_bytes.send(
            b'{"jsonrpc":"2.0","id":77,"method":"session/prompt","params":{"x":"'
        )
        for _ in range(50):
            await editor.send_bytes.send(b"x" * 1_000_000)
        await editor.send_line(b'"}}')
        reply = await editor.reply(77)
        values = b",".join([b"0"] * 200_000)
        await editor.send_line(
            b'{"jsonrpc":"2.0","id":78,"method":"x","params":{"a":[' + values + b"]}}"
        )
        many = await editor.reply(78)

    reported = "the message has 50000069 bytes, at most 16777216 are taken"
    assert as_object(reply["error"]) == {"code": -32600, "message": reported}
    assert "more than 100000 values" in str(many["error"])


async def test_too_many_requests_at_once_are_refused(project: Path) -> None:
    limits = RpcLimits(max_requests=0)
    async with editing(project, limits=limits) as editor:
        reply = await editor.request("initialize", protocolVersion=1)

    assert as_object(reply["error"])["message"] == "0 requests run already"
