"""What is written down while a turn runs: in the order that leaves nothing in doubt."""

from __future__ import annotations

from collections.abc import MutableMapping

import anyio
import pytest

from amplifier import AmplifierSession, ModuleCoordinator
from amplifier.kernel.budgets.expenses import Spending
from amplifier_sdk.journal import (
    CallFinished,
    CallStarted,
    JournalRecord,
    MessageWritten,
    TurnEnded,
    TurnStarted,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import HookResult
from tests.doubles import (
    Blocking,
    MemoryJournal,
    Recorder,
    Worker,
    build_session,
    call,
    calling,
    mounted_context,
    open_call_ids,
)
from tests.kernel.turns import cancelled_turn

Reports = list[MutableMapping[str, object]]


async def test_each_record_comes_before_its_effect() -> None:
    journal = MemoryJournal()
    at_the_effect: list[str] = []

    async def work(input: JSONObject) -> object:
        at_the_effect.extend(journal.kinds)
        return "done"

    session = build_session(
        calling(call("work")), "end", tools=[Worker(function=work)], journal=journal
    )
    recorder = Recorder.of(session.coordinator.hooks)
    async with session:
        await session.execute("go")

    assert at_the_effect == ["TurnStarted", "MessageWritten", "CallStarted"]
    started, message, call_started, call_finished, _, ended = journal.records
    assert isinstance(message, MessageWritten)
    turn = str(recorder.one("tool:pre")["turn_id"])
    assert started == TurnStarted(turn_id=turn, prompt="go")
    assert message.message["tool_calls"]
    assert call_started == CallStarted(
        turn_id=turn, call_id="id-work", tool_name="work"
    )
    spending = Spending(provider_calls=1, tool_calls=1).to_dict()
    finished = CallFinished(
        turn_id=turn, call_id="id-work", success=True, output="done", spending=spending
    )
    assert call_finished == finished
    assert ended == TurnEnded(turn_id=turn, status="completed")
    assert {record.turn_id for record in journal.records} == {turn}


async def test_what_modules_put_into_history_written_before_it_enters() -> None:
    journal = MemoryJournal()
    session = build_session("end", journal=journal)
    injection = HookResult.inject("Mind the gap.", role="user")
    session.coordinator.hooks.register(
        "session:start", lambda *_: injection, name="guide", decides=True
    )
    async with session:
        await session.execute("go")
        history = mounted_context(session.coordinator).messages

    assert journal.kinds == [
        "TurnStarted",
        "MessageWritten",
        "MessageWritten",
        "TurnEnded",
    ]
    _, written, *_ = journal.records
    assert isinstance(written, MessageWritten)
    assert written.message["content"] == "Mind the gap."
    assert written.message in history


async def test_a_refused_call_was_never_started() -> None:
    journal = MemoryJournal()
    async with build_session(
        calling(call("nothing")), "end", journal=journal
    ) as session:
        await session.execute("go")

    assert journal.kinds == [
        "TurnStarted",
        "MessageWritten",
        "MessageWritten",
        "TurnEnded",
    ]


async def test_a_failed_turn_ends_as_failed() -> None:
    journal = MemoryJournal()
    async with build_session(ValueError("no"), journal=journal) as session:
        with pytest.raises(ValueError, match="no"):
            await session.execute("go")

    ended = journal.records[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.status == "failed"


async def test_cancelled_turn_ends_as_cancelled_when_history_closed() -> None:
    blocking = Blocking()
    open_at_the_end: list[list[str]] = []

    class Checking(MemoryJournal):
        async def append(self, record: JournalRecord) -> None:
            await super().append(record)
            if isinstance(record, TurnEnded):
                open_at_the_end.append(
                    open_call_ids(mounted_context(session.coordinator).messages)
                )

    journal = Checking()
    session = build_session(calling(call("block")), tools=[blocking], journal=journal)

    with anyio.fail_after(5):
        async with session, cancelled_turn(session, blocking.started):
            await session.cancel(immediate=True)

    ended = journal.records[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.status == "cancelled"
    assert journal.kinds == [
        "TurnStarted",
        "MessageWritten",
        "CallStarted",
        "TurnEnded",
    ]
    assert open_at_the_end == [[]]


@pytest.mark.parametrize("fails_at", [0, 1, 2, 3])
async def test_a_journal_that_fails_stops_the_turn_before_the_effect(
    fails_at: int, reports: Reports
) -> None:
    worker = Worker()
    journal = MemoryJournal(fails_at=fails_at)
    async with build_session(
        calling(call("work")), "end", tools=[worker], journal=journal
    ) as session:
        with pytest.raises(OSError, match="no space left"):
            await session.execute("go")

        assert open_call_ids(mounted_context(session.coordinator).messages) == []
    assert len(worker.inputs) == (1 if fails_at == 3 else 0)
    assert "journal.failed" in [report["event"] for report in reports]


async def test_journal_failure_in_batch_cancels_others_and_is_raised() -> None:
    blocking, quota = Blocking(), ValueError("over quota")

    class Picky(MemoryJournal):
        async def append(self, record: JournalRecord) -> None:
            if isinstance(record, CallStarted) and record.call_id == "second":
                await blocking.started.wait()
                raise OSError("no space left") from quota
            await super().append(record)

    calls = [call("block", id="first"), call("block", id="second")]
    with anyio.fail_after(5):
        async with build_session(
            calling(*calls), tools=[blocking], journal=Picky()
        ) as session:
            with pytest.raises(OSError, match="no space left") as caught:
                await session.execute("go")

            assert open_call_ids(mounted_context(session.coordinator).messages) == []
    assert caught.value.__cause__ is quota
    assert blocking.ended == "cancelled"


async def test_journal_failure_at_end_fails_successful_turn() -> None:
    journal = MemoryJournal(fails_at=2)
    async with build_session("fine", journal=journal) as session:
        with pytest.raises(OSError, match="no space left"):
            await session.execute("go")


async def test_a_failing_journal_does_not_hide_why_the_turn_ended(
    reports: Reports,
) -> None:
    blocking = Blocking()
    journal = MemoryJournal(fails_at=3)
    session = build_session(calling(call("block")), tools=[blocking], journal=journal)

    with anyio.fail_after(5):
        async with session, cancelled_turn(session, blocking.started):
            await session.cancel(immediate=True)

    assert [report["event"] for report in reports] == ["journal.failed"]


async def test_a_journal_may_be_taken_away() -> None:
    journal = MemoryJournal()
    session = build_session("one", "two", journal=journal)
    async with session:
        await session.execute("go")
        records = list(journal.records)
        session.coordinator.register_capability("session.journal", None)
        await session.execute("on")

    assert journal.records == records


def test_what_is_no_journal_is_refused() -> None:
    coordinator = ModuleCoordinator()

    with pytest.raises(
        TypeError,
        match=r"'session.journal' is a Journal, with an async 'append'; got 'file.jsonl'",
    ):
        coordinator.register_capability("session.journal", "file.jsonl")

    assert coordinator.get_capability("session.journal") is None


async def test_two_sessions_write_to_their_own_journals() -> None:
    first, second = MemoryJournal(), MemoryJournal()
    sessions: list[AmplifierSession] = [
        build_session("x", journal=first),
        build_session("x", journal=second),
    ]
    async with anyio.create_task_group() as group:
        for session in sessions:
            group.start_soon(session.execute, "go")

    assert first.kinds == second.kinds == ["TurnStarted", "MessageWritten", "TurnEnded"]
    assert first.records[0].turn_id != second.records[0].turn_id
    for session in sessions:
        await session.cleanup()


async def test_what_is_injected_between_turns_is_of_no_turn() -> None:
    journal = MemoryJournal()
    session = build_session("end", journal=journal)
    injection = HookResult(action="inject_context", context_injection="note")

    async with session:
        await session.coordinator.process_hook_result(injection, "noted", "notes")

    (written,) = journal.records
    assert isinstance(written, MessageWritten)
    assert written.turn_id == ""
