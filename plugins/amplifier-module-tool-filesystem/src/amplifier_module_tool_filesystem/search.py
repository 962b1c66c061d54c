"""Which lines of which files match a regular expression."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Final

import attrs

from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.open_flags import READ
from amplifier_kit.files.text import FileText, UndecodableTextError
from amplifier_module_tool_filesystem.config import FilesystemConfig
from amplifier_module_tool_filesystem.directory_listing import (
    DirectoryListing,
    shown_below,
    walk_directory,
)
from amplifier_module_tool_filesystem.matcher import LineMatcher
from amplifier_module_tool_filesystem.patterns import GlobPattern
from amplifier_module_tool_filesystem.walk import Budget, TreeEntry
from amplifier_module_tool_filesystem.workspace import Workspace
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["FileSearch", "Query"]

_MAX_CONTEXT: Final = 20
_MAX_BATCH_LENGTH: Final = 1 << 18
_MAX_BATCH_FILES: Final = 256
_MIN_READ: Final = 4096


@attrs.frozen(kw_only=True)
class Query:
    """What to search for: the arguments of the tool."""

    pattern: str
    path: str = "."
    glob: str | None = None
    ignore_case: bool = False
    context: int = 0
    max_results: int | None = None
    with_ignored: bool = False

    def check(self) -> None:
        """Refuse arguments that mean nothing.

        Raises:
            ToolError: names the argument and its range.
        """
        if not self.pattern:
            raise ToolError("the pattern is empty; give a regular expression")
        if not 0 <= self.context <= _MAX_CONTEXT:
            raise ToolError(
                f"context is between 0 and {_MAX_CONTEXT}; got {self.context}"
            )
        if self.max_results is not None and self.max_results < 1:
            raise ToolError(f"max_results is at least 1; got {self.max_results}")


@attrs.define(kw_only=True)
class _File:
    """A file of the search; files are read ahead of the answers to those before them.

    Args:
        name: its path, as it is shown.
        left_out: what the walk left out on the way to it.
        skipped: why it is not searched.
        text: its text, where something in it may match.
    """

    name: str
    left_out: JSONObject
    skipped: str | None = None
    text: str | None = None


@attrs.define(eq=False)
class FileSearch:
    """One search; `run` runs in a worker thread.

    Files are read while the matching process works on those before them. What was read ahead and turns out not to be
    needed shows nowhere in the result.
    """

    workspace: Workspace
    config: FilesystemConfig
    query: Query
    _budget: Budget = attrs.field(init=False)
    _matcher: LineMatcher = attrs.field(init=False)
    _matches: list[JSONValue] = attrs.field(factory=list, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    _searched: int = attrs.field(default=0, init=False)
    _skipped: Counter[str] = attrs.field(factory=Counter, init=False)
    _left_out: JSONObject = attrs.field(factory=dict, init=False)
    _more: bool = attrs.field(default=False, init=False)

    def run(self) -> JSONObject:
        """Search, and say what was found and what was left out.

        Raises:
            ToolError: an argument or the path cannot be used, or the pattern takes too long.
        """
        self.query.check()
        self._budget = Budget.of(self.config)
        self._matcher = LineMatcher(
            self.query.pattern,
            ignore_case=self.query.ignore_case,
            seconds=self.config.search_timeout,
            max_bytes=self.config.max_file_bytes,
        )
        # the matching process ends before the directories are let go
        with self._files() as files, self._matcher:
            self._match(files)
        result: JSONObject = {
            "matches": self._matches,
            "files_searched": self._searched,
            "more": self._more,
            **self._left_out,
        }
        if self._skipped:
            return result | {"skipped": dict(self._skipped)}
        return result

    @property
    def _with_rules(self) -> bool:
        return self.config.respect_ignore_files and not self.query.with_ignored

    @property
    def _limit(self) -> int:
        return min(
            self.query.max_results or self.config.max_results, self.config.max_results
        )

    @contextmanager
    def _files(self) -> Iterator[Iterator[_File]]:
        """Open what is to be searched: the file that the path names, or the files below the directory."""
        with self.workspace.readable.locate(self.query.path) as resolved:
            if stat.S_ISREG(resolved.existing().st_mode):
                with resolved.open_file() as opened:
                    file = _File(name=self.workspace.shown(resolved.path), left_out={})
                    self._read(file, opened.fileno())
                    yield iter([file])
                return
        pattern = GlobPattern(_anywhere(self.query.glob or "*"))
        with (
            walk_directory(
                self.workspace,
                self.query.path,
                self._budget,
                pattern.may_match_below,
                with_rules=self._with_rules,
            ) as tree,
            closing(self._below(tree, pattern)) as files,
        ):
            yield files

    def _below(
        self, tree: DirectoryListing, pattern: GlobPattern
    ) -> Generator[_File, None, None]:
        start = self.workspace.shown(tree.path)
        for entry in tree.entries:
            if entry.kind != "file" or not pattern.matches(entry.parts):
                continue
            file = _File(name=shown_below(start, entry), left_out=self._report(tree))
            if tree.is_protected(entry.parts):
                file.skipped = "protected"
            else:
                self._open(file, entry)
            yield file
        self._left_out = self._report(tree)

    def _report(self, tree: DirectoryListing) -> JSONObject:
        return {**tree.report(), **self._budget.report()}

    def _open(self, file: _File, entry: TreeEntry) -> None:
        try:
            handle = os.open(entry.parts[-1], READ, dir_fd=entry.directory)
        except OSError:
            file.skipped = "unreadable"
            return
        with closing_handle(handle):
            self._read(file, handle)

    def _read(self, file: _File, handle: int) -> None:
        status = os.fstat(handle)
        if (
            not stat.S_ISREG(status.st_mode)
            or status.st_size > self.config.max_file_bytes
        ):
            file.skipped = "too_large"
            return
        try:
            data = _content(handle, status.st_size, self.config.max_file_bytes)
            text = FileText.decode(data).unified
        except OSError:
            file.skipped = "unreadable"
        except UndecodableTextError:
            file.skipped = "binary"
        else:
            # Most files are ruled out here, without their way to the child process.
            if data and self._matcher.may_match(text):
                file.text = text.removesuffix("\n")

    def _match(self, files: Iterator[_File]) -> None:
        """Let the matching process work on one batch while the next is read."""
        sent: Sequence[_File] = ()
        for batch in _batches(files):
            if not self._take(sent):
                return
            texts = [file.text for file in batch if file.text is not None]
            if texts:
                # One more than there is room for shows whether there are more.
                self._matcher.send(texts, self._limit - len(self._matches) + 1)
            sent = batch
        self._take(sent)

    def _take(self, files: Sequence[_File]) -> bool:
        """Count the files of a batch and take their matches in; return whether the search goes on."""
        for file in files:
            # Only where matching takes time; files that are ruled out are counted to
            # the end.
            if file.text is not None and self._budget.is_out_of_time:
                self._left_out = {**file.left_out, **self._budget.report()}
                return False
            if file.skipped is not None:
                self._skipped[file.skipped] += 1
                continue
            self._searched += 1
            if file.text is not None:
                self._take_matches(file.name, file.text)
            if self._more:
                # What the walk reports by now is of files that were read ahead of this
                # one.
                self._left_out = file.left_out
                return False
        return True

    def _take_matches(self, name: str, text: str) -> None:
        found = self._matcher.receive(name)
        lines = []
        if found:
            lines = text.split("\n")
        for index in found:
            if not self._add(name, lines, index):
                return

    def _add(self, name: str, lines: Sequence[str], index: int) -> bool:
        """Take a match in, if there is still room for it."""
        match: JSONObject = {
            "file": name,
            "line": index + 1,
            "text": self._cut(lines[index]),
        }
        if self.query.context:
            match["before"] = [
                self._cut(line)
                for line in lines[max(0, index - self.query.context) : index]
            ]
            match["after"] = [
                self._cut(line)
                for line in lines[index + 1 : index + 1 + self.query.context]
            ]
        # names that are no UTF-8 hold surrogates, which cannot be encoded
        size = len(str(match).encode("utf-8", "replace"))
        if len(self._matches) == self._limit or (
            # the first match is always taken, or a long line could never be found
            self._matches and self._bytes + size > self.config.max_read_bytes
        ):
            self._more = True
            return False
        self._matches.append(match)
        self._bytes += size
        return True

    def _cut(self, line: str) -> str:
        limit = self.config.max_line_length
        if len(line) <= limit:
            return line
        return f"{line[:limit]} [line cut: {limit} of {len(line)} characters]"


def _anywhere(glob: str) -> str:
    """Let a pattern for a name match at any depth."""
    if "/" in glob:
        return glob
    # As in git and ripgrep: `*.py` means every Python file.
    return f"**/{glob}"


def _batches(files: Iterable[_File]) -> Iterator[list[_File]]:
    """Put files together; a batch with more than one file has a bounded length."""
    batch: list[_File] = []
    length = 0
    for file in files:
        more = len(file.text or "")
        if batch and (
            length + more > _MAX_BATCH_LENGTH or len(batch) == _MAX_BATCH_FILES
        ):
            yield batch
            batch, length = [], 0
        batch.append(file)
        length += more
    if batch:
        yield batch


def _content(handle: int, size: int, max_bytes: int) -> bytes:
    """Read a file to its end, or to the limit; one that says it is empty may hold something, as in /proc."""
    pieces: list[bytes] = []
    left = max_bytes
    while left and (piece := os.read(handle, min(left, max(size, _MIN_READ) + 1))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
