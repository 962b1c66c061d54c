"""Text files that keep their form: encoding, byte order mark and line ends survive an edit.

A file is UTF-8, with or without a byte order mark, or UTF-16 with one. Anything else is binary or unknown
and is refused, not guessed. NUL counts as binary. A line ends with LF, CRLF or CR, as in Python's universal
newlines; a file may mix them.

```
ToolError
└── TextError
    ├── UndecodableTextError        the bytes are no text in a known encoding
    └── UnencodableTextError        the text holds what no file can: half a surrogate pair, NUL
```
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from io import IncrementalNewlineDecoder
from typing import Final, Literal, Protocol, TypeAlias

import attrs

from amplifier_sdk.errors import ToolError

__all__ = [
    "ByteStream",
    "Encoding",
    "FileText",
    "LineReader",
    "NumberedLine",
    "Replacement",
    "TextError",
    "TextForm",
    "UndecodableTextError",
    "UnencodableTextError",
    "encode_text",
    "unify_line_ends",
]

Encoding: TypeAlias = Literal["utf-8", "utf-16-le", "utf-16-be"]
"""The encodings that are recognised."""

_CHUNK_BYTES: Final = 1 << 16

# No decoded text holds a lone surrogate, so the readers below use them to carry what cannot be decoded.
_NOT_TEXT: Final = re.compile("[\x00\ud800-\udfff]")
_UNDECODED: Final = "\udcff"
_LINE_END: Final = re.compile("\r\n|\r|\n")


class TextError(ToolError):
    """A file or a text is not what a text file can hold."""


class UndecodableTextError(TextError):
    """Bytes are no text in a known encoding; `where` is the place, as words."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(
            f"binary or unknown encoding: {where} is not UTF-8, nor UTF-16 with a byte order mark"
        )


class UnencodableTextError(TextError):
    """A text holds a character that a text file cannot; `line` and `column` are 1-based."""

    def __init__(self, text: str, position: int) -> None:
        before = unify_line_ends(text[:position])
        self.position = position
        self.line: int = before.count("\n") + 1
        self.column: int = len(before) - before.rfind("\n")
        if text[position] == "\0":
            character = "NUL"
        else:
            character = f"half a surrogate pair (U+{ord(text[position]):04X})"
        super().__init__(
            f"the text holds {character} at line {self.line}, column {self.column}, which a text file cannot hold;"
            " take it out"
        )


@attrs.frozen(kw_only=True)
class TextForm:
    """How a file writes its text."""

    encoding: Encoding = "utf-8"
    mark: bytes = b""

    @classmethod
    def of(cls, head: bytes) -> TextForm:
        """Tell the form from the first bytes of a file; without a byte order mark it is UTF-8."""
        # UTF-8's mark first; neither mark of UTF-16 begins with it
        for form in _MARKED:
            if head.startswith(form.mark):
                return form
        return cls()


_MARKED: Final = (
    TextForm(encoding="utf-8", mark=codecs.BOM_UTF8),
    TextForm(encoding="utf-16-le", mark=codecs.BOM_UTF16_LE),
    TextForm(encoding="utf-16-be", mark=codecs.BOM_UTF16_BE),
)


@attrs.frozen(kw_only=True)
class Replacement:
    """New text for the characters from `start` up to `end`, counted in `FileText.unified`."""

    start: int
    end: int
    text: str


