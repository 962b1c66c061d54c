"""Any history becomes one that vendors accept, with the least change, and says what was wrong with it."""

from __future__ import annotations

import copy
import os
from collections import Counter
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given, settings

from amplifier_sdk import JSONValue, Message, MessageDict
from amplifier_sdk.history import (
    HistoryFinding,
    MessageLog,
    Repair,
    closing_message,
    diagnose,
    open_calls,
    repair,
    sendable,
    tool_message,
)
from tests.sdk.history.histories import answered, called, complaints, histories, said

EXAMPLES: Final = int(os.environ.get("AMPLIFIER_HISTORIES", "100"))
"""How many random histories each property is tried on; 10,000 take some minutes."""

pytestmark = pytest.mark.timeout(60 + EXAMPLES // 5)

GO: Final[MessageDict] = {"role": "user", "content": "go"}


def assistant(*ids: str, text: str = "") -> MessageDict:
    blocks: list[JSONValue] = [{"type": "text", "text": text}] if text else []
    return {
        "role": "assistant",
        "content": [
            *blocks,
            *({"type": "tool_call", "id": id, "name": "find"} for id in ids),
        ],
    }


def beside(*ids: str) -> MessageDict:
    calls: list[JSONValue] = [
        {"id": id, "type": "function", "function": {"name": "find", "arguments": "{}"}}
        for id in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(id: str, text: str = "found") -> MessageDict:
    return {"role": "tool", "tool_call_id": id, "content": text}


def block(id: str, output: JSONValue = "found") -> JSONValue:
    return {"type": "tool_result", "tool_call_id": id, "output": output}


def problems(findings: Sequence[HistoryFinding]) -> list[tuple[str, int]]:
    return [(finding.problem, finding.index) for finding in findings]


SOUND: Final[dict[str, list[MessageDict]]] = {
    "nothing": [],
    "talk": [
        GO,
        {"role": "assistant", "content": "done"},
        GO,
        {"role": "assistant", "content": [{"type": "text", "text": "x"}]},
    ],
    "calls": [
        GO,
        assistant("a", "b"),
        result("a"),
        result("b"),
        assistant("c", text="and"),
        result("c"),
    ],
    "calls-beside": [GO, beside("a", "b"), result("a"), result("b")],
    "both-spellings": [
        {
            **assistant("a"),
            "tool_calls": [{"id": "a", "tool": "find", "arguments": {}}],
        },
        result("a"),
    ],
    "older-role": [
        beside("a"),
        {"role": "function", "tool_call_id": "a", "name": "find", "content": "found"},
    ],
    "result-blocks": [
        assistant("a", "b"),
        {"role": "tool", "content": [block("a"), block("b")]},
    ],
    "one-result-block": [
        assistant("a"),
        {"role": "tool", "tool_call_id": "a", "content": [block("a")]},
    ],
    "thinking-alone": [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": ""}]}
    ],
    "vendor-field-alone": [{"role": "assistant", "content": "", "refusal": "no"}],
    "empty-prompt": [{"role": "user", "content": ""}],
    "roles-in-any-order": [
        {"role": "assistant", "content": "hello"},
        GO,
        GO,
        {"role": "system", "content": "be brief"},
    ],
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_history_is_returned_itself(name: str) -> None:
    history = SOUND[name]

    assert diagnose(history) == ()
    assert repair(history).messages is history


def test_a_view_of_a_log_is_repaired_without_touching_the_log() -> None:
    log = MessageLog([GO, assistant("a")])

    assert [dict(message) for message in repair(log.view()).messages[:2]] == list(
        log.view()
    )
    assert len(log) == 2


def mended(
    history: Sequence[MessageDict],
) -> tuple[list[MessageDict], list[tuple[str, int]]]:
    done = repair(history)
    assert complaints(done.messages) == []
    return list(done.messages), problems(done.findings)


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    messages, found = mended([GO, assistant("a", "b"), result("b"), GO])

    assert found == [("unanswered_call", 1)]
    assert messages[2]["tool_call_id"] == "a"
    assert messages[2]["metadata"] == {"synthesized": True}
    assert "may have run or not" in str(messages[2]["content"])
    assert messages[3:] == [result("b"), GO]


def test_result_that_block_alone_names_gets_call_s_new_id_there() -> None:
    answered: MessageDict = {"role": "tool", "content": [block("a")]}

    messages, _ = mended([GO, assistant("a"), answered, assistant("a"), answered])

    assert messages[2] == answered
    assert [*messages[4]] == ["role", "content"]
    assert messages[4] != answered


def test_a_result_that_answers_no_call_is_left_out() -> None:
    assert mended([result("x"), GO, result("y")]) == (
        [GO],
        [("orphan_result", 0), ("orphan_result", 2)],
    )


def test_a_message_between_a_call_and_its_result_goes_behind_it() -> None:
    note: MessageDict = {"role": "system", "content": "a handler's words"}

    messages, found = mended([GO, assistant("a"), note, result("a"), GO])

    assert messages == [GO, assistant("a"), result("a"), note, GO]
    assert found == [("misplaced_result", 3)]


def test_results_come_in_the_order_of_their_calls() -> None:
    messages, found = mended([assistant("a", "b"), result("b"), result("a")])

    assert messages == [assistant("a", "b"), result("a"), result("b")]
    assert {problem for problem, _ in found} == {"misplaced_result"}


def test_a_result_that_stands_before_its_call_goes_behind_it() -> None:
    assert mended([result("a"), assistant("a")]) == (
        [assistant("a"), result("a")],
        [("misplaced_result", 0)],
    )


def test_of_two_results_the_first_stays() -> None:
    messages, found = mended(
        [assistant("a"), result("a", "first"), result("a", "second")]
    )

    assert messages == [assistant("a"), result("a", "first")]
    assert found == [("duplicate_result", 2)]


def test_a_real_result_takes_the_place_of_one_that_was_made_up() -> None:
    made_up = closing_message(open_calls([assistant("a")])[0], "the turn was cancelled")

    messages, found = mended(
        [assistant("a"), made_up, result("a", "real"), result("a", "late")]
    )

    assert messages == [assistant("a"), result("a", "real")]
    assert found == [("duplicate_result", 1), ("duplicate_result", 3)]


def test_a_result_that_was_made_up_takes_no_real_one_s_place() -> None:
    made_up = tool_message("a", "find", "Error", metadata={"synthesized": True})

    assert mended([assistant("a"), result("a"), made_up]) == (
        [assistant("a"), result("a")],
        [("duplicate_result", 2)],
    )


@pytest.mark.parametrize("make", [assistant, beside], ids=["blocks", "beside"])
def test_calls_that_share_an_id_get_one_each_with_their_results(make: object) -> None:
    asked = beside if make is beside else assistant

    messages, found = mended(
        [
            asked("a"),
            result("a", "1"),
            asked("a"),
            result("a", "2"),
            asked("a", "a"),
            result("a", "3"),
        ]
    )

    assert [called(m) for m in messages if m["role"] == "assistant"] == [
        ["a"],
        ["a-2"],
        ["a-3", "a-4"],
    ]
    assert [m["content"] for m in messages if m["role"] == "tool"][:3] == [
        "1",
        "2",
        "3",
    ]
    assert found == [
        ("duplicate_call", 2),
        ("duplicate_call", 4),
        ("duplicate_call", 4),
        ("unanswered_call", 4),
    ]


def test_a_new_id_is_nobody_else_s_and_not_much_longer() -> None:
    long = "x" * 64
    messages, _ = mended([assistant("a", "a", "a-2", long, long)])

    assert called(messages[0]) == ["a", "a-3", "a-2", long, "x" * 48 + "-2"]


def test_calls_beside_content_keep_in_step_with_its_blocks() -> None:
    entry: JSONValue = {"id": "a", "tool": "find", "arguments": {}}
    first: MessageDict = {**assistant("a"), "tool_calls": [entry]}

    messages, _ = mended(
        [
            first,
            result("a"),
            {**assistant("a", "a"), "tool_calls": [entry, entry, entry]},
        ]
    )

    assert messages[2]["tool_calls"] == [
        {"id": "a-2", "tool": "find", "arguments": {}},
        {"id": "a-3", "tool": "find", "arguments": {}},
        {"id": "a-3", "tool": "find", "arguments": {}},
    ]


def test_call_beside_content_that_is_no_block_is_call_of_own() -> None:
    asked: MessageDict = {
        **assistant(""),
        "tool_calls": [{"id": "b", "tool": "find"}, {"id": "", "tool": "find"}],
    }

    messages, found = mended([asked])

    assert called(messages[0]) == ["call-1", "b"]
    assert found == [("missing_id", 0), ("unanswered_call", 0), ("unanswered_call", 0)]


def test_entry_beside_content_that_nobody_reads_stays_as_it_is() -> None:
    asked: MessageDict = {**assistant("a", "a"), "tool_calls": [{"tool": "find"}]}

    assert mended([asked])[0][0]["tool_calls"] == [{"tool": "find"}]


def test_calls_and_results_without_ids_paired_by_name_and_order() -> None:
    asked: MessageDict = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"function": {"name": "find"}},
            {"function": {"name": "write"}},
            {"function": {"name": "find"}},
        ],
    }
    answers: list[MessageDict] = [
        {"role": "function", "name": "write", "content": "written"},
        {"role": "function", "name": "find", "content": "found 1"},
        {"role": "tool", "content": "found 2"},
        {"role": "function", "name": "find", "content": "too many"},
    ]

    messages, found = mended([asked, *answers])

    assert [m["content"] for m in messages[1:]] == ["found 1", "written", "found 2"]
    assert called(messages[0]) == ["call-1", "call-2", "call-3"]
    assert Counter(problem for problem, _ in found) == {
        "missing_id": 6,
        "misplaced_result": 2,
        "orphan_result": 1,
    }


