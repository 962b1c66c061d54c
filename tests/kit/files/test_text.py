"""Text files: every byte that an edit does not mean survives it, and reading is bounded."""

from __future__ import annotations

import codecs
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amplifier_kit.files.text import (
    FileText,
    LineReader,
    NumberedLine,
    Replacement,
    TextForm,
    UndecodableTextError,
    UnencodableTextError,
    encode_text,
    unify_line_ends,
)

FORMS = st.sampled_from(
    [
        TextForm(),
        TextForm(encoding="utf-8", mark=codecs.BOM_UTF8),
        TextForm(encoding="utf-16-le", mark=codecs.BOM_UTF16_LE),
        TextForm(encoding="utf-16-be", mark=codecs.BOM_UTF16_BE),
    ]
)
# A text that begins with a byte order mark of its own is told apart by nobody.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff")
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(["\n", "\r\n", "\r", "a", "b", "é", "😀"]),
        st.text(CHARACTERS, max_size=5),
    ),
    max_size=30,
).map("".join)


class Trickle:
    """A stream that returns its bytes a few at a time, and counts its reads."""

    def __init__(self, data: bytes, size: int) -> None:
        self._file = io.BytesIO(data)
        self._size = size

    def read(self, size: int, /) -> bytes:
        return self._file.read(min(size, self._size))


def lines_of(text: str) -> list[str]:
    lines = unify_line_ends(text).split("\n")
    return lines if lines[-1] else lines[:-1]


@given(text=TEXTS, form=FORMS)
def test_decoding_and_encoding_are_opposites(text: str, form: TextForm) -> None:
    data = encode_text(text, form)

    decoded = FileText.decode(data)

    assert (decoded.text, decoded.form) == (text, form)
    assert decoded.encode() == data


@given(data=st.binary(max_size=60))
def test_any_bytes_are_kept_or_refused(data: bytes) -> None:
    try:
        text = FileText.decode(data)
    except UndecodableTextError:
        return

    assert text.encode() == data


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"\x89PNG", "byte 0"),
        (b"caf\xe9", "byte 3"),
        (b"ab\0c", "byte 2 (NUL)"),
        (codecs.BOM_UTF8 + b"a\xff", "byte 4"),
        (codecs.BOM_UTF16_LE + b"a\0\0", "byte 4"),
        (codecs.BOM_UTF16_LE + b"a\0\0\0", "byte 4 (NUL)"),
        (codecs.BOM_UTF16_BE + b"\xd8\x00\x00a", "byte 2"),
        (codecs.BOM_UTF32_LE + b"a\0\0\0", "byte 2 (NUL)"),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_their_place(
    data: bytes, where: str
) -> None:
    with pytest.raises(
        UndecodableTextError, match="binary or unknown encoding"
    ) as caught:
        FileText.decode(data)

    assert caught.value.where == where


@pytest.mark.parametrize(
    ("text", "line", "column", "what"),
    [
        ("\ud83d", 1, 1, "half a surrogate pair"),
        ("ab\r\ncd\udc00", 2, 3, "half a surrogate pair"),
        ("a\n\n\0", 3, 1, "NUL"),
    ],
)
def test_a_text_that_no_file_can_hold_is_refused_with_its_place(
    text: str, line: int, column: int, what: str
) -> None:
    with pytest.raises(
        UnencodableTextError, match=f"{what}.* at line {line}, column {column}"
    ) as caught:
        encode_text(text)

    assert (caught.value.line, caught.value.column) == (line, column)


@given(text=TEXTS, form=FORMS, data=st.data())
def test_an_edit_changes_what_it_says_and_no_other_byte(
    text: str, form: TextForm, data: st.DataObject
) -> None:
    before = FileText(text=text, form=form)
    unified = before.unified
    start = data.draw(st.integers(0, len(unified)))
    end = data.draw(st.integers(start, len(unified)))
    new = data.draw(TEXTS)

    after = before.with_replacements([Replacement(start=start, end=end, text=new)])

    assert after.unified == unified[:start] + unify_line_ends(new) + unified[end:]
    assert after.form == form
    head, tail = _original_slices(text, start, end)
    assert after.text.startswith(head)
    # A CR and an LF that would become neighbours are kept apart by one more CR, before the tail.
    assert after.text.endswith(tail)


def _original_slices(text: str, start: int, end: int) -> tuple[str, str]:
    """Cut the text before and after a stretch that is counted in unified characters."""
    characters: list[str] = []
    for character in text:
        if character == "\n" and characters and characters[-1] == "\r":
            characters[-1] = "\r\n"
        else:
            characters.append(character)
    return "".join(characters[:start]), "".join(characters[end:])


