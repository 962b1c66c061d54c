"""What a hostile caller, page or model comes to."""

from __future__ import annotations

import os
from typing import Final

import anyio
import pytest

from amplifier import Agent
from amplifier.serving import ServerLimits, Token
from amplifier.serving.event_log import EventLog
from amplifier.serving.sessions import ServedSession
from amplifier_kit.scripted import answer
from tests.doubles import ScriptedProvider
from tests.serving.client import ALICE, Caller, serving

STREAMS: Final = int(os.environ.get("AMPLIFIER_STREAMS", "1000"))
"""How many streams one token's holder asks for; `nox -s soak` asks for 10,000."""


async def test_half_a_surrogate_pair_of_a_model_breaks_no_answer() -> None:
    async with serving(Agent(ScriptedProvider("a\ud800b", repeat=True))) as alice:
        session = await alice.begin()
        turn = await alice.turn(session)
        events = await alice.events(turn)
        answers = [await alice.get(path) for path in (turn, "/sessions")]
        body = {"messages": [{"role": "user", "content": "Hi"}]}
        chat = await alice.post("/v1/chat/completions", body)

    assert events[-1].data["output"] == "a\ud800b"
    assert [each.status for each in (*answers, chat)] == [200, 200, 200]
    assert answers[0].json["output"] == "a\ud800b"


async def test_a_number_that_is_none_has_a_form_that_browsers_read() -> None:
    log = EventLog(10, 1000)
    log.append({"type": "tool_finished", "output": [float("nan"), {"a": 1e999}]})
    read = await log.read(0)

    assert read is not None
    assert read[1].endswith(b'"output":[null,{"a":null}]}\n\n')


@pytest.mark.parametrize("path", ["/sessions/", "//evil.example/sessions/"])
async def test_no_answer_leads_to_the_host_that_the_request_names(path: str) -> None:
    async with serving(Agent(ScriptedProvider())) as alice:
        answered = await alice.get(path, {"host": "evil.example"})

    assert answered.status == 404
    assert "location" not in answered.headers


@pytest.mark.parametrize(
    "body", [{f"key{number}": 1 for number in range(20_000)}, {"k" * 100_000: 1}]
)
async def test_an_error_does_not_give_the_request_back(body: object) -> None:
    async with serving(Agent(ScriptedProvider())) as alice:
        answered = await alice.post("/sessions", body)

    assert answered.status == 422
    assert len(answered.body) < 10_000


async def test_an_id_of_a_caller_is_short_since_it_stands_in_every_event() -> None:
    body = {"threadId": "t", "messages": [{"role": "user", "content": "x"}]}
    async with serving(Agent(ScriptedProvider("Hi"))) as alice:
        long = await alice.post("/ag-ui", {**body, "runId": "r" * 400_000})
        short = await alice.post("/ag-ui", {**body, "runId": "r" * 256})

    assert (long.status, short.status) == (422, 200)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("[::1]:8000", 200),
        ("localhost", 200),
        ("agent.localhost:80", 200),
        ("agent.internal", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example", 403),
        ("", 403),
    ],
)
async def test_a_page_whose_name_leads_here_reads_nothing(
    host: str, status: int
) -> None:
    """Such a page (DNS rebinding) is of the server's own origin for the browser, which then names none."""
    agent, hosts = Agent(ScriptedProvider()), ["agent.internal"]
    async with serving(agent, tokens=(), allow_anonymous=True, hosts=hosts) as known:
        answered = await Caller(known.app, None).get("/sessions", {"host": host})

    assert answered.status == status


async def test_answers_are_stored_by_nobody_and_are_what_they_say() -> None:
    async with serving(Agent(ScriptedProvider())) as alice:
        answers = [await alice.get("/sessions"), await alice.get("/nowhere")]

    for answered in answers:
        assert answered.headers["cache-control"] == "no-store"
        assert answered.headers["x-content-type-options"] == "nosniff"


async def test_a_session_that_is_closed_while_it_opens_is_no_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opening, gate = anyio.Event(), anyio.Event()
    serve = ServedSession.serve

    async def slow(
        session: ServedSession, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        opening.set()
        await gate.wait()
        await serve(session, task_status=task_status)

    monkeypatch.setattr(ServedSession, "serve", slow)
    statuses: list[int] = []
    async with serving(Agent(ScriptedProvider())) as alice:

        async def begin() -> None:
            statuses.append((await alice.post("/sessions")).status)

        async def close() -> None:
            (session,) = (await alice.get("/sessions")).json["sessions"]
            path = f"/sessions/{session['session_id']}"
            statuses.append((await alice.request("DELETE", path)).status)

        async with anyio.create_task_group() as group:
            group.start_soon(begin)
            await opening.wait()
            group.start_soon(close)
            await anyio.wait_all_tasks_blocked()
            gate.set()
        left = (await alice.get("/sessions")).json["sessions"]

    assert sorted(statuses) == [204, 409]
    assert left == []


async def test_streams_that_come_at_once_are_counted_as_well() -> None:
    token = Token(name="small", secret=ALICE.secret, max_streams=2)
    gate = anyio.Event()
    provider = ScriptedProvider(answer("A", gate), repeat=True)
    body = {
        "threadId": "t",
        "runId": "r",
        "messages": [{"role": "user", "content": "x"}],
    }
    statuses: list[int] = []
    async with serving(Agent(provider), tokens=(token,)) as alice:

        async def read() -> None:
            async with alice.stream("POST", "/ag-ui", body) as stream:
                statuses.append(stream.status)
                if len(statuses) == 8:
                    gate.set()
                await gate.wait()

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(read)

    assert sorted(statuses) == [200] * 2 + [429] * 6


async def test_a_reader_that_takes_nothing_is_left() -> None:
    gone = anyio.Event()
    limits = ServerLimits(keep_alive=0.02)
    words = ["x" * 1000] * 500
    async with serving(Agent(ScriptedProvider(answer(*words))), limits=limits) as alice:
        turn = await alice.turn(await alice.begin())
        await alice.events(turn)
        sizes: list[int] = []

        async def receive() -> dict[str, object]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, object]) -> None:
            body = message.get("body")
            if isinstance(body, bytes):
                sizes.append(len(body))
                await anyio.sleep_forever()

        authorization = f"Bearer {ALICE.secret}".encode()
        scope = {
            "type": "http",
            "method": "GET",
            "path": f"{turn}/events",
            "query_string": b"",
            "headers": [(b"authorization", authorization)],
        }
        with anyio.fail_after(5):
            await alice.app(scope, receive, send)  # type: ignore[arg-type]  # a server's own
        read = await alice.events(turn)

    assert len(sizes) == 1
    assert sizes[0] < 100_000
    assert read[-1].type == "turn_result"


@pytest.mark.figures  # seconds, most of them in the debug mode of asyncio
async def test_thousands_of_streams_are_bounded() -> None:
    gate = anyio.Event()
    provider = ScriptedProvider(answer("A", gate))
    token = Token(name="greedy", secret=ALICE.secret, max_requests=100_000)
    statuses: list[int] = []
    async with serving(Agent(provider), tokens=(token,)) as alice:
        turn = await alice.turn(await alice.begin())

        async def read() -> None:
            async with alice.stream("GET", f"{turn}/events") as stream:
                statuses.append(stream.status)
                if len(statuses) == STREAMS:
                    gate.set()
                if stream.status == 200:
                    await gate.wait()

        async with anyio.create_task_group() as group:
            for _ in range(STREAMS):
                group.start_soon(read)

    assert statuses.count(200) == token.max_streams
    assert statuses.count(429) == STREAMS - token.max_streams
