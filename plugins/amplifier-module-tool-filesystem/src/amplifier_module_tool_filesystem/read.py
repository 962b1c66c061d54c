"""A page of a text file, in bounded memory and bounded work; images and notebooks as what they show."""

from __future__ import annotations

import base64
import os
import stat
from io import BufferedReader, BytesIO
from pathlib import PurePath

import attrs
from anyio.from_thread import check_cancelled

from amplifier_kit.files.atomic import FileVersion
from amplifier_kit.files.text import (
    ByteStream,
    LineReader,
    NumberedLine,
    UndecodableTextError,
)
from amplifier_kit.media.headers import HEADER, pixel_size
from amplifier_kit.media.support import IMAGES, PDF
from amplifier_module_tool_filesystem.config import FilesystemConfig
from amplifier_module_tool_filesystem.notebooks import Notebook
from amplifier_module_tool_filesystem.workspace import Workspace
from amplifier_sdk.content import DocumentBlock, ImageBlock, TextBlock
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.media import MEDIA_HEAD, image_block, media_type
from amplifier_sdk.results import ToolResult

__all__ = ["FilePage", "FilePageReader", "MediaFile", "shown_type"]


@attrs.frozen(kw_only=True)
class FilePage:
    """Lines of a file, numbered, and what is known of the rest.

    `bytes` is the size of the text in `content` without the numbers; `total_lines` is `None` when the file
    was too long to count.
    """

    path: str
    content: str
    bytes: int
    offset: int
    lines_read: int
    total_lines: int | None
    more: bool
    truncated: bool
    warning: str | None
    notebook: Notebook | None = None

    def to_result(self) -> JSONObject | ToolResult:
        """Write the page as the tool's result."""
        result: JSONObject = {
            "file_path": self.path,
            "content": self.content,
            "total_lines": self.total_lines,
            "lines_read": self.lines_read,
            "offset": self.offset,
            "more": self.more,
            "truncated": self.truncated,
        }
        if self.warning is not None:
            result["warning"] = self.warning
        if self.notebook is None:
            return result
        result["notebook"] = True
        if self.notebook.omitted_images:
            result["omitted_images"] = self.notebook.omitted_images
        if not self.notebook.images:
            return result
        return ToolResult(
            output=result, content=[TextBlock(text=self.content), *self.notebook.images]
        )


