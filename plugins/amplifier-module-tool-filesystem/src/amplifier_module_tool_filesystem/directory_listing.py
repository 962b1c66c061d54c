"""What is in a directory, and which files a pattern matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import attrs

from amplifier_kit.files.gitignore import IgnoreRules
from amplifier_kit.files.handles import closing_handle
from amplifier_module_tool_filesystem.config import FilesystemConfig
from amplifier_module_tool_filesystem.patterns import GlobPattern
from amplifier_module_tool_filesystem.walk import Budget, TreeEntry, walk_tree
from amplifier_module_tool_filesystem.workspace import Workspace
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "DirectoryListing",
    "find_files",
    "list_entries",
    "shown_below",
    "walk_directory",
]


@attrs.frozen
class DirectoryListing:
    """A directory that is walked through: where it is, what is in it, and what of that may not be read."""

    path: Path
    entries: Iterator[TreeEntry]
    is_protected: Callable[[Sequence[str]], bool]
    ignores: IgnoreRules | None

    def report(self) -> JSONObject:
        """Say how many entries ignore files left out; nothing where there are none."""
        if self.ignores is not None and self.ignores.count:
            return {"ignored": self.ignores.count}
        return {}


def list_entries(
    workspace: Workspace, config: FilesystemConfig, path: str, depth: int
) -> JSONObject:
    """List a directory, `depth` levels deep.

    Raises:
        ToolError: the path cannot be listed.
    """
    if depth < 1:
        raise ToolError(f"depth is at least 1; got {depth}")
    budget = Budget.of(config)
    with walk_directory(
        workspace, path, budget, lambda parts: len(parts) < depth
    ) as tree:
        entries, omitted = _take(tree.entries, config.max_results, _describe)
    return {
        "path": workspace.shown(tree.path),
        "entries": entries,
        "omitted": omitted,
        **budget.report(),
    }


def find_files(
    workspace: Workspace,
    config: FilesystemConfig,
    pattern: str,
    path: str,
    *,
    with_ignored: bool = False,
) -> JSONObject:
    """List the files, and links, that a pattern matches.

    Args:
        workspace: where the path leads.
        config: the limits.
        pattern: relative to the path.
        path: the directory to search.
        with_ignored: whether ignore files do not count.

    Raises:
        ToolError: the pattern or the path cannot be used.
    """
    glob = GlobPattern(pattern)
    budget = Budget.of(config)
    with_rules = config.respect_ignore_files and not with_ignored
    with walk_directory(
        workspace, path, budget, glob.may_match_below, with_rules=with_rules
    ) as tree:
        start = workspace.shown(tree.path)
        found = (
            entry
            for entry in tree.entries
            if entry.kind != "directory" and glob.matches(entry.parts)
        )
        matches, omitted = _take(
            found, config.max_results, lambda entry: shown_below(start, entry)
        )
        ignored = tree.report()
    return {
        "path": start,
        "matches": matches,
        "omitted": omitted,
        **ignored,
        **budget.report(),
    }


@contextmanager
def walk_directory(
    workspace: Workspace,
    path: str,
    budget: Budget,
    enter: Callable[[tuple[str, ...]], bool],
    *,
    with_rules: bool = False,
) -> Iterator[DirectoryListing]:
    """Open a directory and walk through it, but not into what is protected; all is closed when the block ends.

    Args:
        workspace: where the path leads.
        path: the directory.
        budget: of the walk.
        enter: says whether to go into a directory.
        with_rules: whether ignore files leave entries out.

    Raises:
        ToolError: the path leads outside, or to no directory that can be read.
    """
    with (
        workspace.readable.locate(path) as resolved,
        closing_handle(resolved.open_directory()) as handle,
    ):
        is_protected = workspace.readable.rules.below(resolved.path)
        ignores = None
        if with_rules:
            ignores = _ignore_rules(workspace, resolved.path)
        walked = walk_tree(
            handle,
            budget,
            # A protected directory is listed and not entered: its name is no
            # secret, its content is.
            lambda parts: enter(parts) and not is_protected(parts),
            ignores=ignores,
        )
        with closing(walked):
            yield DirectoryListing(resolved.path, walked, is_protected, ignores)


def _ignore_rules(workspace: Workspace, path: Path) -> IgnoreRules:
    """Read what the ignore files of the working directory say of a place below it."""
    if not path.is_relative_to(workspace.directory):
        return IgnoreRules()
    with (
        suppress(OSError, ToolError),
        workspace.readable.locate(str(workspace.directory)) as resolved,
        closing_handle(resolved.open_directory()) as top,
    ):
        return IgnoreRules.above(top, path.relative_to(workspace.directory).parts)
    # the place went away, or only a part of the working directory may be read
    return IgnoreRules()


def shown_below(start: str, entry: TreeEntry) -> str:
    """Return the path of an entry, when the walk began at the path shown as `start`."""
    if start == ".":
        return entry.name
    return f"{start.rstrip('/')}/{entry.name}"


def _take(
    entries: Iterator[TreeEntry], limit: int, describe: Callable[[TreeEntry], JSONValue]
) -> tuple[list[JSONValue], int]:
    """Describe the first entries and count the others."""
    taken: list[JSONValue] = []
    omitted = 0
    for entry in entries:
        if len(taken) < limit:
            taken.append(describe(entry))
        else:
            # Counted to the end, so that the model knows how much it does not see.
            omitted += 1
    return taken, omitted


def _describe(entry: TreeEntry) -> JSONValue:
    described: JSONObject = {"name": entry.name, "type": entry.kind}
    if entry.kind == "file":
        return described | {"size": entry.status.st_size}
    return described
