"""Messages in lines are put together, and those that are too long are counted."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.rpc.lines import LineSplitter, TooLong, answered_id


@given(
    st.lists(st.binary(max_size=60).map(lambda line: line.replace(b"\n", b""))),
    st.lists(st.integers(1, 40), min_size=1),
)
def test_lines_come_out_as_they_went_in_however_they_are_cut(
    lines: list[bytes], sizes: list[int]
) -> None:
    splitter = LineSplitter(1000)
    data = b"".join(line + b"\n" for line in lines)
    found: list[bytes | TooLong] = []
    place = 0
    while place < len(data):
        size = sizes[place % len(sizes)]
        found += splitter.feed(data[place : place + size])
        place += size

    assert found == [line for line in lines if line]


@given(st.integers(1025, 30_000), st.integers(1, 9000))
def test_a_line_that_is_too_long_keeps_its_size_and_its_ends(
    size: int, piece: int
) -> None:
    splitter = LineSplitter(1024)
    data = (b"a" * 8 + b"m" * (size - 16) + b"z" * 8) + b"\nnext\n"
    found = [
        line
        for start in range(0, len(data), piece)
        for line in splitter.feed(data[start : start + piece])
    ]

    long, after = found
    assert isinstance(long, TooLong)
    assert (long.size, long.head[:8], long.tail[-8:]) == (size, b"a" * 8, b"z" * 8)
    assert len(long.head) <= 4096
    assert len(long.tail) <= 4096
    assert after == b"next"


def too_long(text: str) -> TooLong:
    data = text.encode()
    return TooLong(len(data), data[:4096], data[-4096:])


FILLER = '"' + "a" * 9000 + '"'


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":7,"result":%s}',
        '{"id": 7, "jsonrpc": "2.0", "error": %s}',
        ' {"jsonrpc":"2.0","result":{"x":%s},"id":7}',
        '{"result":%s,"jsonrpc":"2.0","id":7}',
        '{"result":%s,"id":7,"jsonrpc":"2.0"} ',
    ],
)
def test_the_request_that_was_answered_is_found_at_either_end(text: str) -> None:
    assert answered_id(too_long(text % FILLER)) == 7


def test_an_id_may_be_a_text() -> None:
    assert answered_id(too_long('{"id":"a\\"b","result":' + FILLER + "}")) == 'a"b'
    assert answered_id(too_long('{"id":"\\q","result":' + FILLER + "}")) is None


@pytest.mark.parametrize(
    "text",
    [
        # a request of the server's own
        '{"jsonrpc":"2.0","id":7,"method":"ping","params":%s}',
        '{"jsonrpc":"2.0","method":"x","params":{"y":%s},"id":7}',
        '{"result":{"x":%s,"id":7}}',  # the id of something within
        '{"x":[],"result":%s,"id":7,"y":[]}',
        '{"result":%s,"x":"\\"id\\":7"}',
        "[%s]",
    ],
)
def test_what_only_looks_like_an_id_is_none(text: str) -> None:
    json.loads(text % FILLER)

    assert answered_id(too_long(text % FILLER)) is None
