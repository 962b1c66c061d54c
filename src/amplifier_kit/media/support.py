"""Which media the models of a provider take, and requests that hold no others."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final

import attrs

from amplifier_kit.media.headers import HEADER, pixel_size
from amplifier_sdk.chat import Degradation
from amplifier_sdk.content import ContentBlock, TextBlock
from amplifier_sdk.errors import InvalidRequestError
from amplifier_sdk.media import MEDIA_BLOCKS, MediaBlock, kind_of, media_note
from amplifier_sdk.messages import Message

__all__ = [
    "EVERY",
    "IMAGES",
    "PDF",
    "TEXT",
    "FittedMedia",
    "MediaLimits",
    "document_text",
    "has_media",
    "media_name",
]

IMAGES: Final = ("image/gif", "image/jpeg", "image/png", "image/webp")
"""The images that every model takes which sees."""

PDF: Final = "application/pdf"
TEXT: Final = "text/plain"
"""Documents that are text; to vendors without a form for them they are the text that they hold."""

EVERY: Final = (
    *IMAGES,
    *("audio/flac", "audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav"),
    *(PDF, TEXT, "video/mp4", "video/quicktime", "video/webm"),
)
"""The media types that are known by their bytes."""

_PLURALS: Final = {
    "image": "images",
    "audio": "audio",
    "document": "documents",
    "video": "videos",
}
_ENCODED: Final = HEADER // 3 * 4
"""Characters of base64 in which an image's size is looked for."""


@attrs.frozen(kw_only=True)
class FittedMedia:
    """The messages of a request with no media but what the model takes, and what the others became."""

    messages: Sequence[Message]
    losses: tuple[Degradation, ...] = ()


@attrs.frozen(kw_only=True)
class MediaLimits:
    """What one model takes.

    Args:
        model: its name, for the error.
        taken: the media types that it takes.
        has_text_documents: whether the vendor has a form for documents of text; else they go as text.
        fetched: the kinds, such as `image`, of which the vendor takes an address or a file that it keeps.
        degrade: whether a text may stand for what a prompt shows and the model does not take.
    """

    model: str
    taken: frozenset[str]
    has_text_documents: bool = False
    fetched: frozenset[str] = frozenset({"image", "document"})
    degrade: bool = False

    def fit(self, messages: Sequence[Message]) -> FittedMedia:
        """Put texts in place of what the model does not take.

        What the last message of the user shows is refused: whoever wrote it believes that the model gets it. What
        tools returned and earlier prompts showed becomes a text, or no later request would be answered.

        Raises:
            InvalidRequestError: the last prompt shows what the model does not take, and `degrade` is false.
        """
        places = [at for at, message in enumerate(messages) if _media_of(message)]
        if not places:
            return FittedMedia(messages=messages)
        asked = max(
            (at for at, message in enumerate(messages) if message.role == "user"),
            default=-1,
        )
        fitted, losses = list(messages), dict[str, Degradation]()
        for at in places:
            is_strict = at == asked and not self.degrade
            fitted[at] = self._fitted(messages[at], losses, is_strict=is_strict)
        return FittedMedia(messages=fitted, losses=tuple(losses.values()))

    def _fitted(
        self, message: Message, losses: dict[str, Degradation], *, is_strict: bool
    ) -> Message:
        content: list[ContentBlock] = []
        for block in message.blocks:
            if not isinstance(block, MEDIA_BLOCKS):
                content.append(block)
            elif block.source.get("type") == "text" and not self.has_text_documents:
                content.append(document_text(block))
            elif (reason := self._refusal(block)) is None:
                content.append(block)
            elif is_strict:
                raise InvalidRequestError(
                    f"{media_name(block)} of the prompt is not sent: {reason}; leave it out, choose another model,"
                    " or set the provider's `degrade: true` to send a text that says so"
                )
            else:
                content.append(media_note(block.type, reason))
                losses[reason] = Degradation(
                    requested=_PLURALS[block.type],
                    actual="texts that say so",
                    reason=reason,
                )
        return attrs.evolve(message, content=content)

    def _refusal(self, block: MediaBlock) -> str | None:
        """Say why the model cannot get media, or `None`."""
        source = block.source
        found = source.get("media_type")
        if block.type not in {kind_of(taken) for taken in self.taken}:
            return self._takes_none(_PLURALS[block.type])
        if isinstance(found, str) and found not in self.taken:
            return self._takes_none(found)
        if isinstance(source.get("data"), str):
            return _oversized(block)
        if block.type not in self.fetched:
            return "this vendor fetches none by its address"
        return None

    def _takes_none(self, what: str) -> str:
        if what == "images":
            return "this model cannot see"
        takes = ", ".join(sorted(self.taken - {TEXT})) or "text alone"
        return f"the model {self.model!r} takes no {what}; it takes {takes}"


def has_media(messages: Sequence[Message]) -> bool:
    """Return whether one of the messages shows media."""
    return any(map(_media_of, messages))


def document_text(block: MediaBlock) -> TextBlock:
    """Write a document of text as the text that models without documents read."""
    name, text = block.source.get("name"), block.source.get("data")
    if isinstance(name, str):
        return TextBlock(text=f"\n[document {name}]\n{text}\n[end of {name}]\n")
    return TextBlock(text=f"\n[document]\n{text}\n[end of the document]\n")


def media_name(block: MediaBlock) -> str:
    """Return what a person calls media: the kind, and the name where there is one."""
    name = block.source.get("name")
    if isinstance(name, str):
        return f"{block.type.capitalize()} {name!r:.200}"
    return block.type.capitalize()


def _media_of(message: Message) -> bool:
    return not isinstance(message.content, str) and any(
        isinstance(block, MEDIA_BLOCKS) for block in message.content
    )


def _oversized(block: MediaBlock) -> str | None:
    data: object = block.source.get("data")
    if block.type != "image" or not isinstance(data, str):
        return None
    try:
        size = pixel_size(base64.b64decode(data[:_ENCODED]))
    except ValueError:
        return None
    if size is None or size.is_sane:
        return None
    return f"it claims to have {size}, which no model takes"
