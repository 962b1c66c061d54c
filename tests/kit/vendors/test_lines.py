from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.http.sse import EventTooLongError, LineDecoder

TEXT = '{"a": "ä\\n"}\r\n\n  {"b": 2}\n{"c": "\U0001f600"}'.encode()


def decoded(*parts: bytes) -> list[str]:
    decoder = LineDecoder()
    found = [event.data for part in parts for event in decoder.feed(part)]
    return found + [event.data for event in decoder.finish()]


@given(st.lists(st.integers(0, len(TEXT))))
def test_it_does_not_matter_how_the_network_cuts_lines(places: list[int]) -> None:
    cuts = [0, *sorted(places), len(TEXT)]

    assert decoded(*(TEXT[a:b] for a, b in pairwise(cuts))) == decoded(TEXT)


def test_blank_lines_are_nothing_and_the_last_needs_no_end() -> None:
    assert decoded(TEXT) == ['{"a": "ä\\n"}', '{"b": 2}', '{"c": "\U0001f600"}']
    assert decoded(b"") == []


@pytest.mark.parametrize(
    "parts",
    [(b"123456789",), (b"123456789\n",), (b"12345", b"6789")],
    ids=["open", "ended", "in parts"],
)
def test_a_line_that_is_too_long_is_an_error(parts: tuple[bytes, ...]) -> None:
    decoder = LineDecoder(max_bytes=8)

    with pytest.raises(EventTooLongError):
        _ = [event for part in parts for event in decoder.feed(part)]
