"""A call's five arguments, and the same checks written by hand: the floor of checking them.

Standard library only, as everything that a peer's interpreter imports from here.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Final

__all__ = ["ARGUMENTS", "TEXT", "check_by_hand", "sample_of"]

TIMES: Final = 500

OPTIONS: Final = {"deep": True, "ratio": 0.5, "label": "x"}
ARGUMENTS: Final = {
    "query": "weather in oslo",
    "limit": 10,
    "tags": ["a", "b", "c"],
    "options": OPTIONS,
    "note": None,
}
"""The arguments as a program has them."""

TEXT: Final = (
    '{"query": "weather in oslo", "limit": 10, "tags": ["a", "b", "c"],'
    ' "options": {"deep": true, "ratio": 0.5, "label": "x"}, "note": null}'
)
"""The arguments as a model writes them."""


def sample_of(step: Callable[[], object]) -> Callable[[], float]:
    """Return what takes one sample of a step, in seconds a step."""

    def sample() -> float:
        started = process_time()
        for _ in range(TIMES):
            step()
        return (process_time() - started) / TIMES

    return sample


def check_by_hand() -> bool:
    """Check the arguments as one would without a schema."""
    options, tags, note = ARGUMENTS["options"], ARGUMENTS["tags"], ARGUMENTS.get("note")
    return (
        type(ARGUMENTS["query"]) is str
        and type(ARGUMENTS["limit"]) is int
        and type(tags) is list
        and all(type(tag) is str for tag in tags)
        and type(options) is dict
        and type(options["deep"]) is bool
        and type(options["ratio"]) is float
        and type(options["label"]) is str
        and (note is None or type(note) is str)
    )
