"""Retention: what leaves the file, what stays, and that what left is in the archive."""

from __future__ import annotations

from pathlib import Path
from time import time
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier import ModuleCoordinator
from amplifier_kit.files.appendlog import AppendLogFile, Expected, encode_line
from amplifier_module_context_persistent import PersistentContext, Retention, mount
from amplifier_module_context_persistent._retention import ARCHIVE_HOLDS, retain
from amplifier_sdk import JSONValue, MessageDict
from amplifier_sdk.stores import LogEntry

DAY: Final = 86_400.0
NOW: Final = 1_000 * DAY


def said(text: str, role: str = "user") -> MessageDict:
    return {"role": role, "content": text}


def turn(number: int) -> list[MessageDict]:
    """A prompt, a call, what a handler puts between, the result and the answer."""
    return [
        said(f"prompt {number}"),
        {
            "role": "assistant",
            "content": [
                {"type": "tool_call", "id": f"c{number}", "name": "t", "input": {}}
            ],
        },
        {"role": "user", "content": "typed meanwhile"},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "done"},
        {"role": "user", "content": "hint", "metadata": {"source": "hook"}},
        said(f"answer {number}", "assistant"),
    ]


def message(data: MessageDict, age: float = 0) -> LogEntry:
    return LogEntry(kind="message", data=data, at=NOW - age * DAY)


def epoch(*messages: MessageDict, age: float = 0) -> LogEntry:
    return LogEntry(
        kind="epoch",
        data={"reason": "cleared", "messages": list(messages)},
        at=NOW - age * DAY,
    )


def turns(count: int) -> list[LogEntry]:
    """As many turns, each a day older than the next; the last one is of now."""
    return [
        message(part, count - 1 - number)
        for number in range(count)
        for part in turn(number)
    ]


def contents(records: tuple[LogEntry, ...]) -> list[JSONValue]:
    """The messages of the history that the records make."""
    found: list[JSONValue] = []
    for record in records:
        if record.kind == "message":
            found.append(record.data)
        else:
            assert isinstance(record.data, dict)
            started = record.data["messages"]
            assert isinstance(started, list)
            found = list(started)
    return found


def test_without_rules_everything_stays() -> None:
    retained = retain(turns(3), Retention(), NOW)

    assert (list(retained.stays), retained.retired) == (turns(3), ())


def test_whole_turns_older_than_the_rule_go() -> None:
    retained = retain(turns(4), Retention(max_age_days=1.5), NOW)

    assert contents(retained.stays) == [*turn(2), *turn(3)]
    assert [record.data for record in retained.retired] == [*turn(0), *turn(1)]
    assert [record.at for record in retained.retired] == [NOW - 3 * DAY] * 6 + [
        NOW - 2 * DAY
    ] * 6


def test_oldest_turns_go_until_rule_is_met() -> None:
    retained = retain(turns(4), Retention(max_messages=13), NOW)

    assert contents(retained.stays) == [*turn(2), *turn(3)]


def test_oldest_turns_go_until_file_is_as_small_as_rule_says() -> None:
    size = sum(len(encode_line(record)) + 1 for record in turns(4)[12:])

    assert contents(retain(turns(4), Retention(max_bytes=size), NOW).stays) == [
        *turn(2),
        *turn(3),
    ]
    assert contents(retain(turns(4), Retention(max_bytes=size - 1), NOW).stays) == turn(
        3
    )


def test_the_last_turn_stays_whatever_the_rules_say() -> None:
    strict = Retention(max_age_days=1e-9, max_messages=1, max_bytes=1)

    assert contents(retain(turns(3), strict, NOW + DAY).stays) == turn(2)


def test_messages_of_kept_roles_stay_before_the_rest() -> None:
    records = [message(said("Be brief.", "system"), 9), *turns(3)]

    retained = retain(records, Retention(max_messages=7), NOW)

    assert contents(retained.stays) == [said("Be brief.", "system"), *turn(2)]
    assert (
        retain(records, Retention(max_messages=7, keep_roles=()), NOW).retired[0].data
        == records[0].data
    )


def test_where_only_kept_roles_would_go_nothing_does() -> None:
    records = [message(said("Be brief.", "system"), 9), message(said("Hello."))]

    assert retain(records, Retention(max_age_days=1), NOW).retired == ()


def test_roles_that_nobody_knows_are_part_of_their_turn() -> None:
    records = [message(said("Not bad.", "critic"), 3), *turns(1)]

    assert contents(retain(records, Retention(max_age_days=1), NOW).stays) == turn(0)