@attrs.frozen(kw_only=True)
class FileText:
    r"""The text of a file together with its form: `decode` and `encode` are exact opposites.

    `text` has the line ends of the file. `unified` has `\\n` for each of them and is what edits refer to.
    """

    text: str
    form: TextForm = TextForm()

    @classmethod
    def decode(cls, data: bytes) -> FileText:
        """Read a file's bytes.

        Raises:
            UndecodableTextError: they are no text; names the byte.
        """
        form = TextForm.of(data)
        try:
            text = data[len(form.mark) :].decode(form.encoding)
        except UnicodeDecodeError as error:
            raise UndecodableTextError(
                f"byte {len(form.mark) + error.start}"
            ) from error
        # NUL decodes in UTF-8, yet no text editor writes it: it says that this is
        # binary
        before, nul, _ = text.partition("\0")
        if nul:
            raise UndecodableTextError(
                f"byte {len(form.mark) + len(before.encode(form.encoding))} (NUL)"
            )
        return cls(text=text, form=form)

    def encode(self) -> bytes:
        """Write the text in the file's form.

        Raises:
            UnencodableTextError: it holds what no text file can.
        """
        return encode_text(self.text, self.form)

    @property
    def unified(self) -> str:
        r"""The text with every line end written as `\\n`."""
        return unify_line_ends(self.text)

    def with_replacements(self, replacements: Sequence[Replacement]) -> FileText:
        r"""Return the text after some replacements; what they leave alone keeps every byte.

        A new line end takes the form of the first one it replaces, else of the next one in the file, else
        of the one before, else it is `\\n`. What a replacement's two sides have in common stays untouched.
        Where a cut would join a CR and an LF into one line end, the LF becomes CRLF, so that both remain.

        Args:
            replacements: in the order of the text, not overlapping.
        """
        unified = self.unified
        ends = _LineEnds(self.text)
        pieces: list[str] = []
        done = 0
        for replacement in replacements:
            # what both have in common keeps its own line ends, which may be mixed
            start, end, text = _trim(unified, replacement)
            first, last = ends.original(start), ends.original(end)
            pieces += (self.text[done:first], text.replace("\n", ends.form_at(start)))
            done = last
        return attrs.evolve(self, text=_join([*pieces, self.text[done:]]))


def unify_line_ends(text: str) -> str:
    r"""Write every line end as `\\n`."""
    if "\r" in text:
        return text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def encode_text(text: str, form: TextForm = TextForm()) -> bytes:
    """Write a text in a form, its line ends as they are.

    Raises:
        UnencodableTextError: it holds half a surrogate pair or NUL; names line and column.
    """
    if found := _NOT_TEXT.search(text):
        raise UnencodableTextError(text, found.start())
    return form.mark + text.encode(form.encoding)


def _trim(unified: str, replacement: Replacement) -> tuple[int, int, str]:
    """Cut off what the old and the new text have in common at both ends."""
    new = unify_line_ends(replacement.text)
    old = unified[replacement.start : replacement.end]
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    return replacement.start + head, replacement.end - tail, new[head : len(new) - tail]


def _join(pieces: Sequence[str]) -> str:
    """Join texts that end or begin with whole line ends, so that no two of them become one."""
    joined: list[str] = []
    for piece in filter(None, pieces):
        # a CR and an LF that come together would read as one line end
        if joined and joined[-1].endswith("\r") and piece.startswith("\n"):
            joined.append("\r")
        joined.append(piece)
    return "".join(joined)


