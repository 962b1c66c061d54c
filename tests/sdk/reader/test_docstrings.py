"""Docstrings are read in the three customary forms."""

from __future__ import annotations

import pytest

from amplifier_sdk._reader.docstrings import parse

GOOGLE = """Read a file.

    The file stays open
    for a moment.

    Args:
        path: where the file is,
            from the root.
        limit (int, optional): how many lines
        choice (Literal["a", "b"]): one of (two) things
        *rest: what follows

        empty:

    Returns:
        text: not an argument.

    Raises:
        OSError: it cannot be read.
    """

NUMPY = """Read a file.

    Parameters
    ----------
    path : str
        Where the file is.
    limit, offset : int, optional
        Two numbers.
    bare

    Returns
    -------
    str
        The text.
    """

SPHINX = """Read a file.

    Slowly.

    :param str path: where the file is,
        from the root
    :param limit: how many lines
    :param \\*rest: what follows
    :keyword bare:
    :param:  nobody
    :returns: the text
    :raises OSError: it cannot be read
    """


def test_google_sections_give_each_argument_its_text() -> None:
    docstring = parse(GOOGLE)

    assert docstring.summary == "Read a file."
    assert docstring.description == "The file stays open\nfor a moment."
    assert docstring.text == "Read a file.\n\nThe file stays open\nfor a moment."
    assert docstring.arguments == {
        "path": "where the file is, from the root.",
        "limit": "how many lines",
        "choice": "one of (two) things",
        "rest": "what follows",
        "empty": "",
    }


def test_numpy_sections_give_each_argument_its_text() -> None:
    docstring = parse(NUMPY)

    assert docstring.text == "Read a file."
    assert docstring.arguments == {
        "path": "Where the file is.",
        "limit": "Two numbers.",
        "offset": "Two numbers.",
        "bare": "",
    }


def test_sphinx_fields_give_each_argument_its_text() -> None:
    docstring = parse(SPHINX)

    assert docstring.text == "Read a file.\n\nSlowly."
    assert docstring.arguments == {
        "path": "where the file is, from the root",
        "limit": "how many lines",
        "rest": "what follows",
        "bare": "",
    }


@pytest.mark.parametrize("doc", [None, "", "  \n  "])
def test_nothing_gives_nothing(doc: str | None) -> None:
    docstring = parse(doc)

    assert docstring.text == ""
    assert docstring.arguments == {}


def test_a_summary_of_several_lines_becomes_one() -> None:
    assert parse("Read\n    a file.\n\n    Rest.").summary == "Read a file."


def test_sentence_that_starts_like_section_stays_in_description() -> None:
    docstring = parse("Sum.\n\nNote:\nthis is prose.\n\nSomething else:\n    indented")

    assert (
        docstring.description
        == "Note:\nthis is prose.\n\nSomething else:\n    indented"
    )


def test_a_title_without_a_body_ends_the_description() -> None:
    docstring = parse("Sum.\n\nArgs:")

    assert docstring.text == "Sum."
    assert docstring.arguments == {}


def test_a_rule_below_an_unknown_title_is_prose() -> None:
    assert parse("Sum.\n\nTable\n-----\nx").description == "Table\n-----\nx"


def test_a_colon_at_the_start_of_a_line_need_not_be_a_field() -> None:
    assert parse("Sum.\n\n: odd").description == ": odd"


def test_text_before_first_item_belongs_to_no_argument() -> None:
    assert parse("Sum.\n\nArgs:\n    These are many.\n    path: where").arguments == {
        "path": "where"
    }


def test_a_section_may_be_indented_text_without_items() -> None:
    assert parse("Sum.\n\nParameters\n----------\n    only prose").arguments == {}
