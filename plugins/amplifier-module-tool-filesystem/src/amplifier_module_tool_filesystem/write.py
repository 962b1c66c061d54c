"""Whole files, written at once or not at all, and what a change did to a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import unified_diff
from itertools import islice
from typing import Final

import attrs

from amplifier_kit.files.atomic import FileVersion, write_atomically
from amplifier_kit.files.path_errors import path_refusals
from amplifier_kit.files.resolved import ResolvedPath
from amplifier_kit.files.text import FileText, UndecodableTextError, encode_text
from amplifier_module_tool_filesystem.config import FilesystemConfig
from amplifier_module_tool_filesystem.workspace import Workspace
from amplifier_sdk.errors import ToolError

__all__ = [
    "PlannedWrite",
    "WrittenFile",
    "check_size",
    "planned_write",
    "unified",
    "write_text",
]

_CONTEXT: Final = 3
_MAX_LINES_COMPARED: Final = 2000
_MAX_LINES_SHOWN: Final = 200
_MAX_LINE_LENGTH: Final = 500
_HUNK: Final = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


@attrs.frozen(kw_only=True)
class WrittenFile:
    """A file that was written; `diff` says what changed of one that was there."""

    path: str
    bytes: int
    created: bool
    diff: str = ""


@attrs.frozen(kw_only=True)
class PlannedWrite:
    """A file that can be written: where it is, what it will hold, and how it is found unchanged if it is there."""

    resolved: ResolvedPath
    data: bytes
    expected: FileVersion | None

    def difference(self, content: str, config: FilesystemConfig) -> str:
        """Return the diff from what is there to the text that will be.

        Raises:
            UndecodableTextError: what is there is no text.
        """
        if self.expected is None:
            return unified("", content)
        with self.resolved.open_file() as file:
            before = file.read(config.max_file_bytes + 1)
        return unified(FileText.decode(before).unified, content)


def write_text(
    workspace: Workspace, config: FilesystemConfig, file_path: str, content: str
) -> WrittenFile:
    """Write a file as UTF-8, exactly as given, and the directories above it.

    Raises:
        ToolError: as `planned_write` has it, or the system refuses.
    """
    with planned_write(workspace, config, file_path, content) as planned:
        resolved, expected = planned.resolved, planned.expected
        resolved.make_parents()
        diff = ""
        if expected is not None:
            with suppress(UndecodableTextError):
                diff = planned.difference(content, config)
        with path_refusals(file_path):
            written = write_atomically(
                resolved.name,
                planned.data,
                dir_fd=resolved.directory,
                expected=expected,
                # Between the look and the write somebody may have put a file there,
                # which nobody read.
                must_be_new=expected is None,
            )
        workspace.known.note(resolved.path, written.version)
        return WrittenFile(
            path=resolved.shown,
            bytes=len(planned.data),
            created=written.created,
            diff=diff,
        )


@contextmanager
def planned_write(
    workspace: Workspace, config: FilesystemConfig, file_path: str, content: str
) -> Iterator[PlannedWrite]:
    """Find out whether a file can be written and write nothing; its directory is open in the block.

    Raises:
        ToolError: the path may not be written, the file there was not read or changed since, or the text cannot
            be stored.
    """
    # Before the path is opened: a text that cannot be stored changes nothing.
    data = encode_text(content)
    check_size(file_path, len(data), config)
    with workspace.writable.locate(file_path) as resolved:
        expected = None
        if resolved.status is not None:
            resolved.require("file", resolved.status)
            expected = workspace.known.check(file_path, resolved.path, resolved.status)
        if file_path.endswith("/"):
            raise ToolError(
                f"{file_path!r}: names a directory; give the path of a file"
            )
        yield PlannedWrite(resolved=resolved, data=data, expected=expected)


def check_size(file_path: str, size: int, config: FilesystemConfig) -> None:
    """Refuse a file that is larger than the configuration allows.

    Raises:
        ToolError: names both sizes.
    """
    if size > config.max_file_bytes:
        raise ToolError(
            f"{file_path!r}: {size} bytes are more than the {config.max_file_bytes} that one file may have here;"
            " split it into smaller files"
        )


def unified(before: str, after: str) -> str:
    r"""Return a unified diff without the lines that name files.

    Long lines are cut, and so is a long diff, each with a mark. Lines end with `\\n`.
    """
    old, new = before.split("\n"), after.split("\n")
    # Equal ends are cut away first: difflib takes quadratic time, and most changes are
    # small.
    head = _common(old, new, 0)
    # Without the lines that the head took, or one line would be counted for both.
    tail = _common(old[::-1], new[::-1], head)
    first = max(0, head - _CONTEXT)
    old = old[first : max(len(old) - tail + _CONTEXT, 0)]
    new = new[first : max(len(new) - tail + _CONTEXT, 0)]
    if len(old) + len(new) > _MAX_LINES_COMPARED:
        return f"[diff left out, it is too long: the changes begin at line {head + 1}]"
    lines = [
        _shifted(line, first)
        for line in islice(unified_diff(old, new, lineterm="", n=_CONTEXT), 2, None)
    ]
    shown = [
        line if len(line) <= _MAX_LINE_LENGTH else f"{line[:_MAX_LINE_LENGTH]} [cut]"
        for line in lines
    ]
    if len(shown) > _MAX_LINES_SHOWN:
        shown[_MAX_LINES_SHOWN:] = [
            f"[{len(shown) - _MAX_LINES_SHOWN} more lines of diff]"
        ]
    return "\n".join(shown)


def _common(old: list[str], new: list[str], taken: int) -> int:
    """Count the lines that two texts begin with in common, when `taken` lines of each are spoken for."""
    common = min(len(old), len(new)) - taken
    for index in range(common):
        if old[index] != new[index]:
            return index
    return max(common, 0)


def _shifted(line: str, by: int) -> str:
    """Add to the line numbers of a hunk's head."""
    found = _HUNK.fullmatch(line)
    if found is None:
        return line
    old, old_length, new, new_length = found.groups("")
    return f"@@ -{int(old) + by}{old_length} +{int(new) + by}{new_length} @@"
