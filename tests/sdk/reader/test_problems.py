"""Values, places and choices are named in words that a model and a person understand."""

from __future__ import annotations

import pytest

from amplifier_sdk._reader.problems import any_of, path_text, unknown_key, value_text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("name",), "name"),
        (("servers", 0, "name"), "servers[0].name"),
        ((0,), "[0]"),
        (("a b", "c"), '["a b"].c'),
        (("x" * 100 + " y",), '["' + "x" * 59 + '\\u2026"]'),
    ],
)
def test_a_path_reads_like_code(path: tuple[str | int, ...], text: str) -> None:
    assert path_text(path) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "a boolean (true)"),
        (3, "an integer (3)"),
        (1.5, "a number (1.5)"),
        ("x", 'a string ("x")'),
        ("x" * 100, 'a string ("' + "x" * 58 + "…)"),
        ({"a": 1}, "an object with 1 key"),
        ({}, "an object with 0 keys"),
        ([1], "an array with 1 item"),
        ((1, 2), "an array with 2 items"),
        (b"x", "a Python bytes (b'x')"),
    ],
)
def test_a_value_is_named_by_its_json_type(value: object, text: str) -> None:
    assert value_text(value) == text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "a"], "a"),
        (["a", "b"], "a or b"),
        (["a", "b", "c"], "a, b or c"),
    ],
)
def test_options_read_like_a_sentence(options: list[str], text: str) -> None:
    assert any_of(options) == text


@pytest.mark.parametrize(
    ("name", "known", "text"),
    [
        ("limt", ["limit", "offset"], "unknown; did you mean 'limit'?"),
        ("zzz", ["limit", "offset"], "unknown; the known keys are limit, offset"),
        ("zzz", [], "unknown; no keys are expected here"),
        (3, ["limit"], "unknown; the known keys are limit"),
    ],
)
def test_an_unknown_key_comes_with_the_nearest_known_one(
    name: object, known: list[str], text: str
) -> None:
    assert unknown_key(name, known) == text
