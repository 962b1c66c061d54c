"""What a mounted module says of itself: a tool's name and schema, a hook's handlers, a provider's info."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from amplifier.validation.checks import CHECKS
from amplifier.validation.report import CheckResult
from amplifier_sdk.chat import ProviderInfo
from amplifier_sdk.contracts import Provider, Tool
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["check_members"]

_CALLABLE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def check_members(kind: str, instances: Mapping[str, object]) -> Iterator[CheckResult]:
    """Check every mounted instance of a module; each check gives one result that names whom it concerns.

    Args:
        kind: the module's type.
        instances: what it mounted, by name.
    """
    for check_id, find in _CHECKS_OF.get(kind, {}).items():
        wrong = [
            (f"{name}: {problem}", is_error)
            for name, one in instances.items()
            for problem, is_error in find(one)
        ]
        check = CHECKS[check_id]
        message = "; ".join(text for text, _ in wrong)
        if any(is_error for _, is_error in wrong):
            yield check.error(message)
        else:
            yield check.warning(message) if wrong else check.passed()


_Problems = Iterator[tuple[str, bool]]
"""What is wrong, and whether the module cannot be used like this."""


def _tool_name(tool: object) -> _Problems:
    assert isinstance(tool, Tool)
    # the strictest of the large vendors takes no other names
    if not _CALLABLE_NAME.fullmatch(tool.name):
        yield f"the name {tool.name!r} is not 1 to 64 letters, digits, _ and -", True


def _tool_description(tool: object) -> _Problems:
    assert isinstance(tool, Tool)
    if not tool.description.strip():
        yield "the description is empty", False


def _tool_schema(tool: object) -> _Problems:
    schema = getattr(tool, "input_schema", None)
    if schema is None and callable(get_schema := getattr(tool, "get_schema", None)):
        schema = get_schema()
    if not schema:
        yield "there is no schema, so the model must guess the arguments", False
    elif not isinstance(schema, Mapping):
        yield f"the schema is a {type(schema).__name__}, not a mapping", True
    elif (problem := _misfit(schema)) is not None:
        yield problem, True
    elif schema.get("type") != "object":
        yield "the schema's type is not 'object'", True
    else:
        properties = schema.get("properties")
        silent = [
            name
            for name, part in (
                properties.items() if isinstance(properties, Mapping) else ()
            )
            if isinstance(part, Mapping)
            and "$ref" not in part
            and not part.get("description")
        ]
        if silent:
            yield f"the schema describes no {', '.join(map(str, silent))}", False


def _misfit(schema: Mapping[str, JSONValue]) -> str | None:
    """Say why a schema is not valid JSON Schema 2020-12, with the place in it."""
    import jsonschema_rs  # modules of the other types have no schema

    try:
        # tuples and other mappings do for a model, and not for the checker
        plain = json.loads(json.dumps(schema, allow_nan=False))
    except (TypeError, ValueError) as error:
        return f"the schema is no JSON data: {error}"
    if (
        not isinstance(dialect := plain.setdefault("$schema", _DIALECT), str)
        or dialect.rstrip("#") != _DIALECT
    ):
        return f"the schema is written for {dialect!r}, not for 2020-12"
    try:
        jsonschema_rs.meta.validate(plain)
        # the meta schema does not see a reference that leads nowhere
        jsonschema_rs.validator_for(plain, offline=True)
    except ValueError as error:
        path = "/".join(map(str, getattr(error, "instance_path", ())))
        return f"the schema is not valid at /{path}: {getattr(error, 'message', error)}"
    return None


def _provider_info(provider: object) -> _Problems:
    assert isinstance(provider, Provider)
    try:
        info: object = provider.get_info()
    except Exception as error:  # whatever foreign code raises is the finding
        yield f"get_info raised {type(error).__name__}: {error}", True
        return
    if not isinstance(info, ProviderInfo):
        yield f"get_info returned a {type(info).__name__}, not a ProviderInfo", True
    elif not info.id or not info.display_name:
        yield "the info lacks an id or a display_name", True


def _handler(handler: object) -> _Problems:
    assert callable(handler)
    try:
        inspect.signature(handler).bind("tool:pre", {})
    except TypeError as error:
        yield f"it cannot be called with an event's name and its data: {error}", True


_CHECKS_OF: Final[Mapping[str, Mapping[str, Callable[[object], _Problems]]]] = {
    "tool": {
        "tool.name": _tool_name,
        "tool.description": _tool_description,
        "tool.schema": _tool_schema,
    },
    "hook": {"hook.handlers": _handler},
    "provider": {"provider.info": _provider_info},
}
"""The checks of each instance of a type."""
