"""Secrets that this process holds: they are found by their exact text, also base64, hexadecimal or URL-encoded."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, quote_plus

from amplifier_kit.redaction.names import is_place, is_secret_name
from amplifier_sdk.secret import live_secrets

__all__ = ["SHORTEST_SECRET", "KnownSecrets", "secrets_of_environment"]

SHORTEST_SECRET: Final = 6
"""How many characters a text has at least that is looked for."""
_LONGEST: Final = 16_384


def secrets_of_environment(
    environment: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Return the values of the variables whose names say that they are secrets; default those of this process.

    The path of something that exists is none: it says where the secret is.
    """
    variables = os.environ if environment is None else environment
    return tuple(
        value
        for name, value in variables.items()
        if is_secret_name(name) and not _is_path(name, value)
    )


def _is_path(name: str, value: str) -> bool:
    return is_place(name, value) or (os.path.isabs(value) and os.path.lexists(value))


class KnownSecrets:
    """Finds the texts it was given, and the text of every `Secret` that lives.

    Args:
        texts: further ones, such as `secrets_of_environment()`.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._given: Final = frozenset(text for text in texts if _is_long_enough(text))
        self._now: _Looked | None = None

    def places(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield where a known secret stands in a text."""
        pattern = self._looked_for().pattern
        # without a secret an empty alternation would match everywhere
        if pattern is not None:
            for match in pattern.finditer(text):
                yield (*match.span(), "known-secret")

    def state(self) -> object:
        """Return an object that stays the same while what is known does."""
        return self._looked_for().living

    def begun(self, text: str) -> Iterator[int]:
        """Yield where a known secret with white space in it begins whose end would follow the text's end."""
        for form in self._looked_for().spaced:
            for size in range(min(len(form) - 1, len(text)), 0, -1):
                if text.endswith(form[:size]):
                    yield len(text) - size
                    break

    def _looked_for(self) -> _Looked:
        living = frozenset(text for text in live_secrets() if _is_long_enough(text))
        now = self._now
        if now is None or living != now.living:
            # the longest first: an alternation takes the first that matches, and
            # a secret may begin another
            forms = sorted(
                {form for text in self._given | living for form in _forms(text)},
                key=len,
                reverse=True,
            )
            pattern = None
            if forms:
                pattern = re.compile("|".join(map(re.escape, forms)))
            # One assignment: threads that look at once never see the parts of two states.
            now = self._now = _Looked(
                living,
                pattern,
                tuple(form for form in forms if any(map(str.isspace, form))),
            )
        return now


class _Looked(NamedTuple):
    """What is looked for while these secrets live, and which of it has white space."""

    living: frozenset[str]
    pattern: re.Pattern[str] | None
    spaced: tuple[str, ...]


def _is_long_enough(text: str) -> bool:
    """Tell whether a text can be looked for: what is shorter than a word or as common as one is found everywhere."""
    return (
        SHORTEST_SECRET <= len(text) <= _LONGEST
        and len(set(text)) > 2
        and text.lower() not in _WORDS
    )


_WORDS: Final = frozenset(
    {
        "default",
        "disabled",
        "enabled",
        "example",
        "password",
        "placeholder",
        "secret",
        "(withheld)",
    }
)


def _forms(text: str) -> Iterator[str]:
    yield text
    # logs hold secrets as JSON writes them, with and without escaped letters
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    data = text.encode("utf-8", "surrogatepass")
    yield from (quote(data, safe=""), quote_plus(data), quote(data))
    yield data.hex()
    if len(data) >= 8:
        yield from _base64_forms(data)


def _base64_forms(data: bytes) -> Iterator[str]:
    """Yield what base64 makes of data wherever they begin, without ends that depend on their neighbours."""
    for shift in range(3):
        encoded = b64encode(bytes(shift) + data).decode()
        # the characters at both ends also encode bits of what stands beside the
        # data
        first = (0, 2, 3)[shift]
        rest = (shift + len(data)) % 3
        last = len(encoded) - (0, 3, 2)[rest]
        form = encoded[first:last]
        yield form
        yield form.replace("+", "-").replace("/", "_")
        yield quote(form, safe="")
