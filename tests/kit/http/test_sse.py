"""Server-sent events, however the bytes arrive."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.http.sse import (
    Comment,
    EventDecoder,
    EventTooLongError,
    ServerEvent,
)
from tests.timing import grows_in_proportion

LINES = st.text(
    st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20
)


def decode(*pieces: bytes) -> list[ServerEvent | Comment]:
    decoder = EventDecoder()
    return [item for piece in pieces for item in decoder.feed(piece)]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        pytest.param(b"data: a\n\n", [ServerEvent(data="a")], id="one line"),
        pytest.param(
            b"data:a\ndata\ndata:  b\n\n",
            [ServerEvent(data="a\n\n b")],
            id="several lines",
        ),
        pytest.param(
            b"event: x\ndata: a\n\ndata: b\n\n",
            [ServerEvent(data="a", event="x"), ServerEvent(data="b")],
            id="name",
        ),
        pytest.param(
            b"id: 7\ndata: a\n\ndata: b\n\nid: \0\nid\ndata: c\n\n",
            [
                ServerEvent(data="a", id="7"),
                ServerEvent(data="b", id="7"),
                ServerEvent(data="c", id=""),
            ],
            id="the last id stays, one with a null is ignored",
        ),
        pytest.param(
            b"event: x\n\ndata: a\n\n",
            [ServerEvent(data="a")],
            id="an event without data is none",
        ),
        pytest.param(
            b"retry: 5\nnonsense\ndata: a\n\n",
            [ServerEvent(data="a")],
            id="unknown fields",
        ),
        pytest.param(
            b": ping\n\n:\n", [Comment(text="ping"), Comment(text="")], id="comments"
        ),
        pytest.param(
            b"\xef\xbb\xbfdata: a\n\n", [ServerEvent(data="a")], id="byte order mark"
        ),
        pytest.param(
            b"data: a\n\xef\xbb\xbfdata: b\n\n",
            [ServerEvent(data="a")],
            id="a mark later on",
        ),
        pytest.param(
            "data: a\u2028b\x85\n\n".encode(),
            [ServerEvent(data="a\u2028b\x85")],
            id="no other line ends",
        ),
        pytest.param(b"data: \xff\n\n", [ServerEvent(data="\ufffd")], id="not UTF-8"),
        pytest.param(b"data: a\n", [], id="unfinished"),
    ],
)
@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"], ids=["lf", "cr", "crlf"])
def test_a_stream_is_read_as_the_standard_says(
    stream: bytes, events: list[ServerEvent | Comment], ending: bytes
) -> None:
    whole = stream.replace(b"\n", ending)

    assert decode(whole) == events
    assert decode(*(bytes([byte]) for byte in whole)) == events


@given(
    st.lists(st.lists(LINES, min_size=1, max_size=3), max_size=4),
    st.sampled_from(["\n", "\r", "\r\n"]),
    st.lists(st.integers(min_value=1, max_value=9), max_size=40),
)
def test_where_the_network_cuts_does_not_matter(
    events: list[list[str]], ending: str, cuts: list[int]
) -> None:
    stream = "".join(
        "".join(f"data: {line}{ending}" for line in lines) + ending for lines in events
    ).encode()
    pieces, start = [], 0
    for cut in cuts:
        pieces.append(stream[start : start + cut])
        start += cut

    assert decode(*pieces, stream[start:]) == [
        ServerEvent(data="\n".join(lines)) for lines in events
    ]


@pytest.mark.parametrize(
    "pieces",
    [[b"data: 456789", b"0"], [b"data: 4567\n", b"data: 4567\n"]],
    ids=["one line", "several lines"],
)
def test_an_event_that_never_ends_is_refused(pieces: Sequence[bytes]) -> None:
    decoder = EventDecoder(max_bytes=12)

    assert list(decoder.feed(pieces[0])) == []
    with pytest.raises(EventTooLongError, match="longer than 12 bytes"):
        list(decoder.feed(pieces[1]))


def test_comments_do_not_count_against_the_length_of_an_event() -> None:
    decoder = EventDecoder(max_bytes=10)

    items = [item for _ in range(9) for item in decoder.feed(b": alive\n")]

    assert items == [Comment(text="alive")] * 9
    assert list(decoder.feed(b"data: a\n\n")) == [ServerEvent(data="a")]


@pytest.mark.figures
def test_lines_ending_in_carriage_returns_are_linear() -> None:
    def read(returns: int) -> None:
        assert decode(b"\r" * returns + b"data: " + b"x" * 400 * returns) == []

    assert grows_in_proportion(read, 1_000, 16_000)


def test_a_stream_of_pieces_becomes_events_as_they_are_complete() -> None:
    decoder = EventDecoder()
    pieces = (b"data: a\n\nda", b"ta: b\n", b"\n")

    seen = [list(decoder.feed(piece)) for piece in pieces]

    assert seen == [[ServerEvent(data="a")], [], [ServerEvent(data="b")]]


def test_the_limit_holds_for_a_piece_without_an_end() -> None:
    with pytest.raises(EventTooLongError):
        list(EventDecoder(max_bytes=50).feed(b"data: " + b"x" * 100))


def test_the_last_id_is_kept_of_an_event_without_data_as_well() -> None:
    decoder = EventDecoder()

    assert list(decoder.feed(b"id: 7\n\n")) == []
    assert decoder.last_id == "7"


@pytest.mark.parametrize(
    ("stream", "wanted"),
    [
        (b"retry: 2500\n", 2500),
        (b"retry: 1\nretry: soon\nretry: -5\n", 1),
        (b"retry: " + b"9" * 5000 + b"\n", None),
    ],
    ids=["number", "no number", "too long"],
)
def test_the_wait_that_the_server_wants_is_kept(
    stream: bytes, wanted: int | None
) -> None:
    decoder = EventDecoder()

    assert list(decoder.feed(stream)) == []
    assert decoder.retry == wanted