@attrs.define(eq=False)
class FilePageReader:
    """Reads one page of one file; `read` runs in a worker thread."""

    workspace: Workspace
    config: FilesystemConfig
    file_path: str
    offset: int
    limit: int
    raw: bool = False
    _lines: list[str] = attrs.field(factory=list, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    _cut: bool = attrs.field(default=False, init=False)
    _full: bool = attrs.field(default=False, init=False)

    def read(self) -> FilePage | MediaFile:
        """Read the page; an image is read whole, and of a notebook the text that its cells make.

        Raises:
            ToolError: the path cannot be read, is a directory, or the lines asked for are no text.
        """
        if self.offset < 1 or self.limit < 1:
            raise ToolError(
                f"offset and limit are at least 1; got offset={self.offset}, limit={self.limit}"
            )
        with self.workspace.readable.locate(self.file_path) as resolved:
            if stat.S_ISDIR(resolved.existing().st_mode):
                raise ToolError(
                    f"{self.file_path!r}: is a directory, not a file; list_directory shows what is in it"
                )
            with resolved.open_file() as file:
                status = os.fstat(file.fileno())
                found = self._read(resolved.shown, file, status.st_size)
            # The status from before the reading: what changes meanwhile makes the file
            # another one.
            self.workspace.known.note(resolved.path, FileVersion.of(status))
            return found

    def _read(self, path: str, file: BufferedReader, size: int) -> FilePage | MediaFile:
        if self.raw:
            return self._read_page(path, file, size)
        found = shown_type(file.peek(MEDIA_HEAD))
        if found is not None:
            limit = self.config.max_image_bytes
            MediaFile.check_size(self.file_path, found, size, limit)
            return MediaFile(path=path, media_type=found, data=file.read(limit))
        # JSON must be read whole, so a larger notebook is shown as the text that it is.
        if path.endswith(".ipynb") and size <= self.config.max_file_bytes:
            data = file.read(self.config.max_file_bytes)
            notebook = Notebook.parse(data, self.config.max_image_bytes)
            shown = data
            if notebook is not None:
                shown = notebook.text.encode()
            return attrs.evolve(
                self._read_page(path, BytesIO(shown), size), notebook=notebook
            )
        return self._read_page(path, file, size)

    def _read_page(self, path: str, stream: ByteStream, size: int) -> FilePage:
        reader = LineReader(stream, on_chunk=check_cancelled)
        reader.skip(self.offset - 1)
        self._take_lines(reader, size)
        counted = reader.skip_rest(self.config.max_scan_bytes)
        return self._page(path, reader.lines_read if counted else None)

    def _take_lines(self, reader: LineReader, size: int) -> None:
        while len(self._lines) < self.limit and not self._full:
            try:
                line = reader.read_line(self.config.max_line_length)
            except UndecodableTextError as error:
                raise self._no_text(error, size) from error
            if line is None:
                return
            self._add(line)

    def _add(self, line: NumberedLine) -> None:
        text = line.text
        if line.length > len(text):
            text = f"{text} [line cut: {len(text)} of {line.length} characters]"
        size = len(text.encode()) + 1
        # The first line is always given: a page without any would never end.
        if self._lines and self._bytes + size > self.config.max_read_bytes:
            self._full = True
            return
        self._cut = self._cut or line.length > len(line.text)
        self._lines.append(f"{line.number:6d}\t{text}")
        self._bytes += size

    def _no_text(self, error: UndecodableTextError, size: int) -> ToolError:
        remedy = "it cannot be read as text"
        if self._lines:
            remedy = f"the lines before it can be read with offset={self.offset}, limit={len(self._lines)}"
        return ToolError(
            f"{self.file_path!r} ({size} bytes): {error.message}; {remedy}"
        )

    def _page(self, path: str, total: int | None) -> FilePage:
        read = len(self._lines)
        return FilePage(
            path=path,
            content="\n".join(self._lines),
            bytes=self._bytes,
            offset=self.offset,
            lines_read=read,
            total_lines=total,
            more=total is None or total > self.offset - 1 + read,
            truncated=self._cut or self._full,
            warning=self._warning(total),
        )

    def _warning(self, total: int | None) -> str | None:
        if total == 0:
            return "The file is empty."
        if not self._lines:
            return f"The file has {total} lines; offset {self.offset} is behind the last one."
        if self._full:
            return f"The result is full; continue with offset={self.offset + len(self._lines)}."
        return None


def shown_type(head: bytes) -> str | None:
    """Return the media type of a file that is shown as it is, by its first bytes; `None` for all else."""
    found = media_type(head)
    if found in IMAGES or found == PDF:
        return found
    return None


@attrs.frozen(kw_only=True)
class MediaFile:
    """An image or a document that was read."""

    path: str
    media_type: str
    data: bytes

    @classmethod
    def check_size(cls, given: str, media_type: str, size: int, limit: int) -> None:
        """Refuse a file that is larger than models take.

        Raises:
            ToolError: names both sizes.
        """
        if size > limit:
            what = "document" if media_type == PDF else "image"
            raise ToolError(
                f"{given!r}: the {what} ({media_type}) has {size} bytes, more than the {limit} that are read; make it"
                " smaller first"
            )

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return len(self.data)

    def to_result(self) -> ToolResult:
        """Write it as the tool's result: what is known of it as output, the image or document itself as content.

        Raises:
            ToolError: an image claims to be larger than any model takes.
        """
        output: JSONObject = {
            "file_path": self.path,
            "media_type": self.media_type,
            "bytes": self.bytes,
        }
        size = pixel_size(self.data[:HEADER])
        if size is not None and size.is_huge:
            raise ToolError(
                f"{self.path!r}: the image claims to have {size}; no model takes it"
            )
        if size is not None and size.is_sane:
            output["width"], output["height"] = size.width, size.height
        caption = TextBlock(text=f"{self.path} ({self.media_type}, {self.bytes} bytes)")
        return ToolResult(output=output, content=[caption, self._block()])

    def _block(self) -> ImageBlock | DocumentBlock:
        data = base64.b64encode(self.data).decode("ascii")
        if self.media_type != PDF:
            return image_block(self.media_type, data)
        name = PurePath(self.path).name
        source: JSONObject = {"type": "base64", "media_type": PDF, "data": data}
        return DocumentBlock(source={**source, "name": name})