@given(text=TEXTS, old=st.sampled_from(["a", "b", "\n", "ab", "é"]), new=TEXTS)
def test_many_replacements_are_those_of_plain_text(
    text: str, old: str, new: str
) -> None:
    file = FileText(text=text)
    unified = file.unified
    starts, at = [], unified.find(old)
    while at >= 0:
        starts.append(at)
        at = unified.find(old, at + len(old))

    after = file.with_replacements(
        [Replacement(start=at, end=at + len(old), text=new) for at in starts]
    )

    assert after.unified == unified.replace(old, unify_line_ends(new))


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a\r\nb\r\nc\r\n", "b\n", "b\nx\n", "a\r\nb\r\nx\r\nc\r\n"),
        ("a\nb\nc\n", "b\n", "b\r\nx\r\n", "a\nb\nx\nc\n"),
        ("a\rb\r", "b", "b\nx", "a\rb\rx\r"),
        ("a\r\nb\nc\rd", "b\nc", "b\nC", "a\r\nb\nC\rd"),
        ("a\r\nb\nc", "a\nb\nc", "a\nB\nc", "a\r\nB\nc"),
        ("a\r\nlast", "last", "last\nmore", "a\r\nlast\r\nmore"),
        ("single", "single", "two\nlines", "two\nlines"),
        ("a\rX\nb", "X", "", "a\r\r\nb"),
    ],
)
def test_new_line_ends_follow_those_around_them(
    text: str, old: str, new: str, expected: str
) -> None:
    file = FileText(text=text)
    start = file.unified.index(old)

    after = file.with_replacements(
        [Replacement(start=start, end=start + len(old), text=new)]
    )

    assert after.text == expected


@given(text=TEXTS, form=FORMS, size=st.integers(1, 9), most=st.integers(0, 6))
def test_a_reader_gives_the_lines_of_the_text(
    text: str, form: TextForm, size: int, most: int
) -> None:
    reader = LineReader(Trickle(encode_text(text, form), size))

    read: list[NumberedLine] = []
    while (line := reader.read_line(most)) is not None:
        read.append(line)

    expected = lines_of(text)
    assert [line.text for line in read] == [line[:most] for line in expected]
    assert [line.length for line in read] == [len(line) for line in expected]
    assert [line.number for line in read] == list(range(1, len(expected) + 1))
    assert reader.lines_read == len(expected)


@given(text=TEXTS, form=FORMS, size=st.integers(1, 9), count=st.integers(0, 12))
@example(text="\n\n", form=TextForm(), size=9, count=2)
def test_skipping_passes_over_the_lines_reading_would_give(
    text: str, form: TextForm, size: int, count: int
) -> None:
    expected = lines_of(text)
    reader = LineReader(Trickle(encode_text(text, form), size))

    assert reader.skip(count) == min(count, len(expected))

    line = reader.read_line(1000)
    assert (line.text if line else None) == (
        expected[count] if count < len(expected) else None
    )
    assert reader.skip_rest(1 << 20)
    assert reader.lines_read == len(expected)


@given(data=st.binary(max_size=80), size=st.integers(1, 9))
@example(data=codecs.BOM_UTF16_LE + b"a\0\n\0\0", size=4)
@example(data=codecs.BOM_UTF16_BE + b"\xdc\x00\x00\n\xd8", size=3)
def test_lines_that_nobody_reads_may_hold_anything(data: bytes, size: int) -> None:
    reader = LineReader(Trickle(data, size))

    assert reader.skip_rest(1 << 20)
    assert reader.bytes_read == len(data)


def test_line_no_text_is_refused_and_lines_before_it_are_not() -> None:
    reader = LineReader(io.BytesIO(b"first\nsecond\nth\xffird\nfourth\n"))

    first, second = reader.read_line(10), reader.read_line(10)
    assert (first and first.text, second and second.text) == ("first", "second")
    with pytest.raises(UndecodableTextError, match="line 3 is not UTF-8"):
        reader.read_line(10)


def test_counting_stops_at_its_limit() -> None:
    reader = LineReader(io.BytesIO(b"line\n" * 100_000))

    assert not reader.skip_rest(100_000)
    assert 20_000 <= reader.lines_read < 50_000


def test_each_chunk_is_announced_before_it_is_read() -> None:
    class Stopped(Exception):
        pass

    announced: list[int] = []

    def announce() -> None:
        announced.append(len(announced))
        if len(announced) == 3:
            raise Stopped

    reader = LineReader(io.BytesIO(b"x" * 1_000_000), on_chunk=announce)
    with pytest.raises(Stopped):
        reader.read_line(10)

    assert reader.bytes_read < 200_000
