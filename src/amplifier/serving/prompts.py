"""Prompts in the JSON of requests: texts, and media with their data.

A caller names no address: the vendor, or a server beside this one, would fetch it from inside the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, TypeAlias

import attrs

from amplifier.serving.errors import RequestError
from amplifier_sdk.content import (
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    VideoBlock,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.media import MediaBlock, Prompt, sound_media

__all__ = [
    "MediaPart",
    "MediaSource",
    "PromptPart",
    "PromptParts",
    "TextPart",
    "media_of_url",
    "read_prompt",
    "sound_part",
]

_BLOCKS: Final[Mapping[str, type[MediaBlock]]] = {
    "image": ImageBlock,
    "audio": AudioBlock,
    "document": DocumentBlock,
    "video": VideoBlock,
}


@attrs.frozen(kw_only=True)
class MediaSource:
    """The data of media: in base64, or the text of a document that is one.

    Args:
        type: which of the two.
        data: the base64, or the text.
        media_type: what the caller takes it for; the data decide.
        name: what the model calls it by.
    """

    type: Literal["base64", "text"]
    data: str
    media_type: str | None = None
    name: str | None = None


@attrs.frozen(kw_only=True)
class TextPart:
    """A text of a prompt.

    Args:
        type: the kind.
        text: the text.
    """

    type: Literal["text"]
    text: str

    def block(self) -> TextBlock:
        """Return the part as the model gets it."""
        return TextBlock(text=self.text)


@attrs.frozen(kw_only=True)
class MediaPart:
    """Media of a prompt.

    Args:
        type: the kind.
        source: the data.
    """

    type: Literal["image", "audio", "document", "video"]
    source: MediaSource

    def block(self) -> MediaBlock:
        """Return the part as the model gets it.

        Raises:
            RequestError: its data are not of its kind.
        """
        source: JSONObject = {
            key: value
            for key, value in attrs.asdict(self.source).items()
            if value is not None
        }
        return sound_part(_BLOCKS[self.type](source=source))


PromptPart: TypeAlias = TextPart | MediaPart
"""A part of a prompt."""


@attrs.frozen
class _Length:
    """How many items an array has at least."""

    min_length: int


PromptParts: TypeAlias = Annotated[list[PromptPart], _Length(1)]
"""The parts of a prompt, at least one."""


def read_prompt(prompt: str | Sequence[PromptPart]) -> Prompt:
    """Return a prompt as sessions take it.

    Raises:
        RequestError: it is empty, or a part does not fit.
    """
    if isinstance(prompt, str):
        return prompt
    if not prompt:
        raise RequestError(422, "invalid_request", "prompt: there is no part")
    return [part.block() for part in prompt]


def media_of_url(kind: str, url: str, name: str | None = None) -> MediaBlock:
    """Return the media of a `data:` address.

    Args:
        kind: the type of the block.
        url: the address.
        name: what the model calls it by.

    Raises:
        RequestError: it is another address, or its data are not of the kind.
    """
    if not url.startswith("data:"):
        raise RequestError(
            422,
            "invalid_request",
            f"content: send the {kind} itself as a data: URL; no address is fetched",
        )
    source: JSONObject = {"url": url}
    if name:
        source["name"] = name
    return sound_part(_BLOCKS[kind](source=source))


def sound_part(block: MediaBlock) -> MediaBlock:
    """Return media that models take.

    Raises:
        RequestError: they are none.
    """
    sound = sound_media(block)
    if isinstance(sound, TextBlock):
        # what the bytes are, no schema of the body can say
        raise RequestError(415, "unsupported_media_type", sound.text.strip("[]"))
    return sound
