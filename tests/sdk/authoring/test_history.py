"""The log, its views, and what a turn left open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_sdk import Message, MessageDict
from amplifier_sdk.history import (
    MessageLog,
    OpenCall,
    closing_message,
    open_calls,
    tool_message,
    typed,
)

Slice: TypeAlias = "slice[int | None, int | None, int | None]"


def user(text: str) -> MessageDict:
    return {"role": "user", "content": text}


def assistant(*ids: str) -> MessageDict:
    return {
        "role": "assistant",
        "content": [{"type": "tool_call", "id": id, "name": f"t{id}"} for id in ids],
    }


@st.composite
def skips(draw: st.DrawFn, length: int) -> list[tuple[int, int]]:
    """Ascending ranges inside a length, empty and touching ones included."""
    edges = sorted(draw(st.lists(st.integers(0, length), max_size=8)))
    return list(zip(edges[::2], edges[1::2], strict=False))


@st.composite
def logs(
    draw: st.DrawFn,
) -> tuple[MessageLog, list[tuple[int, int]], list[MessageDict]]:
    """A log, what a view of it leaves out, and what the view must be equal to."""
    messages = [user(str(number)) for number in range(draw(st.integers(0, 9)))]
    skip = draw(skips(len(messages)))
    left_out = {index for first, stop in skip for index in range(first, stop)}
    return (
        MessageLog(messages),
        skip,
        [m for index, m in enumerate(messages) if index not in left_out],
    )


indexes = st.integers(-12, 12)
bounds = st.none() | indexes
slices = st.builds(slice, bounds, bounds, st.none() | indexes.filter(bool))


def item(sequence: Sequence[object], index: int) -> object:
    """Return an item, or the type of error that looking for it raises."""
    try:
        return sequence[index]
    except IndexError:
        return IndexError


@given(logs(), indexes, slices)
def test_a_view_reads_like_the_list_of_its_messages(
    parts: tuple[MessageLog, list[tuple[int, int]], list[MessageDict]],
    index: int,
    part: Slice,
) -> None:
    log, skip, model = parts

    view = log.view(skip)

    assert view == model
    assert list(view) == model
    assert len(view) == len(model)
    assert list(reversed(view)) == model[::-1]
    assert item(view, index) == item(model, index)
    assert view[part] == model[part]


@given(
    logs(),
    indexes,
    slices,
)
def test_a_typed_view_reads_like_the_list_of_its_values(
    parts: tuple[MessageLog, list[tuple[int, int]], list[MessageDict]],
    index: int,
    part: Slice,
) -> None:
    log, skip, stored = parts
    model = [*map(Message.from_dict, stored)]

    view = typed(log.view(skip))

    assert list(view) == model
    assert len(view) == len(model)
    assert item(view, index) == item(model, index)
    assert view[part] == model[part]


def test_a_view_stays_as_it_was_when_messages_are_added() -> None:
    log = MessageLog([user("1")])
    view = log.view()

    log.append(user("2"))

    assert view == [user("1")]
    assert log.view() == [user("1"), user("2")]
    assert len(log) == 2


def test_a_message_is_converted_once() -> None:
    log = MessageLog([user("1")])

    assert typed(log.view())[0] is typed(log.view())[0]


def test_a_view_is_a_list_of_its_own() -> None:
    log = MessageLog([user("1"), user("2")])
    view: list[MessageDict] = log.view([(0, 1)])

    view.append(user("3"))

    assert isinstance(view, list)
    assert view + [user("4")] == [user("2"), user("3"), user("4")]  # noqa: RUF005  # the operator is what is tested
    assert json.loads(json.dumps(view)) == view
    assert [message.text for message in typed(view)] == ["2", "3"]
    assert log.view() == [user("1"), user("2")]


def test_stored_messages_come_back_by_identity() -> None:
    message: MessageDict = {
        "role": "user",
        "content": [{"type": "x-vendor", "deep": {"kept": [1]}}],
        "vendor": 1,
    }
    log = MessageLog([message])

    assert log.view()[0] is message


def test_other_sequences_are_converted_at_once() -> None:
    assert typed([user("1"), user("2")]) == (
        Message(role="user", content="1"),
        Message(role="user", content="2"),
    )
    with pytest.raises(ValueError, match="role"):
        typed([{"role": "nobody"}])


def test_view_differs_from_messages_and_non_sequences() -> None:
    view: object = MessageLog([user("1")]).view()

    assert view != [user("2")]
    assert view != [user("1"), user("2")]
    assert view != "1"
    assert view != 1
    assert repr(view) == "[{'role': 'user', 'content': '1'}]"
    with pytest.raises(TypeError, match="unhashable"):
        hash(view)


def test_calls_of_last_answer_are_open_until_they_are_answered() -> None:
    history = [user("go"), assistant("a", "b", "c"), tool_message("b", "tb", "done")]

    assert open_calls(history) == (OpenCall("a", "ta"), OpenCall("c", "tc"))


def test_older_answers_are_not_looked_at() -> None:
    assert (
        open_calls(
            [
                assistant("a"),
                user("go"),
                assistant("b"),
                tool_message("b", "tb", "done"),
            ]
        )
        == ()
    )


@pytest.mark.parametrize(
    "message",
    [
        {"role": "function", "tool_call_id": "a", "content": "done"},
        {
            "role": "tool",
            "content": [
                {"type": "tool_result", "tool_call_id": "a", "output": "done"},
                "text",
            ],
        },
    ],
)
def test_results_in_any_shape_answer_a_call(message: MessageDict) -> None:
    assert open_calls([assistant("a"), message]) == ()


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "content": "lost"},
        {"role": "tool", "content": [{"type": "text", "text": "x"}, "y"]},
    ],
)
def test_a_result_without_an_id_answers_nothing(message: MessageDict) -> None:
    assert open_calls([assistant("a"), message]) == (OpenCall("a", "ta"),)


def test_an_answer_without_calls_leaves_nothing_open() -> None:
    assert (
        open_calls([user("go"), {"role": "assistant", "content": "done"}, user("more")])
        == ()
    )
    assert open_calls([user("go")]) == ()
    assert open_calls([]) == ()


def test_calls_beside_the_content_are_open_as_well() -> None:
    asked: MessageDict = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "tool": "ta"}, {"id": "b"}],
    }

    assert open_calls([asked, tool_message("b", "tb", "done")]) == (
        OpenCall("a", "ta"),
    )
    assert (
        open_calls([{"role": "assistant", "content": "done", "tool_calls": "none"}])
        == ()
    )


def test_closing_message_answers_call_and_says_that_it_made_up() -> None:
    message = closing_message(OpenCall("a", "ta"), "it never returned")

    assert open_calls([assistant("a"), message]) == ()
    assert message["content"] == "Error: it never returned"
    assert message["metadata"] == {"synthesized": True}
    assert "metadata" not in tool_message("a", "ta", "done")
