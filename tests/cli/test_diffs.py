"""Diffs are coloured line by line, and nothing around them."""

from __future__ import annotations

import click
from hypothesis import given
from hypothesis import strategies as st

from amplifier.cli._diffs import coloured_diff, wrapped_beside

DIFF = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n same\n-old\n+new"


def test_each_line_has_the_colour_of_what_it_does() -> None:
    assert coloured_diff(DIFF).split("\n") == [
        click.style("--- a", bold=True),
        click.style("+++ b", bold=True),
        click.style("@@ -1,2 +1,2 @@", fg="cyan"),
        click.style(" same"),
        click.style("-old", fg="red"),
        click.style("+new", fg="green"),
    ]


def test_what_surrounds_a_diff_stays() -> None:
    text = f"- a list\n{DIFF}\n1  Allow once\n- no change"
    shown = coloured_diff(text).split("\n")

    assert shown[0] == "- a list"
    assert shown[-2:] == ["1  Allow once", "- no change"]


@given(st.text("-+@ ab\n"))
def test_nothing_of_a_text_is_lost(text: str) -> None:
    assert click.unstyle(coloured_diff(text)) == text


def test_questions_are_wrapped_between_words_and_their_diffs_are_not() -> None:
    text = (
        "Asked because no rule is about it.\n@@ -1 +1 @@\n+a line of a file that is long\n"
        "Risk: low\n  1  Allow edits by write_file"
    )

    assert wrapped_beside(text, 20).split("\n") == [
        "Asked because no",
        "      rule is about",
        "      it.",
        "@@ -1 +1 @@",
        "+a line of a file that is long",
        "Risk: low",
        "  1  Allow edits by",
        "      write_file",
    ]
    assert wrapped_beside("Your choice (deny after 300 s): ", 40).endswith(": ")
