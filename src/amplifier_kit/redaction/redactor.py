"""The strict redactor: the default until a module offers another one."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from amplifier_kit.media.encoded import is_encoded_media
from amplifier_kit.redaction.decoded import (
    DecodedText,
    base64_texts,
    unescaped,
    unquoted,
)
from amplifier_kit.redaction.documents import Documents, PlacedNumber, PlacedText
from amplifier_kit.redaction.finder import (
    MARK,
    Finder,
    lines_in,
    merged,
    secrets_in,
    written_over,
)
from amplifier_kit.redaction.heuristics import PLACEHOLDER, is_literal, is_phrase
from amplifier_kit.redaction.known import (
    SHORTEST_SECRET,
    KnownSecrets,
    secrets_of_environment,
)
from amplifier_kit.redaction.names import (
    IDENTITY_NAMES,
    is_password_name,
    is_place,
    is_secret_name,
    kind_of,
)
from amplifier_kit.redaction.places import Found
from amplifier_kit.redaction.tokens import tokens_in
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["TOO_DEEP", "TOO_MUCH", "StrictRedactor"]

TOO_DEEP: Final = "(withheld: nested too deep)"
"""Replaces what nests too deeply to be checked."""
TOO_MUCH: Final = "(withheld: too large to check)"
"""Replaces what follows the maximum number of values that are checked."""

_LONG: Final = 50_000
_MAX_DEPTH: Final = 100
_MAX_VALUES: Final = 100_000
_MAX_ENCODINGS: Final = 5
"""How often what is in a text is decoded: JSON in JSON doubles its escapes with each time."""
_SHORTEST_ENCODED: Final = 8
_SCHEMA_WORDS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)

_PAIRS: Final = (
    *((name, "value") for name in ("name", "key", "header", "field", "variable")),
    *(("Name", "Value"), ("Key", "Value")),
)
"""Keys under which a name and its value stand side by side, as variables and headers often do."""

_ESCAPED_QUOTE: Final = re.compile(r"\\+(?:[\"']|\Z)")
_LINE: Final = re.compile(r"[\s=:]")
"""Without one of these a text is one word, and no line of anything."""
_KEY_PARTS: Final = ("d", "k", "p", "q", "dp", "dq", "qi")
"""The private parts of a key in JSON, beside its `kty`."""

_MEDIA_NAMES: Final = frozenset({"data", "file_data", "image_url", "url"})
"""Keys under which media stand in base64: among millions of characters some look like a token."""


class StrictRedactor:
    """Takes secrets out of texts and of JSON data; see `amplifier_sdk.redaction.Redactor`.

    Args:
        known: the secrets that the process holds; default those of its environment and every `Secret`.
        finders: what else is looked for in texts, such as `personal_details`.
        allowlist: dotted paths such as `usage.total`; what is there is searched for known secrets alone.
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
        self.known: Final = (
            KnownSecrets(secrets_of_environment()) if known is None else known
        )
        self.finders: Final = (secrets_in, *finders) if secrets else tuple(finders)
        self.tokens: Final = (tokens_in,) if secrets else ()
        self.names_secrets: Final = secrets
        self._has_further_finders: Final = bool(finders)
        self._last: tuple[str, Sequence[Finder], object, str] = ("", (), None, "")
        self._allowed: Final = frozenset(allowlist)

    def redact_text(self, text: str) -> str:
        """Return a text with a mark in the place of each secret."""
        return self.written(text, self.finders)

    def redact(self, value: JSONValue) -> JSONValue:
        """Copy JSON data without the secrets in its texts and keys, and under keys that name one."""
        return _Walk(self, self._allowed).copy(value, "", 0)

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return where the secrets of a text begin and end."""
        return [
            (start, end) for start, end, _ in merged(self.found(text, self.finders))
        ]

    def written(self, text: str, finders: Sequence[Finder]) -> str:
        """Return a text with a mark in the place of what finders find, and of known secrets."""
        if len(text) < SHORTEST_SECRET and not self._has_further_finders:
            return text  # as most keys of JSON are
        if len(text) < _LONG:
            return written_over(text, self.found(text, finders))
        # One event often carries the same long text under several keys.
        last, looked_for, state, redacted = self._last
        if (
            last is not text
            or looked_for is not finders
            or state is not self.known.state()
        ):
            redacted = written_over(text, self.found(text, finders))
            self._last = (text, finders, self.known.state(), redacted)
        return redacted

    def found(
        self, text: str, finders: Sequence[Finder], depth: int = 0
    ) -> list[Found]:
        """Return what is in a text, and in what it says where it is encoded: JSON, escapes, URLs, base64.

        Args:
            text: the text.
            finders: what is looked for besides known secrets.
            depth: how often it was decoded before.
        """
        # the finders read the text as it is written; what follows, what it says
        found = [
            *self.known.places(text),
            *(place for finder in finders for place in finder(text)),
        ]
        if depth == _MAX_ENCODINGS or len(text) < _SHORTEST_ENCODED:
            return found
        # A text within a text gets a smaller share of the depth, since each level
        # of encoding recurses anew on top of the levels before it.
        documents = Documents(text, _MAX_DEPTH // 6 if depth else _MAX_DEPTH // 2)
        search = _Search(self, finders, depth + 1)
        for value in documents.values:
            search.copy(value, "", 0)
        # A text that is one document as a whole has had its escapes read above,
        # value by value; only loose escapes are left to be read here.
        if "\\" in text and not documents.are_whole:
            found += self._decoded(unescaped(text), finders, depth + 1)
        if "%" in text:
            found += self._decoded(unquoted(text), finders, depth + 1)
        for start, end, inner in base64_texts(text):
            # A place inside the decoded text has no exact place in base64, where
            # bits cross characters: the word is withheld as a whole.
            if said := self.found(inner, finders, depth + 1):
                found.append((start, end, said[0][2]))
        if documents.texts:
            return [
                *(_fitted(text, documents, place) for place in found),
                *search.places,
            ]
        return found

    def _decoded(
        self, said: DecodedText, finders: Sequence[Finder], depth: int
    ) -> Iterator[Found]:
        """Yield what is in what a text says, unless it says itself."""
        if said.is_other:
            for start, end, kind in self.found(said.text, finders, depth):
                yield (*said.source(start, end), kind)


def _fitted(text: str, documents: Documents, place: Found) -> Found:
    """Let what was found in a text of a document end with it, and before a quote in it: these are the document's."""
    start, end, kind = place
    limit = documents.end_of(start)
    if limit is None:
        return place
    # past this the document's own quote and brackets would go with the secret,
    # and what is stored would no longer parse
    end = min(end, limit)
    quote = _ESCAPED_QUOTE.search(text, start, end)
    return start, end if quote is None else quote.start(), kind


