"""Media made of files: the kind is told by the bytes, and what is too large is not read."""

from __future__ import annotations

import base64
import os
import struct
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier import Audio, Document, Image, Video
from amplifier_kit.media.files import media_file, most_bytes
from amplifier_kit.media.headers import HEADER, PixelSize, pixel_size
from amplifier_sdk.errors import MediaError


def png(width: int, height: int) -> bytes:
    """Write the header of a PNG image that claims a size."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)


def jpeg(width: int, height: int) -> bytes:
    """Write a JPEG header with a preview in front of the size, and a byte that fills."""
    preview = b"\xff\xe1" + struct.pack(">H", 302) + bytes(300)
    size = struct.pack(">HBHHB", 17, 8, height, width, 3)
    return b"\xff\xd8" + preview + b"\xff\xff\xc2" + size + bytes(9)


def gif(width: int, height: int) -> bytes:
    """Write the header of a GIF image."""
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(8)


def webp(width: int, height: int, kind: bytes = b"VP8X") -> bytes:
    """Write the header of a WebP image of one of its three kinds."""
    if kind == b"VP8X":
        sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        body = bytes(4) + sides
    elif kind == b"VP8L":
        body = b"\x2f" + struct.pack("<I", width - 1 | height - 1 << 14)
    else:
        body = bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height)
    return b"RIFF" + bytes(4) + b"WEBP" + kind + struct.pack("<I", len(body)) + body


WAV: Final = b"RIFF\x24\0\0\0WAVEfmt " + bytes(20)
PDF: Final = b"%PDF-1.7\n%\xe2\xe3\n"
MP4: Final = b"\0\0\0\x18ftypisom" + bytes(12)


@given(st.integers(1, 16383), st.integers(1, 16383))
def test_size_is_the_one_in_the_header(width: int, height: int) -> None:
    heads = [
        png(width, height),
        jpeg(width, height),
        gif(width, height),
        *(webp(width, height, kind) for kind in (b"VP8X", b"VP8L", b"VP8 ")),
    ]

    for head in heads:
        assert pixel_size(head) == PixelSize(width, height), head[:16]


def test_markers_without_a_length_stand_before_the_size() -> None:
    head = jpeg(640, 480)

    assert pixel_size(head[:2] + b"\xff\x01\xff\xd0" + head[2:]) == PixelSize(640, 480)


@given(st.sampled_from([png, jpeg, gif, webp]), st.integers(0, 40), st.binary())
def test_a_cut_or_damaged_header_is_no_crash(
    make: object, at: int, rest: bytes
) -> None:
    assert callable(make)
    size = pixel_size(make(640, 480)[:at] + rest)

    assert size is None or size.width >= 0


@pytest.mark.parametrize(
    ("name", "data", "made"),
    [
        ("a.txt", png(640, 480), Image),
        ("a.png", jpeg(3, 4), Image),
        ("a", WAV, Audio),
        ("a.png", PDF, Document),
        ("a.mov", MP4, Video),
        ("a.md", "# Über\n".encode(), Document),
    ],
    ids=["png", "jpeg", "wav", "pdf", "mp4", "text"],
)
def test_kind_comes_from_the_bytes_of_the_file(
    tmp_path: Path,
    name: str,
    data: bytes,
    made: type[Image | Audio | Document | Video],
) -> None:
    (tmp_path / name).write_bytes(data)

    block = made.file(tmp_path / name)

    assert media_file(tmp_path / name) == block == made.data(data, name)
    assert block.source["name"] == name
    if block.source["type"] == "text":
        assert block.source["data"] == data.decode()
    else:
        assert base64.b64decode(str(block.source["data"])) == data


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(PDF)

    with pytest.raises(
        MediaError,
        match=r"a.png' is no image that models take: by its bytes it is application/pdf",
    ):
        Image.file(path)
    path.write_bytes(b"\0\1\2")
    with pytest.raises(MediaError, match="by its bytes it is nothing known"):
        Image.file(path)
    for data in (b"\0\1\2", "gr\u00fcn".encode("latin-1")):
        with pytest.raises(MediaError, match="neither a PDF nor text in UTF-8"):
            Document.data(data)


@pytest.mark.parametrize("make", [png, lambda w, h: webp(min(w, 1 << 24), 9)])
def test_image_that_claims_to_be_huge_is_refused(make: object, tmp_path: Path) -> None:
    assert callable(make)
    path = tmp_path / "bomb"
    path.write_bytes(make(2**31, 2**31))

    with pytest.raises(MediaError, match=r"claims to have \d+ x \d+ pixels"):
        Image.file(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write(png(8, 8))
        file.truncate(2**40)  # a terabyte of holes, which nobody could read

    with pytest.raises(MediaError, match=r"1,099,511,627,776 bytes, and models take"):
        Image.file(path)


def test_bytes_have_the_same_limit() -> None:
    with pytest.raises(MediaError, match="has more than the"):
        Image.data(png(8, 8) + bytes(most_bytes("image")))
    assert Image.data(png(8, 8) + bytes(HEADER)).source["media_type"] == "image/png"


@pytest.mark.parametrize("what", ["folder", "pipe", "nothing"])
def test_what_is_no_file_is_an_error_at_once(what: str, tmp_path: Path) -> None:
    path = tmp_path / what
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)

    with pytest.raises(MediaError, match=what):
        media_file(path)


def test_an_address_is_one_of_the_web() -> None:
    assert Image.url("https://a.example/b.png").source == {
        "type": "url",
        "url": "https://a.example/b.png",
    }
    with pytest.raises(MediaError, match="begins with https"):
        Image.url("file:///etc/passwd")
