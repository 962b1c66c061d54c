"""Images: which ones models take, and how many one request has."""

from __future__ import annotations

import base64
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_sdk.content import ContentBlock, ImageBlock, TextBlock
from amplifier_sdk.images import (
    MOST_IMAGE_CHARACTERS,
    fit_images,
    has_images,
    image_block,
    image_note,
    image_type,
    sound_image,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.messages import Message

HEADS: Final = {
    "image/png": b"\x89PNG\r\n\x1a\n" + bytes(20),
    "image/jpeg": b"\xff\xd8\xff\xe0" + bytes(20),
    "image/gif": b"GIF89a" + bytes(20),
    "image/webp": b"RIFF\0\0\0\0WEBPVP8 " + bytes(20),
}


def written(data: bytes) -> str:
    return base64.b64encode(data).decode()


def picture(size: int = 8) -> ImageBlock:
    return image_block("image/png", "A" * size)


def shown(*blocks: ContentBlock) -> Message:
    return Message(role="tool", tool_call_id="c", content=blocks)


def sizes(messages: object) -> list[int]:
    """Return the characters of every image that is left, in order."""
    assert isinstance(messages, (list, tuple))
    blocks = (block for message in messages for block in message.blocks if isinstance(block, ImageBlock))
    return [len(str(block.source["data"])) for block in blocks]


@pytest.mark.parametrize("media_type", HEADS)
def test_a_kind_is_told_by_the_bytes_and_not_by_its_name(media_type: str) -> None:
    data = written(HEADS[media_type])

    assert image_type(HEADS[media_type]) == media_type
    assert sound_image(image_block("image/heic", data)) == image_block(media_type, data)


def test_data_may_stand_in_an_address_and_in_lines() -> None:
    data = written(HEADS["image/png"])

    address = ImageBlock(source={"url": f"data:image/jpeg;base64,{data}"})
    lines = ImageBlock(source={"data": f"{data[:9]}\n{data[9:]}\n", "detail": "low"}, visibility="user")

    assert sound_image(address) == image_block("image/png", data)
    source = {"type": "base64", "media_type": "image/png", "data": data, "detail": "low"}
    assert sound_image(lines) == ImageBlock(source=source, visibility="user")


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ({"url": "https://a.example/b.png"}, {"type": "url", "url": "https://a.example/b.png"}),
        ({"type": "file", "file_id": "f1", "x": object()}, {"type": "file", "file_id": "f1"}),
    ],
    ids=["address", "file"],
)
def test_addresses_and_files_of_a_vendor_are_taken_as_they_are(source: JSONObject, kept: JSONObject) -> None:
    assert sound_image(ImageBlock(source=source)) == ImageBlock(source=kept)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({}, "its source has neither data nor an address that vendors fetch"),
        ({"url": "file:///etc/passwd"}, "its source has neither data nor an address that vendors fetch"),
        ({"data": "not base64!"}, "its data are not base64"),
        ({"data": "gr\u00fcn"}, "its data are not base64"),
        ({"url": "data:image/png,%89PNG"}, "its data are not base64"),
        ({"data": written(b"<svg/>")}, "it is not PNG, JPEG, GIF or WebP, which are all that models take"),
        (
            {"data": written(b"II*\0"), "media_type": "image/tiff"},
            "image/tiff is not PNG, JPEG, GIF or WebP, which are all that models take",
        ),
    ],
    ids=["nothing", "scheme", "text", "letters", "percent", "unnamed", "named"],
)
def test_what_no_model_takes_is_a_text_that_says_why(source: JSONObject, reason: str) -> None:
    assert sound_image(ImageBlock(source=source)) == TextBlock(text=f"[an image is not shown: {reason}]")


def test_an_image_over_the_largest_size_is_a_text_with_both_figures() -> None:
    head = written(HEADS["image/png"])[:24]
    fits = head + "A" * (MOST_IMAGE_CHARACTERS - len(head))

    assert isinstance(sound_image(image_block("image/png", fits)), ImageBlock)
    note = image_note("it has 5,242,884 characters as base64, and models take 5,242,880")
    assert sound_image(image_block("image/png", fits + "AAAA")) == note


def test_messages_within_the_limits_come_back_as_they_are() -> None:
    messages = [Message(role="user", content="Look."), shown(TextBlock(text="a"), picture()), shown(picture())]

    fitted = fit_images(messages, most=2, most_characters=16)

    assert fitted.messages is messages
    assert fitted.left_out == 0
    assert has_images(messages)
    assert not has_images(messages[:1])


def test_the_oldest_images_give_way_and_texts_say_so() -> None:
    messages = [shown(picture(number), TextBlock(text=f"{number}")) for number in range(1, 6)]

    fitted = fit_images(messages, most=4, most_characters=100)

    assert fitted.left_out == 2  # one too many, and room for the next one
    assert sizes(fitted.messages) == [3, 4, 5]
    note = image_note("newer ones took its place")
    assert fitted.messages[0] == shown(note, TextBlock(text="1"))
    assert fitted.messages[2] is messages[2]


def test_the_size_of_all_images_counts_and_the_newest_always_goes() -> None:
    assert sizes(fit_images([shown(picture(60), picture(50))], most=9, most_characters=100).messages) == [50]
    assert sizes(fit_images([shown(picture(60), picture(500))], most=9, most_characters=100).messages) == [500]


def test_a_model_that_cannot_see_gets_texts() -> None:
    by_address = ImageBlock(source={"url": "https://a.example/b.png"})

    fitted = fit_images([shown(picture(), by_address)], most=0, most_characters=0)

    assert fitted.messages == [shown(*[image_note("this model cannot see")] * 2)]


@given(st.lists(st.integers(1, 40), max_size=30), st.integers(0, 8), st.integers(1, 120))
def test_images_stay_within_the_limits_and_none_comes_back(numbers: list[int], most: int, most_characters: int) -> None:
    messages = [shown(picture(number)) for number in numbers]
    left_out = 0
    for end in range(len(messages) + 1):
        fitted = fit_images(messages[:end], most=most, most_characters=most_characters)
        kept = sizes(fitted.messages)

        assert kept == numbers[fitted.left_out : end]  # the newest, without a gap
        assert len(kept) <= most
        assert sum(kept) <= most_characters or len(kept) == 1
        assert fitted.left_out >= left_out
        left_out = fitted.left_out
