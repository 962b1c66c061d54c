"""Media in base64 among other texts: recognized as a whole, and described."""

from __future__ import annotations

import base64
from hashlib import sha256
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.media.encoded import (
    described_media,
    is_encoded_media,
    without_media,
)
from amplifier_kit.media.support import EVERY, TEXT
from amplifier_kit.redaction.redactor import StrictRedactor

STARTS: Final = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF\x24\0\0\0WEBP",
    "audio/wav": b"RIFF\x24\0\0\0WAVE",
    "audio/mpeg": b"\xff\xfb\x90\x64",
    "audio/flac": b"fLaC",
    "audio/ogg": b"OggS\0",
    "audio/mp4": b"\0\0\0\x20ftypM4A ",
    "application/pdf": b"%PDF-1.7",
    "video/mp4": b"\0\0\0\x18ftypisom",
    "video/quicktime": b"\0\0\0\x14ftypqt  ",
    "video/webm": b"\x1a\x45\xdf\xa3",
}


def test_every_kind_that_models_take_is_recognized() -> None:
    assert {*STARTS} == {*EVERY} - {TEXT}


@pytest.mark.parametrize("kind", STARTS)
@given(rest=st.binary(min_size=60, max_size=200))
def test_media_are_described_by_type_size_and_digest(kind: str, rest: bytes) -> None:
    data = STARTS[kind] + rest
    text = base64.b64encode(data).decode()
    described = f"({kind}, {len(data)} bytes, sha256 {sha256(data).hexdigest()})"

    assert described_media(text) == described
    assert described_media(f"data:{kind};base64,{text}") == described
    assert without_media({"a": [text, "b", 1]}) == {"a": [described, "b", 1]}
    assert StrictRedactor().redact({"data": text}) == {"data": text}


@given(st.text(max_size=300))
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert not is_encoded_media(text)
    assert without_media([text]) == [text]


@pytest.mark.parametrize(
    "text",
    [
        # one character too many, and a container that holds no media we know
        "iVBORw0KGgo" + "A" * 66,
        base64.b64encode(b"RIFF\x24\0\0\0ACON" + bytes(60)).decode(),
    ],
    ids=["cut", "cursor"],
)
def test_what_is_no_media_after_all_is_shown_as_it_is(text: str) -> None:
    assert is_encoded_media(text)
    assert described_media(text) is None
    assert without_media([text]) == [text]


def test_text_that_only_begins_like_media_is_searched() -> None:
    text = "iVBORw0KGgo" + "A" * 80 + " AKIAIOSFODNN7EXAMPLE"

    assert not is_encoded_media(text)
    assert "AKIAIOSFODNN7EXAMPLE" not in str(StrictRedactor().redact({"data": text}))
