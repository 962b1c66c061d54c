"""Answers that go round in circles, and those that do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_module_provider_local.conversation import TIMES, goes_round

SENTENCE = "The file is in the folder notes."


@pytest.mark.parametrize(
    "between", ["\n\n", "\n", " "], ids=["paragraphs", "lines", "prose"]
)
def test_the_same_five_times_is_a_circle_and_four_times_is_none(between: str) -> None:
    assert goes_round("When is it?\n\n" + f"{SENTENCE}{between}" * 5)
    assert not goes_round("When is it?\n\n" + f"{SENTENCE}{between}" * 4)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-" * 400,
        "| " * 200,
        "0, 0, 0, 0\n" * 40,
        " " * 400,
        "\n".join(f"line {n} of it all" for n in range(40)),
    ],
    ids=["nothing", "rule", "table", "numbers", "blanks", "numbered"],
)
def test_what_only_looks_alike_is_no_circle(text: str) -> None:
    assert not goes_round(text)


@given(
    st.text(min_size=12, max_size=300).filter(lambda unit: any(map(str.isalpha, unit))),
    st.text(max_size=2000),
)
def test_whatever_is_repeated_is_noticed_behind_any_text(
    unit: str, before: str
) -> None:
    assert goes_round(before + unit * TIMES)
