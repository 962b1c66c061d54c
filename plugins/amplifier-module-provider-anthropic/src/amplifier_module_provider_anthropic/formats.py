"""The form that an answer's text must have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from amplifier_module_provider_anthropic.losses import Losses
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["JSON_INSTRUCTION", "output_format", "wants_json"]

JSON_INSTRUCTION: Final = "Answer with one JSON object and nothing else."
"""The instruction for a request that wants JSON without a schema."""

_SCHEMAS_BY_NAME: Final = frozenset({"properties", "$defs", "definitions"})
_SCHEMAS_IN_ORDER: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMAS: Final = frozenset({"items", "not"})


def output_format(request: ChatRequest, losses: Losses) -> JSONObject | None:
    """Return the form that the answer's text must have, as the API takes it; `None` for free text."""
    form = request.response_format or {}
    if wants_json(request):
        losses.add(
            "JSON",
            "text that was asked to be JSON",
            "the API needs a schema to make sure of JSON",
        )
    if form.get("type") != "json_schema":
        return None
    nested = form.get("json_schema")
    # OpenAI nests the schema one level deeper; requests come in either form.
    schema = (nested if isinstance(nested, Mapping) else form).get("schema")
    if isinstance(schema, Mapping):
        return {"type": "json_schema", "schema": _closed(schema)}
    return None


def wants_json(request: ChatRequest) -> bool:
    """Tell whether a request wants JSON of no certain schema."""
    return request.response_format is not None and request.response_format.get(
        "type"
    ) in ("json", "json_object")


def _closed(schema: Mapping[str, JSONValue]) -> JSONObject:
    # The API takes no object that may have further properties, and a schema that does not say means that it may.
    whole = {key: _closed_in(key, value) for key, value in schema.items()}
    kind = whole.get("type")
    kinds = [kind] if isinstance(kind, str) else kind
    if isinstance(kinds, Sequence) and "object" in kinds:
        whole.setdefault("additionalProperties", False)
    return whole


def _closed_in(key: str, value: JSONValue) -> JSONValue:
    if key in _SCHEMAS_BY_NAME and isinstance(value, Mapping):
        return {
            name: _closed(one) if isinstance(one, Mapping) else one
            for name, one in value.items()
        }
    if key in _SCHEMAS and isinstance(value, Mapping):
        return _closed(value)
    if (
        key in _SCHEMAS_IN_ORDER
        and isinstance(value, Sequence)
        and not isinstance(value, str)
    ):
        return [_closed(one) if isinstance(one, Mapping) else one for one in value]
    return value