class _Walk:
    """One pass through a value; `left` is how many values are still checked."""

    def __init__(self, redactor: StrictRedactor, allowed: frozenset[str]) -> None:
        self._redactor = redactor
        self._allowed = allowed
        self._left = _MAX_VALUES

    def copy(
        self, value: JSONValue, path: str, depth: int, name: str = ""
    ) -> JSONValue:
        self._left -= 1
        # every value counts, a container as well: empty lists would cost nothing
        # else
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
            return [
                self._item(value, index, path, depth, name)
                for index in range(len(value))
            ]
        raise TypeError(
            f"A {type(value).__name__} is no JSON data, so it cannot be redacted; convert it first"
        )

    def _text(self, text: str, path: str, name: str) -> str:
        # no finders, yet known secrets are still taken out: an allowlist says
        # what looks like a secret, never that one may be shown
        if self._allowed and path in self._allowed:
            return self._clean(text, ())
        if name in _MEDIA_NAMES and is_encoded_media(text):
            return self._clean(text, ())
        # Tokens of a known form are found even here; what is only guessed is not,
        # or events would lose the ids by which they are found again.
        if name in IDENTITY_NAMES:
            return self._clean(text, self._redactor.tokens)
        return self._clean(text, self._redactor.finders)

    def _clean(self, text: str, finders: Sequence[Finder]) -> str:
        """Return a text without what finders find in it."""
        return self._redactor.written(text, finders)

    def _withheld(self, value: str | int, name: str) -> JSONValue:
        """Return what stands in the place of a secret: any text is one, and a password that is a number."""
        if isinstance(value, str):
            is_none = _is_empty(value)
        else:
            is_none = not is_password_name(name)
        if is_none:
            return value
        return f"{MARK}{kind_of(name)}]"

    def _item(
        self, items: Sequence[JSONValue], index: int, path: str, depth: int, name: str
    ) -> JSONValue:
        """Copy an item of a list; behind an option such as `--password`, or a name in a pair, it may be a secret."""
        item, before = items[index], items[index - 1] if index else None
        inner = str(index)
        if path:
            inner = f"{path}.{index}"
        # `["--password", "x"]` and `["password", "x"]` name their secret by
        # position
        if isinstance(item, str) and isinstance(before, str) and self._names(inner):
            is_pair = len(items) == 2
            if _is_argument(before, item) or (
                is_pair and is_secret_name(before) and _looks_secret(before, item)
            ):
                return self._secret(item, before, depth)
        return self.copy(item, inner, depth + 1, name)

    def _names(self, path: str) -> bool:
        """Tell whether names are believed to say that a secret stands at a place."""
        return self._redactor.names_secrets and path not in self._allowed

    def _object(
        self, value: Mapping[str, JSONValue], path: str, depth: int, name: str
    ) -> dict[str, JSONValue]:
        # in a JSON Schema `password` is the name of a field, and below it stands
        # what a field looks like: nothing there is secret
        are_fields = name in _SCHEMA_WORDS
        beside = _secret_beside(value)
        copied: dict[str, JSONValue] = {}
        for key, item in value.items():
            inner = key
            if path:
                inner = f"{path}.{key}"
            said = beside.get(key, key)
            is_secret = is_secret_name(said) and not is_place(said, item)
            if is_secret and not are_fields and self._names(inner):
                new = self._secret(item, said, depth)
            else:
                new = self.copy(item, inner, depth + 1, key)
            # a key may be a token itself, as in a table of sessions by token
            copied[_free(self._clean(key, self._redactor.finders), copied)] = new
        return copied

    def _secret(self, value: JSONValue, name: str, depth: int) -> JSONValue:
        """Withhold what stands under a secret's name: every text, and a password that is a number."""
        self._left -= 1
        if self._left < 0:
            return TOO_MUCH
        if value is None or isinstance(value, (bool, float)):
            return value
        if isinstance(value, (str, int)):
            return self._withheld(value, name)
        if depth >= _MAX_DEPTH:
            return TOO_DEEP
        if isinstance(value, Mapping):
            items: dict[str, JSONValue] = {}
            for key, item in value.items():
                items[_free(self._clean(key, self._redactor.finders), items)] = (
                    self._secret(item, name, depth + 1)
                )
            return items
        # what a secret's name stands above is secret at any depth
        return [self._secret(item, name, depth + 1) for item in value]


