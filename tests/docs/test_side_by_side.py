"""The page that shows our lines beside those of others counts ours as they are."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path
from typing import Final

PAGE: Final = (
    Path(__file__).resolve().parents[2] / "docs" / "concepts" / "side-by-side.md"
)
ROW: Final = re.compile(r"^\| .*\(#\S+\) \| \d+ \| (?P<here>\d+) \|$", re.MULTILINE)
EXAMPLE: Final = re.compile(
    r"^### .*?^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)


def test_the_lines_of_each_example_are_counted() -> None:
    page = PAGE.read_text("utf-8")

    counted = [lines_of_code(found["code"]) for found in EXAMPLE.finditer(page)]

    assert [int(row["here"]) for row in ROW.finditer(page)] == counted
    assert len(counted) == 15


def lines_of_code(text: str) -> int:
    """Count the lines that are neither blank nor part of a comment or a docstring."""
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    ignored = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in ignored
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines - docstrings)
