"""What of a conversation is sent, as properties."""

from __future__ import annotations

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from amplifier_module_provider_local.context_window import Fitted, Ruler, fit
from amplifier_module_provider_local.conversation import RequestParts, SpeakerTurn

TEXTS = st.text(st.characters(codec="utf-8"), max_size=300)
TURNS = st.lists(
    st.builds(SpeakerTurn, st.sampled_from(["user", "assistant"]), TEXTS), max_size=30
).map(tuple)
FRAME = 8


async def by_three(text: str) -> tuple[bytes, ...]:
    """Split a text into tokens of three bytes."""
    data = text.encode()
    return tuple(data[start : start + 3] for start in range(0, len(data), 3))


def fitted(conversation: RequestParts, window: int) -> Fitted:
    async def run() -> Fitted:
        return await fit(conversation, Ruler(by_three), window=window)

    return anyio.run(run)


def tokens(text: str) -> int:
    return -(-len(text.encode()) // 3)


@settings(max_examples=50)
@given(
    TURNS,
    st.text(max_size=50),
    st.lists(TEXTS, max_size=3),
    st.integers(min_value=100, max_value=3000),
)
def test_what_is_sent_is_short_and_the_newest(
    turns: tuple[SpeakerTurn, ...], question: str, results: list[str], window: int
) -> None:
    conversation = RequestParts(
        system="Be brief.", earlier=turns, question=question, results=tuple(results)
    )

    sent = fitted(conversation, window)

    first, *stored, last = sent.messages
    assert first == {"role": "system", "content": "Be brief."}
    assert stored == [turn.to_json() for turn in turns[len(turns) - len(stored) :]]
    assert sent.left_out == len(turns) - len(stored)
    assert stored[:1] == [] or stored[0]["role"] == "user"
    content = str(last["content"])
    assert content.endswith(question)
    given_ = "\n\n".join(results)
    shown = (
        content.removesuffix(f"\n\nUsing the text above: {question}")
        if content != question
        else ""
    )
    assert given_.startswith(shown)
    assert sent.was_cut == (shown != given_)
    if stored or shown:
        total = sum(
            tokens(str(message["content"])) + FRAME for message in sent.messages
        )
        assert total <= max(window // 2, tokens(question) + 2 * FRAME) + 3 * FRAME


@given(st.integers(min_value=0, max_value=40))
def test_a_history_of_small_messages_is_limited_by_their_number(count: int) -> None:
    turns = tuple(SpeakerTurn("user", "x") for _ in range(count))

    sent = fitted(RequestParts(earlier=turns, question="?"), 400)

    assert len(sent.messages) == 1 + min(count, 19)
