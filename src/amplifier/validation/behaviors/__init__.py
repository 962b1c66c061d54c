"""What is true of every good module of a type, as checks that run anywhere.

`behaviors` lists them, `check_behavior` runs one on a `Subject`. The command line runs them with
`amplifier module validate --behavioral`, pytest through `amplifier.testing.conformance`.
"""

from __future__ import annotations

import importlib

from amplifier.validation.behaviors.behavior import (
    Behavior,
    BehaviorFailed,
    CheckOutcome,
    NotApplicable,
    check_behavior,
)
from amplifier.validation.behaviors.subject import (
    SAMPLES,
    Around,
    Case,
    HookSamples,
    ProviderSamples,
    Samples,
    Subject,
    ToolSamples,
)

__all__ = [
    "SAMPLES",
    "Around",
    "Behavior",
    "BehaviorFailed",
    "Case",
    "CheckOutcome",
    "HookSamples",
    "NotApplicable",
    "ProviderSamples",
    "Samples",
    "Subject",
    "ToolSamples",
    "behaviors",
    "check_behavior",
]


def behaviors(kind: str) -> tuple[Behavior, ...]:
    """Return the behaviours of a module type: those of every module first, then its own.

    Raises:
        ValueError: there are none for the type.
    """
    if kind not in SAMPLES:
        raise ValueError(
            f"There are no behaviours for the type {kind!r}; known: {', '.join(SAMPLES)}"
        )
    return (*_table("module"), *_table(kind))


def _table(kind: str) -> tuple[Behavior, ...]:
    """Import a table when it is asked for: a process checks the modules of one type."""
    # a name for each type, so that a table is imported like any other value
    table: tuple[Behavior, ...] = getattr(
        importlib.import_module(f"{__name__}._{kind}"), kind.upper()
    )
    return table
