"""Checking a call's arguments against its tool's schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

import attrs

from amplifier_sdk import tool
from amplifier_sdk.arguments import ArgumentSchema, read_arguments
from benchmarks.arguments import ARGUMENTS, TEXT, check_by_hand, sample_of
from benchmarks.pairing import Effort, paired
from benchmarks.rows import Row, figure

if TYPE_CHECKING:
    from amplifier_sdk.jsontypes import JSONObject

__all__ = ["checks"]

GARBLED: Final = TEXT.replace('"', "'").replace("true", "True").replace("null", "None")
"""The arguments in Python's spelling, which has one reading."""


@attrs.frozen(kw_only=True)
class Options:
    """How to search."""

    deep: bool
    ratio: float
    label: str


@tool
async def search(
    query: str, limit: int, tags: list[str], options: Options, note: str | None = None
) -> str:
    """Search for something."""
    return query


def checks(backend: str, effort: Effort) -> list[Row]:
    """Five parameters, one of them a record: read, check and bind, against the same checks written by hand."""
    schema = ArgumentSchema(search.input_schema, search.name)
    arguments = cast("JSONObject", ARGUMENTS)
    wrong: JSONObject = {**arguments, "limit": "ten"}

    def whole() -> object:
        values = read_arguments(TEXT).values
        return search.signature.bind(values) if schema.problem(values) is None else None

    steps: dict[str, Callable[[], object]] = {
        "checking five arguments": lambda: schema.problem(arguments),
        "reading them from JSON": lambda: read_arguments(TEXT),
        "reading, checking and binding them": whole,
        "reading them from Python's spelling": lambda: read_arguments(GARBLED),
        "saying what is wrong with one of them": lambda: schema.problem(wrong),
    }
    rows = []
    for what, step in steps.items():
        result = paired(sample_of(step), sample_of(check_by_hand), effort)
        rows.append(
            figure(
                what, result.subject, f"{result.ratio:.3g}× checks by hand", unit=" µs"
            )
        )
    return rows
