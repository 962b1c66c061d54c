"""Text on its way to a terminal: shown, never obeyed, and no wider than its line."""

from __future__ import annotations

import os
import re
from io import StringIO
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amplifier_kit.redaction import KnownSecrets, StrictRedactor
from amplifier_kit.terminal import (
    arguments_text,
    call_text,
    columns_of,
    cut,
    has_colour,
    one_line,
    progress_text,
    visible,
    whole_lines,
)
from amplifier_sdk.jsontypes import JSONValue

ANY_TEXT: Final = st.text(st.characters(exclude_categories=[]))
OBEYED: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"path": "notes.txt"}, "notes.txt"),
        ({"path": "notes.txt", "limit": 3}, "notes.txt, limit: 3"),
        ({"limit": 3, "path": "notes.txt"}, "limit: 3, path: notes.txt"),
    ],
)
def test_first_text_of_a_call_stands_without_its_name(
    arguments: dict[str, JSONValue], text: str
) -> None:
    assert call_text(arguments) == text
    assert call_text(arguments, lambda _: "(withheld)") == '"(withheld)"'


@given(ANY_TEXT)
@example("\x1b[31m\u202e\ud800\u200f")
def test_visible_text_holds_nothing_that_a_terminal_obeys(text: str) -> None:
    shown = visible(text)

    assert OBEYED.search(shown) is None
    assert shown == text or OBEYED.search(text)


@given(ANY_TEXT, st.integers(0, 60))
@example("漢字" * 40, 31)
@example(" " * 5000 + "x", 10)
@example("a" + " " * 5000 + "b", 10)
def test_a_line_is_no_wider_than_asked(text: str, width: int) -> None:
    line = one_line(text, width)

    assert columns_of(line) <= width
    assert "\n" not in line


@pytest.mark.parametrize(
    "hidden",
    [
        *"\u3164\u2800\u200b\u200d\u2060\ufeff\u00ad\u202e\u2066\ufe0f\u115f\uffa0",
        "\U000e0041",
        "\U000e0100",
    ],
)
def test_every_character_of_a_line_shows(hidden: str) -> None:
    line = one_line(f"tool bash rm{hidden} -rf\u3000x")

    assert line == f"tool bash rm{ascii(hidden)[1:-1]} -rf x"


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abc..."),
        ("漢字漢字", 8, "漢字漢字"),
        ("漢字漢字", 7, "漢字..."),
        ("漢字漢字", 6, "漢..."),
        ("abcdefg", 2, ".."),
        ("abcdefg", 0, ""),
    ],
    ids=["fits", "ascii", "wide fits", "wide", "wide odd", "narrow", "nothing"],
)
def test_what_is_left_out_is_marked(text: str, columns: int, shown: str) -> None:
    assert cut(text, columns) == shown


def test_a_very_long_text_becomes_a_line_that_says_so() -> None:
    assert one_line("\n\n" + "word " * 1_000_000, 20) == "word word word wo..."
    assert one_line("a" + " " * 1_000_000 + "b", 20) == "a..."


class _Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
    ],
    ids=["terminal", "no-color", "empty", "dumb"],
)
def test_colours_are_for_terminals_that_want_them(
    environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert has_colour(_Terminal()) is coloured
    assert has_colour(StringIO()) is False
    assert has_colour(object()) is False


def test_a_stream_that_is_closed_has_no_colour() -> None:
    with open(os.devnull) as stream:
        pass

    assert has_colour(stream) is False


class _Mute:
    def __repr__(self) -> str:
        raise ValueError("no")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (
            {"path": "a b", "n": 1, "x": None, "ok": True, "f": 1.5},
            '{"path": "a b", "n": 1, "x": null, "ok": true, "f": 1.5}',
        ),
        ({"f": float("nan"), "b": b"x"}, '{"f": "nan", "b": "b\'x\'"}'),
        ({"漢": ["a", ("b",)]}, '{"漢": ["a", ["b"]]}'),
        ({"x": _Mute()}, '{"x": "(_Mute: ValueError)"}'),
    ],
    ids=["plain", "odd", "nested", "mute"],
)
def test_arguments_are_written_as_json(value: dict[str, JSONValue], shown: str) -> None:
    assert arguments_text(value) == shown


def test_arguments_lose_secrets_while_names_tell_them() -> None:
    redactor = StrictRedactor(known=KnownSecrets())

    assert (
        arguments_text({"password": "swordfish"}, redactor.redact)
        == '{"password": "[REDACTED:password]"}'
    )


@pytest.mark.parametrize(
    ("text", "lines", "begun"),
    [
        ("", [], ""),
        ("one", [], "one"),
        ("one\ntw", ["one"], "tw"),
        ("one\rtw\r", ["one"], "tw\r"),
        ("one\r\n\n", ["one", ""], ""),
    ],
)
def test_lines_that_come_in_pieces(text: str, lines: list[str], begun: str) -> None:
    assert whole_lines(text) == (lines, begun)


def test_of_large_arguments_the_beginning_is_written() -> None:
    deep: list[JSONValue] = []
    deep.append(deep)
    text = arguments_text(
        {"content": "x" * 10_000_000, "many": list(range(10_000)), "deep": deep}
    )

    assert len(text) < 5_000
    assert '"many": [0, 1, 2' in text


@pytest.mark.parametrize(
    ("message", "done", "total", "shown"),
    [
        ("working", None, None, "working"),
        ("working", 3, 10, "working (3 of 10)"),
        ("", 0.5, None, "0.5"),
        ("", 1, 2, "1 of 2"),
    ],
    ids=["message", "share", "amount", "numbers"],
)
def test_progress_is_said_in_words(
    message: str, done: float | None, total: float | None, shown: str
) -> None:
    assert progress_text(message, done, total) == shown
