"""Which paths a tool call touches: the one answer that rules, hooks and backups go by.

Our own tools say where their paths stand. Of others an argument counts by its name, in every spelling (`filePath`,
`target_file`, `paths`), at any depth. A call that searches a folder touches all below it, named or not. A shell text
touches what its words lead to; what is known only when it runs may be any path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import attrs

from amplifier_sdk.jsontypes import JSONValue

if TYPE_CHECKING:
    from amplifier_kit.rules.calls import RuledCall
    from amplifier_kit.shell.changes import Change

__all__ = ["TouchedPath", "touched_paths"]

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NOUNS: Final = frozenset({
    "path", "paths", "filepath", "filepaths", "file", "files", "filename", "filenames",
    "notebook",
    "directory", "directories", "dir", "dirs", "dirname", "folder", "folders", "cwd",
    "workdir",
    "source", "sources", "src", "destination", "dest", "dst", "target", "targets",
})  # fmt: skip
_HOLDERS: Final = frozenset({"file", "path", "dir", "directory", "folder"})
_OTHERS: Final = frozenset({"savetofile"})
_ADDRESSES: Final = frozenset({"uri", "uris", "url", "urls"})
_PATTERNS: Final = frozenset({"glob", "globs", "include", "includes"})
_SEARCHES: Final = frozenset({"grep", "glob", "rg", "ripgrep"})
_LOOKS: Final = frozenset({"search", "find", "list", "tree", "scan", "walk"})
_LOOKED_AT: Final = frozenset(
    {
        "file",
        "files",
        "directory",
        "directories",
        "dir",
        "folder",
        "folders",
        "code",
        "codebase",
        "content",
        "contents",
    }
)
_LIST: Final = "list_directory"
_LITERAL: Final = frozenset(
    {"read_file", "write_file", "edit_file", "move", "delete", _LIST}
)
"""Our tools that take a path for the one that it is, wildcards and commas included."""

_WILD: Final = re.compile(r"[*?\[{]")
_SEVERAL: Final = re.compile(r"[,;\n]+")
_AROUND: Final = " \t\"'[]"
_MAX_DEPTH: Final = 40
_HERE: Final = "."


@attrs.frozen
class TouchedPath:
    """A path that a call touches.

    Args:
        value: what the call says; what is no text is a path that cannot be read.
        is_searched: whether what is done to it is done to all below it, as a search through a folder is.
        is_stated: whether the call names it, rather than a part of it that may be one as well.
        writes: whether it may be changed; `None` where the call's effects say that.
        is_of_command: whether a shell text touches it, which may do more than its paths say.
        change: what such a text does to what it holds, where that is known.
    """

    value: JSONValue
    is_searched: bool = False
    is_stated: bool = True
    writes: bool | None = None
    is_of_command: bool = False
    change: Change = "none"


def touched_paths(call: RuledCall) -> tuple[TouchedPath, ...]:
    """Return the paths that a call may read or write: as they stand in its arguments, those of shell texts absolute.

    Args:
        call: the call; a search that names no folder touches the call's own.
    """
    reader = _Reader(
        searches=_is_search(call.tool_name, call.arguments),
        is_literal=call.tool_name in _LITERAL,
    )
    found = list(reader.found(call.arguments))
    if reader.searches and not any(path.is_stated for path in found):
        found.append(TouchedPath(_HERE, is_searched=True))
    for access in call.file_accesses:
        if access is None:
            found.append(TouchedPath(None, is_of_command=True))
        else:
            found.append(
                TouchedPath(
                    access.path,
                    is_searched=access.is_searched,
                    writes=access.writes,
                    is_of_command=True,
                    change=access.change,
                )
            )
    return tuple(found)


def _is_search(name: str, arguments: Mapping[str, JSONValue]) -> bool:
    words = set(_words(name))
    if name == _LIST:
        return arguments.get("depth") not in (None, 1)
    return bool(words & _SEARCHES) or bool(words & _LOOKS and words & _LOOKED_AT)


@attrs.frozen(kw_only=True)
class _Reader:
    """Reads the arguments of one call.

    Args:
        searches: whether the call searches what it names.
        is_literal: whether a path is taken for the one that it is.
    """

    searches: bool
    is_literal: bool

    def found(self, value: JSONValue, depth: int = 0) -> Iterator[TouchedPath]:
        """Yield the paths in a value, however deep."""
        if depth > _MAX_DEPTH:
            # what stands deeper is not checked, and may be any path
            yield TouchedPath(None)
        elif isinstance(value, Mapping):
            for key, item in value.items():
                yield from self._named(_words(str(key)), item)
                # also below one, as in `files: [{path: …}]`
                yield from self.found(item, depth + 1)
        elif isinstance(value, (list, tuple)):
            for item in value:
                yield from self.found(item, depth + 1)

    def _named(self, words: list[str], value: JSONValue) -> Iterator[TouchedPath]:
        """Yield what an argument names, by the words of its own name."""
        last = ""
        if words:
            last = words[-1]
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if _is_path(words):
                yield from self._readings(item)
            elif not isinstance(item, str):
                continue
            elif last in _ADDRESSES and item.casefold().startswith("file:"):
                yield from self._readings(item)
            elif self.searches and last in _PATTERNS:
                yield TouchedPath(
                    _before_wildcards(item) or _HERE, is_searched=True, is_stated=False
                )

    def _readings(self, value: JSONValue) -> Iterator[TouchedPath]:
        """Yield a path as it is written, and what a tool may read out of it: several paths, or a pattern of them."""
        if value is None or isinstance(value, (Mapping, bool)):
            return
        if isinstance(value, str) and value.casefold().startswith("file:"):
            value = unquote(urlsplit(value).path)
        yield TouchedPath(value, is_searched=self.searches)
        if self.is_literal or not isinstance(value, str):
            return
        parts = (part.strip(_AROUND) for part in _SEVERAL.split(value))
        for part in dict.fromkeys(part for part in parts if part and part != value):
            yield TouchedPath(part, is_searched=self.searches, is_stated=False)
        if _WILD.search(value):
            yield TouchedPath(
                _before_wildcards(value) or _HERE, is_searched=True, is_stated=False
            )


def _is_path(words: list[str]) -> bool:
    if "".join(words) in _OTHERS or (words and words[-1] in _NOUNS):
        return True
    return len(words) > 1 and words[-1] in ("name", "names") and words[-2] in _HOLDERS


def _before_wildcards(value: str) -> str:
    """Return the folder before the first wildcard of a pattern; empty for the one where relative paths start."""
    return _WILD.split(value, maxsplit=1)[0].rpartition("/")[0]


def _words(name: str) -> list[str]:
    """Split a name such as `filePath`, `target_file` or `PATH2` into its words, without case."""
    return [word.casefold() for word in _WORD.findall(name)]
