"""A prompt as a person gives it, at a terminal or in an editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from amplifier_sdk.media import MediaBlock, Prompt

__all__ = ["GivenPrompt"]


class GivenPrompt(NamedTuple):
    """A prompt, the part of it whose mentions are followed, and what is shown with it."""

    text: str
    typed: str
    media: tuple[MediaBlock, ...] = ()

    @classmethod
    def of(cls, prompt: Prompt, typed: str) -> GivenPrompt:
        """Return a prompt that was stored, of which a person typed a part."""
        if isinstance(prompt, str):
            return cls(prompt, typed)
        from amplifier_sdk.content import TextBlock  # with the runtime

        texts: list[str] = []
        media: list[MediaBlock] = []
        for part in prompt:
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, TextBlock):
                texts.append(part.text)
            else:
                media.append(part)
        return cls("".join(texts), typed, tuple(media))

    @property
    def shown(self) -> Prompt:
        """The text with what is shown with it, as a session takes them."""
        if self.media:
            return [self.text, *self.media]
        return self.text
