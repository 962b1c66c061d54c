"""The measure itself: what is quadratic is told from what is not."""

from __future__ import annotations

import pytest

from tests.timing import grows_in_proportion, takes_at_most


def linear(size: int) -> None:
    for _ in range(size):
        pass


def quadratic(size: int) -> None:
    for _ in range(size):
        linear(size)


@pytest.mark.figures
def test_what_is_quadratic_does_not_grow_in_proportion() -> None:
    assert grows_in_proportion(linear, 20_000, 160_000)
    assert not grows_in_proportion(quadratic, 100, 800)


@pytest.mark.figures
def test_what_takes_longer_takes_longer_in_every_round() -> None:
    assert takes_at_most(1.0, lambda: linear(1_000))
    assert not takes_at_most(0.0, lambda: linear(100_000))
