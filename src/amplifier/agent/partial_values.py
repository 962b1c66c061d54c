"""An answer that is still being written, as JSON data: what of it is certain, and nothing that is guessed."""

from __future__ import annotations

import json
import re
from typing import Final, Literal, TypeAlias, cast

from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["PartialObject"]

_Expected: TypeAlias = Literal[
    "start", "key", "key or end", "colon", "value", "value or end", "next", "nothing"
]

_RUN: Final = re.compile(r'[^"\\\x00-\x1f]+')
_TOKEN: Final = re.compile(r"[^\s,\]}]+")
_ESCAPES: Final = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}


class PartialObject:
    """Reads a JSON object piece by piece, in time that grows as the text does.

    `value` is the object so far, the same one all the time: a member is in it once its value begins, a text grows,
    a number is there when it ends. What stands before the first brace is passed over, and so is what follows a
    mistake: the value stays as it was before it.
    """

    def __init__(self) -> None:
        self.value: JSONObject | None = None
        self._open: list[JSONObject | list[JSONValue]] = []
        self._keys: list[str] = []
        self._expected: _Expected = "start"
        self._token = ""
        # a text that is being read; its end, if it is an escape that is not complete
        self._text: list[str] | None = None
        self._escape = ""
        self._is_key = False

    @property
    def is_complete(self) -> bool:
        """Whether the object ended."""
        return self._expected == "nothing" and not self._open

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is read: the object ended, or there was a mistake."""
        return self._expected == "nothing"

    def feed(self, text: str) -> None:
        """Read on."""
        place = 0
        while place < len(text) and self._expected != "nothing":
            if self._text is not None:
                place = self._read_text(text, place)
            elif self._token:
                place = self._read_token(text, place)
            else:
                self._read_mark(text[place])
                place += 1
        if self._text is not None and not self._is_key:
            self._grow()

    # -- texts

    def _read_text(self, text: str, place: int) -> int:
        assert self._text is not None
        if self._escape:
            self._escape += text[place]
            self._end_escape()
            return place + 1
        run = _RUN.match(text, place)
        if run is not None:
            self._text.append(run[0])
            return run.end()
        if text[place] == "\\":
            self._escape = "\\"
        elif text[place] == '"':
            self._end_text()
        else:  # a control character, which JSON lets stand in no text
            self._stop()
        return place + 1

    def _end_escape(self) -> None:
        """Take an escape that is complete; one half of a surrogate pair waits for the other."""
        assert self._text is not None
        escape = self._escape
        if escape[1] != "u":
            if escape[1] in _ESCAPES:
                self._text.append(_ESCAPES[escape[1]])
                self._escape = ""
            else:
                self._stop()
            return
        if len(escape) not in (6, 12):
            is_pair = len(escape) > 6
            if is_pair and not "\\u".startswith(escape[6:8]):
                self._stop()
            return
        try:
            decoded: str = json.loads(f'"{escape}"')
        except ValueError:
            self._stop()
            return
        if len(escape) == 6 and "\ud800" <= decoded <= "\udbff":
            return
        self._text.append(decoded)
        self._escape = ""

    def _grow(self) -> None:
        """Show what there is of a text."""
        assert self._text is not None
        joined = "".join(self._text)
        self._text = [joined]
        container = self._open[-1]
        if isinstance(container, dict):
            container[self._keys[-1]] = joined
        else:
            container[-1] = joined

    def _end_text(self) -> None:
        assert self._text is not None
        if self._is_key:
            self._keys[-1] = "".join(self._text)
            self._expected = "colon"
        else:
            self._grow()
            self._expected = "next"
        self._text = None

    # -- numbers and words

    def _read_token(self, text: str, place: int) -> int:
        more = _TOKEN.match(text, place)
        if more is not None:
            self._token += more[0]
            return more.end()
        # only what follows shows that a number is over
        try:
            value = cast("JSONValue", json.loads(self._token))
        except ValueError:
            self._stop()
            return place
        self._token = ""
        self._put(value)
        self._expected = "next"
        return place

    # -- marks

    def _read_mark(self, mark: str) -> None:
        if mark.isspace():
            return
        match self._expected, mark:
            case "start", "{":
                self.value = {}
                self._enter(self.value)
            case "start", _:
                return
            case (("key" | "key or end"), '"'):
                self._keys[-1] = ""
                self._text, self._is_key = [], True
            case "colon", ":":
                self._expected = "value"
            case "next", ",":
                inside = isinstance(self._open[-1], dict)
                self._expected = "key" if inside else "value"
            case (("next" | "key or end"), "}"):
                self._leave(dict)
            case (("next" | "value or end"), "]"):
                self._leave(list)
            case (("value" | "value or end"), _):
                self._begin_value(mark)
            case _:
                self._stop()

    def _begin_value(self, mark: str) -> None:
        if mark == '"':
            self._put("")
            self._text, self._is_key = [], False
        elif mark == "{":
            inner: JSONObject = {}
            self._put(inner)
            self._enter(inner)
        elif mark == "[":
            items: list[JSONValue] = []
            self._put(items)
            self._enter(items)
        else:
            self._token = mark

    def _put(self, value: JSONValue) -> None:
        container = self._open[-1]
        if isinstance(container, dict):
            container[self._keys[-1]] = value
        else:
            container.append(value)

    def _enter(self, container: JSONObject | list[JSONValue]) -> None:
        self._open.append(container)
        self._keys.append("")
        self._expected = "key or end" if isinstance(container, dict) else "value or end"

    def _leave(self, kind: type) -> None:
        if not isinstance(self._open[-1], kind):
            self._stop()
            return
        self._open.pop()
        self._keys.pop()
        self._expected = "next" if self._open else "nothing"

    def _stop(self) -> None:
        """Read no more: whatever follows a mistake would be a guess."""
        self._expected = "nothing"
        self._text = None
