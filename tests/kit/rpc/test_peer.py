"""A connection between two peers, in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import inf

import anyio
import pytest
from anyio.abc import ByteReceiveStream

from amplifier_kit.rpc.frames import INTERNAL_ERROR, RpcError, write_frame
from amplifier_kit.rpc.peer import (
    ConnectionClosedError,
    Reply,
    RequestHandler,
    RpcPeer,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue


def _explain(error: Exception) -> RpcError:
    return RpcError(INTERNAL_ERROR, f"explained: {error}")


@asynccontextmanager
async def _connected(
    requests: Mapping[str, RequestHandler], heard: list[JSONValue] | None = None
) -> AsyncIterator[tuple[RpcPeer, RpcPeer, anyio.Event]]:
    to_left, for_left = anyio.create_memory_object_stream[bytes](inf)
    to_right, for_right = anyio.create_memory_object_stream[bytes](inf)

    def hear(params: JSONObject) -> None:
        if heard is not None:
            heard.append(params)
        raise RpcError(INTERNAL_ERROR, "nobody is told")

    left = RpcPeer(incoming=for_left, outgoing=to_right, explain=_explain)
    right = RpcPeer(
        incoming=for_right,
        outgoing=to_left,
        explain=_explain,
        requests=requests,
        notifications={"note": hear},
    )
    ended = anyio.Event()

    async def serve_left() -> None:
        await left.serve()
        ended.set()

    async with (
        to_left,
        for_left,
        to_right,
        for_right,
        anyio.create_task_group() as group,
    ):
        group.start_soon(serve_left)
        group.start_soon(right.serve)
        await anyio.wait_all_tasks_blocked()
        yield left, right, ended
        group.cancel_scope.cancel()


async def test_requests_are_answered_and_errors_explained() -> None:
    order = []

    async def double(params: JSONObject) -> Reply:
        async def then() -> None:
            order.append("then")

        number = params["n"]
        assert isinstance(number, int)
        return Reply(result=number * 2, then=then)

    async def fail(_: JSONObject) -> Reply:
        raise RuntimeError("broken")

    async def refuse(_: JSONObject) -> Reply:
        raise RpcError(-32099, "no")

    heard: list[JSONValue] = []
    requests = {"double": double, "fail": fail, "refuse": refuse}
    async with _connected(requests, heard) as (left, _, _ended):
        await left.notify("note", {"a": 1})
        await left.notify("unknown", {})
        assert await left.request("double", {"n": 21}) == 42
        with pytest.raises(RpcError, match="explained: broken"):
            await left.request("fail", {})
        with pytest.raises(RpcError, match="no") as raised:
            await left.request("refuse", {})
        with pytest.raises(RpcError, match="no method 'nothing'"):
            await left.request("nothing", {})

    assert raised.value.code == -32099
    assert heard == [{"a": 1}]
    assert order == ["then"]


async def test_a_connection_that_ends_ends_what_waits() -> None:
    async def wait(_: JSONObject) -> Reply:
        await anyio.sleep_forever()
        return Reply()

    failed = []
    async with _connected({"wait": wait}) as (left, right, ended):

        async def ask() -> None:
            try:
                await left.request("wait", {})
            except ConnectionClosedError as error:
                failed.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await right.outgoing.aclose()
        with anyio.fail_after(5):
            await ended.wait()
        with pytest.raises(ConnectionClosedError):
            await left.request("wait", {})
        with pytest.raises(ConnectionClosedError):
            _ = left.group

    assert len(failed) == 1


async def test_answers_that_are_none_are_passed_over_or_errors() -> None:
    to_peer, incoming = anyio.create_memory_object_stream[bytes](inf)
    outgoing, from_peer = anyio.create_memory_object_stream[bytes](inf)
    peer = RpcPeer(incoming=incoming, outgoing=outgoing, explain=_explain)
    async with (
        to_peer,
        incoming,
        outgoing,
        from_peer,
        anyio.create_task_group() as group,
    ):
        group.start_soon(peer.serve)
        await anyio.wait_all_tasks_blocked()
        answers: tuple[JSONObject, ...] = (
            {"id": [], "result": 1},
            {"id": 99, "result": 1},
            {"id": True, "result": 1},
            {"id": 1, "error": "?"},
        )
        for answer in answers:
            await to_peer.send(b"\n \n" + write_frame(answer))
        with pytest.raises(RpcError, match="answered with an error"):
            await peer.request("x", {})
        await to_peer.send(
            write_frame({"id": 2, "error": {"code": "none", "message": 7}})
        )
        with pytest.raises(RpcError, match="answered with an error"):
            await peer.request("x", {})
        await from_peer.aclose()
        await peer.notify("nobody", {})
        group.cancel_scope.cancel()


async def test_a_request_may_have_null_for_params() -> None:
    given: list[JSONObject] = []

    async def note(params: JSONObject) -> Reply:
        given.append(params)
        return Reply(result="noted")

    async with _connected({"note": note}) as (left, right, _):
        await left.outgoing.send(
            write_frame({"id": 7, "method": "note", "params": None})
        )
        await anyio.wait_all_tasks_blocked()
        assert await left.request("note", {}) == "noted"
        assert right.group is not None

    assert given == [{}, {}]


async def test_other_side_that_is_killed_ends_the_connection() -> None:
    class Killed(ByteReceiveStream):
        async def receive(self, max_bytes: int = 65536) -> bytes:
            await anyio.lowlevel.checkpoint()
            raise anyio.BrokenResourceError

        async def aclose(self) -> None: ...

    outgoing, from_peer = anyio.create_memory_object_stream[bytes](inf)
    async with outgoing, from_peer:
        peer = RpcPeer(incoming=Killed(), outgoing=outgoing, explain=_explain)
        with anyio.fail_after(5):
            await peer.serve()
        await from_peer.aclose()

        # nobody hears it, and nothing runs that it could end
        await peer.notify("late", {})
        with pytest.raises(ConnectionClosedError):
            await peer.request("late", {})


async def test_a_number_that_json_has_not_cannot_be_sent() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_frame({"x": float("nan")})
    assert write_frame({"x": "\ud800"}) == b'{"x":"\\ud800"}\n'
