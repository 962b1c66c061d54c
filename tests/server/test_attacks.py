"""Callers who want more than they may: what ended tokens, full servers and odd files give them."""

from __future__ import annotations

import errno
import json
import os
from contextlib import AsyncExitStack
from functools import partial
from time import time

import anyio
import attrs
import pytest
from starlette.types import Message

from amplifier.app.directories import AppDirs
from amplifier.app.store.file_store import FileSessionStore
from amplifier.cli._listener import Listener
from amplifier.server import members
from amplifier.server.application import StoredServer
from amplifier.server.stores import ServerStores
from amplifier.server.token_store import TokenStore
from amplifier.serving.limits import ServerLimits
from amplifier.serving.tokens import Token
from amplifier_kit.logs.records import LOG_FILE
from amplifier_sdk.stores import Lease, SessionStore
from tests.server.serving import WRITES, Site, ended
from tests.server.test_sessions import begun
from tests.serving.client import Caller, Stream

pytestmark = pytest.mark.timeout(60)


async def opened(server: StoredServer, path: str, secret: str) -> int:
    return (await Caller(server, secret).get(path)).status


async def test_a_token_that_is_removed_reads_no_further(site: Site) -> None:
    stored, removed = await site.token("kept"), await site.token("removed", "reader")
    async with site.serving(*WRITES) as server:
        session, _ = await begun(Caller(server, stored))
        path = f"/sessions/{session}/events"
        tokens = TokenStore(await server.stores.server())
        async with (
            Caller(server, stored).stream("GET", path) as stays,
            Caller(server, removed).stream("GET", path) as ends,
        ):
            for stream in (stays, ends):
                await until_asked(stream)
            await tokens.remove("removed")
            with anyio.fail_after(10):
                left = await ends.rest()
            question = (await Caller(server, stored).get("/questions")).json
            asked = question["questions"][0]["approval_id"]
            answer = f"/sessions/{session}/approvals/{asked}"
            await Caller(server, stored).post(answer, {"option": "Allow once"})
            with anyio.fail_after(10):
                while (await anext(stays)).type != "turn_result":
                    pass

    assert b"turn_result" not in left
    assert b"approval_answered" not in left


async def until_asked(stream: Stream) -> None:
    with anyio.fail_after(20):
        while (await anext(stream)).type != "approval_requested":
            pass


async def test_a_token_that_lost_a_role_has_lost_it_at_once(site: Site) -> None:
    secret = await site.token("olga", "owner")
    async with site.serving() as server:
        session = await Caller(server, secret).begin()
        tokens = TokenStore(await server.stores.server())
        path = f"/sessions/{session}/events"
        async with Caller(server, secret).stream("GET", path) as stream:
            await downgrade(tokens)
            with anyio.fail_after(10):
                await stream.rest()
        role = (await Caller(server, secret).get("/me")).json["role"]
        deleted = await Caller(server, secret).request("DELETE", f"/sessions/{session}")

    assert (role, deleted.status) == ("reader", 403)


async def downgrade(tokens: TokenStore) -> None:
    """Write the tokens as somebody does who changes a role in place."""
    store = tokens.store
    lease = await store.acquire("server-tokens", owner="test", period=10)
    raw = (await store.read_documents("server-tokens"))["tokens.json"]
    data = json.loads(raw)
    data["tokens"][0]["role"] = "reader"
    await store.write_document(lease, "tokens.json", json.dumps(data).encode())
    record = await store.read_record("server-tokens")
    assert record is not None
    await store.write_record(lease, {**record, "updated": time()})
    await store.release(lease)


