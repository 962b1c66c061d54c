"""How DBOS stores values: as JSON, never as pickles, which run what whoever can write the database likes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from dbos import Serializer
from dbos._serialization import (  # the one that no configuration takes away
    DBOSDefaultSerializer,
)

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["JSONSerializer", "pickles_refused"]


class JSONSerializer(Serializer):
    """Writes values as JSON, and an error as its text."""

    def serialize(self, data: object) -> str:
        """Return the text of a value."""
        return json.dumps(data, default=repr)

    def deserialize(self, serialized_data: str) -> JSONValue:
        """Return the value of a text."""
        value: JSONValue = json.loads(serialized_data)
        return value

    def name(self) -> str:
        """Return what DBOS stores beside each value."""
        return "amplifier_json"


@contextmanager
def pickles_refused() -> Iterator[None]:
    """Let DBOS read no pickle in a block.

    A row says of itself how its values are written, and DBOS reads a pickle where it says so, whatever serializer it
    was given: whoever can write a row would run what they like on every worker.
    """
    read = DBOSDefaultSerializer.deserialize
    DBOSDefaultSerializer.deserialize = _refuse  # type: ignore[method-assign]  # nothing else stands before it
    try:
        yield
    finally:
        DBOSDefaultSerializer.deserialize = read  # type: ignore[method-assign]  # likewise


def _refuse(serialized_data: str) -> NoReturn:
    raise ValueError(f"it is a pickle of {len(serialized_data)} characters, not JSON")
