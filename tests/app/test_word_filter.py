"""Bytes are passed over without decoding them where they cannot hold a word."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.app.text.word_filter import (
    ESCAPE,
    FOLDED_TO_ASCII,
    WordFilter,
    longest_word,
)

TEXTS = st.text(st.sampled_from('kKsS\u212a\u017f\xdfé\u0130 ab\\"\n-.:1'), max_size=12)


def test_all_characters_that_fold_to_ascii_letters_are_known() -> None:
    everything = map(chr, range(128, sys.maxunicode + 1))
    found = [each for each in everything if any(map(str.isascii, each.casefold()))]

    assert "".join(found) == FOLDED_TO_ASCII


@given(TEXTS, TEXTS, TEXTS, st.booleans())
def test_what_holds_a_word_is_admitted(
    before: str, text: str, after: str, ensure_ascii: bool
) -> None:
    data = json.dumps([before + text + after], ensure_ascii=ensure_ascii).encode()
    word = longest_word(text.casefold())

    assert word is None or WordFilter.of([(word, ESCAPE)]).admits(data)


@pytest.mark.parametrize(
    ("groups", "admits"),
    [
        ((), True),
        ((("ROME",),), True),
        ((("rome", "paris"), ("naïve",)), True),
        ((("rome",), ("paris",)), False),
        ((("näive",),), False),
    ],
)
def test_one_word_of_each_group_must_be_there(
    groups: tuple[tuple[str, ...], ...], admits: bool
) -> None:
    assert WordFilter.of(groups).admits("Rome is NAÏVE".encode()) is admits


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("*_post tool:p", "tool:p"),
        ("say hello/world", "hello"),
        ("12 1e-05 ab", None),
        ('"\\u00e9tat"', None),
    ],
)
def test_a_word_is_what_json_writes_as_it_is(text: str, word: str | None) -> None:
    assert longest_word(text) == word
