"""Over every address of the server: nothing of another tenant is seen, guessed or distinguishable from nothing."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec
from uuid import uuid4

import anyio
import pytest

from amplifier.app.store.file_store import FileSessionStore
from amplifier.server.application import StoredServer
from amplifier.server.stores import ServerStores
from amplifier.server.token_store import TokenStore
from amplifier_sdk.errors import ConfigError
from tests.server.serving import WRITES, Site
from tests.server.test_sessions import begun, events_until
from tests.serving.client import Answer, Caller

pytestmark = pytest.mark.timeout(90)

METHODS = (
    "acquire",
    "renew",
    "append",
    "read_record",
    "read_log",
    "questions",
    "answer",
    "children",
    "delete",
)

BODIES: Mapping[str, object] = {
    "begin_session": {"name": "x"},
    "begin_turn": {"prompt": "x"},
    "cancel_turn": {},
    "answer_approval": {"option": "Allow once"},
}


async def addresses(server: StoredServer) -> list[tuple[str, str, str]]:
    """Return the method, path and operation of everything that the document names."""
    document = (await Caller(server, None).get("/openapi.json")).json
    return [
        (method.upper(), path, operation["operationId"])
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


def filled(path: str, ids: Mapping[str, str]) -> str:
    return re.sub(r"{(\w+)}", lambda found: ids[found[1]], path)


def seen(answer: Answer, ids: Mapping[str, str]) -> tuple[int, str, set[str]]:
    """Return what a caller can tell of an answer, save for what they sent themselves."""
    body = answer.body.decode()
    for value in ids.values():
        body = body.replace(value, "ID")
    return answer.status, body, set(answer.headers)


async def test_another_tenant_is_nowhere_to_be_seen(site: Site) -> None:
    alice_secret = await site.token("alice", "owner", "acme")
    mallory_secret = await site.token("mallory", "owner", "evil")
    async with site.serving(*WRITES) as server:
        alice, mallory = Caller(server, alice_secret), Caller(server, mallory_secret)
        session, turn = await begun(alice, "the secret plan")
        events = await events_until(alice, session, "approval_requested")
        before = (await alice.get(f"/sessions/{session}")).json
        known = {
            "session_id": session,
            "turn_id": turn,
            "approval_id": str(events[-1].data["approval_id"]),
        }
        unknown = {key: str(uuid4()) for key in known}
        asked = await addresses(server)
        for method, path, name in asked:
            body = BODIES.get(name)
            for extra in ("", "?search=secret"):
                theirs = await mallory.request(
                    method, filled(path, known) + extra, body
                )
                nobodys = await mallory.request(
                    method, filled(path, unknown) + extra, body
                )
                if "{" in path:
                    assert theirs.status == 404, (method, path)
                    assert seen(theirs, known) == seen(nobodys, unknown), path
                for answer in (theirs, nobodys):
                    reported = answer.body.decode()
                    # the audit log has what they tried themselves
                    if name != "show_audit":
                        assert not any(id_ in reported for id_ in known.values()), path
                    assert "alice" not in reported, path
                    assert "acme" not in reported, path
                    assert "secret plan" not in reported, path
        after = (await alice.get(f"/sessions/{session}")).json

    assert len(asked) > 15
    # nor was anything changed
    before["approvals"][0].pop("timeout")
    after["approvals"][0].pop("timeout")
    assert after == before


P = ParamSpec("P")

CALLS: ContextVar[list[str] | None] = ContextVar("CALLS", default=None)


def counted(
    name: str, method: Callable[P, Awaitable[object]]
) -> Callable[P, Awaitable[object]]:
    @wraps(method)
    async def counting(*args: P.args, **kwargs: P.kwargs) -> object:
        calls = CALLS.get()
        if calls is not None:
            calls.append(name)
        return await method(*args, **kwargs)

    return counting


async def test_an_id_of_another_tenant_costs_what_an_unknown_one_does(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long an answer takes says nothing: the store is asked the same, in the same order."""
    alice_secret = await site.token("alice", "owner", "acme")
    mallory_secret = await site.token("mallory", "owner", "evil")
    for name in METHODS:
        method = getattr(FileSessionStore, name)
        monkeypatch.setattr(FileSessionStore, name, counted(name, method))
    async with site.serving(*WRITES) as server:
        alice, mallory = Caller(server, alice_secret), Caller(server, mallory_secret)
        session, turn = await begun(alice)
        events = await events_until(alice, session, "approval_requested")
        asked = str(events[-1].data["approval_id"])
        known = {"session_id": session, "turn_id": turn, "approval_id": asked}
        unknown = {key: str(uuid4()) for key in known}
        # the log of the tenant is begun by its first entry
        await mallory.post("/sessions")
        for method, path, name in await addresses(server):
            if "{" not in path:
                continue
            costs: list[list[str]] = []
            for ids in (known, unknown):
                calls: list[str] = []
                CALLS.set(calls)
                await mallory.request(method, filled(path, ids), BODIES.get(name))
                CALLS.set(None)
                costs.append(calls)
            assert costs[0] == costs[1], (method, path)
            assert costs[0], path


