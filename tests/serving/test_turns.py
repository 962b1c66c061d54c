"""Turns over HTTP: their events, reconnection, cancellation, and what happens when nobody reads."""

from __future__ import annotations

from typing import Never

import anyio
import attrs
import jsonschema_rs
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import Message, Receive, Scope, Send

from amplifier import Agent, AgentSession
from amplifier.serving import ServerLimits
from amplifier.serving.schema import EVENT_SCHEMA
from amplifier_kit.scripted import answer
from amplifier_sdk import tool
from amplifier_sdk.errors import NetworkError
from amplifier_sdk.events import SESSION_END
from amplifier_sdk.handlers import on
from amplifier_sdk.progress import ToolContext
from tests.doubles import ScriptedProvider, call, calling
from tests.serving.client import ALICE, BOB, Caller, Event, serving
from tests.serving.conftest import Reports


@tool
def double(number: int, context: ToolContext) -> int:
    """Double a number."""
    context.progress("doubling", done=1, total=2)
    context.output("nearly")
    return 2 * number


def text_of(events: list[Event]) -> str:
    return "".join(e.data["text"] for e in events if e.type == "text_delta")


async def test_a_turn_has_numbered_events_and_a_result() -> None:
    steps = calling(call("double", {"number": 4}))
    async with serving(
        Agent(ScriptedProvider(steps, "Eight."), tools=[double])
    ) as alice:
        session = await alice.begin()
        path = f"/sessions/{session}/turns"
        accept = {"accept": "text/event-stream"}
        async with alice.stream("POST", path, {"prompt": "4?"}, accept) as stream:
            assert stream.status == 200
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert stream.headers["cache-control"] == "no-store"
            events = [event async for event in stream]

        assert [event.id for event in events] == [*range(1, len(events) + 1)]
        first, last = events[0].data, events[-1].data
        assert first["type"] == "turn_started"
        assert first["session_id"] == session
        assert last == {"type": "turn_result", "output": "Eight."}
        assert {"tool_started", "tool_progress", "tool_output", "tool_finished"} <= {
            event.type for event in events
        }
        validator = jsonschema_rs.validator_for(EVENT_SCHEMA)
        for event in events:
            validator.validate(event.data)
        shown = await alice.get(f"{path}/{first['turn_id']}")
        assert shown.json == {
            "turn_id": first["turn_id"],
            "state": "finished",
            "output": "Eight.",
        }


async def test_the_schema_of_events_is_published() -> None:
    async with serving(Agent(ScriptedProvider())) as alice:
        answered = await Caller(alice.app, None).get("/schema/events.json")

    assert answered.json == EVENT_SCHEMA
    jsonschema_rs.meta.validate(answered.json)


async def test_an_output_of_a_type_is_json() -> None:
    @attrs.frozen
    class Sum:
        total: int

    agent = Agent(ScriptedProvider('{"total": 3}'), output=Sum)
    async with serving(agent) as alice:
        events = await alice.events(await alice.turn(await alice.begin()))

    assert events[-1].data == {"type": "turn_result", "output": {"total": 3}}


async def test_a_session_continues_and_other_sessions_know_nothing_of_it() -> None:
    provider = ScriptedProvider("One.", "Two.", "Three.")
    async with serving(Agent(provider)) as alice:
        session = await alice.begin()
        await alice.events(await alice.turn(session, "first"))
        await alice.events(await alice.turn(session, "second"))
        assert ("user", "first") in provider.last_messages
        await alice.events(await alice.turn(await alice.begin(), "third"))
        assert provider.last_messages == [("user", "third")]


async def test_a_reader_that_reconnects_gets_what_it_missed_and_nothing_twice() -> None:
    gate = anyio.Event()
    provider = ScriptedProvider(answer("One ", gate, "two."))
    async with serving(Agent(provider)) as alice:
        turn = await alice.turn(await alice.begin())
        async with alice.stream("GET", f"{turn}/events") as stream:
            first: list[Event] = []
            async for event in stream:
                first.append(event)
                if event.type == "text_delta":
                    break
        gate.set()
        rest = await alice.events(turn, first[-1].id)
        again = await alice.events(turn)

        assert text_of(first) == "One "
        assert [*first, *rest] == again
        assert text_of(again) == "One two."
        after_end = await alice.get(
            f"{turn}/events", {"last-event-id": str(again[-1].id)}
        )
        assert after_end.status == 204


