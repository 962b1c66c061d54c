"""What is added to one request is read as if it stood in the list, wherever a provider looks."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.kernel.turn.overlay import with_injections
from amplifier_sdk.content import TextBlock
from amplifier_sdk.history import MessageLog, typed
from amplifier_sdk.messages import Message, MessageDict
from amplifier_sdk.results import ContextInjection

ROLES = st.sampled_from(["user", "assistant", "tool"])
HISTORIES = st.lists(ROLES, max_size=6).map(
    lambda roles: [
        MessageDict(role=role, content=f"m{number}")
        for number, role in enumerate(roles)
    ]
)
INJECTIONS = st.lists(
    st.builds(
        ContextInjection,
        content=st.text(max_size=3),
        append_to_last_tool_result=st.booleans(),
    ),
    max_size=4,
)


def read(messages: Sequence[MessageDict]) -> Sequence[Message]:
    """Read messages as a context gives them."""
    return typed(MessageLog(messages).view())


def copied(
    messages: Sequence[Message], injections: Sequence[ContextInjection]
) -> list[Message]:
    """Add one after the other to a copy."""
    whole = list(messages)
    for injection in injections:
        last = whole[-1] if whole else None
        if (
            injection.append_to_last_tool_result
            and last is not None
            and last.role == "tool"
        ):
            whole[-1] = attrs.evolve(
                last, content=f"{last.content}\n\n{injection.content}"
            )
        else:
            whole.append(Message(role=injection.role, content=injection.content))
    return whole


@given(HISTORIES, INJECTIONS, st.slices(12))
def test_added_texts_read_as_in_a_copy(
    history: list[MessageDict],
    injections: list[ContextInjection],
    part: slice[int | None, int | None, int | None],
) -> None:
    messages = read(history)
    whole, seen = copied(messages, injections), with_injections(messages, injections)

    assert list(seen) == whole
    assert len(seen) == len(whole)
    assert seen[part] == whole[part]
    places = range(-len(whole), len(whole))
    assert [seen[at] for at in places] == [whole[at] for at in places]
    assert list(reversed(seen)) == whole[::-1]
    assert list(messages) == list(read(history))


@pytest.mark.parametrize("index", [-4, 3, 10])
def test_there_is_nothing_outside(index: int) -> None:
    messages = read([MessageDict(role="user", content="go")])
    seen = with_injections(
        messages, [ContextInjection(content="one"), ContextInjection(content="two")]
    )

    with pytest.raises(IndexError, match=f"message {index} of 3"):
        seen[index]


def test_a_result_of_blocks_gets_a_block_more() -> None:
    messages = [
        Message(role="tool", content=[TextBlock(text="done")], tool_call_id="c1")
    ]

    (message,) = with_injections(
        messages, [ContextInjection(content="psst", append_to_last_tool_result=True)]
    )

    assert message.content == (TextBlock(text="done"), TextBlock(text="\n\npsst"))
    assert message.tool_call_id == "c1"