async def test_a_token_ends_when_it_says_so(site: Site) -> None:
    stores = ServerStores(site.store, site.dirs)
    tokens = TokenStore(await stores.server())
    over = await tokens.add("over", "default", "owner", lasts=-1.0)
    soon = await tokens.add("soon", "default", "owner", lasts=3.0)
    async with site.serving() as server:
        refused = await opened(server, "/me", over)
        session = await Caller(server, soon).begin()
        path = f"/sessions/{session}/events"
        with anyio.fail_after(20):
            async with Caller(server, soon).stream("GET", path) as stream:
                await stream.rest()
        after = await opened(server, "/me", soon)
    await stores.aclose()

    assert (refused, after) == (401, 401)


async def test_metrics_of_all_are_for_the_host_alone(site: Site) -> None:
    host, guest = await site.token("host"), await site.token("guest", tenant="acme")
    async with site.serving() as server:
        statuses = [await opened(server, "/metrics", each) for each in (host, guest)]

    assert statuses == [200, 403]


async def test_turns_of_one_tenant_take_no_room_of_others(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "Token", partial(Token, max_turns=1))
    secrets = [await site.token(name, "owner", name) for name in ("acme", "other")]
    async with site.serving(*WRITES) as server:
        acme, other = (Caller(server, secret) for secret in secrets)
        begun_by = [await acme.begin() for _ in range(4)]
        answers: list[int] = []

        async def ask(caller: Caller, session: str) -> None:
            path = f"/sessions/{session}/turns"
            answers.append((await caller.post(path, {"prompt": "x"})).status)

        async with anyio.create_task_group() as group:
            for session in begun_by:
                group.start_soon(ask, acme, session)
        theirs = await other.begin()
        let_in = await other.post(f"/sessions/{theirs}/turns", {"prompt": "x"})

    # whoever asks at once gets no more than one after another
    assert sorted(answers) == [202, 429, 429, 429]
    assert let_in.status == 202


async def test_the_audit_log_has_all_that_was_tried(site: Site) -> None:
    owner = await site.token("owner")
    reader = await site.token("reader", "reader")
    await site.token("guest", "owner", "acme")
    async with site.serving() as server:
        session = await Caller(server, owner).begin()
        await Caller(server, reader).request("DELETE", f"/sessions/{session}")
        await Caller(server, reader).get("/audit")
        await TokenStore(await server.stores.server()).remove("reader")
        entries = (await Caller(server, owner).get("/audit")).json["entries"]
    reported = [
        (one["token"], one["action"], one.get("refused", False)) for one in entries
    ]

    assert reported == [
        ("(command line)", "add_token", False),
        ("(command line)", "add_token", False),
        ("owner", "begin_session", False),
        ("reader", "delete_session", True),
        ("reader", "show_audit", True),
        ("(command line)", "remove_token", False),
    ]
    assert entries[1]["path"] == "reader (reader)"
    assert "guest" not in json.dumps(entries)


async def test_a_server_is_ready_while_its_store_takes_something(site: Site) -> None:
    secret = await site.token()
    async with site.serving() as server:
        before = (await Caller(server, None).get("/readyz")).status
        failing = attrs.evolve(server, stores=FailingStores(server.stores))
        async with failing.lifespan():
            after = await Caller(failing, None).get("/readyz")
            live = (await Caller(failing, None).get("/healthz")).status
            begun_ = await Caller(failing, secret).post("/sessions")

    assert (before, live) == (200, 200)
    for answer in (after, begun_):
        assert (answer.status, answer.json["error"]["code"]) == (
            503,
            "store_unavailable",
        )
        assert b"db.internal" not in answer.body


class FailingStores(ServerStores):
    """Those of a server whose disk is full."""

    def __init__(self, real: ServerStores) -> None:
        super().__init__(real.name, real.dirs)

    async def _open(self, namespace: str, dirs: AppDirs) -> SessionStore:
        opened_ = await super()._open(namespace, dirs)
        assert isinstance(opened_, FileSessionStore)
        return FullStore(opened_.files)


class FullStore(FileSessionStore):
    """A store that reads and takes nothing any more."""

    async def acquire(self, session_id: str, *, owner: str, period: float) -> Lease:
        raise OSError(errno.ENOSPC, "No space left on device", f"/db.internal/{owner}")


