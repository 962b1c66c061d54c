"""What a project brings along, as it is shown to a person before they trust it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.projects.files import INSTRUCTIONS, items_of, present_items
from amplifier_kit.trust import (
    PROJECT_FILES,
    TrustDecision,
    TrustStore,
    evaluate_project,
)
from amplifier_sdk.errors import AmplifierError, ConfigError, Problem, did_you_mean
from amplifier_sdk.jsontypes import JSONObject

__all__ = [
    "ContributedFile",
    "ProjectContribution",
    "grant",
    "look",
    "revoke",
    "trust_again",
]


@attrs.frozen(kw_only=True)
class ContributedFile:
    """A file: its path below the project, its size in bytes, and whether it changed since it was trusted."""

    name: str
    size: int
    is_changed: bool = False


@attrs.frozen(kw_only=True)
class ProjectContribution:
    """What a project brings of one kind, and whether it may be used."""

    decision: TrustDecision

    @property
    def files(self) -> tuple[ContributedFile, ...]:
        """Its files, sorted by name."""
        changed = self.decision.changed
        return tuple(
            ContributedFile(name=name, size=len(content), is_changed=name in changed)
            for name, content in sorted(self.decision.contents.items())
        )

    def to_dict(self) -> JSONObject:
        """Write it as JSON data."""
        return {
            "kind": self.decision.kind,
            "folder": self.decision.folder,
            "trusted": self.decision.trusted,
            "reason": self.decision.reason,
            "can_be_trusted": self.decision.can_be_trusted,
            "files": [
                {"name": file.name, "size": file.size, "changed": file.is_changed}
                for file in self.files
            ],
        }


def look(kinds: Collection[str] = ()) -> list[ProjectContribution]:
    """Return what the project of the working directory brings along, by kind; nothing where it brings nothing.

    Args:
        kinds: only these; default all.

    Raises:
        ConfigError: there is no such kind.
    """
    dirs, store, wanted = AppDirs.find(), TrustStore.in_home(), _checked(kinds)
    if dirs.project is None:
        return []
    found = (
        evaluate_project(store, dirs.root, kind, _items(store, dirs, kind))
        for kind in wanted
    )
    return [
        ProjectContribution(decision=decision)
        for decision in found
        if not decision.trusted or any(present_items(decision))
    ]


def grant(brought: ProjectContribution) -> None:
    """Trust what was shown, as it was then.

    Raises:
        ConfigError: it cannot be trusted; says why.
    """
    decision = brought.decision
    if not decision.can_be_trusted:
        raise ConfigError.of(
            decision.kind, decision.reason, subject=f"folder {decision.folder!r}"
        )
    TrustStore.in_home().grant(decision)


def revoke(kinds: Collection[str] = ()) -> list[str]:
    """Trust nothing of the working directory's project any more, or nothing of some kinds; return what was trusted.

    Raises:
        ConfigError: there is no such kind.
    """
    dirs, store = AppDirs.find(), TrustStore.in_home()
    return [kind for kind in _checked(kinds) if store.revoke(dirs.root, kind)]


@contextmanager
def trust_again(dirs: AppDirs, kind: str, changed: Collection[str]) -> Iterator[None]:
    """Trust what a project brings of one kind as the block leaves it, where it was trusted before.

    What else changed meanwhile was not the person's doing and has to be shown anew.

    Args:
        dirs: where the project is.
        kind: see `PROJECT_FILES`.
        changed: the files and folders that the block changes, below the project; with none this does nothing.

    Raises:
        AmplifierError: others wrote what is there, and nobody trusted it yet.
    """
    if not changed:
        yield
        return
    store = TrustStore.in_home()
    before = evaluate_project(store, dirs.root, kind, _items(store, dirs, kind))
    if not before.trusted:
        raise AmplifierError(
            f"The {kind} of this folder are not trusted ({before.reason}); run 'amplifier trust'"
        )
    try:
        yield
    finally:
        # Also when the block failed: it may have changed files before it did.
        after = evaluate_project(store, dirs.root, kind, _items(store, dirs, kind))
        # Where nothing is left there is nothing to trust, but what was trusted is not missing.
        is_other = dict(before.items) != dict(after.items)
        is_own = not _changed_by_others(before, after, changed)
        if is_other and after.can_be_trusted and is_own:
            store.grant(after)


def _changed_by_others(
    before: TrustDecision, after: TrustDecision, changed: Collection[str]
) -> bool:
    """Whether something else changed; what the person's own change names, or names no more, is part of it."""
    own = tuple(f"{path}/" for path in changed)
    usual = tuple(f"{path}/" for path in PROJECT_FILES[before.kind])
    others = (
        name
        for name in {*before.items, *after.items}
        if not f"{name}/".startswith(own)
        and (
            f"{name}/".startswith(usual)
            or (name in before.items and name in after.items)
        )
    )
    return any(before.items.get(name) != after.items.get(name) for name in others)


def _items(store: TrustStore, dirs: AppDirs, kind: str) -> tuple[str, ...]:
    """Return what is evaluated of a kind; what was trusted in other folders of the project stays trusted."""
    items = items_of(dirs, kind)
    if kind != INSTRUCTIONS:
        return items
    # a damaged store is reported where it decides
    with suppress(OSError, ValueError):
        grant = store.of_folder(dirs.root).get(kind)
        if grant is not None:
            return tuple(dict.fromkeys((*items, *grant.items)))
    return items


def _checked(kinds: Collection[str]) -> list[str]:
    known = sorted(PROJECT_FILES)
    problems = []
    for kind in kinds:
        if kind not in known:
            hint = did_you_mean(kind, known) or f"; known: {', '.join(known)}"
            problems.append(Problem(kind, f"no such kind{hint}"))
    if problems:
        raise ConfigError(problems, subject="choice of kinds")
    return list(kinds) or known
