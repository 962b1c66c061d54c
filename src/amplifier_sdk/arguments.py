"""A model's arguments: text becomes an object, and the object is checked against the tool's schema.

Nothing here raises because of what a model wrote. What cannot be read or does not fit becomes a text that
the model can act on; nothing unreadable ever becomes an empty object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import attrs

from amplifier_sdk._reader.explanations import explain
from amplifier_sdk._reader.json_text import (
    RefusedJSONError,
    UnreadableError,
    object_of_text,
    plain_object,
)
from amplifier_sdk._reader.problems import path_text
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.values import Value

if TYPE_CHECKING:
    from jsonschema_rs import Validator

__all__ = ["ArgumentSchema", "Arguments", "read_arguments"]

_MAX_PROBLEMS: Final = 5
_MAX_SHARED: Final = 1024
_MAX_UNFOLDED: Final = 1_000_000
"""Schemas in a schema whose references are followed: a fifth of a second to check at worst, which nothing can end."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Arguments(Value):
    """What became of a model's argument text.

    `problem` says why the text could not be read, for the model to act on; `values` is empty then and
    must not be used. `repaired` says that the text was not JSON but had one reading only.
    """

    values: JSONObject = attrs.field(factory=dict)
    problem: str | None = None
    repaired: bool = False


def read_arguments(raw: str | bytes | Mapping[str, JSONValue]) -> Arguments:
    """Read a model's arguments; never raises.

    The exactly empty text is an empty object, since vendors send it for calls without arguments. Other
    text is read as strict JSON: no duplicate keys, no NaN or Infinity, no number beyond a float's range, no
    half of a surrogate pair, an object at the top, at most 128 deep and 10,000,000 characters or bytes long.

    Text of up to 64,000 characters that is not JSON is repaired when it has exactly one reading: a byte
    order mark before it, a Markdown fence around it, a comma before a closing bracket, strings in single
    quotes, unquoted keys, `True`, `False` and `None`, and raw line breaks inside strings. So is an object
    of any length that was encoded twice. The result is read as strictly as before. Everything else stays a
    problem: text that was cut off, a missing comma, a quote inside a string, words around the object, two
    objects.

    Args:
        raw: the text as the vendor sent it, or the object when the vendor's protocol carries one.
    """
    try:
        if isinstance(raw, Mapping):
            return Arguments(values=plain_object(raw))
        values, repaired = object_of_text(raw)
    except UnreadableError as error:
        return Arguments(problem=error.problem)
    except (RefusedJSONError, RecursionError) as error:
        return Arguments(problem=UnreadableError(str(error)).problem)
    return Arguments(values=values, repaired=repaired)


@attrs.define(eq=False, repr=False)
class ArgumentSchema:
    """A tool's schema, compiled on first use, and the wording of what does not fit it.

    A schema may come from a stranger: references to other documents are never fetched, and those within it may not
    make it a million times as large as it is.
    """

    schema: Mapping[str, JSONValue]
    tool_name: str
    _validator: Validator | None = attrs.field(default=None, init=False, repr=False)

    @classmethod
    def of(cls, schema: Mapping[str, JSONValue], tool_name: str) -> ArgumentSchema:
        """Return the one that everybody in the process shares who checks arguments of this tool."""
        found = _SHARED.get((id(schema), tool_name))
        if found is None or found.schema is not schema:
            if len(_SHARED) >= _MAX_SHARED:
                # sessions have few tools; who makes schemas without end fills no memory
                _SHARED.clear()
            found = _SHARED[id(schema), tool_name] = cls(schema, tool_name)
        return found

    def compile(self) -> Validator:
        """Return the compiled schema.

        Raises:
            ValueError: the schema is not valid JSON Schema; the message names the tool.
        """
        if self._validator is None:
            self._validator = _compile(self.schema, self.tool_name)
        return self._validator

    def problem(self, arguments: Mapping[str, JSONValue]) -> str | None:
        """Say what does not fit the schema, for the model to act on; `None` when all fits.

        Names each place, what is expected there and what was given; five places at most.

        Raises:
            ValueError: the schema itself is not valid; the message names the tool.
        """
        # one call less, as this runs before every call of a tool
        validator = self._validator or self.compile()
        try:
            if validator.is_valid(arguments):
                return None
            return self._wording(validator, arguments)
        except ValueError:
            # something is not of JSON's own types, such as a kind of str
            return self._problem_of_copy(validator, arguments)

    def _problem_of_copy(
        self, validator: Validator, arguments: Mapping[str, JSONValue]
    ) -> str | None:
        try:
            values = plain_object(arguments)
        except RefusedJSONError as error:
            return f"The arguments of {self.tool_name!r} are not JSON: {error}."
        if validator.is_valid(values):
            return None
        return self._wording(validator, values)

    def _wording(self, validator: Validator, arguments: Mapping[str, JSONValue]) -> str:
        lines: list[str] = []
        for error in validator.iter_errors(arguments):
            for path, message in explain(error, self.schema):
                line = f"- {path_text(path) or 'the arguments'}: {message}"
                # the members of a union may be refused for one and the same reason
                if line not in lines:
                    lines.append(line)
            if len(lines) > _MAX_PROBLEMS:
                lines[_MAX_PROBLEMS:] = ["- … and more"]
                break
        return "\n".join(
            [f"The arguments of {self.tool_name!r} do not fit its schema:", *lines]
        )


_SHARED: Final[dict[tuple[int, str], ArgumentSchema]] = {}
"""By the schema's identity and the tool's name; each holds its schema, so no other object takes its identity."""


@lru_cache(maxsize=256)
def _validator(schema: str) -> Validator:
    """Compile a schema, once for all sessions that have its tool."""
    import jsonschema_rs  # 25 ms that a process without tool calls need not spend

    # only who compiles a schema needs it
    from amplifier_sdk._reader.schema_size import unfolded_size

    read = json.loads(schema)
    try:
        is_large = unfolded_size(read) > _MAX_UNFOLDED
    except RecursionError as error:
        raise ValueError("its references lead on and on") from error
    if is_large:
        raise ValueError(
            f"its references make it a schema of more than {_MAX_UNFOLDED:,} schemas"
        )
    # whoever wrote the schema could else have this machine ask any server
    return jsonschema_rs.validator_for(read, offline=True)


def _compile(schema: Mapping[str, JSONValue], tool_name: str) -> Validator:
    try:
        return _validator(json.dumps(plain_object(schema)))
    except ValueError as error:
        reason = getattr(error, "message", None) or str(error)
        raise ValueError(
            f"The schema of tool {tool_name!r} is not valid JSON Schema: {reason}"
        ) from error
