"""What a model takes of the media that messages show, and what becomes of the others."""

from __future__ import annotations

import base64
import struct
from typing import Final

import pytest

from amplifier_kit.media.support import PDF, TEXT, MediaLimits
from amplifier_sdk.content import DocumentBlock, ImageBlock, TextBlock
from amplifier_sdk.errors import InvalidRequestError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.media import MediaBlock, image_block
from amplifier_sdk.messages import Message

LIMITS: Final = MediaLimits(model="m", taken=frozenset({"image/png", PDF, TEXT}))
LINK: Final = ImageBlock(source={"type": "url", "url": "https://a.example/b.png"})


def shown(block: MediaBlock, limits: MediaLimits = LIMITS) -> object:
    """Return what the model gets of media that a prompt shows."""
    fitted = limits.fit([Message(role="user", content=[block])])
    (made,) = fitted.messages[0].blocks
    return made


def png(width: int, height: int) -> ImageBlock:
    """Write the header of an image that claims a size."""
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return image_block("image/png", base64.b64encode(data).decode())


@pytest.mark.parametrize(
    "block",
    [LINK, png(640, 480), image_block("image/png", "iVBORw0KGgo!")],
    ids=["address", "data", "unreadable"],
)
def test_what_the_model_may_take_goes_along(block: ImageBlock) -> None:
    assert shown(block) is block


def test_image_that_claims_to_be_huge_is_not_sent() -> None:
    with pytest.raises(InvalidRequestError, match="claims to have 99999 x 99999"):
        shown(png(99_999, 99_999))


def test_an_address_stays_where_the_vendor_fetches_none() -> None:
    limits = MediaLimits(model="m", taken=frozenset({"image/png"}), fetched=frozenset())

    with pytest.raises(InvalidRequestError, match="fetches none by its address"):
        shown(LINK, limits)


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ({"name": "notes.txt"}, "\n[document notes.txt]\nMilk.\n[end of notes.txt]\n"),
        ({}, "\n[document]\nMilk.\n[end of the document]\n"),
    ],
    ids=["named", "nameless"],
)
def test_document_of_text_is_text_for_vendors_without_a_form(
    named: JSONObject, text: str
) -> None:
    block = DocumentBlock(
        source={"type": "text", "media_type": TEXT, "data": "Milk.", **named}
    )

    assert shown(block) == TextBlock(text=text)
