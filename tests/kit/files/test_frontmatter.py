"""A Markdown file's fields and body come apart exactly, and what is wrong is named with its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.files.documents import DocumentError
from amplifier_kit.files.frontmatter import decode_front_matter, parse_front_matter
from amplifier_sdk.errors import ConfigError


def test_fields_and_body_come_apart() -> None:
    read = parse_front_matter("---\nname: notes\ntags: [a, b]\n---\n# Title\n\nText\n")
    assert read.fields == {"name": "notes", "tags": ["a", "b"]}
    assert read.body == "# Title\n\nText\n"
    assert read.body_line == 5


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("", ""),
        ("no front matter\n---\n", "no front matter\n---\n"),
        ("----\nname: x\n---\n", "----\nname: x\n---\n"),
        (" ---\nname: x\n---\n", " ---\nname: x\n---\n"),
        ("---\n---\nbody", "body"),
        ("---\n---", ""),
        ("--- \r\n---\t\r\nbody\r\n", "body\r\n"),
    ],
)
def test_without_fields_there_is_a_body(text: str, body: str) -> None:
    read = parse_front_matter(text)
    assert read.fields == {}
    assert read.body == body


@given(
    fields=st.dictionaries(
        st.text("abcxyz_", min_size=1), st.integers() | st.text("ab: -#\n")
    ),
    body=st.text(st.characters(exclude_categories=["Cs"])),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_what_was_written_is_read(
    fields: dict[str, int | str], body: str, end: str
) -> None:
    head = end.join(f"{name}: {json.dumps(value)}" for name, value in fields.items())
    read = parse_front_matter(f"---{end}{head}{end}---{end}{body}")
    assert read.fields == fields
    assert read.body == body


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("---\nname: x\n", "line 1, column 1", "does not end"),
        ("---", "line 1, column 1", "does not end"),
        ("---\nname: x\nname: y\n---\n", "line 3, column 1", "stands twice"),
        ("---\n- a\n---\n", "line 2, column 1", "got list"),
        ("---\na: [\n---\n", "line 3", ""),
    ],
)
def test_what_is_wrong_is_named_with_its_place(
    text: str, place: str, problem: str
) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_front_matter(text)
    assert caught.value.place.startswith(place)
    assert problem in caught.value.message


def test_a_file_is_read_without_its_byte_order_mark() -> None:
    data = b"\xef\xbb\xbf---\nname: x\n---\nbody"
    assert decode_front_matter(data, subject="a note").fields == {"name": "x"}


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"---\n", "line 1"), (b"---\nname: \xff\n---\n", "it is not UTF-8 at byte 10")],
)
def test_a_faulty_file_is_named(data: bytes, problem: str) -> None:
    with pytest.raises(ConfigError, match=rf"note\.md' has 1 problem:\n  {problem}"):
        decode_front_matter(data, subject="file 'note.md'")
