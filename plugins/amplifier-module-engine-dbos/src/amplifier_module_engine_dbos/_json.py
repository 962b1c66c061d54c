"""How DBOS stores values: as JSON, never as pickles, which run what whoever can write the database likes."""

from __future__ import annotations

import json

from dbos import Serializer

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["JSONSerializer"]


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
