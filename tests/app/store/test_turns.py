"""A turn that was interrupted is told truly: nothing is lost, nothing is told twice, every call has a result."""

from __future__ import annotations

import pytest

from amplifier.app.store.reader import read_history
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import StoredSession
from amplifier_kit.files.appendlog import encode_line
from amplifier_sdk.history import diagnose
from amplifier_sdk.journal import (
    CallFinished,
    CallStarted,
    MessageWritten,
    TurnEnded,
    TurnStarted,
)
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.stores import LogEntry
from tests.app.store.talks import HELLO, calling, interrupt, record, result

CUT_OFF: MessageDict = {
    "role": "assistant",
    "content": "(The answer is incomplete.)",
    "metadata": {"incomplete": True, "synthesized": True},
}


async def test_an_answer_that_was_cut_off_is_marked(store: ProjectSessions) -> None:
    async with store.open(record()) as writer:
        await writer.note_turn(HELLO)
        await writer.journal.append(TurnStarted(turn_id="t2", prompt="And now?"))
    question: MessageDict = {"role": "user", "content": "And now?"}
    assert read_history(writer.folder).messages == [*HELLO, question, CUT_OFF]
    async with store.open(record()) as writer:
        await writer.settle()
        assert writer.messages == [*HELLO, question, CUT_OFF]
        await writer.journal.append(TurnStarted(turn_id="t3", prompt="Well?"))
        await writer.journal.append(MessageWritten(turn_id="t3", message=HELLO[1]))
    async with store.open(record()) as writer:
        assert writer.messages[-1] == HELLO[1]


async def test_a_call_in_doubt_is_told_with_its_arguments(
    store: ProjectSessions,
) -> None:
    async with store.open(record()) as writer:
        session = StoredSession(folder=writer.folder, record=writer.record)
    await interrupt(store, session)
    async with store.open(record()) as writer:
        assert writer.interrupted is not None
        assert writer.interrupted.in_doubt == ("rm",)
        assert writer.interrupted.arguments == ('{"path": "/tmp/x"}',)


async def test_interrupted_turn_is_told_with_result_for_every_call(
    store: ProjectSessions,
) -> None:
    async with store.open(record()) as writer:
        await writer.note_turn(HELLO)
        await writer.journal.append(TurnStarted(turn_id="t2", prompt="Do it"))
        await writer.journal.append(
            MessageWritten(turn_id="t2", message=calling("a", "b", "c"))
        )
        await writer.journal.append(
            CallStarted(turn_id="t2", call_id="c0", tool_name="a")
        )
        await writer.journal.append(
            CallStarted(turn_id="t2", call_id="c1", tool_name="b")
        )
        await writer.journal.append(
            CallFinished(turn_id="t2", call_id="c1", success=True, output="B!")
        )
    async with store.open(record()) as writer:
        messages = writer.messages
        assert messages[:3] == [*HELLO, {"role": "user", "content": "Do it"}]
        results = {
            str(message["tool_call_id"]): str(message["content"])
            for message in messages[4:]
        }
        assert results["c1"] == "B!"
        assert "not known" in results["c0"]
        assert "was not started" in results["c2"]
        assert diagnose(messages) == ()
        turn = await writer.settle()
        assert turn is not None
        assert (turn.prompt, turn.in_doubt, turn.not_started) == (
            "Do it",
            ("a",),
            ("c",),
        )
        assert [message.get("metadata") for message in messages[4:]] == [
            {"synthesized": True},
            None,
            {"synthesized": True},
        ]
        assert await writer.settle() is None
    async with store.open(record()) as writer:
        assert writer.messages == messages
        assert writer.interrupted is None


async def test_call_has_not_result_of_earlier_one_with_its_id(
    store: ProjectSessions,
) -> None:
    async with store.open(record()) as writer:
        await writer.journal.append(TurnStarted(turn_id="t1", prompt="Do it"))
        for name in ("a", "b"):
            await writer.journal.append(
                MessageWritten(turn_id="t1", message=calling(name))
            )
            await writer.journal.append(
                CallStarted(turn_id="t1", call_id="c0", tool_name=name)
            )
            await writer.journal.append(
                CallFinished(turn_id="t1", call_id="c0", success=True, output=name)
            )
        await writer.journal.append(MessageWritten(turn_id="t1", message=calling("c")))
        await writer.journal.append(
            CallStarted(turn_id="t1", call_id="c0", tool_name="c")
        )
        await writer.journal.append(MessageWritten(turn_id="t1", message=calling("d")))
    async with store.open(record()) as writer:
        results = [
            str(message["content"])
            for message in writer.messages
            if message["role"] == "tool"
        ]
        turn = await writer.settle()

    assert results[:2] == ["a", "b"]
    assert "not known" in results[2]
    assert "was not started" in results[3]
    assert turn is not None
    assert (turn.in_doubt, turn.not_started) == (("c",), ("d",))


async def test_a_turn_that_is_in_the_transcript_is_not_told_twice(
    store: ProjectSessions,
) -> None:
    async with store.open(record()) as writer:
        await writer.journal.append(TurnStarted(turn_id="t1", prompt="Hello"))
        await writer.journal.append(MessageWritten(turn_id="t1", message=HELLO[1]))
        await writer.journal.append(TurnEnded(turn_id="t1", status="completed"))
        await writer.transcript.store("t1", HELLO)  # and then the program ends
    async with store.open(record()) as writer:
        assert writer.messages == HELLO


