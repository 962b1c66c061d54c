"""Many readers of one session over two processes, and a crowd that one process has no room for.

`nox -s serve_load` runs it in full: 500 readers, and 10,000 that want to be.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

import anyio
import attrs
import httpx2
import psycopg
import pytest

from amplifier.testing.postgres import PASSWORD, find_programs, running_server
from amplifier_sdk.jsontypes import JSONValue
from tests.server.serving import WRITES, Site
from tests.server.test_page import serving

FOLLOWERS: Final = int(os.environ.get("AMPLIFIER_FOLLOWERS", "24"))
CROWD: Final = int(os.environ.get("AMPLIFIER_CROWD", "150"))
TURNS: Final = int(os.environ.get("AMPLIFIER_TURNS", "12"))
PER_TOKEN: Final = 50
AT_ONCE: Final = 8
STEPS: Final = 20

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]


@attrs.define(eq=False)
class Follower:
    """A reader of all events of a session."""

    ids: list[int] = attrs.field(factory=list)
    times: list[float] = attrs.field(factory=list)

    async def read(self, url: str, session: str, token: str) -> None:
        async with await connected(url) as stream:
            await stream.send(head(f"/sessions/{session}/events", token))
            rest = b""
            while b'"turn_result"' not in rest:
                *lines, rest = (rest + await stream.receive()).split(b"\n")
                for line in lines:
                    if line.startswith(b"id: "):
                        self.ids.append(int(line[4:]))
                        self.times.append(perf_counter())
                    if b'"turn_result"' in line:
                        return


async def connected(url: str) -> anyio.abc.SocketStream:
    host, _, port = url.removeprefix("http://").partition(":")
    return await anyio.connect_tcp(host, int(port))


def head(path: str, token: str) -> bytes:
    lines = (f"GET {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {token}")
    return "\r\n".join((*lines, "", "")).encode()


@contextmanager
def database() -> Iterator[str]:
    programs = find_programs()
    if programs is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    with running_server(programs) as server:
        yield server.url()


async def tokens(site: Site, count: int) -> list[str]:
    return [await site.token(f"reader {number}", "operator") for number in range(count)]


def test_every_follower_reads_every_event_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    arguments: JSONValue = {"file_path": "script.json"}
    read: JSONValue = {"tool_calls": [{"name": "read_file", "arguments": arguments}]}
    with database() as url:
        site = attrs.evolve(site, store=url)
        secrets = anyio.run(tokens, site, -(-FOLLOWERS // PER_TOKEN))
        file = site.plan(*[read] * STEPS, "Read.").file
        options = ("--plan", str(file), "--store", url)
        with serving(site, *options) as one, serving(site, *options) as other:
            urls = (one.url, other.url)
            followers = anyio.run(followed, urls, secrets)
            sizes = [resident(each.process.pid) for each in (one, other)]
    first = [
        min(times) for times in zip(*(each.times for each in followers), strict=True)
    ]
    late = sorted(
        at - early
        for each in followers
        for at, early in zip(each.times, first, strict=True)
    )

    print(  # noqa: T201  # the figures
        f"\n{FOLLOWERS} readers over 2 processes: {len(first)} events each, later than the"
        f" first reader by {median(late) * 1000:.0f} ms (median) and"
        f" {late[int(len(late) * 0.99)] * 1000:.0f} ms (p99); {sizes} MB"
    )
    # none is missed, none comes twice
    assert all(each.ids == [*range(1, len(first) + 1)] for each in followers)


async def followed(urls: Sequence[str], secrets: Sequence[str]) -> list[Follower]:
    """Run a turn while many read it."""
    headers = {"Authorization": f"Bearer {secrets[0]}"}
    followers = [Follower() for _ in range(FOLLOWERS)]
    async with httpx2.AsyncClient(
        headers=headers, base_url=urls[0], timeout=60
    ) as client:
        session = (await client.post("/sessions")).json()["session_id"]
        async with anyio.create_task_group() as group:
            for number, follower in enumerate(followers):
                token = secrets[number // PER_TOKEN]
                group.start_soon(follower.read, urls[number % 2], session, token)
            with anyio.fail_after(120):
                while await streams(urls, secrets[0]) < FOLLOWERS:
                    pass
            await client.post(f"/sessions/{session}/turns", json={"prompt": "Go"})
    return followers


async def streams(urls: Sequence[str], secret: str) -> int:
    """Return how many readers the processes have by their metrics."""
    count = 0
    for url in urls:
        async with await connected(url) as stream:
            await stream.send(head("/readyz", secret))
            await stream.receive()
        count += connections(url)
    return count


def connections(url: str) -> int:
    """Return how many connections to a port are established, as the system counts them."""
    port = f":{int(url.rpartition(':')[2]):04X}"
    rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [row.split() for row in rows]
    return sum(one[1].endswith(port) and one[3] == "01" for one in fields)


def resident(pid: int) -> int:
    """Return the memory of a process in megabytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) // 1024
    return 0


