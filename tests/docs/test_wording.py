"""Pages, the changelog, messages, docstrings and comments use no phrase that was given up."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.docs.wording import find_phrases, prose_of_markdown, texts_of_python

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = (
    "*.md",
    "docs/**/*.md",
    "changes/*.md",
    "plugins/*/README.md",
    "benchmarks/*.md",
    "tests/**/*.md",
)


def _pages() -> list[str]:
    return sorted(
        {
            path.relative_to(ROOT).as_posix()
            for pattern in PAGES
            for path in ROOT.glob(pattern)
        }
    )


def test_no_page_has_a_phrase_that_was_given_up() -> None:
    found = [
        f"{page}:{line + 1}: {phrase!r}; write: {term}"
        for page in _pages()
        for line, phrase, term in find_phrases(
            prose_of_markdown((ROOT / page).read_text("utf-8"))
        )
    ]

    assert found == []


def test_no_text_of_the_code_has_a_phrase_that_was_given_up() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line + offset}: {phrase!r}; write: {term}"
        for path in sorted(
            {*ROOT.glob("src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")}
        )
        for line, text in texts_of_python(path.read_text("utf-8"))
        for offset, phrase, term in find_phrases(text)
    ]

    assert found == []


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("A session that goes on is resumed.", ["session that goes on"]),
        ("The person is told, and a file is looked\nat.", ["is told", "looked\nat"]),
        ("It tells `what holds`.", ["tells"]),
        ("Skeptic, hotels, encircle.", []),
        ("```text\nkept\n```\n", []),
        ("[it](kept.md) is Kept", ["Kept"]),
    ],
)
def test_phrases_are_found_in_prose_as_whole_words(
    text: str, phrases: list[str]
) -> None:
    assert [phrase for _, phrase, _ in find_phrases(prose_of_markdown(text))] == phrases


def test_a_line_is_that_of_the_phrase() -> None:
    assert list(find_phrases(prose_of_markdown("```\nkept\n```\n\nIt is kept.\n"))) == [
        (4, "kept", "stored, persisted")
    ]


def test_texts_of_code_are_messages_docstrings_and_comments() -> None:
    source = (
        'NAME = "kept"\n\n\n'
        "def run(kept):\n"
        '    """Return what is kept.\n\n    Args:\n        kept: `kept` and told.\n    """\n'
        '    fail(f"{NAME} is told")  # nobody judges\n'
    )

    found = [
        (line + offset, phrase)
        for line, text in texts_of_python(source)
        for offset, phrase, _ in find_phrases(text)
    ]

    assert found == [(5, "kept"), (10, "is told"), (10, "judges")]
