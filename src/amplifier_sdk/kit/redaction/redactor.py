"""The strict redactor: what holds until a module offers another one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.kit.redaction.finding import MARK, Finder, merged, secrets_in, tokens_in, written_over
from amplifier_sdk.kit.redaction.known import KnownSecrets, secrets_of_environment
from amplifier_sdk.kit.redaction.looks import PLACEHOLDER, is_literal
from amplifier_sdk.kit.redaction.names import IDENTITY_NAMES, is_password_name, is_place, is_secret_name
from amplifier_sdk.kit.redaction.places import Found

__all__ = ["TOO_DEEP", "TOO_MUCH", "StrictRedactor"]

TOO_DEEP: Final = "(withheld: nested too deep)"
"""What stands in the place of what nests deeper than is looked at."""
TOO_MUCH: Final = "(withheld: too much to look at)"
"""What stands in the place of what is behind the largest number of values that are looked at."""

_LONG: Final = 50_000
_MAX_DEPTH: Final = 100
_MAX_VALUES: Final = 100_000
_SCHEMA_WORDS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})

_PAIRS: Final = (
    *(("name", "value"), ("key", "value"), ("header", "value"), ("field", "value"), ("variable", "value")),
    *(("Name", "Value"), ("Key", "Value")),
)
"""Keys under which a name and its value stand side by side, as variables and headers often do."""

_PICTURE_NAMES: Final = frozenset({"data", "url"})
_PICTURE: Final = re.compile(
    r"(?:data:[a-z]{1,12}/[a-z0-9.+\-]{1,40};base64,)?(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR|JVBERi0)[A-Za-z0-9+/]{64,}+={0,2}\Z"
)
"""A picture or a PDF in base64, by the first bytes: among millions of characters some look like a token."""


class StrictRedactor:
    """Takes secrets out of texts and of JSON data; see `amplifier_sdk.redaction.Redactor`.

    Args:
        known: the secrets that the process holds; default those of its environment and every `Secret`.
        finders: what else is looked for in texts, such as `personal_details`.
        allowlist: dotted paths such as `usage.total`; what is there is looked at for known secrets alone.
        secrets: whether to look for secrets; without it known ones are taken out, and what `finders` find.
    """

    def __init__(
        self,
        *,
        known: KnownSecrets | None = None,
        finders: Sequence[Finder] = (),
        allowlist: Iterable[str] = (),
        secrets: bool = True,
    ) -> None:
        self.known: Final = KnownSecrets(secrets_of_environment()) if known is None else known
        self._finders: Final = (secrets_in, *finders) if secrets else tuple(finders)
        self._tokens: Final = (tokens_in,) if secrets else ()
        self.names_secrets: Final = secrets
        self._last: tuple[str, object, str] = ("", None, "")
        self._allowed: Final = frozenset(allowlist)

    def redact_text(self, text: str) -> str:
        """Return a text with a mark in the place of each secret."""
        if len(text) < _LONG:
            return self._written(text, self._finders)
        # One event often carries the same long text under several keys.
        last, state, redacted = self._last
        if last is not text or state is not self.known.state():
            redacted = self._written(text, self._finders)
            self._last = (text, self.known.state(), redacted)
        return redacted

    def redact(self, value: JSONValue) -> JSONValue:
        """Copy JSON data without the secrets in its texts and keys, and under keys that name one."""
        return _Walk(self, self._allowed).copy(value, "", 0)

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return where the secrets of a text begin and end."""
        return [(start, end) for start, end, _ in merged(self._found(text, self._finders))]

    def redact_identity(self, text: str) -> str:
        """Return an id, hash or signature: only what certainly is a secret is taken out of it."""
        return self._written(text, self._tokens)

    def redact_known(self, text: str) -> str:
        """Return a text without the secrets that the process holds."""
        return self._written(text, ())

    def _written(self, text: str, finders: Sequence[Finder]) -> str:
        found = self._found(text, finders)
        return written_over(text, found) if found else text

    def _found(self, text: str, finders: Sequence[Finder]) -> list[Found]:
        return [*self.known.places(text), *(place for finder in finders for place in finder(text))]


