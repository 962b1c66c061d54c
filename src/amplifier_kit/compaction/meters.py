"""Meters: how many tokens a text takes, and a message of texts, images and calls.

A meter is a function of the text alone. How far a model's own count differs is learned from its usage; see
`calibration`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, runtime_checkable

from amplifier_kit.compaction.media import IMAGE, is_media, media_tokens, media_words
from amplifier_kit.compaction.options import MeterName
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import MessageDict

if TYPE_CHECKING:
    from bpe_openai import Encoding

__all__ = [
    "FRAME",
    "BpeMeter",
    "Count",
    "TokenMeter",
    "WordMeter",
    "built_in_meter",
    "message_tokens",
    "most_of_text",
    "most_tokens",
]

FRAME: Final = 4
"""Tokens that a message's role and frame take."""

ENCODING: Final = "o200k_base"
"""The vocabulary of OpenAI's models since GPT-4o."""

BYTES_PER_CHARACTER: Final = 4
"""The most bytes of a character in UTF-8; a token is at least one byte."""

Count: TypeAlias = Callable[[str], int]
"""Counts the tokens of a text."""

_NOT_SENT: Final = frozenset({"type", "visibility"})
_PIECES: Final = (
    r" ?[A-Z]?[a-z]{1,8}"  # a word, or the first part of a long one
    r"| ?[A-Z]{1,3}"
    r"|\d{1,3}"
    r"|[\u3040-\uffff]"  # scripts without spaces: about a token a character
    r"|[^\W\d_a-zA-Z]{1,4}"  # other alphabets
    r"|[^\w\s]{1,2}|_|\s{2,}|\n"
)


@runtime_checkable
class TokenMeter(Protocol):
    """Counts tokens. An application may offer one as the capability `context.token_meter`."""

    def count(self, text: str, /) -> int:
        """Return the tokens of a text: always the same for the same text."""


class WordMeter:
    """Counts words, numbers and signs, which is within a quarter of OpenAI's models for prose, code, JSON and logs."""

    __slots__ = ()

    def count(self, text: str, /) -> int:
        """Return the estimated tokens of a text."""
        return len(_pieces().findall(text))


@cache
def _pieces() -> re.Pattern[str]:
    return re.compile(_PIECES)  # not on import: most sessions stay small


class BpeMeter:
    """Counts exactly as OpenAI's models do; needs `amplifier[tokens]`.

    Raises:
        ConfigError: `bpe-openai` is not installed.
    """

    __slots__ = ("_encode",)

    def __init__(self) -> None:
        try:
            from bpe_openai import get_encoding  # loading its vocabulary takes a second
        except ImportError as error:
            remedy = "install 'amplifier[tokens]', or choose 'actual' or 'estimate'"
            problem = f"'bpe' needs the package bpe-openai; {remedy}"
            raise ConfigError.of("token_meter", problem) from error
        self._encode = _encoder(get_encoding)

    def count(self, text: str, /) -> int:
        """Return the tokens of a text."""
        return len(self._encode(text))


@cache
def _encoder(get_encoding: Callable[[str], Encoding]) -> Callable[[str], list[int]]:
    return get_encoding(ENCODING).encode_ordinary


def built_in_meter(name: MeterName) -> TokenMeter:
    """Make the meter that a configuration names.

    Raises:
        ConfigError: it needs a package that is not installed.
    """
    if name == "bpe":
        return BpeMeter()
    return WordMeter()


def message_tokens(message: MessageDict, count: Count) -> int:
    """Count the tokens of a message: its frame, texts, calls and images."""
    content = message.get("content")
    tokens = FRAME + _tokens(content, count)
    # both forms of the same calls may be there; they are sent once
    if "tool_calls" in message and not _has_calls(content):
        tokens += count(str(message["tool_calls"]))
    return tokens


def _has_calls(content: JSONValue) -> bool:
    """Tell whether a message's calls stand among its blocks; those beside it are the same ones then."""
    if not isinstance(content, (list, tuple)):
        return False
    return any(
        isinstance(block, Mapping) and block.get("type") == "tool_call"
        for block in content
    )


def _tokens(value: JSONValue, count: Count) -> int:
    match value:
        case None:
            return 0
        case str():
            return count(value)
        case list() | tuple():
            return sum(_tokens(item, count) for item in value)
        case Mapping() if is_media(value):
            return media_tokens(value)
        case Mapping() if isinstance(value.get("type"), str):
            return FRAME + sum(
                _tokens(part, count)
                for key, part in value.items()
                if key not in _NOT_SENT
            )
        case _:
            # as Python writes it: as many tokens as JSON, and faster
            return count(str(value))


def most_tokens(message: MessageDict) -> int:
    """Return a figure that no built-in meter's count of the message is above, without reading its texts."""
    content = message.get("content")
    has_calls = False
    if isinstance(content, str):  # most messages are a text: no call is made for them
        limit = FRAME + len(content) * (1 if content.isascii() else BYTES_PER_CHARACTER)
    elif _is_one_call(content):  # and most others are a call
        text = str(content)
        return FRAME + most_of_text(text) + IMAGE * media_words(text)
    else:
        others, media = _without_media(content)
        # a block's own frame is less than what its keys are written with
        text = str(others)
        limit = FRAME + most_of_text(text) + media + IMAGE * media_words(text)
        has_calls = "tool_call'" in text and _has_calls(content)
    if has_calls or "tool_calls" not in message:
        return limit
    return limit + most_of_text(str(message["tool_calls"]))


def _is_one_call(content: JSONValue) -> bool:
    if type(content) is not list or len(content) != 1:
        return False
    return type(content[0]) is dict and content[0].get("type") == "tool_call"


def _without_media(content: JSONValue) -> tuple[JSONValue, int]:
    """Leave out media, whose data are large, and count them; what else holds an image is counted by the word."""
    if not isinstance(content, list):
        return content, 0
    others = [block for block in content if not is_media(block)]
    return others, sum(media_tokens(block) for block in content if is_media(block))


def most_of_text(text: str) -> int:
    """Return a figure that no built-in meter's count of the text is above."""
    return len(text) * (1 if text.isascii() else BYTES_PER_CHARACTER)
