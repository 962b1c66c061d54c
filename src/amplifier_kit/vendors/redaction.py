"""What is shown of what was sent and received: all of it but secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from amplifier_kit.redaction import is_secret_name
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.secret import WITHHELD

__all__ = ["Withholder", "is_withheld"]

_SHORTEST: Final = 6
_MOST: Final = 64
_HINTS: Final = re.compile(
    r"(?i)(api|access|private)[-_]?key$|(^|_)token$|secret|passw|credential|authorization|cookie"
)


def is_withheld(name: str) -> bool:
    """Tell whether what stands under the name of a header or field is not shown: also where the name only hints."""
    return is_secret_name(name) or _HINTS.search(name) is not None


@attrs.define(eq=False, repr=False)
class Withholder:
    """Takes secrets out of texts and payloads."""

    _learnt: list[str] = attrs.field(factory=list, init=False)
    _longest_first: tuple[str, ...] = attrs.field(default=(), init=False)

    def learn(self, *texts: str) -> None:
        """Withhold these from now on; the last word of a text alone as well, as in `Bearer TOKEN`.

        What was learnt before stays, as exchanges that sent it may still run; of very many the oldest go.
        """
        parts = {
            part
            for text in texts
            for part in (text, text.rpartition(" ")[2])
            if len(part) >= _SHORTEST
        }
        self._learnt = [*(part for part in self._learnt if part not in parts), *parts][
            -_MOST:
        ]
        self._longest_first = tuple(sorted(self._learnt, key=len, reverse=True))

    def text(self, text: str) -> str:
        """Return the text without the secrets."""
        for secret in self._longest_first:
            text = text.replace(secret, WITHHELD)
        return text

    def payload(self, value: JSONValue) -> JSONValue:
        """Return the value without the secrets, and without the texts under keys whose names say that they are some."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                key: WITHHELD
                if isinstance(item, str) and is_withheld(key)
                else self.payload(item)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.payload(item) for item in value]
        return value
