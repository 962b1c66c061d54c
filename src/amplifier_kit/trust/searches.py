"""Finding in a project's folder what texts name, wherever the programs that they start would look for it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final, Literal, TypeAlias

import attrs

from amplifier_kit.trust.scripts import Named

__all__ = ["FolderTree", "ProjectSearch", "parents"]

_Kind: TypeAlias = Literal["", "file", "folder", "other"]

_MAX_FOLDERS: Final = 100
_MAX_WORD: Final = 1_000
_ENDS: Final = (
    "",
    ".py",
    ".sh",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".mts",
    ".tsx",
    ".jsx",
    ".node",
    ".rb",
    ".pm",
    ".pl",
    ".php",
    ".lua",
    ".so",
    "/index.js",
    "/index.ts",
)
_COMPILED_JS: Final = re.compile(r"\.([cm]?)js\Z")
_ADDRESS: Final = re.compile(r"(?:git\+|[a-z][a-z0-9+.-]*://)", re.IGNORECASE)
_HERE: Final = re.compile(r"\A(?:~\+|/proc/self/cwd)/")
_STANDARD: Final = sys.stdlib_module_names - {
    "antigravity",
    "idlelib",
    "lib2to3",
    "test",
    "this",
    "turtledemo",
}
_PACKAGES: Final = ("__init__", "__main__")


@attrs.define(eq=False)
class FolderTree:
    """What lies below a folder; each directory is listed once."""

    folder: str
    _known: dict[str, Mapping[str, _Kind]] = attrs.field(factory=dict)

    def kind(self, path: str) -> _Kind:
        """Say what is at a path below the folder, links followed; nothing where there is nothing."""
        parent, _, name = path.rpartition("/")
        return self.names(parent).get(name, "")

    def names(self, path: str) -> Mapping[str, _Kind]:
        """Return what is in a directory, by name; nothing where it cannot be listed."""
        # listed once for a search: what changes meanwhile is found by its digest
        # later
        if path not in self._known:
            found: dict[str, _Kind] = {}
            with (
                suppress(OSError),
                os.scandir(os.path.join(self.folder, path)) as entries,
            ):
                for entry in entries:
                    if entry.is_dir():
                        found[entry.name] = "folder"
                    else:
                        found[entry.name] = "file" if entry.is_file() else "other"
            self._known[path] = found
        return self._known[path]


@attrs.define(eq=False)
class ProjectSearch:
    """Finds what texts name in a folder: `look_in` for all of them first, then `take`."""

    tree: FolderTree
    known: frozenset[str] = frozenset()
    items: set[str] = attrs.field(factory=set)
    certain: set[str] = attrs.field(factory=set)
    sources: set[str] = attrs.field(factory=set)
    problem: str | None = None
    _shared: dict[str, None] = attrs.field(factory=dict)
    _paths: dict[str, None] = attrs.field(factory=dict)

    def look_in(self, named: Named, base: str) -> None:
        """Take the folders in which a text has other programs look for what they name."""
        bases = ["", base]
        self._shared.update(dict.fromkeys(self._folders(named.folders, bases)))
        self._paths.update(dict.fromkeys(self._folders(named.paths, bases)))

    def take(self, named: Named, base: str, subject: str) -> None:
        """Take what a text names.

        Args:
            named: what it names.
            base: the folder, below the project's, of the file that holds it.
            subject: the file or the text, for messages.
        """
        folders = self._folders(named.words, ["", base])
        bases = [*dict.fromkeys(["", base, *folders, *self._shared])]
        self.items.update(
            path for word in named.words for path in self._files(word, bases)
        )
        for word in named.run:
            found = list(self._below(word, bases))
            self._certainly([path for path in found if self.tree.kind(path)] or found)
        searched = [*dict.fromkeys([*bases, *parents(base)])]
        searched += self._folders(
            {word.replace(".", "/") for word in named.modules}, searched
        )
        begins = {
            name.partition(".")[0]
            for each in searched
            for name in self.tree.names(each)
        }
        for word in named.modules:
            if (
                word[:1] not in ("", ".", "/", "~", "@")
                and re.split(r"[./]", word, maxsplit=1)[0] not in begins
            ):
                continue  # as most words of a line with an import
            found = list(self._modules(word, searched))
            self.items.update(found)
            # What has no ending is a module's file in no language, but may be what a line with an import writes.
            self._certainly(
                path
                for path in found
                if "." in os.path.basename(path) or self.tree.kind(path) == "folder"
            )
        for name in named.programs:
            self._certainly(
                path for folder in self._paths for path in self._files(name, [folder])
            )
        if named.is_python:
            self._shadow(["", *self._shared])
        elif subject.endswith(".py"):
            self._shadow([base])
        if named.is_composed:
            whole = [path for path in dict.fromkeys([*folders, base]) if path]
            self._certainly(whole)
            if not whole:
                problem = "runs what is only put together then; name its files, or their folder, plainly"
                self.problem = self.problem or f"{subject!a:.200} {problem}"

    def source(self, text: str, base: str) -> None:
        """Take the source of a module: a folder or an archive below the project's folder, which need not exist."""
        if text.lower().startswith("file://"):
            text = text[len("file://") :]
        elif _ADDRESS.match(text):
            return
        bases = list(dict.fromkeys(["", base]))
        found = list(self._below(text, bases))
        self.sources.update([path for path in found if self.tree.kind(path)] or found)
        folder = self.tree.folder
        places = (
            os.path.normpath(os.path.join(folder, each, os.path.expanduser(text)))
            for each in bases
        )
        if any(f"{folder}/".startswith(f"{place.rstrip('/')}/") for place in places):
            problem = "is the project's whole folder; name the module in your own settings, or put it into a folder"
            self.problem = self.problem or f"the source {text!a:.200} {problem}"

    def new_items(self) -> tuple[str, ...]:
        """Return what was found besides what was known; what lies in a folder that counts as a whole is left out."""
        new = self.items - self.known
        return tuple(
            sorted(name for name in new if self.items.isdisjoint(parents(name)))
        )

    def _certainly(self, paths: Iterable[str]) -> None:
        found = set(paths)
        self.items |= found
        self.certain |= found

    def _folders(self, words: Iterable[str], bases: Iterable[str]) -> list[str]:
        """Return the folders that words name, one within the other as well."""
        words, known = list(words), [*dict.fromkeys(bases)]
        found: dict[str, None] = {}
        # a path may be put together of its parts
        while known and len(found) < _MAX_FOLDERS:
            paths = {path for word in words for path in self._existing(word, known)}
            known = sorted(
                path
                for path in paths
                if path not in found and self.tree.kind(path) == "folder"
            )
            # bounded by the folders that were found, so that a cycle of links
            # ends
            found.update(dict.fromkeys(known))
        return list(found)[:_MAX_FOLDERS]

    def _files(self, word: str, bases: Iterable[str]) -> Iterator[str]:
        return (
            path
            for path in self._existing(word, bases)
            if self.tree.kind(path) == "file"
        )

    def _existing(self, word: str, bases: Iterable[str]) -> Iterator[str]:
        """Yield where a word leads to something; most words are in no folder, which their beginning shows."""
        first, slash, _ = word.partition("/")
        if first in ("", ".", "..", "~", "~+"):
            yield from (
                path for path in self._below(word, bases) if self.tree.kind(path)
            )
            return
        holding = [base for base in bases if first in self.tree.names(base)]
        if slash:
            yield from (
                path for path in self._below(word, holding) if self.tree.kind(path)
            )
        else:
            yield from (os.path.join(base, word) for base in holding)

    def _below(self, word: str, bases: Iterable[str]) -> Iterator[str]:
        """Yield where a word may lead below the folder: from the machine's root, and from each of some folders."""
        if not word or len(word) > _MAX_WORD or "\0" in word:
            return
        folder = self.tree.folder
        inside = os.path.expanduser(_HERE.sub("", word))
        # an absolute path into the project counts like a relative one
        if inside.startswith(f"{folder}/"):
            inside, bases = os.path.relpath(inside, folder), ("",)
        for base in bases:
            path = os.path.normpath(os.path.join(folder, base, inside.lstrip("/")))
            # what lies outside is not the project's, and not this trust's
            if path.startswith(f"{folder}/"):
                yield path[len(folder) + 1 :]

    def _modules(self, word: str, bases: Iterable[str]) -> Iterator[str]:
        """Yield the files that an import of a word may read, and a package as a whole."""
        spellings = (
            word,
            word.strip(".").replace(".", "/"),
            _COMPILED_JS.sub(r".\1ts", word),
        )
        for each in dict.fromkeys(spellings):
            for end in _ENDS:
                yield from self._files(each + end, bases)
            for path in self._existing(each, bases):
                yield from self._package(path)

    def _package(self, path: str) -> Iterator[str]:
        if self.tree.kind(path) == "folder" and any(
            f"{name}.py" in self.tree.names(path) for name in _PACKAGES
        ):
            yield path

    def _shadow(self, bases: Iterable[str]) -> None:
        """Take the modules that a Python in some folders imports in the place of those of the standard library."""
        for base in dict.fromkeys(bases):
            for name in self.tree.names(base):
                stem, _, end = name.partition(".")
                path = os.path.join(base, name)
                if stem in _STANDARD:
                    self._certainly(
                        [path]
                        if end in ("py", "pyc") or end.endswith("so")
                        else self._package(path)
                    )


def parents(name: str) -> Iterator[str]:
    """Yield the folders that a path lies in, the innermost first."""
    while name := os.path.dirname(name):
        yield name