class _Walk:
    """One pass through a value; `left` is how many values are still looked at."""

    def __init__(self, redactor: StrictRedactor, allowed: frozenset[str]) -> None:
        self._redactor = redactor
        self._allowed = allowed
        self._left = _MAX_VALUES

    def copy(self, value: JSONValue, path: str, depth: int, name: str = "") -> JSONValue:
        self._left -= 1
        if self._left < 0:
            return TOO_MUCH
        if isinstance(value, str):
            return self._text(value, path, name)
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if depth >= _MAX_DEPTH:
            return TOO_DEEP
        if isinstance(value, Mapping):
            return self._object(value, path, depth, name)
        if isinstance(value, Sequence):
            return [self._item(value, index, path, depth, name) for index in range(len(value))]
        raise TypeError(f"A {type(value).__name__} is no JSON data, so it cannot be redacted; convert it first")

    def _text(self, text: str, path: str, name: str) -> str:
        if self._allowed and path in self._allowed:
            return self._redactor.redact_known(text)
        if name in _PICTURE_NAMES and _PICTURE.match(text):
            return self._redactor.redact_known(text)
        if name in IDENTITY_NAMES:
            return self._redactor.redact_identity(text)
        return self._redactor.redact_text(text)

    def _item(self, items: Sequence[JSONValue], index: int, path: str, depth: int, name: str) -> JSONValue:
        """Copy an item of a list; behind an option such as `--password`, or a name in a pair, it may be a secret."""
        item, before = items[index], items[index - 1] if index else None
        inner = f"{path}.{index}" if path else str(index)
        if isinstance(item, str) and isinstance(before, str) and self._names(inner):
            is_pair = len(items) == 2
            if _is_argument(before, item) or (is_pair and is_secret_name(before) and _looks_secret(before, item)):
                return self._secret(item, before, depth)
        return self.copy(item, inner, depth + 1, name)

    def _names(self, path: str) -> bool:
        """Tell whether names are believed to say that a secret stands at a place."""
        return self._redactor.names_secrets and path not in self._allowed

    def _object(self, value: Mapping[str, JSONValue], path: str, depth: int, name: str) -> dict[str, JSONValue]:
        are_fields = name in _SCHEMA_WORDS
        beside = _secret_beside(value)
        copied: dict[str, JSONValue] = {}
        for key, item in value.items():
            inner = f"{path}.{key}" if path else key
            said = beside.get(key, key)
            is_secret = is_secret_name(said) and not is_place(said, item)
            if is_secret and not are_fields and self._names(inner):
                new = self._secret(item, said, depth)
            else:
                new = self.copy(item, inner, depth + 1, key)
            copied[_free(self._redactor.redact_text(key), copied)] = new
        return copied

    def _secret(self, value: JSONValue, name: str, depth: int) -> JSONValue:
        """Withhold what stands under a secret's name: every text, and a password that is a number."""
        self._left -= 1
        if self._left < 0:
            return TOO_MUCH
        if isinstance(value, str):
            return value if _is_empty(value) else f"{MARK}{'password' if is_password_name(name) else 'secret'}]"
        if value is None or isinstance(value, (bool, float)):
            return value
        if isinstance(value, int):
            return f"{MARK}password]" if is_password_name(name) else value
        if depth >= _MAX_DEPTH:
            return TOO_DEEP
        if isinstance(value, Mapping):
            items: dict[str, JSONValue] = {}
            for key, item in value.items():
                items[_free(self._redactor.redact_text(key), items)] = self._secret(item, name, depth + 1)
            return items
        return [self._secret(item, name, depth + 1) for item in value]


def _secret_beside(value: Mapping[str, JSONValue]) -> dict[str, str]:
    """Return the name of the secret under each key that holds the value of a pair."""
    pairs = ((place, value.get(namer)) for namer, place in _PAIRS if place in value)
    return {place: name for place, name in pairs if isinstance(name, str) and is_secret_name(name)}


def _is_argument(option: str, text: str) -> bool:
    """Tell whether a text in a list is what an option before it takes, and a secret."""
    if not option.startswith("--") or text.startswith("-") or not is_secret_name(option):
        return False
    return is_password_name(option) or _looks_secret(option, text)


def _looks_secret(name: str, text: str) -> bool:
    return is_literal(text, is_password=is_password_name(name)) and not PLACEHOLDER.search(text)


def _is_empty(text: str) -> bool:
    """Tell whether a text has nothing to withhold: it is empty, a reference to a variable, or was withheld already."""
    return (
        not text
        or (text.startswith("${") and text.endswith("}") and text[2:-1].isidentifier())
        or (text.startswith((MARK, "(withheld")) and len(text) < 60 and text.count("[") < 2)
    )


def _free(key: str, taken: Mapping[str, object]) -> str:
    """Return a key that is not taken yet: two keys may be the same once their secrets are gone."""
    number, free = 2, key
    while free in taken:
        free, number = f"{key} {number}", number + 1
    return free
