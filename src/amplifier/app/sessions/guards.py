"""What guards a session: without what it had, or a person trusted, it does not begin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from amplifier.app.plan_entries import entries
from amplifier.app.plans.restrictions import find_lacking
from amplifier.app.plans.tool_rules import without_allowances
from amplifier.app.sessions.composition import Composition, fill_plan
from amplifier.app.store.lineage import find_recorded, subject_of
from amplifier.app.store.plan_secrets import conceal
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier_kit.claude_plugins import lost_plugins, own_plugins
from amplifier_sdk.errors import ConfigError, Problem

__all__ = ["require_guards", "require_recorded_guards"]

_HOOKS: Final = "hooks-shell"
"""The module that runs the hooks and plugins of a project."""

_REMEDY: Final = Problem(
    "composition",
    "open the session with the one that `amplifier.reopen` returns, which restores the"
    " guards; `with_current_plan=True` there takes what there is now instead",
)


def require_guards(composition: Composition) -> None:
    """Refuse a session that would run without what a person trusted to guard it; blocks.

    Raises:
        ConfigError: hooks, plugins or settings that were trusted or agreed to changed, or are gone; names the files
            and remedies.
    """
    problems = [
        Problem(
            f"{kind} of this folder",
            f"{problem}; look at it and run 'amplifier trust', or 'amplifier trust revoke {kind}' to work without it",
        )
        for kind in _kinds_of(composition)
        if (problem := composition.project.lost(kind))
    ]
    if _has_hooks(composition):
        problems += _lost_plugins()
    if problems:
        raise ConfigError(problems, subject="session's guards")


def require_recorded_guards(
    composition: Composition, store: ProjectSessions, record: SessionRecord
) -> None:
    """Refuse to open a stored session with fewer guards than it was made with; blocks.

    Whatever opens the session again, and however it found the composition: resuming may
    add a guard, and never drops one.

    Args:
        composition: what the session would be made of.
        store: where it is stored.
        record: its stored record; a fork has what was recorded of its origin.

    Raises:
        ConfigError: a hook, a limit or the configuration of a tool is missing or not
            as strict; names each, and the remedy.
    """
    if composition.replaces_recorded:
        return
    recorded = find_recorded(store, record)
    if recorded is None:
        return
    # Who answers guards nothing, and a key that is gone must not keep another provider
    # from answering.
    plan = {key: value for key, value in recorded.plan.items() if key != "providers"}
    if not recorded.is_literal:
        plan = fill_plan(plan, composition.settings)
    # What was allowed for one time is no part of what is recorded.
    present = without_allowances(composition.plan, composition.allowed_tools)
    lacking = find_lacking(conceal(plan), conceal(present))
    if lacking:
        lost = "the session was made with this guard, and would be resumed without it"
        problems = [*(Problem(path, lost) for path in lacking), _REMEDY]
        raise ConfigError(problems, subject=subject_of(record))


def _kinds_of(composition: Composition) -> list[str]:
    """Return the kinds of files of a project that the session would use as guards."""
    kinds = ["settings"]
    if composition.is_plan_file:  # settings do not change it
        kinds = []
    if _has_hooks(composition):
        return [*kinds, "hooks", "plugins"]
    return kinds


def _has_hooks(composition: Composition) -> bool:
    hooks = entries(composition.plan, "hooks")
    return any(entry.get("module") == _HOOKS for entry in hooks)


def _lost_plugins() -> Iterator[Problem]:
    """Yield the plugins that a person added and that are not what they agreed to, or are gone."""
    try:
        for name in lost_plugins():
            remedy = f"run 'amplifier plugin remove {name}', or add it again"
            yield Problem(f"plugin {name}", f"it was agreed to, and is gone; {remedy}")
        for plugin in own_plugins():
            if plugin.refusal:
                yield Problem(f"plugin {plugin.folder.name}", plugin.refusal)
    except (OSError, ValueError) as error:
        yield Problem("plugins", f"what you agreed to cannot be read: {error}")
