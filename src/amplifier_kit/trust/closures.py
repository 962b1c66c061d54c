"""All that a project's files would run: what they name, what that names, and so on, until nothing is added.

What is certain to run, and may run, is an item of trust by its content. Where a name is put together only while a
program runs, the folders that its text names are items as a whole; where it names none, it cannot be trusted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.trust.fingerprints import Code
from amplifier_kit.trust.references import references
from amplifier_kit.trust.runners import TASK_FILES
from amplifier_kit.trust.scripts import Named, scan_code
from amplifier_kit.trust.searches import FolderTree, ProjectSearch, parents
from amplifier_kit.trust.shell_scripts import scan_shell
from amplifier_kit.trust.store import PROJECT_FILES, TrustDecision, TrustStore

__all__ = ["Closure", "changed_code", "closure_of", "covered_paths", "evaluate_project"]

_OF_SCRIPTS: Final = frozenset({"commands", "hooks", "plugins"})
_SERVERS: Final = "mcp"
"""The kind whose module fills in variables and evaluates the result."""

_RUNNING: Final = _OF_SCRIPTS | {"agents", "modules", "profiles", "settings", _SERVERS}
"""The kinds whose files name what runs."""

_MAX_ROUNDS: Final = 16
_MAX_TEXT: Final = 1_000_000
_SHELL: Final = re.compile(rb"#![^\n]*\b(?:ba|da|k|z|a)?sh\b")
_DOCUMENTS: Final = (".json", ".yaml", ".yml", ".md")
_SHELL_NAMES: Final = (".sh", ".bash", ".zsh", ".ksh", ".envrc", ".mk", ".just")


@attrs.frozen(kw_only=True)
class Closure:
    """What would run besides the files that were evaluated.

    Args:
        items: paths below the folder, of files and folders; some need not exist.
        certain: those of them that are run or imported, and not only named.
        sources: likewise, where modules come from; copies of them are run.
        problem: why it cannot be known.
    """

    items: tuple[str, ...] = ()
    certain: frozenset[str] = frozenset()
    sources: tuple[str, ...] = ()
    problem: str | None = None


def evaluate_project(
    store: TrustStore, folder: Path, kind: str, items: Sequence[str] | None = None
) -> TrustDecision:
    """Evaluate what a project brings of a kind, together with all that it would run; blocks.

    Args:
        store: what was trusted.
        folder: the project's folder.
        kind: what the items are for.
        items: what is evaluated; default the kind's in `PROJECT_FILES`.
    """
    # Evaluated in rounds: each brings new files, which may name further ones. The
    # bound is on rounds, so that a chain made to be long ends in a refusal.
    wanted: list[str | Code] = [*(PROJECT_FILES[kind] if items is None else items)]
    if kind == "modules":
        wanted = [Code(name) for name in PROJECT_FILES[kind]]
    decision = store.require(folder, kind, wanted)
    if kind not in _RUNNING:
        return decision
    for _ in range(_MAX_ROUNDS):
        contents = _searched(decision, wanted)
        directives = kind in _OF_SCRIPTS
        found = closure_of(
            Path(decision.folder),
            contents,
            known=decision.contents,
            has_directives=directives,
        )
        # a server's command may hold variables, which its module fills in and
        # evaluates
        if found.problem is not None and kind != _SERVERS:
            return _refused(decision, found.problem)
        named: list[str | Code] = [*found.items, *map(Code, found.sources)]
        added = [item for item in named if item not in wanted]
        if not added or not decision.can_be_trusted:
            return decision
        wanted += added
        decision = store.require(folder, kind, wanted)
    return _refused(
        decision, f"its files name others, more than {_MAX_ROUNDS} one behind the other"
    )


def _searched(decision: TrustDecision, items: Sequence[str | Code]) -> dict[str, bytes]:
    """Return the files in which names of what runs are looked for.

    Code is imported from a copy of all of it, and what a profile brings besides texts is code too.
    """
    imported = tuple(f"{item.name}/" for item in items if isinstance(item, Code))
    usual = tuple(f"{name}/" for name in PROJECT_FILES.get(decision.kind, ()))
    found = {}
    for name, content in decision.contents.items():
        is_script = decision.kind in _OF_SCRIPTS or not f"{name}/".startswith(usual)
        if not f"{name}/".startswith(imported) and (
            is_script or name.endswith(_DOCUMENTS)
        ):
            found[name] = content
    return found


def _refused(decision: TrustDecision, reason: str) -> TrustDecision:
    return attrs.evolve(decision, trusted=False, can_be_trusted=False, reason=reason)


def closure_of(
    folder: Path,
    contents: Mapping[str, bytes],
    *,
    command: str = "",
    known: Collection[str] = (),
    has_directives: bool = True,
) -> Closure:
    """Return what files name that would run, besides these.

    Args:
        folder: the project's folder, links resolved.
        contents: files by their paths below it. Of JSON, YAML and Markdown their commands and sources count, of
            other files all that they name.
        command: a shell text that is run besides.
        known: files that were evaluated besides.
        has_directives: whether Markdown is a command, in which shell texts behind `!` run.
    """
    search = ProjectSearch(
        FolderTree(str(folder)), known=frozenset((*contents, *known))
    )
    texts = [(_scan("", command.encode()), "", command)]
    for name, content in contents.items():
        base = os.path.dirname(name)
        if name.endswith(_DOCUMENTS):
            found = references(name, content, has_directives=has_directives)
            for source in found.sources:
                search.source(source, base)
            # What a list of tasks runs starts where the list is, whose folder some option names.
            place = ""
            if os.path.basename(name) in TASK_FILES:
                place = base
            texts += [
                (_scan("", text.encode()), place, text) for text in found.commands
            ]
            texts.append((Named(run=set(found.folders)), "", name))
        # a binary has no names that could be read; its own digest counts
        elif b"\0" not in content[:_MAX_TEXT]:
            texts.append((_scan(name, content), base, name))
    # all places first: what one text adds to a search path, another one may use
    for named, base, _ in texts:
        search.look_in(named, base)
    for named, base, subject in texts:
        search.take(named, base, subject)
    items = search.new_items()
    return Closure(
        items=items,
        certain=frozenset(search.certain),
        sources=tuple(sorted(search.sources)),
        problem=search.problem,
    )


def changed_code(
    store: TrustStore,
    folder: Path,
    command: str,
    *,
    trusted: Mapping[str, bytes] | None = None,
    copied: Collection[str] = (),
) -> tuple[str, ...]:
    """Return what a shell text would run that a person trusted and that is other than it was then; blocks.

    Of a text that nothing trusted belongs to nothing is evaluated: whether it may run at all is decided elsewhere. Of
    any other one what it runs besides has changed as well: it was not there when the person looked.

    Args:
        store: what was trusted.
        folder: the project's folder.
        command: the text, as the project wrote it.
        trusted: files as they were evaluated, by their paths below the folder.
        copied: those of which copies run in their place; what they name counts, they themselves do not.

    Raises:
        OSError: what was trusted cannot be read.
        ValueError: likewise.
    """
    grants = store.of_folder(folder)
    # filled as items turn out to be trusted: only their own text says what comes
    # next
    contents: dict[str, bytes] = {}
    seen, changed, is_trusted = set[str](), set[str](), bool(trusted)
    found = closure_of(folder, contents, command=command)
    while waiting := set(found.items) - seen:
        seen |= waiting
        for kind, grant in grants.items():
            asked = [
                name
                for name in waiting
                if name in grant.items or f"{name}/" in grant.items
            ]
            is_trusted = is_trusted or bool(asked)
            decision = store.require(folder, kind, asked)
            changed.update(decision.changed if decision.can_be_trusted else asked)
            contents.update(
                {
                    name: data
                    for name, data in decision.contents.items()
                    if name not in contents
                }
            )
        contents.update(
            {name: data for name, data in (trusted or {}).items() if name in waiting}
        )
        found = closure_of(folder, contents, command=command)
    if is_trusted:
        granted = {
            name.rstrip("/") for grant in grants.values() for name in grant.items
        }
        unseen = (
            name for name in found.certain if granted.isdisjoint((name, *parents(name)))
        )
        changed.update(name for name in unseen if os.path.lexists(folder / name))
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
    # unreadable trust protects all that it could have covered
    except (OSError, ValueError):
        return tuple(
            sorted({name for names in PROJECT_FILES.values() for name in names})
        )
    names = {
        name.rstrip("/")
        for grant in grants.values()
        for name in grant.items
        if not name.startswith("=")
    }
    # a file in a folder that counts as a whole is covered with it
    return tuple(sorted(name for name in names if names.isdisjoint(parents(name))))


@lru_cache(maxsize=1000)
def _scan(name: str, content: bytes) -> Named:
    text = content[:_MAX_TEXT].decode("utf-8", errors="replace")
    is_shell = (
        not name
        or name.endswith(_SHELL_NAMES)
        or _SHELL.match(content)
        or not (os.path.splitext(name)[1] or text[:2] == "#!")
    )
    if is_shell:
        return scan_shell(text)
    return scan_code(text)
