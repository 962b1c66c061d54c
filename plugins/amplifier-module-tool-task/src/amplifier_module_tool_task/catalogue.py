"""The agents as a model sees them: a list of names with one line each, and full descriptions on demand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Final

from amplifier_kit.open_data import as_list, as_object
from amplifier_kit.trust.untrusted import without_marks
from amplifier_module_tool_task.truncation import first_sentence, shortened
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["catalogue", "details", "fitting"]

_LINE: Final = 100
_NAME: Final = 80
_DETAILS: Final = 4_000
_MAX_FITTING: Final = 8
_WORD: Final = re.compile(r"\w{3,}")


def catalogue(plans: Mapping[str, object], limit: int) -> str:
    """Write the list of agents: with a line each, with names alone, or with the names that fit.

    The same agents give the same text.

    Args:
        plans: the agents' partial plans by name.
        limit: characters that the list may take.
    """
    # Names come from files of others: one must not look like several, or like marks.
    names = [without_marks(" ".join(name.split()))[:_NAME] for name in plans]
    if not names:
        return "There are no agents."
    said = [first_sentence(_description(plan), _LINE) for plan in plans.values()]
    lines = "\n".join(
        f"- {name}: {line}" if line else f"- {name}"
        for name, line in zip(names, said, strict=True)
    )
    if len(lines) <= limit:
        return lines
    listed = ", ".join(names)
    if len(listed) <= limit:
        return f"{listed} (action 'describe' says more)"
    ends = accumulate(len(name) + 2 for name in names)
    fitting = [name for name, end in zip(names, ends, strict=True) if end - 2 <= limit]
    return f"{', '.join(fitting)} and {len(names) - len(fitting)} more (action 'describe' finds and describes them)"


def _description(plan: object) -> str:
    """Return what an agent's partial plan says of it, without what a person would not see."""
    said = as_object(plan).get("description")
    if isinstance(said, str):
        return without_marks(said)
    return ""


def details(name: str, plan: object) -> JSONObject:
    """Say all that there is to say of one agent."""
    data: JSONObject = {
        "agent": without_marks(name),
        "description": shortened(_description(plan), _DETAILS)
        or "It has no description.",
    }
    parts = as_object(plan)
    for key in ("tools", "providers"):
        if modules := _modules(parts.get(key)):
            data[key] = modules
    return data


def fitting(plans: Mapping[str, object], work: str) -> list[JSONValue]:
    """Describe the agents that fit a piece of work best: those whose words occur in it, else the first ones."""
    wanted = set(_WORD.findall(work.casefold()))

    def score(name: str) -> int:
        in_name = len(wanted & set(_WORD.findall(name.casefold())))
        return 2 * in_name + len(
            wanted & set(_WORD.findall(_description(plans[name]).casefold()))
        )

    scores = {name: score(name) for name in plans}
    # Stable: agents that fit equally well stay in the order of their names.
    best = sorted(plans, key=lambda name: -scores[name])[:_MAX_FITTING]
    if any(scores.values()):
        best = [name for name in best if scores[name]]
    return [details(name, plans[name]) for name in best]


def _modules(value: object) -> list[JSONValue]:
    named = (
        entry.get("module") if isinstance(entry, Mapping) else entry
        for entry in as_list(value)
    )
    return [name for name in named if isinstance(name, str)]