def test_what_was_cleared_goes_before_anything_else() -> None:
    records = [*turns(2), epoch(said("Be brief.", "system")), message(said("Hello."))]
    size = sum(len(encode_line(record)) + 1 for record in records)

    retained = retain(records, Retention(max_bytes=size // 2), NOW)

    assert (list(retained.stays), list(retained.retired)) == (
        records[12:],
        records[:12],
    )
    assert retain(records, Retention(max_bytes=size), NOW).retired == ()


def test_what_was_cleared_goes_when_it_is_old() -> None:
    records = [
        message(said("old"), 5),
        epoch(said("Be brief.", "system"), age=4),
        message(said("Hello."), 3),
    ]

    assert [
        record.data
        for record in retain(records, Retention(max_age_days=4.5), NOW).retired
    ] == [said("old")]
    assert retain(records, Retention(max_age_days=5.5), NOW).retired == ()


def test_messages_that_an_epoch_began_with_are_as_old_as_it() -> None:
    records = [
        message(said("old"), 9),
        epoch(*turn(0), *turn(1), age=5),
        message(said("Hello.")),
    ]

    retained = retain(records, Retention(max_age_days=2), NOW)

    assert contents(retained.stays) == [said("Hello.")]
    assert [record.data for record in retained.retired] == [
        said("old"),
        *turn(0),
        *turn(1),
    ]
    assert retained.retired[-1].at == NOW - 5 * DAY


rules = st.builds(
    Retention,
    max_age_days=st.none() | st.floats(0.1, 6),
    max_messages=st.none() | st.integers(1, 40),
    max_bytes=st.none() | st.integers(1, 6_000),
    keep_roles=st.sampled_from([(), ("system",)]),
)


@given(st.integers(1, 6), st.booleans(), st.booleans(), rules)
def test_nothing_is_lost_split_or_dropped_twice(
    count: int, instructed: bool, cleared: bool, retention: Retention
) -> None:
    records = [*turns(2), epoch()] if cleared else []
    records += [message(said("Be brief.", "system"), 9)] if instructed else []
    records += turns(count)

    retained = retain(records, retention, NOW)

    before = [data for record in records for data in contents((record,))]
    after = [
        data
        for record in (*retained.retired, *retained.stays)
        for data in contents((record,))
    ]
    assert sorted(map(repr, after)) == sorted(map(repr, before))
    rest = [
        data for data in contents(retained.stays) if data != said("Be brief.", "system")
    ]
    assert (
        rest
        == [part for number in range(count) for part in turn(number)][len(rest) * -1 :]
    )
    assert len(rest) % 6 == 0
    assert len(rest) >= 6
    assert retain(retained.stays, retention, NOW).retired == ()


# -- in a session


async def opened(folder: Path, **retention: JSONValue) -> PersistentContext:
    coordinator = ModuleCoordinator(session_id="one")
    coordinator.register_capability("session.working_dir", str(folder))
    return await mount(
        coordinator, {"transcript_path": "talk.jsonl", "retention": retention}
    )


def records_of(path: Path, holds: str) -> tuple[LogEntry, ...]:
    log = AppendLogFile.open(path, Expected(holds=holds))
    log.close()
    return log.records


@pytest.mark.parametrize(
    "rule",
    [
        {"max_messages": 7},
        {"max_bytes": 1_500},
        {"max_messages": 7, "keep_roles": ["user"]},
    ],
    ids=range(3),
)
async def test_what_leaves_the_file_is_in_the_archive(
    tmp_path: Path, rule: dict[str, JSONValue]
) -> None:
    everything = [part for number in range(4) for part in turn(number)]
    context = await opened(tmp_path)
    for part in everything:
        await context.add_message(part)
    await context.aclose()

    context = await opened(tmp_path, **rule)
    stored = list(await context.get_messages())
    await context.add_message(said("Hello."))
    await context.aclose()
    context = await opened(tmp_path, **rule)
    await context.aclose()

    archived = [
        record.data
        for record in records_of(tmp_path / "talk.archive.jsonl", ARCHIVE_HOLDS)
    ]
    held = contents(records_of(tmp_path / "talk.jsonl", "context-messages"))
    assert len(stored) < len(everything)
    assert sorted(map(repr, [*archived, *held])) == sorted(
        map(repr, [*everything, said("Hello.")])
    )
    assert (tmp_path / "talk.archive.jsonl").stat().st_mode & 0o777 == 0o600


async def test_turns_of_today_are_young(tmp_path: Path) -> None:
    context = await opened(tmp_path)
    for part in (*turn(0), *turn(1)):
        await context.add_message(part)
    await context.aclose()
    began = time()

    context = await opened(tmp_path, max_age_days=1)
    assert len(await context.get_messages()) == 12
    await context.aclose()
    assert time() - began < 60
