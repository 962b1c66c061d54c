"""Images: which ones models take."""

from __future__ import annotations

import base64
from typing import Final

import pytest

from amplifier_sdk.content import DocumentBlock, ImageBlock, TextBlock
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.media import (
    MAX_IMAGE_CHARACTERS,
    MAX_MEDIA_CHARACTERS,
    image_block,
    media_note,
    media_summary,
    media_type,
    sound_media,
)

HEADS: Final = {
    "image/png": b"\x89PNG\r\n\x1a\n" + bytes(20),
    "image/jpeg": b"\xff\xd8\xff\xe0" + bytes(20),
    "image/gif": b"GIF89a" + bytes(20),
    "image/webp": b"RIFF\0\0\0\0WEBPVP8 " + bytes(20),
}


def written(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize("kind", HEADS)
def test_a_kind_is_told_by_the_bytes_and_not_by_its_name(kind: str) -> None:
    data = written(HEADS[kind])

    assert media_type(HEADS[kind]) == kind
    assert sound_media(image_block("image/heic", data)) == image_block(kind, data)


def test_data_may_stand_in_an_address_and_in_lines() -> None:
    data = written(HEADS["image/png"])

    address = ImageBlock(source={"url": f"data:image/jpeg;base64,{data}"})
    lines = ImageBlock(
        source={"data": f"{data[:9]}\n{data[9:]}\n", "detail": "low"}, visibility="user"
    )

    assert sound_media(address) == image_block("image/png", data)
    source = {
        "type": "base64",
        "media_type": "image/png",
        "data": data,
        "detail": "low",
    }
    assert sound_media(lines) == ImageBlock(source=source, visibility="user")


@pytest.mark.parametrize(
    ("source", "stored"),
    [
        (
            {"url": "https://a.example/b.png"},
            {"type": "url", "url": "https://a.example/b.png"},
        ),
        (
            {"type": "file", "file_id": "f1", "x": object()},
            {"type": "file", "file_id": "f1"},
        ),
    ],
    ids=["address", "file"],
)
def test_addresses_and_files_of_a_vendor_are_taken_as_they_are(
    source: JSONObject, stored: JSONObject
) -> None:
    assert sound_media(ImageBlock(source=source)) == ImageBlock(source=stored)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({}, "its source has neither data nor an address that vendors fetch"),
        (
            {"url": "file:///etc/passwd"},
            "its source has neither data nor an address that vendors fetch",
        ),
        ({"data": "not base64!"}, "its data are not base64"),
        ({"data": "gr\u00fcn"}, "its data are not base64"),
        ({"url": "data:image/png,%89PNG"}, "its data are not base64"),
        (
            {"data": written(b"<svg/>")},
            "it is not PNG, JPEG, GIF or WebP, which are all that models take",
        ),
        (
            {"data": written(b"II*\0"), "media_type": "image/tiff"},
            "image/tiff is not PNG, JPEG, GIF or WebP, which are all that models take",
        ),
    ],
    ids=["nothing", "scheme", "text", "letters", "percent", "unnamed", "named"],
)
def test_what_no_model_takes_is_a_text_that_says_why(
    source: JSONObject, reason: str
) -> None:
    assert sound_media(ImageBlock(source=source)) == TextBlock(
        text=f"[an image is not shown: {reason}]"
    )


def test_document_of_text_longer_than_models_take_is_note() -> None:
    longest = "a" * MAX_MEDIA_CHARACTERS
    document = DocumentBlock(source={"type": "text", "data": longest})

    assert isinstance(sound_media(document), DocumentBlock)
    longer = DocumentBlock(source={"type": "text", "data": longest + "a"})
    assert sound_media(longer) == media_note(
        "document",
        f"it has {len(longest) + 1:,} characters, and models take {len(longest):,}",
    )


@pytest.mark.parametrize(
    ("source", "summary"),
    [
        (
            {"url": "https://a.example/b.png", "name": "b"},
            {"name": "b", "url": "https://a.example/b.png"},
        ),
        (
            {"url": "data:image/png;base64,iVBORw0KGgo"},
            {"url": "data:image/png;base64"},
        ),
        (
            {"url": "https://a.example/" + "b" * 9000},
            {"url": "https://a.example/" + "b" * 1982},
        ),
        ({"file_id": "f1", "media_type": "image/png"}, {"media_type": "image/png"}),
    ],
    ids=["address", "data", "long", "file"],
)
def test_summary_of_what_is_elsewhere_says_where(
    source: JSONObject, summary: JSONObject
) -> None:
    assert media_summary(ImageBlock(source=source)) == {"type": "image", **summary}


def test_image_over_largest_size_is_text_with_both_figures() -> None:
    head = written(HEADS["image/png"])[:24]
    fits = head + "A" * (MAX_IMAGE_CHARACTERS - len(head))

    assert isinstance(sound_media(image_block("image/png", fits)), ImageBlock)
    note = media_note(
        "image", "it has 5,242,884 characters as base64, and models take 5,242,880"
    )
    assert sound_media(image_block("image/png", fits + "AAAA")) == note