def _common(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their start."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))


class _LineEnds:
    """Where a text's line ends are, and how positions in the unified text relate to it."""

    def __init__(self, text: str) -> None:
        found = list(_LINE_END.finditer(text))
        self._forms = [match.group() for match in found]
        pairs = 0
        self._positions: list[int] = []
        self._pairs: list[int] = []
        for match in found:
            self._positions.append(match.start() - pairs)
            if match.group() == "\r\n":
                self._pairs.append(match.start() - pairs)
                pairs += 1

    def original(self, position: int) -> int:
        """Turn a position in the unified text into the one in the text itself."""
        # each CRLF before it is one character longer than in the unified text
        return position + bisect_left(self._pairs, position)

    def form_at(self, position: int) -> str:
        r"""Return the first line end at or after a position, else the last before it, else `\\n`."""
        if not self._forms:
            return "\n"
        return self._forms[
            min(bisect_left(self._positions, position), len(self._forms) - 1)
        ]


class ByteStream(Protocol):
    """What a line reader reads from."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end."""


@attrs.frozen(kw_only=True)
class NumberedLine:
    """One line without its end: its number (1-based), its first characters, how many it has in all."""

    number: int
    text: str
    length: int


class LineReader:
    """Reads a file line by line in bounded memory, however long the file or a line is.

    Only lines that are read are checked: a file may hold anything behind them.

    Args:
        stream: the file, at its start; the caller closes it.
        on_chunk: called before each chunk is read, so that a long read can be cancelled.
    """

    def __init__(
        self, stream: ByteStream, *, on_chunk: Callable[[], object] = lambda: None
    ) -> None:
        self._stream = stream
        self._on_chunk = on_chunk
        self._text = ""
        self._at = 0
        self._ended = False
        self._line_open = False
        self.bytes_read: int = 0
        self.lines_read: int = 0
        head = self._head()
        self.form: Final = TextForm.of(head)
        # Undecodable bytes must not stop the counting of lines that nobody reads.
        errors = "surrogatepass"
        if self.form.encoding == "utf-8":
            errors = "surrogateescape"
        decoder = codecs.getincrementaldecoder(self.form.encoding)(errors)
        self._decoder = IncrementalNewlineDecoder(decoder, translate=True)
        self._decode(head[len(self.form.mark) :], final=not head)

    def skip(self, count: int) -> int:
        """Pass over at most `count` lines and return how many there were."""
        before = self.lines_read
        while (wanted := count - (self.lines_read - before)) > 0:
            if not self._more():
                break
            self._pass_lines(wanted)
        return self.lines_read - before

    def read_line(self, max_length: int) -> NumberedLine | None:
        """Read the next line to its end, at most `max_length` characters of it; `None` at the end.

        Raises:
            UndecodableTextError: the line is no text; names the line.
        """
        pieces: list[str] = []
        length = 0
        number = self.lines_read + 1
        while self._more():
            end = self._text.find("\n", self._at)
            piece = self._text[self._at : end if end >= 0 else len(self._text)]
            if _NOT_TEXT.search(piece):
                raise UndecodableTextError(f"line {number}")
            # the rest of a long line is counted and not stored
            pieces.append(piece[: max(0, max_length - length)])
            length += len(piece)
            self._line_open = True
            self._at += len(piece)
            if end >= 0:
                self._end_line()
                break
        if self.lines_read < number:
            return None
        return NumberedLine(number=number, text="".join(pieces), length=length)

    def skip_rest(self, max_bytes: int) -> bool:
        """Pass over the lines that are left, reading at most about `max_bytes`; return whether the end was reached."""
        limit = self.bytes_read + max_bytes
        while self._more():
            self._pass_lines(len(self._text))
            # at the very end the answer is known, whatever the limit says
            if self.bytes_read >= limit and not self._ended:
                return False
        return True

    def _pass_lines(self, count: int) -> None:
        """Pass over at most `count` line ends in the chunk at hand."""
        there = self._text.count("\n", self._at)
        if there < count:
            self._line_open = not self._text.endswith("\n")
            self.lines_read += there
            self._at = len(self._text)
            return
        for _ in range(count):
            self._at = self._text.index("\n", self._at)
            self._end_line()

    def _end_line(self) -> None:
        self._at += 1
        self.lines_read += 1
        self._line_open = False

    def _more(self) -> bool:
        """Make sure that there is text at hand; at the end of the file close the last line."""
        while self._at >= len(self._text) and not self._ended:
            data = self._read()
            self._decode(data, final=not data)
        if self._at < len(self._text):
            return True
        # the last line of a file may lack its end, and is a line all the same
        if self._line_open:
            self._line_open = False
            self.lines_read += 1
        return False

    def _head(self) -> bytes:
        """Read enough to see a byte order mark, or the whole file."""
        head = data = self._read()
        # a pipe may give a mark in pieces
        while data and len(head) < len(codecs.BOM_UTF8):
            data = self._read()
            head += data
        return head

    def _read(self) -> bytes:
        self._on_chunk()
        data = self._stream.read(_CHUNK_BYTES)
        self.bytes_read += len(data)
        return data

    def _decode(self, data: bytes, *, final: bool) -> None:
        try:
            self._text = self._decoder.decode(data, final=final)
        except UnicodeDecodeError:
            self._text = _UNDECODED
        self._at = 0
        self._ended = final
