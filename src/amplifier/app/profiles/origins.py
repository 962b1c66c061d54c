"""Where each value of a plan comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["ValueOrigin", "flatten", "trace"]


@attrs.frozen(kw_only=True)
class ValueOrigin:
    """Which file a value of the plan comes from, and what it took the place of."""

    profile: str
    replaced: JSONValue = None


def flatten(value: object, path: str = "") -> Iterator[tuple[str, JSONValue]]:
    """Yield the values in a plan with their paths; a module of a list has its id."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from flatten(item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value and all(map(_is_module, value)):
        for item in value:
            label = item.get("instance_id") or item["module"]
            yield from flatten(item, f"{path}[{label}]")
    else:
        yield path, value  # type: ignore[misc]  # plans hold JSON data


def trace(
    origins: Mapping[str, ValueOrigin], before: object, after: object, name: str
) -> dict[str, ValueOrigin]:
    """Return the origins of a plan's values once a file was laid over it.

    Args:
        origins: those of the plan before.
        before: the plan before.
        after: the plan with the file: what differs is the file's.
        name: the file's name.
    """
    old = dict(flatten(before))
    traced: dict[str, ValueOrigin] = {}
    for path, value in flatten(after):
        # A file that repeats a value takes nothing's place: the origin stays with who
        # said it first.
        if path in origins and old[path] == value:
            traced[path] = origins[path]
        else:
            traced[path] = ValueOrigin(profile=name, replaced=old.get(path))
    return traced


def _is_module(entry: object) -> bool:
    return isinstance(entry, Mapping) and "module" in entry
