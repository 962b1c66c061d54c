"""In which order steps are left out: the oldest first, or what matters least."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from amplifier_kit.compaction.pieces import RESULT_ROLES, is_prompt
from amplifier_sdk.messages import MessageDict

__all__ = ["Order", "by_importance", "oldest_first"]

Order: TypeAlias = Callable[
    [Sequence[MessageDict], Sequence[Sequence[int]]], list[Sequence[int]]
]
"""Puts steps, given by their places in the messages, into the order in which they are left out."""

DECISION: Final = 2.0
ERROR: Final = 2.0
REFERENCE: Final = 2.0
QUESTION: Final = 1.0
RECENCY: Final = 3.0
"""What the newest step has above the oldest."""

MANY_REFERENCES: Final = 3
RECENT: Final = 0.25
"""The newest part of the messages, in which references are looked for."""

_DECISIONS: Final = re.compile(
    r"\b(decid|decision|must|never|always|instead of|agreed|prefer|important|because|conclu|requirement)",
    re.IGNORECASE,
)
_ERRORS: Final = re.compile(
    r"\b(error|exception|traceback|failed|failure|denied|refused)\b", re.IGNORECASE
)
_RUNS: Final = re.compile(r"[\w./-]+")


def oldest_first(
    _: Sequence[MessageDict], steps: Sequence[Sequence[int]]
) -> list[Sequence[int]]:
    """Leave the steps in the order of the conversation."""
    return list(steps)


def by_importance(
    messages: Sequence[MessageDict], steps: Sequence[Sequence[int]]
) -> list[Sequence[int]]:
    """Put the least important steps first; among equals the oldest.

    A step matters for what it decides, for errors that it met, for a person's words in it, for files and names that
    the newest messages speak of again, and for being recent.
    """
    recent = messages[len(messages) - int(len(messages) * RECENT) :]
    spoken_of = {name for message in recent for name in _names(message)}
    scored = [(_score(messages, step, spoken_of), step[0], step) for step in steps]
    return [step for _, _, step in sorted(scored, key=lambda item: item[:2])]


def _score(
    messages: Sequence[MessageDict], step: Sequence[int], spoken_of: set[str]
) -> float:
    score = RECENCY * step[-1] / len(messages)
    said = [messages[place] for place in step]
    if any(
        _DECISIONS.search(_text(message))
        for message in said
        if message.get("role") not in RESULT_ROLES
    ):
        score += DECISION
    if any(_ERRORS.search(_text(message)) for message in said):
        score += ERROR
    if any(map(is_prompt, said)):
        score += QUESTION
    names = {name for message in said for name in _names(message)}
    return (
        score
        + REFERENCE * min(len(names & spoken_of), MANY_REFERENCES) / MANY_REFERENCES
    )


def _names(message: MessageDict) -> set[str]:
    """Return the paths, modules and identifiers in a message: what a later one refers to it by."""
    runs = {run.rstrip("./-") for run in _RUNS.findall(_text(message))}
    return {run for run in runs if not {".", "/", "_"}.isdisjoint(run[:-1])}


def _text(message: MessageDict) -> str:
    text = str(message.get("content"))
    if "tool_calls" in message:
        return f"{text} {message['tool_calls']}"
    return text
