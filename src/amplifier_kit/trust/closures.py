"""All that a project's files would run: what they name, what that names, and so on, until nothing is added.

What is certain to run, and may run, is an item of trust by its content. Where a name is put together only while a
program runs, the folders that its text names are items as a whole; where it names none, it cannot be trusted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.trust.fingerprints import Code
from amplifier_kit.trust.kinds import PROJECT_FILES
from amplifier_kit.trust.references import references
from amplifier_kit.trust.scripts import Named, scan_code, scan_shell
from amplifier_kit.trust.store import Decision, TrustStore

__all__ = ["Closure", "changed_code", "closure_of", "covered_paths", "judge_project", "run_by"]

_OF_SCRIPTS: Final = frozenset({"commands", "hooks", "plugins"})
_SERVERS: Final = "mcp"
"""The kind whose module fills in variables and judges what comes of it."""

_RUNNING: Final = _OF_SCRIPTS | {"agents", "modules", "profiles", "settings", _SERVERS}
"""The kinds whose files name what runs."""

_MAX_ROUNDS: Final = 16
_MAX_TEXT: Final = 1_000_000
_MAX_FOLDERS: Final = 100
_MAX_WORD: Final = 1_000
_ENDS: Final = ("", ".py", ".sh", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pm", ".pl", ".php", ".lua", "/index.js")
_SHELL: Final = re.compile(rb"#![^\n]*\b(?:ba|da|k|z|a)?sh\b")
_DOCUMENTS: Final = (".json", ".yaml", ".yml", ".md")
_SHELL_NAMES: Final = (".sh", ".bash", ".zsh", ".ksh", ".envrc")
_ADDRESS: Final = re.compile(r"(?:git\+|[a-z][a-z0-9+.-]*://)", re.IGNORECASE)


@attrs.frozen(kw_only=True)
class Closure:
    """What would run besides the files that were looked at.

    Args:
        items: paths below the folder, of files and folders; some need not exist.
        sources: likewise, where modules come from; copies of them are run.
        problem: why it cannot be told.
    """

    items: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    problem: str | None = None


def judge_project(store: TrustStore, folder: Path, kind: str, items: Sequence[str] | None = None) -> Decision:
    """Judge what a project brings of a kind, together with all that it would run; blocks.

    Args:
        store: what was trusted.
        folder: the project's folder.
        kind: what the items are for.
        items: what is looked at; default the kind's in `PROJECT_FILES`.
    """
    wanted: list[str | Code] = [*(PROJECT_FILES[kind] if items is None else items)]
    if kind == "modules":
        wanted = [Code(name) for name in PROJECT_FILES[kind]]
    decision = store.require(folder, kind, wanted)
    if kind not in _RUNNING:
        return decision
    for _ in range(_MAX_ROUNDS):
        contents = _searched(decision, wanted)
        directives = kind in _OF_SCRIPTS
        found = closure_of(Path(decision.folder), contents, known=decision.contents, has_directives=directives)
        if found.problem is not None and kind != _SERVERS:
            return _refused(decision, found.problem)
        named: list[str | Code] = [*found.items, *map(Code, found.sources)]
        added = [item for item in named if item not in wanted]
        if not added or not decision.can_be_trusted:
            return decision
        wanted += added
        decision = store.require(folder, kind, wanted)
    return _refused(decision, f"its files name others, more than {_MAX_ROUNDS} one behind the other")


def _searched(decision: Decision, items: Sequence[str | Code]) -> dict[str, bytes]:
    """Return the files in which names of what runs are looked for.

    Code is imported from a copy of all of it, and what a profile brings besides texts is code too.
    """
    imported = tuple(f"{item.name}/" for item in items if isinstance(item, Code))
    usual = tuple(f"{name}/" for name in PROJECT_FILES.get(decision.kind, ()))
    found = {}
    for name, content in decision.contents.items():
        is_script = decision.kind in _OF_SCRIPTS or not f"{name}/".startswith(usual)
        if not f"{name}/".startswith(imported) and (is_script or name.endswith(_DOCUMENTS)):
            found[name] = content
    return found


def _refused(decision: Decision, reason: str) -> Decision:
    return attrs.evolve(decision, trusted=False, can_be_trusted=False, reason=reason)


def closure_of(
    folder: Path, contents: Mapping[str, bytes], *, known: Collection[str] = (), has_directives: bool = True
) -> Closure:
    """Return what files name that would run, besides these.

    Args:
        folder: the project's folder, links resolved.
        contents: files by their paths below it. Of JSON, YAML and Markdown their commands and sources count, of
            other files all that they name.
        known: files that were looked at besides.
        has_directives: whether Markdown is a command, in which shell texts behind `!` run.
    """
    search = _Search(str(folder), known=frozenset((*contents, *known)))
    for name, content in contents.items():
        if name.endswith(_DOCUMENTS):
            found = references(name, content, has_directives=has_directives)
            for source in found.sources:
                search.source(source, os.path.dirname(name))
            for command in found.commands:
                search.take(scan_shell(command), "", command)
        elif b"\0" not in content[:_MAX_TEXT]:
            search.take(_scan(name, content), os.path.dirname(name), name)
    return search.finish()


def run_by(folder: Path, command: str) -> Closure:
    """Return what a shell text itself names below a folder that would run."""
    search = _Search(str(folder))
    search.take(scan_shell(command), "", command)
    return search.finish()


def changed_code(
    store: TrustStore,
    folder: Path,
    command: str,
    *,
    trusted: Mapping[str, bytes] | None = None,
    copied: Collection[str] = (),
) -> tuple[str, ...]:
    """Return what a shell text would run that a person trusted and that is other than it was then; blocks.

    What nobody trusted is not looked at: whether it may run at all is decided elsewhere.

    Args:
        store: what was trusted.
        folder: the project's folder.
        command: the text, as the project wrote it.
        trusted: files as they were judged, by their paths below the folder.
        copied: those of which copies run in their place; what they name counts, they themselves do not.

    Raises:
        OSError: what was trusted cannot be read.
        ValueError: likewise.
    """
    grants = store.of_folder(folder)
    items, waiting = set[str](), set(run_by(folder, command).items)
    changed: set[str] = set()
    while waiting := waiting - items:
        items |= waiting
        contents = {name: data for name, data in (trusted or {}).items() if name in waiting}
        for kind, grant in grants.items():
            asked = [name for name in waiting if name in grant.items or f"{name}/" in grant.items]
            decision = store.require(folder, kind, asked)
            changed.update(decision.changed if decision.can_be_trusted else asked)
            contents = {**decision.contents, **contents}
        waiting = set(closure_of(folder, contents).items)
    return tuple(sorted(changed.difference(copied)))


def covered_paths(store: TrustStore, folder: Path) -> tuple[str, ...]:
    """Return what a person trusted below a folder, as files and whole folders; who writes there changes what runs.

    Some need not exist: that they appear would be a change. Where what was trusted cannot be read, it is all that
    could be; blocks.

    Args:
        store: what was trusted.
        folder: the project's folder.
    """
    try:
        grants = store.of_folder(folder)
    except (OSError, ValueError):
        return tuple(sorted({name for names in PROJECT_FILES.values() for name in names}))
    names = {name.rstrip("/") for grant in grants.values() for name in grant.items if not name.startswith("=")}
    return tuple(sorted(name for name in names if names.isdisjoint(_parents(name))))


def _scan(name: str, content: bytes) -> Named:
    text = content[:_MAX_TEXT].decode("utf-8", errors="replace")
    is_shell = (
        name.endswith(_SHELL_NAMES) or _SHELL.match(content) or not (os.path.splitext(name)[1] or text[:2] == "#!")
    )
    return scan_shell(text) if is_shell else scan_code(text)


@attrs.define(eq=False)
class _Search:
    """Finds what texts name in a folder."""

    folder: str
    known: frozenset[str] = frozenset()
    items: set[str] = attrs.field(factory=set)
    sources: set[str] = attrs.field(factory=set)
    problem: str | None = None

    def take(self, named: Named, base: str, subject: str) -> None:
        """Take what a text names.

        Args:
            named: what it names.
            base: the folder, below the project's, of the file that holds it.
            subject: the file or the text, for messages.
        """
        bases = list(dict.fromkeys(["", base]))
        folders = sorted({path for word in named.words for path in self._below(word, bases) if self._is_folder(path)})
        bases += [path for path in folders[:_MAX_FOLDERS] if path not in bases]
        self.items.update(path for word in named.words for path in self._below(word, bases) if self._is_file(path))
        for word in named.run:
            found = list(self._below(word, bases))
            self.items.update([path for path in found if self._exists(path)] or found[:1])
        for word in named.modules:
            self.items.update(self._module(word, bases))
        if named.is_composed:
            whole = [path for path in dict.fromkeys([*folders, base]) if path]
            self.items.update(whole)
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
        self.sources.update([path for path in found if self._exists(path)] or found)
        places = (os.path.normpath(os.path.join(self.folder, each, os.path.expanduser(text))) for each in bases)
        if any(f"{self.folder}/".startswith(f"{place.rstrip('/')}/") for place in places):
            problem = "is the project's whole folder; name the module in your own settings, or put it into a folder"
            self.problem = self.problem or f"the source {text!a:.200} {problem}"

    def finish(self) -> Closure:
        """Return what was found besides what was known."""
        new = self.items - self.known
        items = sorted(name for name in new if self.items.isdisjoint(_parents(name)))
        return Closure(items=tuple(items), sources=tuple(sorted(self.sources)), problem=self.problem)

    def _below(self, word: str, bases: Iterable[str]) -> Iterator[str]:
        """Yield where a word may lead below the folder: from the machine's root, and from each of some folders."""
        if word and len(word) <= _MAX_WORD and "\0" not in word:
            inside = os.path.expanduser(word)
            if inside.startswith(f"{self.folder}/"):
                inside, bases = os.path.relpath(inside, self.folder), ("",)
            for base in bases:
                path = os.path.normpath(os.path.join(self.folder, base, inside.lstrip("/")))
                if path.startswith(f"{self.folder}/"):
                    yield os.path.relpath(path, self.folder)

    def _module(self, word: str, bases: Sequence[str]) -> Iterator[str]:
        """Yield the files that an import of a word may read, and a package as a whole."""
        for each in dict.fromkeys((word, word.strip(".").replace(".", "/"))):
            for path in self._below(each, bases):
                yield from (found for end in _ENDS if self._is_file(found := path + end))
                if self._is_file(f"{path}/__init__.py"):
                    yield path

    def _exists(self, path: str) -> bool:
        return os.path.lexists(f"{self.folder}/{path}")

    def _is_file(self, path: str) -> bool:
        return os.path.isfile(f"{self.folder}/{path}")

    def _is_folder(self, path: str) -> bool:
        return os.path.isdir(f"{self.folder}/{path}")


def _parents(name: str) -> Iterator[str]:
    while name := os.path.dirname(name):
        yield name