async def test_lines_of_turn_without_its_end_make_way_for_journal(
    store: ProjectSessions,
) -> None:
    more: list[MessageDict] = [
        {"role": "user", "content": "More"},
        {"role": "assistant", "content": "Yes."},
    ]
    async with store.open(record()) as writer:
        await writer.note_turn(HELLO)
        await writer.journal.append(TurnStarted(turn_id="t2", prompt="More"))
        await writer.journal.append(MessageWritten(turn_id="t2", message=more[1]))
        journal = (writer.folder / "journal.jsonl").read_bytes()
        await writer.note_turn([*HELLO, *more])
        path = writer.folder / "transcript.jsonl"
    (path.parent / "journal.jsonl").write_bytes(journal)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))  # the first message of the turn got there
    async with store.open(record()) as writer:
        assert writer.messages == [*HELLO, *more]
        await writer.settle()
        await writer.note_turn([*HELLO, *more, *HELLO])
    async with store.open(record()) as writer:
        assert writer.messages == [*HELLO, *more, *HELLO]


async def test_a_turn_whose_closing_line_is_lost_is_not(store: ProjectSessions) -> None:
    async with store.open(record()) as writer:
        await writer.note_turn(HELLO)
        await writer.note_turn([*HELLO, *HELLO])
        path = writer.folder / "transcript.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], *lines[4:-1]]))
    async with store.open(record()) as writer:
        assert writer.messages == [*HELLO, *HELLO]


async def test_finished_unstored_turn_is_stored_as_complete(
    store: ProjectSessions,
) -> None:
    async with store.open(record()) as writer:
        await writer.journal.append(TurnStarted(turn_id="t1", prompt="Hello"))
        await writer.journal.append(MessageWritten(turn_id="t1", message=HELLO[1]))
        await writer.journal.append(TurnEnded(turn_id="t1", status="completed"))
    async with store.open(record()) as writer:
        assert await writer.settle() is None
        assert writer.messages == HELLO


async def test_turns_that_could_not_be_stored_are_all_told(
    store: ProjectSessions,
) -> None:
    async with store.open(record()) as writer:
        for turn in ("t1", "t2"):
            await writer.journal.append(TurnStarted(turn_id=turn, prompt="Hello"))
            await writer.journal.append(MessageWritten(turn_id=turn, message=HELLO[1]))
    async with store.open(record()) as writer:
        assert writer.messages == [*HELLO, *HELLO]
        settled = await writer.settle()
        assert settled is not None
        assert settled.turn_id == "t2"
        assert writer.record.turn_count == 2
        assert writer.record.updated > 0


async def test_a_journal_that_says_nothing_is_no_turn(store: ProjectSessions) -> None:
    async with store.open(record()) as writer:
        await writer.journal.append(MessageWritten(turn_id="t1", message=HELLO[1]))
    path = writer.folder / "journal.jsonl"
    odd = [
        LogEntry(kind="turn_started", data="?", at=1.0),
        LogEntry(kind="message", data={"message": "?"}, at=1.0),
    ]
    path.write_bytes(
        path.read_bytes() + b"".join(encode_line(each) + b"\n" for each in odd)
    )
    async with store.open(record()) as writer:
        assert writer.interrupted is None
        await writer.journal.append(TurnStarted(turn_id="t1", prompt="Hello"))
    path.write_bytes(
        path.read_bytes() + b"".join(encode_line(each) + b"\n" for each in odd)
    )
    async with store.open(record()) as writer:
        assert writer.messages == [HELLO[0], CUT_OFF]


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_damaged_line_that_began_a_turn_hides_no_call(
    store: ProjectSessions, *, is_first: bool
) -> None:
    async with store.open(record()) as writer:
        if not is_first:
            await writer.journal.append(TurnStarted(turn_id="t1", prompt="Hello"))
            await writer.journal.append(TurnEnded(turn_id="t1", status="completed"))
            await writer.transcript.store("t1", HELLO)
    await interrupt(store, store.find("s1"))
    path = store.folder("s1") / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Delete it", b"Delete.it"))
    async with store.open(record()) as writer:
        assert writer.interrupted is not None
        assert (
            writer.interrupted.in_doubt,
            writer.interrupted.not_started,
        ) == (
            ("rm",),
            ("ls",),
        )
        assert "is lost" in writer.interrupted.prompt
        said = writer.messages if is_first else writer.messages[len(HELLO) :]
        assert [message["role"] for message in said] == [
            "user",
            "assistant",
            "tool",
            "tool",
        ]


async def test_what_modules_put_in_stands_where_it_stood(
    store: ProjectSessions,
) -> None:
    shown: MessageDict = {"role": "developer", "content": "notes.md"}
    later: MessageDict = {"role": "developer", "content": "more.md"}
    typed: MessageDict = {"role": "user", "content": "Be kind."}
    async with store.open(record()) as writer:
        await writer.journal.append(TurnStarted(turn_id="t1", prompt="Hello"))
        await writer.journal.append(MessageWritten(turn_id="t1", message=shown))
        await writer.journal.append(
            MessageWritten(turn_id="t1", message={"role": "system", "content": "Anew."})
        )
        await writer.journal.append(MessageWritten(turn_id="t1", message=calling("ls")))
        await writer.journal.append(
            CallFinished(turn_id="t1", call_id="c0", success=True, output="x")
        )
        await writer.journal.append(MessageWritten(turn_id="t1", message=later))
        await writer.journal.append(MessageWritten(turn_id="t1", message=typed))
    async with store.open(record()) as writer:
        assert writer.messages == [
            shown,
            HELLO[0],
            calling("ls"),
            result(0, "ls", "x"),
            later,
            typed,
            CUT_OFF,
        ]
