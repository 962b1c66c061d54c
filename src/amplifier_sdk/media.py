"""Media that models take: which kinds and how large; a text stands where one cannot be shown.

Media that a vendor refuses would make it refuse every later request of the conversation. So what tools return, and what
a person shows, is checked before it is stored. The kind follows from the bytes, never by a name.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final, TypeAlias, get_args

import attrs

from amplifier_sdk.content import (
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    VideoBlock,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "MAX_IMAGE_CHARACTERS",
    "MAX_MEDIA_CHARACTERS",
    "MEDIA_BLOCKS",
    "MEDIA_HEAD",
    "MediaBlock",
    "Prompt",
    "image_block",
    "kind_of",
    "media_note",
    "media_summary",
    "media_type",
    "prompt_text",
    "sound_media",
]

MediaBlock: TypeAlias = ImageBlock | AudioBlock | DocumentBlock | VideoBlock
"""A block that is no text to a model."""

MEDIA_BLOCKS: Final[tuple[type[MediaBlock], ...]] = get_args(MediaBlock)
"""The classes of `MediaBlock`."""

Prompt: TypeAlias = str | Sequence[str | TextBlock | MediaBlock]
"""What a turn is asked: a text, or texts and media in the order in which the model sees them."""

MEDIA_HEAD: Final = 16
"""How many bytes identify a kind of media."""

MAX_IMAGE_CHARACTERS: Final = 5 * 1024 * 1024
"""Characters of base64 that an image may have: what the strictest vendor takes."""

MAX_MEDIA_CHARACTERS: Final = 20 * 1024 * 1024
"""Characters that any other media may have."""

_LINKS: Final = ("https://", "http://")
_STARTS: Final[Mapping[bytes, str]] = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"%PDF-": "application/pdf",
    b"ID3": "audio/mpeg",
    b"fLaC": "audio/flac",
    b"OggS": "audio/ogg",
    b"\x1a\x45\xdf\xa3": "video/webm",
}
_RIFF: Final[Mapping[bytes, str]] = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_BRANDS: Final[Mapping[bytes, str]] = {
    b"M4A ": "audio/mp4",
    b"qt  ": "video/quicktime",
    **dict.fromkeys(
        (b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"M4V "),
        "video/mp4",
    ),
}
_TAKEN: Final[Mapping[str, str]] = {
    "image": "PNG, JPEG, GIF or WebP",
    "audio": "WAV, MP3, FLAC, Ogg or M4A",
    "document": "PDF or text",
    "video": "MP4, MOV or WebM",
}


def prompt_text(prompt: Prompt) -> str:
    """Return the texts of a prompt, those between media on lines of their own."""
    if isinstance(prompt, str):
        return prompt
    texts = (part.text if isinstance(part, TextBlock) else part for part in prompt)
    return "\n".join(text for text in texts if isinstance(text, str))


def media_type(head: bytes) -> str | None:
    """Return the type of media that models take, by its first `MEDIA_HEAD` bytes; `None` for all else."""
    for start, found in _STARTS.items():
        if head.startswith(start):
            return found
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12])
    # an MP3 without a tag begins with the header of its first frame
    if head[:1] == b"\xff" and len(head) > 1 and head[1] & 0xE6 == 0xE2:
        return "audio/mpeg"
    return None


def image_block(media_type: str, data: str) -> ImageBlock:
    """Build the block of an image whose data are written as base64."""
    return ImageBlock(source={"type": "base64", "media_type": media_type, "data": data})


def media_note(kind: str, reason: str) -> TextBlock:
    """Build the text that stands where media of a kind, such as `image`, are not shown."""
    article = "an" if kind[:1] in "aeiou" else "a"
    return TextBlock(text=f"[{article} {kind} is not shown: {reason}]")


def media_summary(block: MediaBlock) -> JSONObject:
    """Describe media without their data, for events and records: `type`, and what is known of the rest.

    That is `media_type`, `name`, `bytes` and the `sha256` of the data, the `url` of what is elsewhere, and the `text`
    of a document that is one.
    """
    source = block.source
    fields: JSONObject = {"type": block.type}
    for key in ("media_type", "name"):
        if key in source:
            fields[key] = source[key]
    match source:
        case {"type": "text", "data": str(text)}:
            data = text.encode(errors="surrogatepass")
            fields["text"] = text
        case {"data": str(written)}:
            data = binascii.a2b_base64(written)
        case {"url": str(url)}:
            # an address may hold the data itself
            return {**fields, "url": url.partition(",")[0][:2000]}
        case _:
            return fields
    return {**fields, "bytes": len(data), "sha256": sha256(data).hexdigest()}


def sound_media(block: MediaBlock) -> MediaBlock | TextBlock:
    """Return media that models take, or the text that says why there are none.

    The kind that the data show counts before the one that the block names.
    """
    match block.source:
        case {"type": "text", "data": str(text)} if isinstance(block, DocumentBlock):
            if len(text) > MAX_MEDIA_CHARACTERS:
                return _too_long(block, len(text), "characters", MAX_MEDIA_CHARACTERS)
            return _with_source(block, type="text", media_type="text/plain", data=text)
        case {"data": str(data)}:
            return _sound_data(block, "".join(data.split()))
        case {"url": str(url)} if url.startswith("data:"):
            return _sound_data(block, url.partition(",")[2])
        case {"url": str(url)} if url.startswith(_LINKS):
            return _with_source(block, type="url", url=url)
        case {"file_id": str(file_id)}:
            return _with_source(block, type="file", file_id=file_id)
        case _:
            return media_note(
                block.type,
                "its source has neither data nor an address that vendors fetch",
            )


def _sound_data(block: MediaBlock, data: str) -> MediaBlock | TextBlock:
    limit = MAX_MEDIA_CHARACTERS
    if isinstance(block, ImageBlock):
        limit = MAX_IMAGE_CHARACTERS
    if len(data) > limit:
        return _too_long(block, len(data), "characters as base64", limit)
    try:
        head = binascii.a2b_base64(data, strict_mode=True)[:MEDIA_HEAD]
    except ValueError:
        return media_note(block.type, "its data are not base64")
    found = media_type(head)
    if found is None or kind_of(found) != block.type:
        taken = f"{_named(block.source)} is not {_TAKEN[block.type]}, which are all that models take"
        return media_note(block.type, taken)
    return _with_source(block, type="base64", media_type=found, data=data)


def kind_of(media_type: str) -> str:
    """Return the type of the block that holds media of a type."""
    kind = media_type.partition("/")[0]
    if kind in ("application", "text"):
        return "document"
    return kind


def _too_long(block: MediaBlock, length: int, unit: str, limit: int) -> TextBlock:
    return media_note(
        block.type, f"it has {length:,} {unit}, and models take {limit:,}"
    )


def _named(source: Mapping[str, JSONValue]) -> str:
    media_type = source.get("media_type")
    if isinstance(media_type, str) and media_type:
        return media_type[:80]
    return "it"


def _with_source(block: MediaBlock, **source: JSONValue) -> MediaBlock:
    for key in ("detail", "name"):
        value = block.source.get(key)
        if isinstance(value, str):
            source[key] = value
    return attrs.evolve(block, source=source, extras={})