async def test_tenants_work_in_folders_of_their_own(site: Site) -> None:
    secrets = [await site.token(name, "owner", name) for name in ("acme", "other")]
    written: list[str] = []
    async with site.serving(*WRITES) as server:
        for secret in secrets:
            caller = Caller(server, secret)
            session, _ = await begun(caller)
            events = await events_until(caller, session, "approval_requested")
            asked = events[-1].data["approval_id"]
            path = f"/sessions/{session}/approvals/{asked}"
            await caller.post(path, {"option": "Allow once"})
            await events_until(caller, session, "turn_result")
    for name in ("acme", "other"):
        folder = site.folder.with_name("project-tenants") / name
        written += [path.name for path in folder.iterdir()]

    assert written == ["notes.txt", "notes.txt"]
    assert not (site.folder / "notes.txt").exists()


async def test_without_a_token_there_is_nothing(site: Site) -> None:
    secret = await site.token()
    async with site.serving() as server:
        for method, path, name in await addresses(server):
            ids = dict.fromkeys(("session_id", "turn_id", "approval_id"), str(uuid4()))
            for given in (None, secret[:-1], f"{secret}x", ""):
                caller = Caller(server, given)
                answer = await caller.request(
                    method, filled(path, ids), BODIES.get(name)
                )
                assert answer.status == 401, (method, path)


@pytest.mark.parametrize(("role", "rank"), [("reader", 0), ("operator", 1)])
async def test_a_role_has_its_limits(site: Site, role: str, rank: int) -> None:
    owner = await site.token()
    lesser = await site.token("lesser", role)  # type: ignore[arg-type]  # a role's name
    needed = {
        "begin_session": 1,
        "begin_turn": 1,
        "cancel_turn": 1,
        "answer_approval": 1,
        "delete_session": 2,
        "show_audit": 2,
        "show_metrics": 2,
    }
    async with site.serving() as server:
        session = await Caller(server, owner).begin()
        ids = {"session_id": session, "turn_id": "t", "approval_id": "a"}
        for method, path, name in await addresses(server):
            if name == "read_events":
                continue
            answer = await Caller(server, lesser).request(
                method, filled(path, ids), BODIES.get(name)
            )
            is_refused = answer.status == 403
            assert is_refused == (needed.get(name, 0) > rank), name


async def test_a_token_counts_at_once_and_is_gone_at_once(site: Site) -> None:
    first = await site.token()
    async with site.serving() as server:
        second = await site.token("second")
        with anyio.fail_after(10):
            while (await Caller(server, second).get("/me")).status == 401:
                await anyio.lowlevel.checkpoint()
        tokens = TokenStore(await server.stores.server())
        await tokens.remove("olga")
        with anyio.fail_after(10):
            while (await Caller(server, first).get("/me")).status == 200:
                await anyio.lowlevel.checkpoint()
        me = (await Caller(server, second).get("/me")).json

    assert me == {"name": "second", "tenant": "default", "role": "owner"}


async def test_the_store_has_the_hash_of_a_token_alone(site: Site) -> None:
    secret = await site.token()
    files = [path for path in site.home.rglob("*") if path.is_file()]

    assert files
    assert not any(secret.encode() in path.read_bytes() for path in files)


@pytest.mark.parametrize("tenant", ["_server", "../x", "", "A", "a" * 64, "a\0"])
async def test_a_tenant_is_called_nothing_odd(site: Site, tenant: str) -> None:
    with pytest.raises(ConfigError, match="tenant"):
        await site.token(tenant=tenant)
    stores = ServerStores(site.store, site.dirs)
    with pytest.raises(ConfigError, match="tenant"):
        await stores.tenant(tenant)
    assert not site.folder.with_name(f"{site.folder.name}-tenants").exists()
