"""Texts that are used and never shown: keys, tokens, passwords."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NoReturn, final
from weakref import WeakValueDictionary

__all__ = ["WITHHELD", "Secret", "is_secret_name", "live_secrets", "withhold"]

WITHHELD: Final = "(withheld)"
"""What stands where a secret would."""

_NAMES: Final = (
    r"(?i)key$|(api|access|secret|auth)[-_]?keys$|token$|(api|access|auth|bearer|refresh)[-_]?tokens$|secret|passw"
    r"|passphrase|(^|[-_]|ssh)pass$|pwd$|credential|authorization|auth$|bearer$|cookie|connection_?string$|webhook"
)


def is_secret_name(name: str) -> bool:
    """Tell whether the name of a configuration's key says that what stands under it may be secret.

    It takes any `key` for one: a setting that is withheld for nothing does no harm. What is read besides
    configurations is decided by `amplifier_kit.redaction.is_secret_name`, which knows harmless keys and tokens.
    """
    return re.search(_NAMES, name) is not None


def withhold(data: Mapping[str, object]) -> dict[str, object]:
    """Copy data without its secrets: texts under keys whose names say that they are some."""
    return {
        key: _withheld(value, is_secret=is_secret_name(key))
        for key, value in data.items()
    }


def _withheld(value: object, *, is_secret: bool) -> object:
    if isinstance(value, Mapping):
        name = value.get("name")
        # as in {"name": "API_TOKEN", "value": ...}
        is_named = isinstance(name, str) and is_secret_name(name)
        return {
            key: _withheld(
                item,
                is_secret=is_secret
                or (isinstance(key, str) and is_secret_name(key))
                or (is_named and key == "value"),
            )
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        # each item with the one before it, which may be the option that it belongs to
        before = [None, *value]
        return [
            _withheld(
                item,
                is_secret=is_secret or _is_secret_option(option) or _holds_secret(item),
            )
            for option, item in zip(before, value, strict=False)
        ]
    if is_secret and isinstance(value, (str, bytes)):
        return WITHHELD
    return value


def _is_secret_option(item: object) -> bool:
    """Tell whether an argument is an option whose value, the next argument, may be secret."""
    return (
        isinstance(item, str)
        and item.startswith("-")
        and "=" not in item
        and is_secret_name(item)
    )


def _holds_secret(item: object) -> bool:
    """Tell whether an argument is `--name=value` with a name that says that the value may be secret."""
    if not isinstance(item, str) or "=" not in item:
        return False
    return is_secret_name(item.partition("=")[0])


@final
class Secret:
    """A text that shows itself nowhere but through `reveal`.

    A field annotated with it marks a configuration's key as secret: its `repr`, its text, a formatted string,
    an error about the configuration and `to_json` have `(withheld)` in its place, and a pickle is refused.

    ```python
    @attrs.frozen(kw_only=True)
    class Config:
        api_key: Secret | None = None
    ```
    """

    __slots__ = ("__weakref__", "_text")

    def __init__(self, text: str) -> None:
        self._text: Final = text
        _LIVING[id(self)] = self

    def reveal(self) -> str:
        """Return the text itself, for those whom it is meant for."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        # takes a millisecond to import, and few secrets are compared
        from hmac import compare_digest

        # in constant time, so that nobody finds a secret by trying; the environment may
        # hold bytes that are no text, which Python keeps as halves of surrogate pairs
        return compare_digest(
            self._text.encode("utf-8", "surrogatepass"),
            other._text.encode("utf-8", "surrogatepass"),
        )

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __repr__(self) -> str:
        return f"Secret({WITHHELD!r})"

    def __str__(self) -> str:
        return WITHHELD

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, _: object) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A Secret is not pickled: the text would stand in the file; store where it comes from"
        )


# By identity: of two secrets with one text either may end first.
_LIVING: Final[WeakValueDictionary[int, Secret]] = WeakValueDictionary()


def live_secrets() -> frozenset[str]:
    """Return the texts of all secrets that this process holds, for those who look for them in what is written down."""
    # A copy of the references is made at once: other threads make secrets meanwhile.
    return frozenset(
        secret.reveal()
        for found in _LIVING.valuerefs()
        if (secret := found()) is not None
    )
