"""One rule makes folder names of whatever comes from outside."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.files.names import folder_beginnings, folder_name

HOSTILE = [
    "",
    ".",
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "C:\\windows",
    "con",
    "nul",
    "com1",
    "A",
    "a.",
    "a ",
    " a",
    "~",
    "~root",
    "-rf",
    "a\0b",
    "a\nb",
    "\ud83d",
    "漢字",
    "x" * 300,
    "=a-00000000000000000000000000000000",
    "..\u2044..",
    "$(id)",
    "%2e%2e%2f",
    "\u202e",
    "a:b",
    "*?",
]


@pytest.mark.parametrize(
    "name",
    ["one", "3f2a-11", "a_b", "0", "x" * 100, "9f1c0b9e-4b1e-4a0e-8f5e-1c8b7c1d2e3f"],
)
def test_plain_names_stand_for_themselves(name: str) -> None:
    assert folder_name(name) == name


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_any_other_name_is_one_folder_below(name: str, tmp_path: Path) -> None:
    folder = tmp_path / folder_name(name)
    folder.mkdir()

    assert folder.resolve().parent == tmp_path.resolve()
    assert folder_name(name).startswith("=")
    assert len(folder_name(name)) < 80


def test_hostile_names_have_folders_of_their_own() -> None:
    assert len({folder_name(name) for name in HOSTILE}) == len(HOSTILE)


@given(st.text(), st.text())
def test_no_two_names_share_a_folder_whatever_the_case(one: str, other: str) -> None:
    assert (folder_name(one).lower() == folder_name(other).lower()) is (one == other)


@given(st.text(max_size=12), st.text(max_size=12))
def test_the_folder_of_a_name_begins_as_its_beginning_says(
    begin: str, rest: str
) -> None:
    assert folder_name(begin + rest).startswith(folder_beginnings(begin))
