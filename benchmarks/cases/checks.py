"""Checking a call's arguments against its tool's schema."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final

import attrs

from amplifier_sdk import JSONValue, tool
from amplifier_sdk.arguments import ArgumentSchema, read_arguments
from benchmarks.pairing import Effort, paired
from benchmarks.rows import Row, figure

__all__ = ["checks"]

TIMES: Final = 500


@attrs.frozen(kw_only=True)
class Options:
    """How to search."""

    deep: bool
    ratio: float
    label: str


@tool
async def search(query: str, limit: int, tags: list[str], options: Options, note: str | None = None) -> str:
    """Search for something."""
    return query


ARGUMENTS: Final[dict[str, JSONValue]] = {
    "query": "weather in oslo",
    "limit": 10,
    "tags": ["a", "b", "c"],
    "options": {"deep": True, "ratio": 0.5, "label": "x"},
    "note": None,
}
TEXT: Final = (
    '{"query": "weather in oslo", "limit": 10, "tags": ["a", "b", "c"],'
    ' "options": {"deep": true, "ratio": 0.5, "label": "x"}, "note": null}'
)


def checks(backend: str, effort: Effort) -> list[Row]:
    """Five parameters, one of them a record: read, check and bind, against the same checks written by hand."""
    schema = ArgumentSchema(search.input_schema, search.name)

    def whole() -> object:
        arguments = read_arguments(TEXT).values
        return search.signature.bind(arguments) if schema.problem(arguments) is None else None

    steps: dict[str, Callable[[], object]] = {
        "checking five arguments": lambda: schema.problem(ARGUMENTS),
        "reading them from JSON": lambda: read_arguments(TEXT),
        "reading, checking and binding them": whole,
    }
    rows = []
    for what, step in steps.items():
        result = paired(_sample(step), _sample(_by_hand), effort)
        rows.append(figure(what, result.subject, f"{result.ratio:.3g}× checks by hand", unit=" µs"))
    return rows


def _sample(step: Callable[[], object]) -> Callable[[], float]:
    def sample() -> float:
        started = perf_counter()
        for _ in range(TIMES):
            step()
        return (perf_counter() - started) / TIMES

    return sample


def _by_hand() -> bool:
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