def test_answers_without_content_are_left_out() -> None:
    blank: list[MessageDict] = [
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": " \n"},
        {"role": "assistant", "content": None},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": ""}],
            "refusal": None,
        },
    ]

    assert mended([GO, *blank, GO]) == (
        [GO, GO],
        [("empty_answer", index) for index in range(1, 5)],
    )


@pytest.mark.parametrize("words", ["and now?", {"type": "text", "text": "and now?"}])
def test_results_in_a_person_s_message_move_and_the_words_stay(
    words: JSONValue,
) -> None:
    messages, found = mended(
        [
            assistant("a", "b"),
            {"role": "user", "content": [block("a", 1), words, block("b", 2)]},
        ]
    )

    assert messages[1:] == [
        {"role": "tool", "tool_call_id": "a", "content": [block("a", 1)]},
        {"role": "tool", "tool_call_id": "b", "content": [block("b", 2)]},
        {"role": "user", "content": [words]},
    ]
    assert found == [("misplaced_result", 1), ("misplaced_result", 1)]


def test_a_person_s_message_of_results_alone_goes_with_them() -> None:
    messages, _ = mended(
        [assistant("a"), {"role": "user", "content": [block("a"), block("x")]}]
    )

    assert messages == [
        assistant("a"),
        {"role": "tool", "tool_call_id": "a", "content": [block("a")]},
    ]


