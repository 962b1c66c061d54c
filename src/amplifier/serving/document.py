"""The OpenAPI document of a server."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Final

from amplifier.serving.operations import EVENT_STREAM, Operation
from amplifier.serving.schema import ERROR_SCHEMA, EVENT_SCHEMAS
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["document_of"]

_COMMON: Final = (400, 401, 403, 404, 429, 500)
_WITH_BODY: Final = (408, 413, 415, 422)
_WORDS: Final = {
    200: "It is done",
    201: "It is open",
    202: "It is accepted",
    204: "There is nothing more",
    400: "The request cannot be read",
    401: "No known token",
    403: "The token, or a page of this origin, may not",
    404: "There is no such thing for this token",
    408: "The body was too slow",
    409: "A turn runs, or the session was closed",
    413: "The body is too large",
    415: "The body is no JSON, or its media are not of a kind that models take",
    422: "The body does not fit",
    429: "More than is allowed",
    500: "The server failed",
    502: "The model cannot be reached",
    503: "The server is full or ends",
}

_JSON: Final = "application/json"


def document_of(title: str, operations: Iterable[Operation]) -> JSONObject:
    """Describe operations, and who may ask for them."""
    paths: dict[str, JSONObject] = {}
    for operation in operations:
        path = paths.setdefault(operation.path, {})
        path[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version("amplifier")},
        "paths": dict(paths),
        "security": [{"bearer": []}],
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                **_events(),
                "Error": {
                    "type": "object",
                    "properties": {"error": ERROR_SCHEMA},
                    "required": ["error"],
                },
            },
        },
    }


def _events() -> JSONObject:
    """Return the schema of an event, and those of all kinds."""
    kinds: JSONObject = {
        f"{name}_event": schema for name, schema in EVENT_SCHEMAS.items()
    }
    refs = [{"$ref": f"#/components/schemas/{name}"} for name in kinds]
    return {**kinds, "Event": {"oneOf": refs}}


def _operation(operation: Operation) -> JSONObject:
    text = operation.endpoint.__doc__ or ""
    statuses = [*_COMMON, *operation.errors]
    if operation.body is not None:
        statuses += _WITH_BODY
    responses: JSONObject = {
        str(status): _error(status) for status in sorted(set(statuses))
    }
    for status, schema in operation.answers.items():
        responses[str(status)] = _answer(status, schema, operation.media_type)
    if operation.streamed is not None:
        described = _answer(200, operation.answers.get(200))
        content = described.setdefault("content", {})
        assert isinstance(content, dict)
        content[EVENT_STREAM] = {"schema": operation.streamed}
        responses["200"] = described
    result: JSONObject = {
        "summary": text.partition("\n")[0].strip(),
        "operationId": operation.endpoint.__name__,
        "responses": responses,
    }
    parameters = _parameters(operation)
    if parameters:
        result["parameters"] = parameters
    if operation.body is not None:
        is_required = bool(operation.body.get("required"))
        body = {"schema": operation.body}
        result["requestBody"] = {"required": is_required, "content": {_JSON: body}}
    return result


def _parameters(operation: Operation) -> list[JSONObject]:
    names = re.findall(r"{(\w+)}", operation.path)
    text: JSONObject = {"type": "string", "minLength": 1}
    places: list[JSONObject] = [
        {"name": name, "in": "path", "required": True, "schema": text} for name in names
    ]
    headers: list[JSONObject] = [
        {"name": name, "in": "header", "schema": schema}
        for name, schema in operation.headers.items()
    ]
    queries: list[JSONObject] = [
        {"name": name, "in": "query", "schema": schema}
        for name, schema in operation.parameters.items()
    ]
    return [*places, *headers, *queries]


def _answer(
    status: int, schema: JSONObject | None, media_type: str = _JSON
) -> dict[str, JSONValue]:
    described: dict[str, JSONValue] = {"description": _WORDS[status]}
    if schema is not None:
        described["content"] = {media_type: {"schema": schema}}
    return described


def _error(status: int) -> JSONObject:
    return _answer(status, {"$ref": "#/components/schemas/Error"})
