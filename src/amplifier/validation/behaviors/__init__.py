"""What is true of every good module of a type, as checks that run anywhere.

`behaviors` lists them, `check_behavior` runs one on a `Subject`. The command line runs them with
`amplifier module validate --behavioral`, pytest through `amplifier.testing.conformance`.
"""

from __future__ import annotations

from amplifier.validation.behaviors.behavior import (
    Behavior,
    BehaviorFailed,
    NotApplicable,
    Outcome,
    check_behavior,
)
from amplifier.validation.behaviors.subject import (
    Around,
    Case,
    HookSamples,
    ProviderSamples,
    Samples,
    Subject,
    ToolSamples,
)

__all__ = [
    "Around",
    "Behavior",
    "BehaviorFailed",
    "Case",
    "HookSamples",
    "NotApplicable",
    "Outcome",
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
    from amplifier.validation.behaviors._suites import SUITES  # the checks are imported when they are asked for

    if kind not in SUITES:
        raise ValueError(f"There are no behaviours for the type {kind!r}; known: {', '.join(SUITES)}")
    return tuple(behavior for suite in SUITES[kind] for behavior in suite.behaviors)
