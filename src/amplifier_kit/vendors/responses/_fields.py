"""Reading JSON that a vendor sent: what is not of the wanted type is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["mapping", "mappings", "text"]


def text(source: Mapping[str, JSONValue], key: str) -> str | None:
    """Return a text, or `None`."""
    value = source.get(key)
    if isinstance(value, str):
        return value
    return None


def mapping(source: Mapping[str, JSONValue], key: str) -> Mapping[str, JSONValue]:
    """Return an object, or an empty one."""
    value = source.get(key)
    if isinstance(value, Mapping):
        return value
    return {}


def mappings(
    source: Mapping[str, JSONValue], key: str
) -> Iterable[Mapping[str, JSONValue]]:
    """Return the objects of a list; what else stands in it is left out."""
    value = source.get(key)
    if not isinstance(value, Sequence) or isinstance(value, str):
        return ()
    return (item for item in value if isinstance(item, Mapping))
