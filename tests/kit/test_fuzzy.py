"""Which of many texts a few characters mean."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.fuzzy import best_matches

PATHS = (
    "src/amplifier/cli/main.py",
    "src/main.py",
    "docs/maintenance.md",
    "src/domain/in.py",
    "README.md",
)


def test_the_likeliest_comes_first() -> None:
    assert best_matches("main", PATHS, 10) == [
        "src/main.py",
        "docs/maintenance.md",
        "src/amplifier/cli/main.py",
        "src/domain/in.py",
    ]
    assert best_matches("srcmain", PATHS, 1) == ["src/main.py"]
    assert best_matches("aclim", PATHS, 1) == ["src/amplifier/cli/main.py"]


def test_capitals_count_where_they_are_typed() -> None:
    assert best_matches("readme", PATHS, 9) == ["README.md"]
    assert best_matches("README", PATHS, 9) == ["README.md"]
    assert best_matches("Main", PATHS, 9) == []


def test_nothing_typed_is_the_shortest() -> None:
    assert best_matches("", PATHS, 2) == ["README.md", "src/main.py"]


@given(st.text(min_size=1, max_size=20), st.lists(st.text(max_size=30), max_size=20))
def test_matches_hold_the_characters_in_their_order(
    query: str, candidates: list[str]
) -> None:
    found = best_matches(query, candidates, 5)

    assert len(found) <= 5
    for text in found:
        letters = iter(text.casefold() + text.lower() + text)
        assert text in candidates
        assert all(
            any(one.lower() == each.lower() for each in letters) for one in query
        )
    for text in candidates:
        if query in text:
            assert best_matches(query, [text], 1) == [text]