async def test_two_readers_get_the_same_events() -> None:
    gate = anyio.Event()
    got: list[list[Event]] = []
    async with serving(Agent(ScriptedProvider(answer("A", gate, "B")))) as alice:
        turn = await alice.turn(await alice.begin())

        async def read() -> None:
            got.append(await alice.events(turn))

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            gate.set()

    assert got[0] == got[1]
    assert text_of(got[0]) == "AB"


async def test_a_gap_is_stated() -> None:
    provider = ScriptedProvider(answer(*(f"{n} {{}}" for n in range(50))))
    limits = ServerLimits(max_events=10)
    async with serving(Agent(provider), limits=limits) as alice:
        turn = await alice.turn(await alice.begin())
        await alice.events(turn)
        events = await alice.events(turn, 3)

    gap, *rest = events
    assert gap.data == {"type": "gap", "first": 4, "last": gap.id}
    assert [event.id for event in rest] == [*range(gap.id + 1, gap.id + 11)]
    assert rest[-1].type == "turn_result"
    jsonschema_rs.validate(EVENT_SCHEMA, gap.data)


async def test_few_large_events_are_a_gap_as_well() -> None:
    provider = ScriptedProvider("x" * 5000)
    limits = ServerLimits(max_event_bytes=1000)
    async with serving(Agent(provider), limits=limits) as alice:
        turn = await alice.turn(await alice.begin())
        await alice.events(turn)
        (gap, *_, last) = await alice.events(turn)

    assert gap.type == "gap"
    assert last.type == "turn_result"


@pytest.mark.parametrize("given", ["9999", "-1", "x", "٣", "1" * 5000, ""])
async def test_an_event_that_was_never_sent_is_unknown(given: str) -> None:
    async with serving(Agent(ScriptedProvider("A"))) as alice:
        turn = await alice.turn(await alice.begin())
        await alice.events(turn)
        header = given.encode().decode("latin-1")
        answered = await alice.get(f"{turn}/events", {"last-event-id": header})

    assert answered.status == (404 if given == "9999" else 400)
    assert answered.json["error"]["code"] == "unknown_event"


async def test_a_turn_is_cancelled() -> None:
    gate = anyio.Event()
    provider = ScriptedProvider(answer("Half", gate), "Whole.")
    async with serving(Agent(provider)) as alice:
        session = await alice.begin()
        turn = await alice.turn(session)
        await provider.wait_for_request()
        answered = await alice.post(f"{turn}/cancel")
        events = await alice.events(turn)
        following = await alice.events(await alice.turn(session, "And now?"))

    assert answered.status == 202
    assert events[-1].data == {"type": "turn_cancelled", "text": "Half"}
    assert following[-1].data["output"] == "Whole."


async def test_a_turn_may_be_asked_to_stop_after_its_step_and_then_at_once() -> None:
    gate = anyio.Event()
    provider = ScriptedProvider(answer("Half", gate))
    async with serving(Agent(provider)) as alice:
        turn = await alice.turn(await alice.begin())
        await provider.wait_for_request()
        await alice.post(f"{turn}/cancel", {"immediate": False})
        await anyio.wait_all_tasks_blocked()
        assert (await alice.get(turn)).json["state"] == "running"
        await alice.post(f"{turn}/cancel", {"immediate": True})
        events = await alice.events(turn)
        again = await alice.post(f"{turn}/cancel")

    assert events[-1].type == "turn_cancelled"
    assert again.json["state"] == "cancelled"


@pytest.mark.parametrize("wish", ["cancel", "continue"])
async def test_a_turn_that_nobody_reads_does_as_was_asked(wish: str) -> None:
    gate = anyio.Event()
    provider = ScriptedProvider(answer("A", gate, "B"))
    async with serving(Agent(provider)) as alice:
        session = await alice.begin()
        turn = await alice.turn(session, on_disconnect=wish)
        for _ in range(2):
            async with alice.stream("GET", f"{turn}/events") as stream:
                async with alice.stream("GET", f"{turn}/events"):
                    pass
                assert (await alice.get(turn)).json["state"] == "running"
                async for event in stream:
                    if event.type == "text_delta":
                        break
            if wish == "cancel":
                break
        if wish == "continue":
            gate.set()
        events = await alice.events(turn)

    assert (
        events[-1].type == {"cancel": "turn_cancelled", "continue": "turn_result"}[wish]
    )