class _Search(_Walk):
    """A pass through the documents of a text that notes where in the text their secrets are: `places`."""

    def __init__(
        self, redactor: StrictRedactor, finders: Sequence[Finder], depth: int
    ) -> None:
        super().__init__(redactor, frozenset())
        # it takes linear time, and what is not checked could not be withheld
        self._left = sys.maxsize
        self._finders = finders
        self._depth = depth
        self.places: list[Found] = []

    # Documents in an allowed text are searched with fewer finders: their names
    # count no more than their texts do.
    def _names(self, path: str) -> bool:
        return self._finders is self._redactor.finders and super()._names(path)

    def _clean(self, text: str, finders: Sequence[Finder]) -> str:
        assert isinstance(text, PlacedText)
        has_all = self._finders is self._redactor.finders
        if text.is_encoded:
            found = self._redactor.found(
                text, finders if has_all else self._finders, self._depth
            )
        # it was checked as a part of its container, except for what only a whole line shows
        elif has_all and self._redactor.names_secrets and _LINE.search(text):
            found = [*lines_in(text)]
        else:
            found = []
        self.places += [(*text.source(start, end), kind) for start, end, kind in found]
        return text

    def _withheld(self, value: str | int, name: str) -> JSONValue:
        assert isinstance(value, (PlacedText, PlacedNumber))
        text = str(value)
        if super()._withheld(value, name) is value:
            return value
        if (
            isinstance(value, int)
            or _looks_secret(name, text)
            or (is_password_name(name) and is_phrase(text))
        ):
            self.places.append((*value.source(0, len(text)), kind_of(name)))
        return value


def _secret_beside(value: Mapping[str, JSONValue]) -> dict[str, str]:
    """Return the name of the secret under each key that holds the value of a pair."""
    pairs = ((place, value.get(namer)) for namer, place in _PAIRS if place in value)
    beside = {
        place: name
        for place, name in pairs
        if isinstance(name, str) and is_secret_name(name)
    }
    if "kty" in value:
        return beside | dict.fromkeys(_KEY_PARTS, "private_key")
    return beside


def _is_argument(option: str, text: str) -> bool:
    """Tell whether a text in a list is what an option before it takes, and a secret."""
    if (
        not option.startswith("--")
        or text.startswith("-")
        or not is_secret_name(option)
    ):
        return False
    return is_password_name(option) or _looks_secret(option, text)


def _looks_secret(name: str, text: str) -> bool:
    return is_literal(
        text, is_password=is_password_name(name)
    ) and not PLACEHOLDER.search(text)


def _is_empty(text: str) -> bool:
    """Tell whether a text has nothing to withhold: it is empty, a reference to a variable, or was withheld already."""
    return (
        not text
        or (text.startswith("${") and text.endswith("}") and text[2:-1].isidentifier())
        or (
            text.startswith((MARK, "(withheld"))
            and len(text) < 60
            and text.count("[") < 2
        )
    )


def _free(key: str, taken: Mapping[str, object]) -> str:
    """Return a key that is not taken yet: two keys may be the same once their secrets are gone."""
    number, free = 2, key
    while free in taken:
        free, number = f"{key} {number}", number + 1
    return free
