"""What tools do outside the conversation: they read, write, run programs, use the network.

A tool says so in its attribute `effects`. Approval, what runs beside what, and whatever else treats tools by what they
do, look it up here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

__all__ = [
    "EFFECTS",
    "KNOWN_EFFECTS",
    "ONLY_READS",
    "Effect",
    "checked_effects",
    "effects_of",
    "read_only_of",
]

Effect: TypeAlias = Literal["read", "write", "exec", "network"]
"""What a tool does outside the conversation."""

EFFECTS: Final[tuple[Effect, ...]] = ("read", "write", "exec", "network")
"""All effects. `exec` is any program, which may do all the others."""

ONLY_READS: Final[frozenset[Effect]] = frozenset({"read"})
"""The effects of a tool that changes nothing and reaches nobody."""

KNOWN_EFFECTS: Final[Mapping[str, tuple[Effect, ...]]] = {
    "read_file": ("read",),
    "list_directory": ("read",),
    "glob": ("read",),
    "grep": ("read",),
    "write_file": ("write",),
    "edit_file": ("write",),
    "move": ("write",),
    "delete": ("write",),
    "bash": ("exec",),
    "web_fetch": ("network",),
    "web_search": ("network",),
}
"""What the tools of the module contracts do, by name; what a tool says of itself counts more."""


def checked_effects(declared: Iterable[str]) -> tuple[Effect, ...]:
    """Return effects in the order of `EFFECTS`, each once.

    Raises:
        ValueError: they are none, or other words.
    """
    # ("read") is a text: whoever forgets the comma must not declare letters
    if isinstance(declared, str):
        words = [declared]
    else:
        words = list(declared)
    unknown = [word for word in words if word not in EFFECTS]
    if unknown or not words or isinstance(declared, str):
        raise ValueError(
            f"effects are one or more of {', '.join(EFFECTS)}, as a tuple; got {declared!r}"
        )
    return tuple(effect for effect in EFFECTS if effect in words)


def effects_of(
    tool: object,
    *,
    name: str | None = None,
    configured: Mapping[str, Iterable[str]] | None = None,
) -> frozenset[Effect] | None:
    """Return what a tool does; `None` where nobody says it, and anything is possible.

    Args:
        tool: the tool, whose attribute `effects` counts first. One that is no collection of effects says nothing,
            and no name stands in for it.
        name: the name it is mounted under, by which it is known where it says nothing.
        configured: what an application says of tools by name, before what `KNOWN_EFFECTS` says.
    """
    declared: object = getattr(tool, "effects", None)
    if declared is None and name is not None:
        declared = (configured or {}).get(name, KNOWN_EFFECTS.get(name))
    if not isinstance(declared, (tuple, list, set, frozenset)):
        return None
    try:
        return frozenset(checked_effects(declared))
    except (ValueError, TypeError):
        # a misspelt effect is no promise that the tool has none
        return None


def read_only_of(tool: object) -> bool | None:
    """Tell whether a tool changes nothing: what its `read_only` says, else what follows from its effects.

    One that only reads changes nothing; one that writes or runs programs does; of one that uses the network
    nothing follows, for such calls take their time beside each other.
    """
    declared: object = getattr(tool, "read_only", None)
    if declared is not None:
        if isinstance(declared, bool):
            return declared
        return None
    effects = effects_of(tool)
    if effects is None or "network" in effects:
        return None
    return effects == ONLY_READS