def test_a_crowd_of_readers_is_bounded(site: Site) -> None:
    (secret,) = anyio.run(tokens, site, 1)
    file = site.plan("Fine.").file
    with serving(site, "--plan", str(file)) as server:
        before = resident(server.process.pid)
        statuses, slowest = anyio.run(crowd, server.url, secret)
        after = resident(server.process.pid)

    print(  # noqa: T201  # the figures
        f"\n{CROWD} connections for events: {dict(statuses)}; {before} MB before, {after} MB"
        f" with them; /healthz answered within {slowest:.1f} s"
    )
    # a token has 100 streams; each of the others is refused, and none is left without an answer
    assert statuses == {200: 100, 429: CROWD - 100}
    assert after - before < 60 + CROWD / 50


async def crowd(url: str, secret: str) -> tuple[Counter[int], float]:
    """Hold many connections open that each want the events of one session; return what they are answered."""
    statuses: Counter[int] = Counter()
    slowest = 0.0
    done, limiter = anyio.Event(), anyio.CapacityLimiter(200)
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx2.AsyncClient(headers=headers, base_url=url, timeout=60) as client:
        session = (await client.post("/sessions")).json()["session_id"]
    path = head(f"/sessions/{session}/events", secret)

    async def come() -> None:
        async with AsyncExitStack() as stack:
            # a connection that sends nothing for ten seconds is closed
            async with limiter:
                stream = await stack.enter_async_context(await connected(url))
                await stream.send(path)
                answer = await stream.receive()
            statuses[int(answer.split(b" ")[1])] += 1
            if statuses.total() == CROWD:
                done.set()
            await done.wait()

    async def ask() -> None:
        nonlocal slowest
        while not done.is_set():
            begun = perf_counter()
            async with await connected(url) as stream:
                await stream.send(head("/healthz", secret))
                await stream.receive()
            slowest = max(slowest, perf_counter() - begun)

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        for _ in range(CROWD):
            group.start_soon(come)
    return statuses, slowest


def test_turns_and_waiting_questions_are_counted(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with database() as url:
        site = attrs.evolve(site, store=url)
        secrets = anyio.run(tokens, site, -(-TURNS // PER_TOKEN))
        options = ("--store", url, "--plan")
        with serving(site, *options, str(site.plan("Fine.").file)) as server:
            empty = database_size(url)
            begun = perf_counter()
            waits = anyio.run(turns, server.url, secrets, "turn_result")
            seconds = perf_counter() - begun
            size = (database_size(url) - empty) // TURNS
        with serving(site, *options, str(site.plan(*WRITES).file)) as server:
            anyio.run(turns, server.url, secrets, "approval_requested")
            before = resident(server.process.pid)
            anyio.run(turns, server.url, secrets, "approval_requested")
            held = resident(server.process.pid) - before

    print(  # noqa: T201  # the figures
        f"\n{TURNS} turns of new sessions: {TURNS / seconds:.1f} a second, answered within"
        f" {median(waits) * 1000:.0f} ms (median) and {max(waits) * 1000:.0f} ms (all),"
        f" {size // 1024} kB each in the database; {TURNS} more turns that wait for an answer: {held} MB"
    )
    assert len(waits) == TURNS
    assert held < 10 + TURNS / 20


async def turns(url: str, secrets: Sequence[str], kind: str) -> list[float]:
    """Run a turn in each of many sessions, some at once, until an event of each; return how long each took."""
    waits: list[float] = []
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def take(client: httpx2.AsyncClient, secret: str) -> None:
        headers = {"Authorization": f"Bearer {secret}"}
        async with limiter:
            answer = await client.post("/sessions", headers=headers)
            session = answer.json()["session_id"]
            begun = perf_counter()
            path = f"/sessions/{session}/turns"
            taken = await client.post(path, headers=headers, json={"prompt": "Go"})
            assert taken.status_code == 202, taken.text
            await seen(url, session, secret, kind)
            waits.append(perf_counter() - begun)

    async with (
        httpx2.AsyncClient(base_url=url, timeout=60) as client,
        anyio.create_task_group() as group,
    ):
        for number in range(TURNS):
            group.start_soon(take, client, secrets[number // PER_TOKEN])
    return waits


async def seen(url: str, session: str, token: str, kind: str) -> None:
    wanted = f'"type":"{kind}"'.encode()
    async with await connected(url) as stream:
        await stream.send(head(f"/sessions/{session}/events", token))
        answer = b""
        while wanted not in answer:
            answer += await stream.receive()


def database_size(url: str) -> int:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT pg_database_size(current_database())")
        ((size,),) = found.fetchall()
    return int(size)
