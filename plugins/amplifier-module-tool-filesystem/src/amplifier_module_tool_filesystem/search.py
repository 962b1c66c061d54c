"""Which lines of which files match a regular expression."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Final

import attrs

from amplifier_kit.files.open_flags import READ
from amplifier_kit.files.text import FileText, UndecodableTextError
from amplifier_module_tool_filesystem.config import FilesystemConfig
from amplifier_module_tool_filesystem.directory_listing import Tree, shown_below, walk_directory
from amplifier_module_tool_filesystem.matcher import LineMatcher
from amplifier_module_tool_filesystem.patterns import GlobPattern
from amplifier_module_tool_filesystem.walk import Budget, Entry
from amplifier_module_tool_filesystem.workspace import Workspace
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["Query", "Search"]

_MAX_CONTEXT: Final = 20


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
            raise ToolError(f"context is between 0 and {_MAX_CONTEXT}; got {self.context}")
        if self.max_results is not None and self.max_results < 1:
            raise ToolError(f"max_results is at least 1; got {self.max_results}")


@attrs.define(eq=False)
class Search:
    """One search; `run` runs in a worker thread."""

    workspace: Workspace
    config: FilesystemConfig
    query: Query
    _matches: list[JSONValue] = attrs.field(factory=list, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    _searched: int = attrs.field(default=0, init=False)
    _skipped: Counter[str] = attrs.field(factory=Counter, init=False)
    _ignored: JSONObject = attrs.field(factory=dict, init=False)
    _more: bool = attrs.field(default=False, init=False)

    def run(self) -> JSONObject:
        """Search, and say what was found and what was left out.

        Raises:
            ToolError: an argument or the path cannot be used, or the pattern takes too long.
        """
        self.query.check()
        budget = Budget.of(self.config)
        matcher = LineMatcher(
            self.query.pattern,
            ignore_case=self.query.ignore_case,
            seconds=self.config.search_timeout,
            max_bytes=self.config.max_file_bytes,
        )
        with self._files(budget) as files, matcher:
            for name, data in files:
                self._search(name, data, matcher)
                if self._more:
                    break
        result: JSONObject = {
            "matches": self._matches,
            "files_searched": self._searched,
            "more": self._more,
            **self._ignored,
            **budget.report(),
        }
        return result | {"skipped": dict(self._skipped)} if self._skipped else result

    @property
    def _with_rules(self) -> bool:
        return self.config.respect_ignore_files and not self.query.with_ignored

    @property
    def _limit(self) -> int:
        return min(self.query.max_results or self.config.max_results, self.config.max_results)

    @contextmanager
    def _files(self, budget: Budget) -> Iterator[Iterator[tuple[str, bytes]]]:
        """Open what is to be searched: the file that the path names, or the files below the directory."""
        with self.workspace.readable.locate(self.query.path) as spot:
            if stat.S_ISREG(spot.existing().st_mode):
                with spot.open_file() as file:
                    yield self._one(self.workspace.shown(spot.path), file.fileno())
                return
        pattern = GlobPattern(_anywhere(self.query.glob or "*"))
        with (
            walk_directory(
                self.workspace, self.query.path, budget, pattern.may_match_below, with_rules=self._with_rules
            ) as tree,
            closing(self._below(tree, pattern)) as files,
        ):
            start = self.workspace.shown(tree.path)
            yield ((shown_below(start, entry), data) for entry, data in files)
            self._ignored = tree.report()

    def _one(self, name: str, handle: int) -> Iterator[tuple[str, bytes]]:
        data = self._read(handle)
        if data is not None:
            yield name, data

    def _below(self, tree: Tree, pattern: GlobPattern) -> Generator[tuple[Entry, bytes], None, None]:
        for entry in tree.entries:
            if entry.kind != "file" or not pattern.matches(entry.parts):
                continue
            if tree.is_protected(entry.parts):
                self._skipped["protected"] += 1
                continue
            data = self._load(entry)
            if data is not None:
                yield entry, data

    def _load(self, entry: Entry) -> bytes | None:
        try:
            handle = os.open(entry.parts[-1], READ, dir_fd=entry.directory)
        except OSError:
            self._skipped["unreadable"] += 1
            return None
        try:
            return self._read(handle)
        finally:
            os.close(handle)

    def _read(self, handle: int) -> bytes | None:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > self.config.max_file_bytes:
            self._skipped["too_large"] += 1
            return None
        try:
            with open(handle, "rb", closefd=False) as file:
                return file.read(self.config.max_file_bytes)
        except OSError:
            self._skipped["unreadable"] += 1
            return None

    def _search(self, name: str, data: bytes, matcher: LineMatcher) -> None:
        try:
            text = FileText.decode(data).unified.removesuffix("\n")
        except UndecodableTextError:
            self._skipped["binary"] += 1
            return
        self._searched += 1
        if not data:
            return
        found = matcher.find(name, text, self._limit - len(self._matches) + 1)
        lines = text.split("\n") if found else []
        for index in found:
            if not self._add(name, lines, index):
                return

    def _add(self, name: str, lines: Sequence[str], index: int) -> bool:
        """Take a match in, if there is still room for it."""
        match: JSONObject = {"file": name, "line": index + 1, "text": self._cut(lines[index])}
        if self.query.context:
            match["before"] = [self._cut(line) for line in lines[max(0, index - self.query.context) : index]]
            match["after"] = [self._cut(line) for line in lines[index + 1 : index + 1 + self.query.context]]
        size = len(str(match).encode("utf-8", "replace"))
        if len(self._matches) == self._limit or (self._matches and self._bytes + size > self.config.max_read_bytes):
            self._more = True
            return False
        self._matches.append(match)
        self._bytes += size
        return True

    def _cut(self, line: str) -> str:
        most = self.config.max_line_length
        return line if len(line) <= most else f"{line[:most]} [line cut: {most} of {len(line)} characters]"


def _anywhere(glob: str) -> str:
    """Let a pattern for a name match at any depth."""
    return glob if "/" in glob else f"**/{glob}"
