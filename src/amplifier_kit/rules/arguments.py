"""Arguments named by a path into JSON data: `mode`, `options.force`, `edits[0].text`, `edits[*].text`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from amplifier_kit.rules.truth import Truth
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["argument_truth", "read_argument_path"]

_STEP: Final = r"([^.\[\]]+)|\[(\*|\d+)\]"


def read_argument_path(text: str) -> tuple[str | int | None, ...]:
    """Split a path into keys and indices; `None` stands for each item of a list.

    Raises:
        ValueError: it is no such path.
    """
    if not re.fullmatch(r"[^.\[\]]+(?:\.[^.\[\]]+|\[(?:\*|\d+)\])*", text):
        raise ValueError(
            f"{text!r} is no path to an argument; write it as mode, options.force or edits[*].text"
        )
    steps = re.finditer(_STEP, text)
    return tuple(
        step[1] if step[1] is not None else None if step[2] == "*" else int(step[2])
        for step in steps
    )


def argument_truth(
    path: tuple[str | int | None, ...],
    wanted: JSONValue,
    arguments: Mapping[str, JSONValue],
    *,
    every: bool,
) -> Truth:
    """Tell whether what stands at a path is the wanted value, or one of a list of them; types are not bent.

    Args:
        path: where to look.
        wanted: the value, or a list of values.
        arguments: the call's arguments.
        every: whether all values must be wanted ones, or any.
    """
    values = list(_at(arguments, path))
    choices: Sequence[JSONValue] = (wanted,)
    if isinstance(wanted, (list, tuple)):
        choices = wanted
    found = (
        Truth.of(any(_is_same(value, choice) for choice in choices)) for value in values
    )
    if values:
        return Truth.combine(found, every=every)
    return Truth.NO


def _at(value: JSONValue, path: Sequence[str | int | None]) -> Iterator[JSONValue]:
    if not path:
        yield value
        return
    step, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        if isinstance(step, str) and step in value:
            yield from _at(value[step], rest)
    elif isinstance(value, (list, tuple)):
        items = value
        if step is not None:
            items = value[step : step + 1] if isinstance(step, int) else ()
        for item in items:
            yield from _at(item, rest)


def _is_same(value: JSONValue, wanted: JSONValue) -> bool:
    """Compare, `true` unequal to `1`: to Python they are equal."""
    if isinstance(value, bool) is not isinstance(wanted, bool):
        return False
    return value == wanted
