"""Long texts and media that were pasted: a placeholder stands for each in the prompt, and all of it is sent."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Final

import attrs

from amplifier.cli._chat._pasted_media import pasted_media

__all__ = ["Pastes"]

_SHORT_LINES: Final = 10
_SHORT_CHARACTERS: Final = 1_000
_MAX_CHARACTERS: Final = 20_000_000
"""How much is remembered of what was pasted; the oldest is forgotten first."""
_PLACEHOLDER: Final = re.compile(
    r"\[(?:Pasted|Image|Audio|Document|Video) #\d+: [^\]\n]*\]"
)


@attrs.define(eq=False)
class Pastes:
    """What was pasted in one chat, by its placeholder."""

    _texts: OrderedDict[str, str] = attrs.field(factory=OrderedDict)
    _count: int = 0

    def collapse(self, text: str) -> str:
        """Return what the prompt shows of a pasted text: itself where it is short, else a placeholder."""
        media = pasted_media(text)
        if media is not None:
            return self._keep(media.kind.capitalize(), media.path.name, media.mention)
        lines = text.count("\n") + 1
        if lines <= _SHORT_LINES and len(text) <= _SHORT_CHARACTERS:
            return text
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        return self._keep("Pasted", size, text)

    def expand(self, text: str) -> str:
        """Return a text with what its placeholders stand for; one that is not known stays."""
        return _PLACEHOLDER.sub(lambda found: self._texts.get(found[0], found[0]), text)

    def _keep(self, kind: str, what: str, text: str) -> str:
        self._count += 1
        name = f"[{kind} #{self._count}: {what.replace(']', ')')}]"
        self._texts[name] = text
        while len(self._texts) > 1 and self._size > _MAX_CHARACTERS:
            self._texts.popitem(last=False)
        return name

    @property
    def _size(self) -> int:
        return sum(map(len, self._texts.values()))
