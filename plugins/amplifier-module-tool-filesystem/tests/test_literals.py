"""Which texts a pattern needs: a text without them must have no line that matches."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from amplifier_module_tool_filesystem.matcher import RequiredLiterals


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("needle", ("needle",)),
        (r"^def \w+_handler\(", ("_handler(",)),
        (".*needle", ("needle",)),
        ("ab+cd", ("ab",)),
        ("abc?", ("ab",)),
        ("abc{0,3}de", ("ab",)),
        ("one|two", ("one", "two")),
        ("one[|]two", ("one",)),
        (r"one\|two", ("one|two",)),
        ("foo(bar|baz)", ()),
        ("foo(bar)?", ("foo",)),
        ("foo{|b}", ("fo", "b}")),
        ("one|", ()),
        ("(?i)needle", ()),
        (r"\d{4}", ()),
        (r"\x41bc", ()),
        ("[abc", ()),
    ],
)
def test_the_longest_text_that_each_alternative_needs_is_found(
    pattern: str, texts: tuple[str, ...]
) -> None:
    assert RequiredLiterals.of(pattern, ignore_case=False).texts == texts


def test_case_insensitivity_covers_simple_letters_only() -> None:
    """The Kelvin sign is a `k`, and the long s an `s`."""
    wanted = RequiredLiterals.of("Mask", ignore_case=True)

    assert [wanted.may_be_in(text) for text in ("a MASK", "ma\u017f\u212a", "mas")] == [
        True,
        True,
        False,
    ]
    assert RequiredLiterals.of("\u017fix", ignore_case=True).texts == ()


@given(
    pattern=st.text("aBk1.*+?{},|()[]^$\\dwb-: i", max_size=9),
    lines=st.lists(st.text("aBkK1 |{},[]\u212a", max_size=6), min_size=1, max_size=3),
    ignore_case=st.booleans(),
)
def test_a_text_with_a_line_that_matches_is_never_ruled_out(
    pattern: str, lines: list[str], ignore_case: bool
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sets that may mean something else one day
        try:
            search = re.compile(pattern, re.IGNORECASE if ignore_case else 0).search
        except re.error:
            reject()
    matching = any(search(line) for line in lines)

    assert (
        RequiredLiterals.of(pattern, ignore_case=ignore_case).may_be_in(
            "\n".join(lines)
        )
        or not matching
    )


@given(
    pieces=st.lists(
        st.sampled_from(
            [
                "a",
                "b",
                "ab",
                ".",
                "a?",
                "b*",
                "a+",
                "b{2}",
                "b{0,1}",
                "[ab]",
                "|",
                "(a|b)",
                "(?:ab)?",
                "^",
            ]
        ),
        min_size=1,
        max_size=6,
    ),
    text=st.text("ab", max_size=8),
)
def test_match_of_common_pieces_is_never_ruled_out(
    pieces: list[str], text: str
) -> None:
    pattern = "".join(pieces)

    assert RequiredLiterals.of(pattern, ignore_case=False).may_be_in(
        text
    ) or not re.search(pattern, text)