async def test_a_failed_turn_says_so_and_not_what_only_the_log_may_hold(
    reports: Reports,
) -> None:
    provider = ScriptedProvider(
        NetworkError("http://10.0.0.1/?key=sk-1"), ValueError("in C:/secrets"), "Fine."
    )
    async with serving(Agent(provider)) as alice:
        session = await alice.begin()
        first = await alice.events(await alice.turn(session))
        second = await alice.events(await alice.turn(session))
        third = await alice.events(await alice.turn(session))

    assert first[-1].data["error"] == {
        "code": "provider_failed",
        "message": "The provider failed: NetworkError",
    }
    assert second[-1].data["error"]["code"] == "internal_error"
    assert "secrets" not in str(second)
    assert third[-1].data["output"] == "Fine."
    jsonschema_rs.validate(EVENT_SCHEMA, first[-1].data)
    assert "serving.turn_failed" in [report["event"] for report in reports]


async def test_a_busy_session_refuses_a_turn_or_queues_it() -> None:
    gate = anyio.Event()
    provider = ScriptedProvider(answer("A", gate), "B", "C")
    limits = ServerLimits(max_queued_turns=2)
    async with serving(Agent(provider), limits=limits) as alice:
        session = await alice.begin()
        path = f"/sessions/{session}/turns"
        first = await alice.turn(session, "1")
        await provider.wait_for_request()
        refused = await alice.post(path, {"prompt": "2"})
        second = await alice.turn(session, "2", when_busy="queue")
        third = await alice.turn(session, "3", when_busy="queue")
        full = await alice.post(path, {"prompt": "4", "when_busy": "queue"})
        assert (await alice.get(second)).json["state"] == "queued"
        await alice.post(f"{second}/cancel")
        gate.set()
        ends = [(await alice.events(turn))[-1].data for turn in (first, second, third)]

    assert (refused.status, refused.json["error"]["code"]) == (409, "session_busy")
    assert (full.status, full.json["error"]["code"]) == (429, "queue_full")
    assert ends == [
        {"type": "turn_result", "output": "A"},
        {"type": "turn_cancelled"},
        {"type": "turn_result", "output": "B"},
    ]


async def test_only_the_last_turns_are_stored() -> None:
    provider = ScriptedProvider("A", "B", "C")
    limits = ServerLimits(max_ended_turns=2)
    async with serving(Agent(provider), limits=limits) as alice:
        session = await alice.begin()
        turns = []
        for _ in range(3):
            turns.append(await alice.turn(session))
            await alice.events(turns[-1])
        states = [(await alice.get(turn)).status for turn in turns]

    assert states == [404, 200, 200]


@attrs.define(eq=False)
class Ends:
    """Sees sessions end."""

    ended: anyio.Event = attrs.field(factory=anyio.Event)

    @on(SESSION_END)
    async def note(self, event: str, data: object) -> None:
        self.ended.set()


async def test_an_idle_session_is_closed() -> None:
    ends = Ends()
    agent = Agent(ScriptedProvider("A"), hooks=[ends])
    async with serving(agent, limits=ServerLimits(idle_timeout=0.05)) as alice:
        session = await alice.begin()
        with anyio.fail_after(5):
            await ends.ended.wait()
            while (await alice.get(f"/sessions/{session}")).status != 404:
                await anyio.lowlevel.checkpoint()


async def test_a_session_is_closed_with_whatever_it_does() -> None:
    gate, ends = anyio.Event(), Ends()
    provider = ScriptedProvider(answer("A", gate))
    async with serving(Agent(provider, hooks=[ends])) as alice:
        session = await alice.begin()
        running = await alice.turn(session)
        queued = await alice.turn(session, when_busy="queue")
        async with (
            alice.stream("GET", f"{running}/events") as one,
            alice.stream("GET", f"{queued}/events") as two,
        ):
            await provider.wait_for_request()
            closed = await alice.request("DELETE", f"/sessions/{session}")
            seen = [
                [event async for event in one],
                [event async for event in two],
            ]

        assert closed.status == 204
        assert [events[-1].type for events in seen] == ["turn_cancelled"] * 2
        assert ends.ended.is_set()
        assert (await alice.get(f"/sessions/{session}")).status == 404
        assert (await alice.get("/sessions")).json == {"sessions": []}


async def test_the_end_of_the_server_cancels_and_closes_everything() -> None:
    ends, seen = Ends(), []
    provider = ScriptedProvider(answer("A", anyio.Event()))
    async with (
        anyio.create_task_group() as group,
        serving(Agent(provider, hooks=[ends])) as alice,
    ):
        turn = await alice.turn(await alice.begin())

        async def read() -> None:
            seen.extend(await alice.events(turn))

        group.start_soon(read)
        await provider.wait_for_request()
        await anyio.wait_all_tasks_blocked()

    assert seen[-1].type == "turn_cancelled"
    assert ends.ended.is_set()
    refused = await alice.post("/sessions")
    assert refused.status == 503
    assert (await alice.get("/health")).status == 503


