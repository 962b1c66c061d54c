"""Images: how many one request has."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.media.counts import fit_images
from amplifier_sdk.content import ContentBlock, ImageBlock, TextBlock
from amplifier_sdk.media import image_block, media_note
from amplifier_sdk.messages import Message


def picture(size: int = 8) -> ImageBlock:
    return image_block("image/png", "A" * size)


def shown(*blocks: ContentBlock) -> Message:
    return Message(role="tool", tool_call_id="c", content=blocks)


def sizes(messages: object) -> list[int]:
    """Return the characters of every image that is left, in order."""
    assert isinstance(messages, (list, tuple))
    blocks = (
        block
        for message in messages
        for block in message.blocks
        if isinstance(block, ImageBlock)
    )
    return [len(str(block.source["data"])) for block in blocks]


def test_messages_within_the_limits_come_back_as_they_are() -> None:
    messages = [
        Message(role="user", content="Look."),
        shown(TextBlock(text="a"), picture()),
        shown(picture()),
    ]

    fitted = fit_images(messages, max_images=2, max_characters=16)

    assert fitted.messages is messages
    assert fitted.left_out == 0


def test_the_oldest_images_give_way_and_texts_say_so() -> None:
    messages = [
        shown(picture(number), TextBlock(text=f"{number}")) for number in range(1, 6)
    ]

    fitted = fit_images(messages, max_images=4, max_characters=100)

    assert fitted.left_out == 2  # one too many, and room for the next one
    assert sizes(fitted.messages) == [3, 4, 5]
    note = media_note("image", "newer ones took its place")
    assert fitted.messages[0] == shown(note, TextBlock(text="1"))
    assert fitted.messages[2] is messages[2]


def test_size_of_all_images_counts_and_newest_always_goes() -> None:
    assert sizes(
        fit_images(
            [shown(picture(60), picture(50))], max_images=9, max_characters=100
        ).messages
    ) == [50]
    assert sizes(
        fit_images(
            [shown(picture(60), picture(500))], max_images=9, max_characters=100
        ).messages
    ) == [500]


def test_a_model_that_cannot_see_gets_texts() -> None:
    by_address = ImageBlock(source={"url": "https://a.example/b.png"})

    fitted = fit_images([shown(picture(), by_address)], max_images=0, max_characters=0)

    assert fitted.messages == [
        shown(*[media_note("image", "this model cannot see")] * 2)
    ]


@given(
    st.lists(st.integers(1, 40), max_size=30), st.integers(0, 8), st.integers(1, 120)
)
def test_images_stay_within_the_limits_and_none_comes_back(
    numbers: list[int], max_images: int, max_characters: int
) -> None:
    messages = [shown(picture(number)) for number in numbers]
    left_out = 0
    for end in range(len(messages) + 1):
        fitted = fit_images(
            messages[:end], max_images=max_images, max_characters=max_characters
        )
        stored = sizes(fitted.messages)

        assert stored == numbers[fitted.left_out : end]  # the newest, without a gap
        assert len(stored) <= max_images
        assert sum(stored) <= max_characters or len(stored) == 1
        assert fitted.left_out >= left_out
        left_out = fitted.left_out
