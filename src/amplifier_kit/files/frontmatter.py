"""Front matter: the fields in YAML at the head of a Markdown file, between two lines of `---`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from amplifier_kit.files.documents import DocumentError, named_errors, parse_yaml
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "FrontMatter",
    "decode_front_matter",
    "parse_front_matter",
]

_OPENING: Final = re.compile(r"---[ \t]*(?:\r?\n|\Z)")
_CLOSING: Final = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)


@attrs.frozen(kw_only=True)
class FrontMatter:
    """A Markdown file in its two parts.

    Args:
        fields: what stands between the two lines; empty when the file has no front matter.
        body: what comes after them, as it stands in the file.
        body_line: the number of the body's first line in the file, counted from 1.
        head: the fields as they are written, each in its own line of the file.
    """

    fields: Mapping[str, JSONValue]
    body: str
    body_line: int = 1
    head: str = attrs.field(default="", repr=False)


def parse_front_matter(text: str) -> FrontMatter:
    """Part a text into the fields at its head and its body; a text that does not begin with `---` is all body.

    Raises:
        DocumentError: the front matter does not end, is no sound YAML, or holds something else than fields; it
            names line and column of the text.
    """
    opening = _OPENING.match(text)
    if opening is None:
        return FrontMatter(fields={}, body=text)
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        raise DocumentError(
            "line 1, column 1",
            "the front matter does not end; close it with a line of '---'",
        )
    # The empty line stands for the opening one, so that places are those of the file.
    head = "\n" + text[opening.end() : closing.start()]
    fields = parse_yaml(head)
    if fields is not None and not isinstance(fields, dict):
        problem = f"the front matter must hold fields, as 'name: value'; got {type(fields).__name__}"
        raise DocumentError("line 2, column 1", problem)
    # errors in the body are reported with lines of the file
    line = text.count("\n", 0, closing.end()) + 1
    return FrontMatter(
        fields=fields or {}, body=text[closing.end() :], body_line=line, head=head
    )


def decode_front_matter(data: bytes, *, subject: str) -> FrontMatter:
    """Read the content of a Markdown file into the fields at its head and its body.

    Args:
        data: UTF-8, with or without a byte order mark.
        subject: what it is, for the message.

    Raises:
        ConfigError: it is no UTF-8, or its front matter is not sound; names line and column.
    """
    with named_errors(subject):
        return parse_front_matter(data.decode("utf-8-sig"))
