"""What pydantic and msgspec take for the same five arguments: from a model's text to typed values, strictly."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import msgspec
import pydantic

from benchmarks.arguments import TEXT, check_by_hand, sample_of
from benchmarks.pairing import Effort, paired
from benchmarks.rows import Row, figure


class ModelOptions(pydantic.BaseModel):  # type: ignore[explicit-any]  # its own base class
    """How to search."""

    deep: bool
    ratio: float
    label: str


class ModelArguments(pydantic.BaseModel):  # type: ignore[explicit-any]  # its own base class
    """The arguments, as agent libraries on pydantic make them of a signature."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True)

    query: str
    limit: int
    tags: list[str]
    options: ModelOptions
    note: str | None = None


class StructOptions(msgspec.Struct, forbid_unknown_fields=True):
    """How to search."""

    deep: bool
    ratio: float
    label: str


class StructArguments(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments."""

    query: str
    limit: int
    tags: list[str]
    options: StructOptions
    note: str | None = None


def main() -> None:
    """Measure each and print the rows as JSON; the first argument says for how many seconds each figure."""
    effort = Effort(seconds=float(sys.argv[1]))
    decode = msgspec.json.Decoder(StructArguments).decode
    steps: dict[str, Callable[[], object]] = {
        "pydantic: reading and checking five arguments": lambda: (
            ModelArguments.model_validate_json(TEXT)
        ),
        "msgspec: reading and checking five arguments": lambda: decode(TEXT),
        "json.loads, which checks nothing, as llm does": lambda: json.loads(TEXT),
    }
    print(json.dumps([_row(what, step, effort) for what, step in steps.items()]))


def _row(what: str, step: Callable[[], object], effort: Effort) -> Row:
    result = paired(sample_of(step), sample_of(check_by_hand), effort)
    return figure(
        what, result.subject, f"{result.ratio:.3g}× checks by hand", unit=" µs"
    )


if __name__ == "__main__":
    main()
