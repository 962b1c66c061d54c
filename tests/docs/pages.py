"""The pages of the documentation as a reader copies from them: their blocks, and what is said about each.

A ```python block is code that works. The blocks of one page share their names and run from top to bottom.
Two comments, on a line of their own above a block, say otherwise:

* `<!-- not run: REASON -->` leaves the next block out;
* `<!-- prints -->` above a ```text block: the code blocks since the last such check printed exactly this.

A block may use `await`, `async for` and `async with` outside a function: it then runs in an event loop of its
own, on each backend. `<!-- model -->` anywhere on a page says that it needs the embedded model, and
`<!-- postgresql -->` a server: the blocks then find it as `url`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal

import attrs

__all__ = ["Block", "Page", "read_page"]

FENCE: Final = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>[^`]*)$")
COMMENT: Final = re.compile(r"^ *<!-- (?P<text>.*?) -->$")
NOT_RUN: Final = re.compile(r"not run: \S.*")


@attrs.frozen(kw_only=True)
class Block:
    """A code block, or the text that the blocks before it print."""

    kind: Literal["code", "output"]
    text: str
    line: int  # the first line of the text, from 1


@attrs.frozen(kw_only=True)
class Page:
    """One page: its blocks in order."""

    path: Path
    blocks: tuple[Block, ...]
    needs_model: bool
    needs_server: bool = False


def read_page(path: Path) -> Page:
    """Read a page's blocks.

    Raises:
        ValueError: a fence stays open, or a comment above a block is none of those that mean something.
    """
    lines = path.read_text("utf-8").splitlines()
    blocks: list[Block] = []
    needs_model = needs_server = False
    remark = ""
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if comment := COMMENT.match(line):
            needs_model |= comment["text"] == "model"
            needs_server |= comment["text"] == "postgresql"
            remark = comment["text"]
        elif opening := FENCE.match(line):
            end = _closing(lines, number, opening["fence"], path)
            text = "".join(
                f"{line[len(opening['indent']) :]}\n" for line in lines[number:end]
            )
            kind = _kind(opening["info"].strip(), remark, f"{path}:{number}")
            blocks += [Block(kind=kind, text=text, line=number + 1)] if kind else []
            number, remark = end + 1, ""
        elif line.strip():
            remark = ""
    return Page(
        path=path,
        blocks=tuple(blocks),
        needs_model=needs_model,
        needs_server=needs_server,
    )


def _closing(lines: list[str], start: int, fence: str, path: Path) -> int:
    for number in range(start, len(lines)):
        if lines[number].strip() == fence:
            return number
    raise ValueError(f"{path}:{start}: the block that begins here is never closed")


def _kind(language: str, remark: str, place: str) -> Literal["code", "output"] | None:
    if language == "text" and remark == "prints":
        return "output"
    if language != "python":
        return None
    if remark in ("", "model"):
        return "code"
    if NOT_RUN.fullmatch(remark):
        return None
    raise ValueError(
        f"{place}: {remark!r} above a python block; leave it out or write 'not run: REASON'"
    )
