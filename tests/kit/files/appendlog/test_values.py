"""Values come back as they went in, whatever Python can hold that JSON cannot write."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amplifier_kit.files.appendlog import decode_line, encode_line
from amplifier_sdk import JSONValue
from amplifier_sdk.stores import LogEntry

HALF, OTHER_HALF = "\ud83d", "\ude00"

texts = st.text(
    st.characters() | st.sampled_from([HALF, OTHER_HALF, "$", "\n", "\u2028", "\0"])
)
keys = texts | st.sampled_from(["$log", "crc", HALF + OTHER_HALF])
values: st.SearchStrategy[JSONValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=12,
)


def there_and_back(value: JSONValue) -> tuple[bytes, JSONValue]:
    line = encode_line(LogEntry(kind="note", data=value, at=1.0))
    return line, decode_line(line).data


def is_same(left: object, right: object) -> bool:
    """Alike in type, value, order and sign."""
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(
            is_same(left[key], right[key]) for key in left
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return repr(left) == repr(right)
    return type(left) is type(right) and left == right


@settings(max_examples=200)
@given(values)
def test_any_value_comes_back_and_its_line_is_strict_json(value: JSONValue) -> None:
    def refuse(constant: str) -> float:
        raise AssertionError(constant)

    line, back = there_and_back(value)

    assert is_same(back, value)
    assert b"\n" not in line
    json.loads(line.decode("utf-8"), parse_constant=refuse)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("äß漢🙂", '"äß漢🙂"'),
        (HALF, r'"\ud83d"'),
        (f"a{HALF}{OTHER_HALF}b", r'{"$log":["a\ud83d","\ude00b"]}'),
        (math.inf, '{"$log":"Infinity"}'),
        (-math.inf, '{"$log":"-Infinity"}'),
        ([math.nan], '[{"$log":"NaN"}]'),
        ({"$log": "mine"}, '{"$log":{"items":[["$log","mine"]]}}'),
        (
            {HALF + OTHER_HALF: 1},
            r'{"$log":{"items":[[{"$log":["\ud83d","\ude00"]},1]]}}',
        ),
    ],
    ids=[
        "scripts",
        "half",
        "halves",
        "infinity",
        "minus-infinity",
        "nan",
        "mark",
        "key",
    ],
)
def test_what_json_lacks_is_written_by_a_rule(value: JSONValue, written: str) -> None:
    line, back = there_and_back(value)

    assert line.endswith(f',"data":{written}}}'.encode())
    assert is_same(back, value)


def test_tuples_come_back_as_lists() -> None:
    assert there_and_back((1, (math.inf,)))[1] == [1, [math.inf]]


def endless() -> JSONValue:
    inner: list[JSONValue] = []
    inner.append(inner)
    return inner


def deep() -> JSONValue:
    value: JSONValue = "core"
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [object(), {"a": {1}}, b"bytes", endless(), deep(), {1: math.nan}],
    ids=range(6),
)
def test_what_has_no_json_form_is_refused(value: JSONValue) -> None:
    with pytest.raises(ValueError, match="It cannot be written as JSON"):
        there_and_back(value)


def sealed(body: bytes) -> bytes:
    """Give a line the checksum that fits."""
    from zlib import crc32

    return b'{"crc":"%08x",%b' % (crc32(body), body)


@pytest.mark.parametrize(
    "body",
    [
        b'"kind":"note","data":1}x',
        b'"kind":7,"data":1}',
        b'"data":1}',
        b'"kind":"note","data":{"$log":7}}',
        b'"kind":"note","data":{"$log":"Everything"}}',
        b'"kind":"note","data":{"$log":{"items":[1]}}}',
        b'"kind":"note","data":{"$log":{"items":[[1]]}}}',
        b'"kind":"note","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'"kind":"note","data":"\xff"}',
    ],
    ids=range(9),
)
def test_line_with_valid_checksum_and_no_sense_is_no_record(
    body: bytes,
) -> None:
    with pytest.raises(
        ValueError,
        match=r"It cannot be read|it is no record|that a log writes|Extra data|codec|values",
    ):
        decode_line(sealed(body))


def test_a_record_without_a_time_is_read() -> None:
    assert decode_line(sealed(b'"kind":"note","data":1}')) == LogEntry(
        kind="note", data=1, at=0.0
    )
