"""A prompt with media for a loop written by hand, which knows of its text alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import attrs

from amplifier.kernel.turn.prompts import MediaPrompt
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.results import Emission

__all__ = ["PromptDelivery"]


@attrs.define(eq=False)
class PromptDelivery:
    """Shows the media of one prompt to handlers and to the model, in what such a loop emits and stores."""

    given: MediaPrompt
    _media: Sequence[Mapping[str, JSONValue]] = attrs.field(
        default=attrs.Factory(lambda self: self.given.media, takes_self=True)
    )
    _is_stored: bool = False

    def announced(self, data: Mapping[str, object]) -> Mapping[str, object]:
        """Return what handlers of `prompt:submit` see."""
        return {**data, "media": self._media}

    def note(self, emission: Emission) -> None:
        """Note what handlers left of the media."""
        self._media = cast(
            "Sequence[Mapping[str, JSONValue]]", emission.data.get("media", self._media)
        )

    def stored(self, message: MessageDict) -> MessageDict:
        """Return the message to store: the first text of the user is the prompt, with its media."""
        text = message.get("content")
        if (
            self._is_stored
            or message.get("role") != "user"
            or not isinstance(text, str)
        ):
            return message
        self._is_stored = True
        return {**message, "content": self.given.content(text, self._media)}
