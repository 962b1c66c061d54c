"""What a turn is asked: a text, and the media that are shown with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import attrs

from amplifier_sdk.content import DocumentBlock, TextBlock, block_to_dict
from amplifier_sdk.errors import MediaError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import (
    MEDIA_BLOCKS,
    MediaBlock,
    media_summary,
    prompt_text,
    sound_media,
)

__all__ = ["MediaPrompt"]


@attrs.frozen(kw_only=True)
class MediaPrompt:
    """A prompt that shows media.

    Args:
        text: its texts, which handlers and records see; those between media stand on lines of their own.
        parts: texts and media, in the order in which the model sees them.
        media: the media alone, described without their data.
    """

    text: str
    parts: tuple[TextBlock | MediaBlock, ...] = attrs.field(repr=False)
    media: tuple[JSONObject, ...]

    @classmethod
    def of(cls, prompt: Sequence[str | TextBlock | MediaBlock]) -> Self:
        """Read the parts that an application gives a turn.

        Raises:
            MediaError: media are not of their kind, or are too large; names their place.
            TypeError: a part is neither a text nor media.
        """
        parts = tuple(_part(at, given) for at, given in enumerate(prompt))
        return cls(
            text=prompt_text(parts),
            parts=parts,
            media=tuple(
                media_summary(part) for part in parts if not isinstance(part, TextBlock)
            ),
        )

    def content(self, text: str, media: Sequence[Mapping[str, JSONValue]]) -> JSONValue:
        """Return the content of the message that stores the prompt.

        A text that handlers changed stands before the media, in place of all texts.

        Args:
            text: the prompt as handlers left it.
            media: the descriptions likewise; of documents that are texts their `text` counts.

        Raises:
            MediaError: there are not as many descriptions as media.
        """
        if len(media) != len(self.media):
            raise MediaError(
                f"Handlers of prompt:submit left {len(media)} of {len(self.media)} media of the prompt; they may"
                " change their texts, or deny the prompt"
            )
        sources = iter(media)
        parts = [
            part if isinstance(part, TextBlock) else _described(part, next(sources))
            for part in self.parts
        ]
        if text != self.text:
            shown = [part for part in parts if not isinstance(part, TextBlock)]
            parts = [*([TextBlock(text=text)] if text else []), *shown]
        return list(map(block_to_dict, parts))


def _part(at: int, given: object) -> TextBlock | MediaBlock:
    if isinstance(given, str):
        return TextBlock(text=given)
    if isinstance(given, TextBlock):
        return given
    if not isinstance(given, MEDIA_BLOCKS):
        raise TypeError(
            f"Part {at + 1} of the prompt is {type(given).__name__}; expected a text, Image, Audio, Document or Video"
        )
    sound = sound_media(given)
    if isinstance(sound, TextBlock):
        raise MediaError(f"Part {at + 1} of the prompt: {sound.text.strip('[]')}")
    return sound


def _described(part: MediaBlock, source: Mapping[str, JSONValue]) -> MediaBlock:
    """Return a document with the text that handlers left of it."""
    text = source.get("text")
    if (
        not isinstance(part, DocumentBlock)
        or not isinstance(text, str)
        or part.source.get("type") != "text"
    ):
        return part
    return attrs.evolve(part, source={**part.source, "data": text})
