"""Front matter as Claude Code's own files write it, YAML or not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.claude_plugins import parse_loosely
from amplifier_kit.files.documents import DocumentError

LATIN = st.characters(min_codepoint=0xA1, max_codepoint=0xFF)
KNOWN = ("name", "description", "tools", "argument-hint", "flag")


def test_sound_yaml_is_read_as_yaml() -> None:
    file = parse_loosely(
        "---\nname: a\ntools:\n  - Read\n  - Bash(git:*)\nflag: true\nother: 3\n---\nBody\n",
        KNOWN,
    )

    assert (
        file.text("name"),
        file.words("tools"),
        file.flag("flag"),
        file.text("other"),
    ) == (
        "a",
        ("Read", "Bash(git:*)"),
        True,
        "3",
    )
    assert file.body == "Body\n"


def test_a_text_without_front_matter_is_all_body() -> None:
    file = parse_loosely("Do it.\n---\nx: y\n---\n", KNOWN)

    assert (dict(file.fields), file.body) == ({}, "Do it.\n---\nx: y\n---\n")


def test_a_description_of_many_lines_with_colons_is_one_text() -> None:
    text = (
        '---\nname: reviewer\ndescription: Use it when. Examples:\n\n<example>\nContext: [x]\nuser: "a: b"\n'
        "assistant: ok\n</example>\n\nmodel: sonnet\ntools: [\"Read\", 'Grep']\n---\n\nYou review."
    )
    file = parse_loosely(text, (*KNOWN, "model"))

    assert file.text("description") == (
        'Use it when. Examples:\n\n<example>\nContext: [x]\nuser: "a: b"\nassistant: ok\n</example>'
    )
    assert (file.text("name"), file.text("model"), file.words("tools")) == (
        "reviewer",
        "sonnet",
        ("Read", "Grep"),
    )


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("[pr-number] [priority]", "[pr-number] [priority]"),
        ("[issue-number]", "[issue-number]"),
        ("[a, b]", "[a, b]"),
        ("<file>", "<file>"),
        ("'[a] | [b]'", "[a] | [b]"),
        ("{a: b}", ""),
        ("", ""),
    ],
)
def test_a_hint_is_the_text_that_was_written(hint: str, expected: str) -> None:
    assert (
        parse_loosely(f"---\nargument-hint: {hint}\n---\n", KNOWN).text("argument-hint")
        == expected
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Read, Write", ("Read", "Write")),
        ("Read", ("Read",)),
        ("Bash(git add:*), Bash(a,b:*)", ("Bash(git add:*)", "Bash(a,b:*)")),
        ('"*"', ("*",)),
        ("[Read, Grep]", ("Read", "Grep")),
        ("", None),
        ("3", None),
    ],
)
def test_a_list_is_read_from_either_form(
    written: str, expected: tuple[str, ...] | None
) -> None:
    assert (
        parse_loosely(f"---\ntools: {written}\n---\n", KNOWN).words("tools") == expected
    )


def test_a_list_and_a_block_are_read_where_the_rest_is_no_yaml() -> None:
    fields = "argument-hint: [a] [b]\ntools:\n  - Read\n  - Bash(git:*)\ndescription: |\n  one\n  two\nname: 'x'"
    text = f"---\n{fields}\n---\nBody"
    file = parse_loosely(text, KNOWN)

    assert (file.words("tools"), file.text("description"), file.text("name")) == (
        ("Read", "Bash(git:*)"),
        "one\ntwo",
        "x",
    )
    assert file.body == "Body"


def test_a_front_matter_that_does_not_end_is_an_error() -> None:
    with pytest.raises(DocumentError, match="does not end"):
        parse_loosely("---\nname: [a] [b]\n", KNOWN)


def test_text_before_the_first_field_is_nobodys() -> None:
    file = parse_loosely("---\nloose: [a] [b]\nname: n\n---\n", KNOWN)

    assert dict(file.fields) == {"name": "n"}


@given(st.text(), st.text())
def test_any_text_is_read_or_refused(head: str, body: str) -> None:
    try:
        file = parse_loosely(f"---\n{head}\n---\n{body}", KNOWN)
    except DocumentError:
        return

    for name in KNOWN:
        assert isinstance(file.text(name), str)
        assert file.words(name) is None or all(file.words(name) or ("",))
        assert file.flag(name) in (True, False)


@given(st.dictionaries(st.sampled_from(KNOWN), st.text(LATIN, min_size=1)), st.text())
def test_fields_survive_the_way_through_yaml(fields: dict[str, str], body: str) -> None:
    head = "".join(
        f"{name}: {json.dumps(text, ensure_ascii=False)}\n"
        for name, text in fields.items()
    )
    file = parse_loosely(f"---\n{head}---\n{body}", KNOWN)

    assert {name: file.text(name) for name in fields} == {
        name: text.strip() for name, text in fields.items()
    }
    assert file.body == body
