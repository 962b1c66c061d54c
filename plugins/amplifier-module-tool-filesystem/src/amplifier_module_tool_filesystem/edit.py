"""Exact replacement in a file that keeps everything else of it, byte for byte."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher, get_close_matches
from heapq import nlargest
from typing import Final

import attrs

from amplifier_kit.files.atomic import FileVersion, write_atomically
from amplifier_kit.files.path_errors import path_refusals
from amplifier_kit.files.resolved import ResolvedPath
from amplifier_kit.files.text import (
    FileText,
    Replacement,
    UndecodableTextError,
    encode_text,
    unify_line_ends,
)
from amplifier_module_tool_filesystem.config import FilesystemConfig
from amplifier_module_tool_filesystem.workspace import Workspace
from amplifier_module_tool_filesystem.write import check_size, unified
from amplifier_sdk.errors import ToolError

__all__ = ["Edit", "Edited", "PlannedEdit", "edit_text", "planned_edit"]

_MAX_LINES_NAMED: Final = 10
_MAX_LINES_COMPARED: Final = 5000
_MAX_LINES_ALIGNED: Final = 50
_MAX_COMPARED_LENGTH: Final = 300

_NUMBERED: Final = re.compile(r"\s*\d+\t")


@attrs.frozen(kw_only=True)
class Edit:
    """What to replace by what; line ends of both are those of the file, however they are written here.

    Args:
        old_string: the text to replace, with its exact white space.
        new_string: the new text.
        replace_all: replace every occurrence.
    """

    old_string: str
    new_string: str
    replace_all: bool = False

    def check(self) -> None:
        """Refuse an edit that cannot mean anything.

        Raises:
            ToolError: says what is wrong with it.
        """
        if not self.old_string:
            raise ToolError(
                "old_string is empty; give the text to replace, or use write_file for a whole file"
            )
        if self.old_string == self.new_string:
            raise ToolError("old_string and new_string are equal; give the new text")
        # line ends are unified below, so this edit would change nothing and seem done
        if unify_line_ends(self.old_string) == unify_line_ends(self.new_string):
            raise ToolError(
                "old_string and new_string differ only in line ends, which an edit keeps; use write_file to change them"
            )
        encode_text(self.new_string)


@attrs.frozen(kw_only=True)
class Edited:
    """A file that was edited."""

    path: str
    bytes: int
    replacements: int
    diff: str


@attrs.frozen(kw_only=True)
class PlannedEdit:
    """What an edit makes of a file that is open: the texts before and after, and how it is found unchanged."""

    resolved: ResolvedPath
    before: FileText
    after: FileText
    data: bytes
    replacements: int
    expected: FileVersion

    @property
    def diff(self) -> str:
        """What it changes."""
        return unified(self.before.unified, self.after.unified)


def edit_text(
    workspace: Workspace,
    config: FilesystemConfig,
    file_path: str,
    edits: Sequence[Edit],
) -> Edited:
    """Edit a file: one edit after the other, all of them or none.

    Raises:
        ToolError: as `planned_edit` has it, the file changed meanwhile, or the system refuses.
    """
    with planned_edit(workspace, config, file_path, edits) as planned:
        resolved = planned.resolved
        with path_refusals(file_path):
            written = write_atomically(
                resolved.name,
                planned.data,
                dir_fd=resolved.directory,
                expected=planned.expected,
            )
        workspace.known.note(resolved.path, written.version)
        return Edited(
            path=resolved.shown,
            bytes=len(planned.data),
            replacements=planned.replacements,
            diff=planned.diff,
        )


@contextmanager
def planned_edit(
    workspace: Workspace,
    config: FilesystemConfig,
    file_path: str,
    edits: Sequence[Edit],
) -> Iterator[PlannedEdit]:
    """Work out an edit and write nothing; the file's directory is open in the block.

    Raises:
        ToolError: an edit means nothing, its text is not there or not unique, the file is no text, it may not be
            written or read, or it was not read in the session.
    """
    if not edits:
        raise ToolError(
            "there is nothing to replace; give old_string and new_string, or edits"
        )
    for number, edit in enumerate(edits, 1):
        with _numbered(number, len(edits)):
            edit.check()
    with workspace.writable.locate(file_path) as resolved:
        # A refused edit reveals content: it is a reading as well.
        workspace.readable.check(file_path, resolved.path)
        with resolved.open_file() as file:
            status = os.fstat(file.fileno())
            expected = workspace.known.check(file_path, resolved.path, status)
            check_size(file_path, status.st_size, config)
            # bounded once more, since the file may have grown since its status was read
            data = file.read(config.max_file_bytes + 1)
        before = _decode(file_path, data)
        text, count = before, 0
        for number, edit in enumerate(edits, 1):
            with _numbered(number, len(edits)):
                replacements = _replacements(file_path, text.unified, edit)
            text = text.with_replacements(replacements)
            count = count + len(replacements)
        after = text.encode()
        # what is written must be readable again by the same limits
        check_size(file_path, len(after), config)
        yield PlannedEdit(
            resolved=resolved,
            before=before,
            after=text,
            data=after,
            replacements=count,
            expected=expected,
        )


@contextmanager
def _numbered(number: int, count: int) -> Iterator[None]:
    """Say of a failure inside the block which of several edits it was."""
    try:
        yield
    except ToolError as error:
        if count == 1:
            raise
        raise ToolError(
            f"edit {number} of {count}: {error.message}; nothing was changed"
        ) from error


def _decode(file_path: str, data: bytes) -> FileText:
    try:
        return FileText.decode(data)
    except UndecodableTextError as error:
        raise ToolError(
            f"{file_path!r} ({len(data)} bytes): {error.message}; it cannot be edited as text"
        ) from error


def _replacements(file_path: str, text: str, edit: Edit) -> list[Replacement]:
    old = unify_line_ends(edit.old_string)
    # Without overlaps, as the replacements themselves must be.
    starts = [match.start() for match in re.finditer(re.escape(old), text)]
    if not starts:
        raise ToolError(f"{file_path!r}: old_string is not there{_hint(text, old)}")
    if len(starts) > 1 and not edit.replace_all:
        raise ToolError(
            f"{file_path!r}: old_string is there {len(starts)} times, at line {_line_numbers(text, starts)};"
            " take in more of the text around it, or set replace_all"
        )
    return [
        Replacement(start=start, end=start + len(old), text=edit.new_string)
        for start in starts
    ]


def _line_numbers(text: str, starts: Sequence[int]) -> str:
    numbers = [
        str(text.count("\n", 0, start) + 1) for start in starts[:_MAX_LINES_NAMED]
    ]
    return ", ".join(numbers) + (" and more" if len(starts) > _MAX_LINES_NAMED else "")


def _hint(text: str, old: str) -> str:
    """Say how to come to the text that is there: what the likely mistake is, or the nearest line."""
    # it explains all other differences, so it is looked for first
    if _NUMBERED.match(old):
        return "; leave out the line numbers that read_file puts before each line"
    lines = text.split("\n")
    if number := _spaced_otherwise(lines, old):
        return f"; line {number} differs from it only in white space: copy the text exactly as read_file shows it"
    if number := _nearest(lines, old):
        return f"; the nearest line is {number}: {lines[number - 1]!r:.200}"
    return "; read the file again and copy the text exactly"


def _spaced_otherwise(lines: Sequence[str], old: str) -> int | None:
    """Return the number of the line where the text begins when white space does not count."""
    # Joined lines are searched once; comparing window by window would be quadratic in
    # the file.
    there, wanted = (
        "\n".join(["", *(" ".join(line.split()) for line in of), ""])
        for of in (lines, old.strip().split("\n"))
    )
    at = there.find(wanted)
    if at >= 0:
        return there.count("\n", 0, at) + 1
    return None


def _nearest(lines: Sequence[str], old: str) -> int | None:
    """Return the number of the line most like the first line of the text."""
    first = old.strip().split("\n")[0][:_MAX_COMPARED_LENGTH]
    candidates = [line[:_MAX_COMPARED_LENGTH] for line in lines[:_MAX_LINES_COMPARED]]
    matcher = SequenceMatcher(b=first)

    def most_like(line: str) -> float:
        matcher.set_seq1(line)
        return matcher.quick_ratio()

    # To compare two lines in earnest can take a hundredth of a second; to see that they cannot be alike, little.
    likely = nlargest(_MAX_LINES_ALIGNED, candidates, key=most_like)
    found = get_close_matches(first, likely, n=1, cutoff=0.6)
    if found:
        return candidates.index(found[0]) + 1
    return None
