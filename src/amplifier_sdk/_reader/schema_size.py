"""How large a schema is when all its references are followed.

References share definitions, so that a few lines can say "twice the next" forty times over: a check would take
longer than anybody waits, and nothing could end it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote, urldefrag, urljoin

import attrs

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["unfolded_size"]

_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
_DEFINED: Final = frozenset({"$defs", "definitions"})
_BY_NAME: Final = _DEFINED | {
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
}
_DATA: Final = frozenset({"const", "default", "enum", "examples"})


def unfolded_size(schema: Mapping[str, JSONValue]) -> int:
    """Return how many schemas a schema is made of when each reference is replaced by what it means.

    Schemas that refer to each other count once, all together: how often they are applied depends on what is checked.

    Raises:
        RecursionError: it refers on and on, further than can be followed.
    """
    # the keyword got its `$` after draft 4
    unfolding = _Unfolding("id" if "draft-04" in str(schema.get("$schema")) else "$id")
    unfolding.name(schema, "")
    return unfolding.size(schema, "")


@attrs.define(eq=False)
class _Unfolding:
    """Counts one schema.

    Args:
        own: the keyword by which a part says its own address.
    """

    own: str
    _named: dict[str, tuple[JSONValue, str]] = attrs.field(factory=dict)
    _sizes: dict[int, int] = attrs.field(factory=dict)
    _earliest: dict[int, int] = attrs.field(factory=dict)
    _open: dict[int, int] = attrs.field(factory=dict)

    def name(self, schema: JSONValue, base: str) -> None:
        """Note the addresses of a schema and of its parts."""
        if not isinstance(schema, Mapping):
            return
        base = self._base(schema, base)
        self._named.setdefault(base, (schema, base))
        for key in _ANCHORS:
            self._named.setdefault(f"{base}#{schema.get(key)}", (schema, base))
        for part in _parts(schema):
            self.name(part, base)

    def size(self, schema: JSONValue, base: str) -> int:
        """Return the size of a schema that stands below a base address; 0 while it is counted further up."""
        if not isinstance(schema, Mapping):
            return 1
        if id(schema) not in self._earliest:
            self._count(schema, self._base(schema, base))
        return self._sizes.get(id(schema), 0)

    def _count(self, schema: Mapping[str, JSONValue], base: str) -> None:
        """Count a schema, and with it all that lead to each other: they are one, however often they do.

        Source: R. Tarjan, Depth-first search and linear graph algorithms, 1972.
        """
        place = self._earliest[id(schema)] = len(self._earliest)
        self._open[id(schema)] = 1
        for part, its_base in self._next(schema, base):
            self._open[id(schema)] += self.size(part, its_base)
            if id(part) in self._open:
                self._earliest[id(schema)] = min(
                    self._earliest[id(schema)], self._earliest[id(part)]
                )
        if self._earliest[id(schema)] == place:
            group: dict[int, int] = {}
            while id(schema) not in group:
                group.update([self._open.popitem()])  # the latest
            self._sizes.update(dict.fromkeys(group, sum(group.values())))

    def _next(
        self, schema: Mapping[str, JSONValue], base: str
    ) -> Iterator[tuple[JSONValue, str]]:
        # definitions count where they are referred to, as often as they are
        for part in _parts(
            {key: value for key, value in schema.items() if key not in _DEFINED}
        ):
            yield part, base
        for reference in map(schema.get, _REFERENCES):
            if isinstance(reference, str):
                yield self._meant(reference, base)

    def _base(self, schema: Mapping[str, JSONValue], base: str) -> str:
        own = schema.get(self.own)
        if isinstance(own, str):
            return urldefrag(urljoin(base, own)).url
        return base

    def _meant(self, reference: str, base: str) -> tuple[JSONValue, str]:
        """Find what a reference means; nothing where that is not in the schema."""
        if reference.startswith("#"):
            address, fragment = (base, reference[1:])
        else:
            address, fragment = urldefrag(urljoin(base, reference))
        nothing = (None, address)
        if fragment and not fragment.startswith("/"):
            return self._named.get(f"{address}#{unquote(fragment)}", nothing)
        place, base = self._named.get(address, nothing)
        for part in unquote(fragment).split("/")[1:]:
            step = part.replace("~1", "/").replace("~0", "~")
            if isinstance(place, list):
                if step.isdecimal() and int(step) < len(place):
                    place = place[int(step)]
                else:
                    place = None
            elif isinstance(place, Mapping):
                place = place.get(step)
            else:
                place = None
        return place, base


def _parts(schema: Mapping[str, JSONValue]) -> Iterator[JSONValue]:
    """Yield the schemas in a schema."""
    for key, value in schema.items():
        if key in _BY_NAME and isinstance(value, Mapping):
            yield from value.values()
        elif key not in _DATA:
            yield from value if isinstance(value, list) else (value,)