def test_results_of_one_message_are_split_only_if_needed() -> None:
    remark: JSONValue = {"type": "text", "text": "of b"}
    together: MessageDict = {
        "role": "tool",
        "name": "find",
        "content": [block("b", 2), remark, block("a", 1)],
    }

    messages, _ = mended([assistant("a", "b"), together])

    assert messages[1:] == [
        {
            "role": "tool",
            "name": "find",
            "tool_call_id": "a",
            "content": [block("a", 1)],
        },
        {
            "role": "tool",
            "name": "find",
            "tool_call_id": "b",
            "content": [block("b", 2), remark],
        },
    ]


def test_a_message_of_several_results_gets_their_calls_new_ids() -> None:
    before: list[MessageDict] = [assistant("a", "b"), result("a"), result("b")]
    words: JSONValue = {"type": "text", "text": "both"}
    both: MessageDict = {
        "role": "tool",
        "tool_call_id": "a",
        "content": [block("a", 1), words, block("b", 2)],
    }

    messages, _ = mended([*before, assistant("a", "b"), both])

    assert messages[4] == {
        "role": "tool",
        "content": [block("a-2", 1), words, block("b-2", 2)],
    }


@pytest.mark.parametrize(
    ("own", "inner"),
    [("a", "x"), ("x", "a"), ("x", "y")],
    ids=["message", "block", "neither"],
)
def test_result_naming_two_calls_uses_the_existing_one(own: str, inner: str) -> None:
    messages, found = mended(
        [
            assistant("a"),
            {"role": "tool", "tool_call_id": own, "content": [block(inner)]},
        ]
    )

    if "a" in (own, inner):
        assert messages[1] == {
            "role": "tool",
            "tool_call_id": "a",
            "content": [block("a")],
        }
        assert found == [("mismatched_id", 1)]
    else:
        assert found == [("unanswered_call", 0), ("orphan_result", 1)]


@pytest.mark.parametrize(
    ("given", "readable"),
    [
        (
            {"role": "critic", "content": "Not bad."},
            {"role": "user", "content": "Not bad."},
        ),
        ({"role": ["user"], "content": "Who?"}, {"role": "user", "content": "Who?"}),
        ({"role": "user", "content": 7}, {"role": "user", "content": "7"}),
        (
            {"content": [{"text": "typeless"}]},
            {"role": "user", "content": '[{"text": "typeless"}]'},
        ),
        (
            {"role": "assistant", "content": "hi", "tool_calls": [1]},
            {"role": "assistant", "content": "hi"},
        ),
        (
            {"role": "assistant", "content": {}, "tool_calls": [1]},
            {"role": "assistant", "content": "{}"},
        ),
    ],
    ids=["role", "no-text-as-role", "content", "block", "calls", "both"],
)
def test_what_cannot_be_read_is_kept_as_text(
    given: MessageDict, readable: MessageDict
) -> None:
    assert mended([given]) == ([readable], [("unreadable_message", 0)])