async def test_a_server_may_run_again_but_not_twice_at_once() -> None:
    server = Agent(ScriptedProvider("A", "B")).asgi(tokens=[ALICE])
    for _ in range(2):
        async with server.lifespan():
            alice = Caller(server)
            await alice.events(await alice.turn(await alice.begin()))
            with pytest.raises(RuntimeError, match="runs already"):
                async with server.lifespan():
                    pass


async def test_it_is_mounted_in_another_application() -> None:
    server = Agent(ScriptedProvider("A")).asgi(tokens=[ALICE, BOB])
    app = Starlette(routes=[Mount("/agent", server)], lifespan=server.lifespan)
    async with app.router.lifespan_context(app):
        begun = await Caller(app).post("/agent/sessions")
        turn = f"/agent/sessions/{begun.json['session_id']}/turns"
        started = await Caller(app).post(turn, {"prompt": "Hi"})
        events = await Caller(app).events(f"{turn}/{started.json['turn_id']}")

    assert events[-1].data["output"] == "A"


async def test_middleware_around_the_server_has_every_piece_of_a_stream() -> None:
    server = Agent(ScriptedProvider("A")).asgi(tokens=[ALICE, BOB])
    bodies: list[bytes] = []

    async def around(scope: Scope, receive: Receive, send: Send) -> None:
        async def watched(message: Message) -> None:
            bodies.append(message.get("body", b""))
            await send(message)

        await server(scope, receive, watched)

    async with server.lifespan():
        begun = await Caller(around).post("/sessions")
        turn = f"/sessions/{begun.json['session_id']}/turns"
        started = await Caller(around).post(turn, {"prompt": "Hi"})
        bodies.clear()
        events = await Caller(around).events(f"{turn}/{started.json['turn_id']}")

    assert b"".join(bodies).count(b"id: ") == len(events)


async def test_a_session_is_prepared_by_the_program() -> None:
    seen: list[str] = []

    def prepare(session: object, name: str) -> None:
        seen.append(name)

    async with serving(Agent(ScriptedProvider()), prepare=prepare) as alice:
        await alice.begin()
        await Caller(alice.app, BOB.secret).begin()

    assert seen == ["alice", "bob"]


async def test_a_session_that_cannot_be_opened_is_an_error_without_its_reason(
    reports: Reports,
) -> None:
    async with serving(Agent(ScriptedProvider(), hooks=["hooks-of-/etc"])) as alice:
        answered = await alice.post("/sessions")
        listed = await alice.get("/sessions")

    assert answered.status == 500
    assert "/etc" not in answered.body.decode()
    assert listed.json == {"sessions": []}
    assert "serving.session_not_opened" in [report["event"] for report in reports]


async def test_a_silent_turn_sends_comments() -> None:
    gate = anyio.Event()
    provider = ScriptedProvider(answer("A", gate))
    limits = ServerLimits(keep_alive=0.01)
    async with serving(Agent(provider), limits=limits) as alice:
        turn = await alice.turn(await alice.begin())
        async with alice.stream("GET", f"{turn}/events") as stream:
            while not (await stream.frame()).startswith(b": keep-alive"):
                pass
            gate.set()
            rest = await stream.rest()

    assert b"turn_result" in rest


async def test_a_burst_leaves_its_readers_time() -> None:
    provider = ScriptedProvider(answer(*(f"{number} " for number in range(3000))))
    limits = ServerLimits(max_events=200)
    async with serving(Agent(provider), limits=limits) as alice:
        path = f"/sessions/{await alice.begin()}/turns"
        accept = {"accept": "text/event-stream"}
        async with alice.stream("POST", path, {"prompt": "Hi"}, accept) as stream:
            events = [event async for event in stream]

    assert "gap" not in {event.type for event in events}
    assert text_of(events) == "".join(f"{number} " for number in range(3000))


async def test_a_session_that_is_being_closed_takes_no_turn() -> None:
    releasing, released = anyio.Event(), anyio.Event()

    async def release() -> None:
        releasing.set()
        await released.wait()

    def prepare(session: AgentSession[Never, object], _token: str) -> None:
        session.session.coordinator.register_cleanup(release)

    async with serving(Agent(ScriptedProvider()), prepare=prepare) as alice:
        session = await alice.begin()
        async with anyio.create_task_group() as group:
            group.start_soon(alice.request, "DELETE", f"/sessions/{session}")
            await releasing.wait()
            refused = await alice.post(f"/sessions/{session}/turns", {"prompt": "Hi"})
            released.set()

    assert (refused.status, refused.json["error"]["code"]) == (404, "not_found")
