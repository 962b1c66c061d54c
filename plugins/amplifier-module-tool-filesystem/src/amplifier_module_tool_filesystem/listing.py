"""What is in a directory, and which files a pattern matches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from amplifier_module_tool_filesystem.config import FilesystemConfig
from amplifier_module_tool_filesystem.patterns import GlobPattern
from amplifier_module_tool_filesystem.walking import Budget, Entry, walk_tree
from amplifier_module_tool_filesystem.workspace import Workspace
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["find_files", "list_entries", "shown_below", "walk_directory"]


def list_entries(workspace: Workspace, config: FilesystemConfig, path: str, depth: int) -> JSONObject:
    """List a directory, `depth` levels deep.

    Raises:
        ToolError: the path cannot be listed.
    """
    if depth < 1:
        raise ToolError(f"depth is at least 1; got {depth}")
    budget = Budget.of(config)
    with walk_directory(workspace, path, budget, lambda parts: len(parts) < depth) as (directory, walked):
        entries, omitted = _take(walked, config.max_results, _describe)
    return {"path": workspace.shown(directory), "entries": entries, "omitted": omitted, **budget.report()}


def find_files(workspace: Workspace, config: FilesystemConfig, pattern: str, path: str) -> JSONObject:
    """List the files, and links, that a pattern matches.

    Raises:
        ToolError: the pattern or the path cannot be used.
    """
    glob = GlobPattern(pattern)
    budget = Budget.of(config)
    with walk_directory(workspace, path, budget, glob.may_match_below) as (directory, walked):
        start = workspace.shown(directory)
        found = (entry for entry in walked if entry.kind != "directory" and glob.matches(entry.parts))
        matches, omitted = _take(found, config.max_results, lambda entry: shown_below(start, entry))
    return {"path": start, "matches": matches, "omitted": omitted, **budget.report()}


@contextmanager
def walk_directory(
    workspace: Workspace, path: str, budget: Budget, enter: Callable[[tuple[str, ...]], bool]
) -> Iterator[tuple[Path, Iterator[Entry]]]:
    """Open a directory and walk through it; everything is closed when the block ends.

    Raises:
        ToolError: the path leads outside, or to no directory that can be read.
    """
    with workspace.readable.locate(path) as spot:
        handle = spot.open_directory()
        try:
            with closing(walk_tree(handle, budget, enter)) as walked:
                yield spot.path, walked
        finally:
            os.close(handle)


def shown_below(start: str, entry: Entry) -> str:
    """Return the path of an entry, when the walk began at the path shown as `start`."""
    return entry.name if start == "." else f"{start.rstrip('/')}/{entry.name}"


def _take(entries: Iterator[Entry], limit: int, describe: Callable[[Entry], JSONValue]) -> tuple[list[JSONValue], int]:
    """Describe the first entries and count the others."""
    taken: list[JSONValue] = []
    omitted = 0
    for entry in entries:
        if len(taken) < limit:
            taken.append(describe(entry))
        else:
            omitted += 1
    return taken, omitted


def _describe(entry: Entry) -> JSONValue:
    described: JSONObject = {"name": entry.name, "type": entry.kind}
    return described | {"size": entry.status.st_size} if entry.kind == "file" else described
