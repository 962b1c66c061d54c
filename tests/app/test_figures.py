"""Figures are written for people."""

from __future__ import annotations

from decimal import Decimal

import pytest

from amplifier.app.text.figures import dollars, duration_text, short_number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0", "$0.00"),
        ("0.11", "$0.11"),
        ("0.0142", "$0.014"),
        ("0.0000012", "$0.000001"),
        ("0.00000049", "under $0.000001"),
        ("1234.5", "$1,234.50"),
    ],
)
def test_dollars_have_the_places_they_need(value: str, text: str) -> None:
    assert dollars(Decimal(value)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.0124, "12 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (59.99, "59.99 s"),
        (59.996, "1 min 00 s"),
        (185, "3 min 05 s"),
        (7620, "2 h 07 min"),
    ],
)
def test_a_duration_has_the_unit_that_fits_it(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (950, "950"),
        (1234, "1.2k"),
        (34_000, "34k"),
        (5.6e6, "5.6M"),
        (2e9, "2.0G"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert short_number(value) == text
