"""Data that nobody checked, read as an object or a list."""

from __future__ import annotations

import pytest

from amplifier_kit.open_data import as_list, as_object


@pytest.mark.parametrize("value", [None, 7, "text", [("a", 1)], b"x"])
def test_what_is_no_object_is_an_empty_one(value: object) -> None:
    assert as_object(value) == {}


@pytest.mark.parametrize("value", [None, 7, "text", {"a": 1}, b"x"])
def test_what_is_no_list_is_an_empty_one(value: object) -> None:
    assert as_list(value) == []


def test_both_are_copies() -> None:
    given = {"list": [1, 2], "pair": (1, 2)}
    read = as_object(given)
    listed = as_list(given["list"])
    read.clear()
    listed.clear()

    assert given == {"list": [1, 2], "pair": (1, 2)}
    assert as_list(given["pair"]) == [1, 2]