async def test_a_log_that_is_a_link_shows_nothing_of_others(site: Site) -> None:
    secret = await site.token()
    private = site.folder / "private.jsonl"
    private.write_text('{"event": "of another tenant"}\n')
    async with site.serving() as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        await ended(caller, session, turn)
        shown = (await caller.get(f"/sessions/{session}/logs")).json["records"]
        log = site.dirs.state / "sessions" / session / LOG_FILE
        log.unlink()
        log.symlink_to(private)
        linked = (await caller.get(f"/sessions/{session}/logs")).json["records"]

    assert shown
    assert linked == []


async def test_a_long_log_is_answered_from_its_end(site: Site) -> None:
    secret = await site.token()
    async with site.serving() as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        await ended(caller, session, turn)
        log = site.dirs.state / "sessions" / session / LOG_FILE
        with log.open("a") as stream:
            for number in range(400):
                stream.write(json.dumps({"event": "x" * 20_000, "n": number}) + "\n")
        answer = await caller.get(f"/sessions/{session}/logs")

    assert len(answer.body) < 2_500_000
    assert answer.json["records"][-1]["n"] == 399


async def test_another_protocol_than_http_is_refused(site: Site) -> None:
    secret = await site.token()
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"authorization", f"Bearer {secret}".encode())]
    scope = {"type": "websocket", "path": "/sessions", "headers": headers}
    async with site.serving() as server:
        await server({**scope, "query_string": b"", "subprotocols": []}, receive, send)

    assert [message["type"] for message in sent] == ["websocket.close"]


async def test_a_process_has_room_for_so_many_readers(site: Site) -> None:
    secrets = [await site.token(name, "reader") for name in ("ann", "bob")]
    owner = await site.token()
    limits = ServerLimits(max_streams=4)
    async with site.serving() as known:
        server = attrs.evolve(known, limits=limits)
        async with server.lifespan(), AsyncExitStack() as stack:
            session = await Caller(server, owner).begin()
            path = f"/sessions/{session}/events"
            for number in range(4):
                caller = Caller(server, secrets[number % 2])
                await stack.enter_async_context(caller.stream("GET", path))
            with anyio.fail_after(10):
                while server.metrics.streams_open < 4:
                    await anyio.lowlevel.checkpoint()
            refused = await Caller(server, owner).get(path)
            await stack.aclose()
            with anyio.fail_after(10):
                while server.metrics.streams_open:
                    await anyio.lowlevel.checkpoint()
            async with Caller(server, owner).stream("GET", path) as stream:
                status = stream.status

    assert (refused.status, refused.json["error"]["code"]) == (503, "server_full")
    assert status == 200


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"name": "' + b"x" * 2_000_000 + b'"}',
        b'{"name": ' + b"9" * 50_000 + b"}",
        b'{"name": "\\ud800"}',
        b'{"name": NaN}',
        b'{"a": 1, ' * 20_000,
        b"\xff\xfe",
        b'{"name": "\\u0000"}',
    ],
    ids=["nested", "long", "digits", "surrogate", "nan", "keys", "bytes", "nul"],
)
async def test_a_body_that_is_a_bomb_is_refused(site: Site, body: bytes) -> None:
    secret = await site.token()
    async with site.serving() as server:
        caller = Caller(server, secret)
        answer = await caller.post("/sessions", body)
        still = (await caller.get("/me")).status

    assert answer.status in (400, 413, 422), answer.body
    assert len(answer.body) < 2000
    assert still == 200


def test_a_handshake_has_as_long_as_a_head() -> None:
    listener = Listener(host="127.0.0.1", port=0)
    config = listener.config(listener.bind())
    os.close(int(config.bind[0].removeprefix("fd://")))

    assert config.ssl_handshake_timeout == config.keep_alive_timeout == 10.0
