"""Streamed Markdown is cut into blocks that never change afterwards, and nothing of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.cli._chat._blocks import MarkdownBlocks
from tests.timing import grows_in_proportion

LINES = st.sampled_from(
    [
        "",
        "text",
        "more text",
        "# Head",
        "- one",
        "  - two",
        "1. first",
        "    code",
        "```python",
        "```",
        "~~~",
        "> said",
    ]
)
DEEP = "- a\n\n  more\n\n  ```\n  x\n\n  y\n  ```\n- b"
TEXTS = st.lists(LINES, max_size=25).map("\n".join)


def blocks_of(text: str, size: int = 0) -> list[str]:
    blocks = MarkdownBlocks()
    pieces = (
        [text[at : at + size] for at in range(0, len(text), size)] if size else [text]
    )
    return [*(block for piece in pieces for block in blocks.feed(piece)), *blocks.end()]


@given(TEXTS, st.integers(1, 7))
def test_every_line_is_in_one_block_in_order_however_it_comes(
    text: str, size: int
) -> None:
    blocks = blocks_of(text, size)
    assert blocks == blocks_of(text)
    said = [line for line in text.split("\n") if line.strip()]
    assert [
        line for block in blocks for line in block.split("\n") if line.strip()
    ] == said


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("a\nb\n\nc", ["a\nb", "c"]),
        ("# A\ntext\n## B", ["# A", "text", "## B"]),
        ("text\n```\na\n\nb\n```\nafter", ["text", "```\na\n\nb\n```", "after"]),
        ("````\n```\n\nstill\n````\n", ["````\n```\n\nstill\n````"]),
        ("```\nnever ends\n\nhere", ["```\nnever ends\n\nhere"]),
        ("- a\n\n- b\n\nafter", ["- a\n\n- b", "after"]),
        (f"{DEEP}\n\nafter", [DEEP, "after"]),
        ("| a |\n|---|\n| 1 |\n\nend", ["| a |\n|---|\n| 1 |", "end"]),
        ("\n\n\n", []),
        ("use ``` in text ```\n\nb", ["use ``` in text ```", "b"]),
        ("``` not ` a fence\n\nb", ["``` not ` a fence", "b"]),
    ],
    ids=str,
)
def test_blocks_end_where_markdown_ends_them(text: str, blocks: list[str]) -> None:
    assert blocks_of(text) == blocks


def test_the_tail_is_what_is_not_whole_yet() -> None:
    blocks = MarkdownBlocks()
    assert blocks.feed("one\n\ntwo\nthr") == ["one"]
    assert blocks.tail == "two\nthr"
    assert blocks.end() == ["two\nthr"]
    assert blocks.tail == ""


@pytest.mark.figures
@pytest.mark.parametrize("piece", ["x = foo(bar)\n", "lorem ipsum "])
def test_the_end_of_a_long_block_is_at_hand_in_linear_time(piece: str) -> None:
    def look(pieces: int) -> None:
        blocks = MarkdownBlocks()
        blocks.feed("```\n")
        for _ in range(pieces):
            blocks.feed(piece)
            assert blocks.tail.endswith(piece.strip("\n"))

    assert grows_in_proportion(look, 1_500, 12_000)
