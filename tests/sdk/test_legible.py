"""What a person decides by: nothing in it is invisible, and what is left out is counted."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.legible import asked_text, escaped, shortened, shortened_value

# The characters that Unicode calls default-ignorable and that count as printable, and blank signs.
INVISIBLE = [
    "\u00ad", "\u034f", "\u061c", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u180b", "\u180e", "\u200b", "\u200d",
    "\u202e", "\u2060", "\u2800", "\u3000", "\u3164", "\ufe00", "\ufe0f", "\ufeff", "\uffa0", "\ufffc", "\U0001d159",
    "\U000e0001", "\U000e0041", "\U000e0100", "\U000e01ef", "\x00", "\x1b", "\x7f", "\u0085", "\u2028", "\ud800",
    "\u00a0", "\U00016fe4",
]  # fmt: skip


@pytest.mark.parametrize("character", INVISIBLE, ids=ascii)
def test_character_that_shows_nothing_is_written_as_its_escape(
    character: str,
) -> None:
    assert escaped(f"rm{character}x") == f"rm{ascii(character)[1:-1]}x"


def test_what_is_read_stays_as_it_is() -> None:
    for text in (
        "plain",
        "zwei Wörter",
        "e\u0301a\u0308",
        "日本語",
        "👍",
        "line\n\ttab",
    ):
        assert escaped(text) == text
    assert escaped("a\nb\tc", allowed="") == "a\\nb\\tc"


def test_a_heap_of_marks_is_no_writing() -> None:
    assert escaped("a" + "\u0301" * 4) == "a" + "\\u0301" * 4
    assert escaped("a" + "\u0301" * 3) == "a" + "\u0301" * 3


@given(st.text())
def test_what_is_shown_is_printable_and_no_blank_but_a_space(text: str) -> None:
    for character in escaped(text, allowed=""):
        assert character.isprintable()
        assert character == " " or not unicodedata.category(character).startswith("Z")


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_short_text_is_whole_and_of_long_one_both_ends_shown(
    text: str, most: int
) -> None:
    shown = shortened(text, most)
    if len(text) <= most:
        assert shown == text
        return
    head = most * 2 // 3
    assert shown.startswith(text[:head])
    assert shown.endswith(text[len(text) - (most - head) :])
    assert f"{len(text) - most} characters left out" in shown


def test_the_end_of_a_long_command_is_shown() -> None:
    text = asked_text("echo " + "a" * 40_000 + "; rm -rf ~")
    assert text.endswith("; rm -rf ~")
    assert "28015 characters left out" in text


def test_every_text_of_a_value_is_shortened_by_itself() -> None:
    value: JSONValue = {
        "command": "x" * 20 + "END",
        "list": ["y" * 12, 1, None],
        "deep": {"z": "z"},
    }
    assert shortened_value(value, 9) == {
        "command": "xxxxxx [... 14 characters left out ...] END",
        "list": ["yyyyyy [... 3 characters left out ...] yyy", 1, None],
        "deep": {"z": "z"},
    }
    nested: JSONValue = "x" * 20
    for _ in range(50):
        nested = [nested]
    assert "left out" not in str(shortened_value(nested, 9))
