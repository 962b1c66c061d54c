from __future__ import annotations

import pytest

from amplifier_kit.vendors import read_object, read_tokens, write_json
from amplifier_kit.vendors.payloads import read_json
from amplifier_sdk.errors import InvalidRequestError, StreamError
from amplifier_sdk.jsontypes import JSONValue


def test_a_body_is_utf_8_whatever_is_in_it() -> None:
    assert write_json({"text": "ä\ud800\x00"}) == b'{"text": "\xc3\xa4?\\u0000"}'


@pytest.mark.parametrize("value", [float("nan"), b"bytes"], ids=["nan", "bytes"])
def test_what_is_not_json_cannot_be_sent(value: JSONValue) -> None:
    with pytest.raises(InvalidRequestError, match="cannot be written as JSON"):
        write_json({"value": value})


def test_an_endless_nest_cannot_be_sent() -> None:
    nest: list[JSONValue] = []
    nest.append(nest)

    with pytest.raises(InvalidRequestError):
        write_json(nest)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "what?",
        '{"a": NaN}',
        "[" * 100_000,
        "[1]",
        "null",
        '"text"',
        "1" * 5000,
    ],
    ids=["empty", "cut", "words", "nan", "endless", "list", "null", "text", "figures"],
)
def test_what_is_no_object_is_a_broken_stream(text: str) -> None:
    with pytest.raises(StreamError):
        read_object(text)


def test_an_object_is_read() -> None:
    assert read_object('{"a": [1, null]}') == {"a": [1, None]}
    assert read_json(b"\xef\xbb\xbf[1]") == [1]


@pytest.mark.parametrize(
    "value",
    [None, -1, 1.5, True, "7"],
    ids=["null", "negative", "float", "boolean", "text"],
)
def test_a_figure_that_is_no_count_is_unknown(value: JSONValue) -> None:
    assert read_tokens({"tokens": value}, "tokens") is None


def test_counts_are_read_where_they_stand() -> None:
    assert read_tokens({"tokens": 0}, "tokens") == 0
    assert read_tokens({}, "tokens") is None
    assert read_tokens("none", "tokens") is None