def test_a_finding_tells_a_person_and_a_program_what_is_wrong() -> None:
    (finding,) = diagnose([GO, assistant("a")])

    assert (
        str(finding)
        == "Message 1: A call has no result (find 'a'); a result that says so is put after it"
    )
    assert finding.to_dict() == {
        "problem": "unanswered_call",
        "index": 1,
        "text": "A call has no result",
        "remedy": "a result that says so is put after it",
        "call_id": "a",
        "name": "find",
    }


def test_a_finding_that_is_about_no_call_names_none() -> None:
    (finding,) = diagnose([{"role": "assistant", "content": ""}])

    assert (
        str(finding)
        == "Message 0: An answer has neither text nor calls; it is left out"
    )
    assert sorted(finding.to_dict()) == ["index", "problem", "remedy", "text"]


def test_findings_come_in_the_order_of_the_messages() -> None:
    found = diagnose(
        [
            assistant("a"),
            GO,
            {"role": "assistant", "content": ""},
            result("x"),
            result("a"),
        ]
    )

    assert [finding.index for finding in found] == [2, 3, 4]


# -- any history


@given(histories())
@settings(max_examples=EXAMPLES)
def test_any_history_becomes_one_that_vendors_accept(
    history: list[MessageDict],
) -> None:
    before = copy.deepcopy(history)

    done = repair(history)

    assert complaints(done.messages) == []
    assert history == before, "the given history was changed"
    assert said(done.messages) == said(history), "what a person said is not all there"


@given(histories())
@settings(max_examples=EXAMPLES)
def test_findings_cover_what_vendors_refuse_and_no_more(
    history: list[MessageDict],
) -> None:
    assert bool(diagnose(history)) == bool(complaints(history))


@given(histories())
@settings(max_examples=EXAMPLES)
def test_repairing_twice_is_repairing_once(history: list[MessageDict]) -> None:
    done = repair(history)

    assert repair(done.messages) == Repair(messages=done.messages)


@given(histories())
@settings(max_examples=EXAMPLES)
def test_what_no_finding_speaks_of_stays_the_very_same(
    history: list[MessageDict],
) -> None:
    done = repair(history)

    spoken_of = {finding.index for finding in done.findings}
    ids = {finding.call_id or "" for finding in done.findings}
    made = set(map(id, done.messages))
    assert [
        index
        for index, message in enumerate(history)
        if index not in spoken_of
        and ids.isdisjoint(answered(message))
        and id(message) not in made
    ] == []


@given(histories())
@settings(max_examples=EXAMPLES)
def test_no_result_is_lost_but_those_that_a_finding_names(
    history: list[MessageDict],
) -> None:
    done = repair(history)

    counted = Counter(finding.problem for finding in done.findings)
    left_out = counted["orphan_result"] + counted["duplicate_result"]
    made = counted["unanswered_call"]
    assert (
        sum(len(answered(m)) for m in done.messages)
        == sum(len(answered(m)) for m in history) - left_out + made
    )


@given(histories())
@settings(max_examples=EXAMPLES)
def test_typed_messages_are_mended_as_stored_ones_are(
    history: list[MessageDict],
) -> None:
    messages = [Message.from_dict(message) for message in history]

    done = sendable(messages)

    assert done.findings == diagnose([message.to_dict() for message in messages])
    assert complaints([message.to_dict() for message in done.messages]) == []
    assert (done.messages is messages) == (not done.findings)


# -- long ones


def test_answers_with_thousands_of_calls_are_repaired() -> None:
    """Two thousand calls of one answer, and as many results, in every order and under every id."""
    size = 2_000
    one_id = assistant(*["a"] * size)
    backwards: MessageDict = {
        "role": "tool",
        "content": [block(str(number)) for number in reversed(range(size))],
    }
    nameless: list[MessageDict] = [{"role": "tool", "content": "found"}] * size
    made_up: list[MessageDict] = [
        tool_message("a", "find", "x", metadata={"synthesized": True})
    ] * size

    for history in (
        [one_id, *made_up, *[result("a")] * size],
        [assistant(*map(str, range(size))), backwards],
        [assistant(*[""] * size), *nameless],
        [
            message
            for _ in range(size // 2)
            for message in (assistant("a"), result("a"))
        ],
        [*[result("a")] * size, *[assistant("a")] * size],
    ):
        assert complaints(repair(history).messages) == []
