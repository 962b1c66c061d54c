"""A model's arguments: text becomes an object, and the object is checked against the tool's schema.

Nothing here raises because of what a model wrote. What cannot be read or does not fit becomes a text that
the model can act on; nothing unreadable ever becomes an empty object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from json.decoder import JSONDecoder
from math import isfinite
from typing import TYPE_CHECKING, Final, NoReturn

import attrs

from amplifier_sdk._wording import Path, any_of, path_text, type_text, unknown_key, value_text
from amplifier_sdk.jsontypes import JSONObject, JSONValue

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_REPAIRED", "ArgumentSchema", "Arguments", "read_arguments"]

MAX_BYTES: Final = 10_000_000
"""The longest argument text that is read, in bytes for bytes and in characters for text."""

MAX_DEPTH: Final = 128
"""How deep arrays and objects may nest."""

MAX_REPAIRED: Final = 64_000
"""The longest text that is repaired, in characters."""

_MAX_PROBLEMS: Final = 5
_TOO_DEEP: Final = f"they nest more than {MAX_DEPTH} deep"
_BOM: Final = "\ufeff"
_FENCE: Final = "```"
# Patterns stay text, compiled on first use. An escape that pairs with its other half is fine.
_SURROGATE: Final = (
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!(?<!\\)\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
# A string that nothing closes takes the rest of the text with it and leaves its quote.
_STRINGS: Final = r"""(?s:"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+'|(["']).*)"""
_PIECE: Final = (
    # What is JSON already, in one piece as long as possible.
    r"""(?s:(?P<plain>(?:[^"',A-Za-z_$]++|"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"|,(?!\s*[}\]]))++)"""
    r"""|(?P<double>"[^"\\]*+(?:\\.[^"\\]*+)*+")"""
    r"""|(?P<single>'[^'\\]*+(?:\\.[^'\\]*+)*+')"""
    r"""|(?P<comma>,)"""
    r"""|(?P<key>[A-Za-z_$][\w$]*+)(?=\s*:)"""
    r"""|(?P<word>[A-Za-z_$][\w$]*+)"""
    r"""|(?P<loose>["']))"""
)
_WORDS: Final[Mapping[str, str]] = {"True": "true", "False": "false", "None": "null"}
_LITERALS: Final = frozenset({*_WORDS, *_WORDS.values()})
_CONTROL: Final = r"[\x00-\x1f]"
_ODD: Final = r'[\\"\x00-\x1f]'
_SINGLE_PARTS: Final = r"""(?s:\\.)|["]"""


@attrs.frozen(kw_only=True)
class Arguments:
    """What became of a model's argument text.

    `problem` says why the text could not be read, for the model to act on; `values` is empty then and
    must not be used. `repaired` says that the text was not JSON but had one reading only.
    """

    values: JSONObject = attrs.field(factory=dict)
    problem: str | None = None
    repaired: bool = False


def read_arguments(raw: str | bytes | Mapping[str, JSONValue]) -> Arguments:
    """Read a model's arguments; never raises.

    The exactly empty text is an empty object, since vendors send it for calls without arguments. Other text is
    read as strict JSON: no duplicate keys, no NaN or Infinity, no number beyond a float's range, no
    half of a surrogate pair, an object at the top, at most `MAX_DEPTH` deep and `MAX_BYTES` long.

    Text that is not JSON is repaired when it has exactly one reading: a byte order mark before it, a Markdown
    fence around it, an object written as a JSON string (encoded twice), a comma before a closing bracket,
    strings in single quotes, unquoted keys, `True`, `False` and `None`, and raw line breaks inside strings.
    The result is read as strictly as before. Everything else stays a problem: text that was cut off, a
    missing comma, a quote inside a string, words around the object, two objects.

    Args:
        raw: the text as the vendor sent it, or the object when the vendor's protocol carries one.
    """
    if isinstance(raw, Mapping):
        return _from_mapping(raw)
    try:
        return _from_text(raw)
    except _UnreadableError as error:
        return Arguments(problem=error.problem)


class _UnreadableError(Exception):
    """The text cannot be read; `problem` is the text for the model."""

    def __init__(self, detail: str) -> None:
        self.problem = f"The arguments could not be read: {detail}. Send one JSON object."
        super().__init__(self.problem)


class _LooseQuoteError(Exception):
    """A quote opens a string that nothing closes."""


class _RefusedError(ValueError):
    """Valid JSON that is refused all the same: a repair would not help."""


def _from_mapping(raw: Mapping[str, JSONValue]) -> Arguments:
    try:
        return Arguments(values=_plain_object(raw, ()))
    except (_RefusedError, RecursionError) as error:
        return Arguments(problem=_UnreadableError(str(error)).problem)


def _from_text(raw: str | bytes) -> Arguments:
    if len(raw) > MAX_BYTES:
        raise _UnreadableError(f"they are {len(raw):,} long, and at most {MAX_BYTES:,} are read")
    text = _decoded(raw)
    if not text:
        return Arguments()
    try:
        value = _strict(text)
    except json.JSONDecodeError as error:
        return Arguments(values=_repaired(text, error), repaired=True)
    return Arguments(values=_object(value), repaired=isinstance(value, str))


def _decoded(raw: str | bytes) -> str:
    if isinstance(raw, str):
        return raw
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _UnreadableError(f"byte {error.start} is not UTF-8") from None


def _object(value: JSONValue) -> JSONObject:
    """Return the object, or the one that a JSON string holds: some vendors encode twice."""
    if isinstance(value, str):
        try:
            value = _strict(value)
        except json.JSONDecodeError:
            raise _UnreadableError("expected an object, got a string") from None
    if isinstance(value, dict):
        return value
    raise _UnreadableError(f"expected an object, got {type_text(value)}")


def _strict(text: str) -> JSONValue:
    """Read strict JSON.

    Raises:
        JSONDecodeError: it is not JSON, so that a repair may be tried.
        _UnreadableError: it is JSON, but refused.
    """
    try:
        value: JSONValue = _DECODER.decode(text)
        if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(value):
            raise _RefusedError(_TOO_DEEP)
        if _may_hold_half_a_pair(text):
            value = _plain(value, ())
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise _UnreadableError(_TOO_DEEP) from None
    except _RefusedError as error:
        raise _UnreadableError(str(error)) from None
    except ValueError:  # Python refuses integers of thousands of digits
        raise _UnreadableError("they hold an integer with too many digits") from None
    return value


def _may_hold_half_a_pair(text: str) -> bool:
    if "\\u" in text and re.search(_SURROGATE, text):
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _pairs(pairs: list[tuple[str, JSONValue]]) -> JSONObject:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]  # the idiom
        raise _RefusedError(f"the key {twice!r} stands twice in one object")
    return result


def _constant(name: str) -> NoReturn:
    raise _RefusedError(f"{name} is not JSON; numbers are finite")


def _finite(text: str) -> float:
    value = float(text)
    if isfinite(value):
        return value
    raise _RefusedError(f"the number {text:.40} is beyond what a float holds")


_DECODER: Final = JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_finite)


def _is_deep(value: JSONValue) -> bool:
    """Tell whether containers nest deeper than the limit, going down level by level."""
    level: list[JSONValue] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else _items(container))
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return False
    return True


def _items(value: JSONValue) -> list[JSONValue]:
    return value if isinstance(value, list) else []


def _plain(value: object, path: Path) -> JSONValue:
    """Copy a value as plain JSON data.

    Raises:
        _RefusedError: something inside is not JSON, not storable as UTF-8, or nested too deep.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _storable(value, path)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if isfinite(value):
            return float(value)
        raise _RefusedError(f"{_at(path)} is {value}, and JSON's numbers are finite")
    if len(path) >= MAX_DEPTH and isinstance(value, (Mapping, list, tuple)):
        raise _RefusedError(_TOO_DEEP)
    if isinstance(value, Mapping):
        return _plain_object(value, path)
    if isinstance(value, (list, tuple)):
        return [_plain(item, (*path, index)) for index, item in enumerate(value)]
    raise _RefusedError(f"{_at(path)} is {value_text(value)}, which JSON cannot hold")


def _plain_object(value: Mapping[object, object] | Mapping[str, JSONValue], path: Path) -> JSONObject:
    return {_key(key, path): _plain(item, (*path, str(key))) for key, item in value.items()}


def _key(key: object, path: Path) -> str:
    if isinstance(key, str):
        return _storable(key, path)
    raise _RefusedError(f"{_at(path)} has the key {key!r:.40}, and JSON's keys are strings")


def _storable(text: str, path: Path) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(text[error.start]):04x}"
            raise _RefusedError(
                f"{_at(path)} holds half of a surrogate pair, {half}; write the character whole"
            ) from None
    return text if type(text) is str else str.__str__(text)


def _at(path: Path) -> str:
    return path_text(path) or "the object"


def _repaired(text: str, error: json.JSONDecodeError) -> JSONObject:
    """Read text that is not JSON but has one reading.

    Raises:
        _UnreadableError: it has none, or was cut off.
    """
    body = _unwrapped(text)
    if body != text:
        try:
            return _object(_strict(body))
        except json.JSONDecodeError as inner:
            error = inner
    if len(body) > MAX_REPAIRED:
        raise _cut(body) if _ends_inside(body, error) else _not_json(body, error)
    try:
        return _object(_strict(re.sub(_PIECE, _respell, body)))
    except (json.JSONDecodeError, _LooseQuoteError):
        raise _cut(body) if _is_cut(body, error) else _not_json(body, error) from None


def _unwrapped(text: str) -> str:
    """Take a byte order mark and a Markdown fence away."""
    body = text.removeprefix(_BOM).strip()
    if not body.startswith(_FENCE):
        return body
    opening, _, rest = body.partition("\n")
    language = opening.removeprefix(_FENCE).strip()
    return rest.removesuffix(_FENCE).strip() if not language or language.isalnum() else body


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Tell whether the text ends inside a bracket or a string that opened."""
    bare = re.sub(_STRINGS, r"\1", text)
    if bare.endswith(('"', "'")):
        # Either the last string was cut off, or some quote before it was not escaped.
        return _ends_inside(text, error) or not text.endswith("}")
    return bare.count("{") + bare.count("[") > bare.count("}") + bare.count("]")


def _ends_inside(text: str, error: json.JSONDecodeError) -> bool:
    """Tell whether the strict reader ran into the text's end."""
    return error.msg.startswith("Unterminated") or 0 < len(text) <= error.pos


def _cut(text: str) -> _UnreadableError:
    return _UnreadableError(
        f"the text was cut off: it ends after {len(text):,} characters, before the object is closed; "
        "if it was too long, split the work into smaller calls"
    )


def _respell(token: re.Match[str]) -> str:
    """Rewrite a token that JSON spells otherwise; a token has one spelling, so the text has one reading."""
    text = token[0]
    match token.lastgroup:
        case "double":
            return re.sub(_CONTROL, _escaped, text)
        case "single":
            if not re.search(_ODD, text):
                return f'"{text[1:-1]}"'
            requoted = re.sub(_SINGLE_PARTS, _requoted, text[1:-1])
            return f'"{re.sub(_CONTROL, _escaped, requoted)}"'
        case "comma":
            return ""
        case "key" if text not in _LITERALS:
            return f'"{text}"'
        case "loose":
            raise _LooseQuoteError
        case _:
            return _WORDS.get(text, text)


def _escaped(control: re.Match[str]) -> str:
    return f"\\u{ord(control[0]):04x}"


def _requoted(part: re.Match[str]) -> str:
    """Turn a single-quoted string's escapes into a double-quoted one's."""
    match part[0]:
        case "\\'":
            return "'"
        case '"':
            return '\\"'
        case other:
            return other


def _not_json(text: str, error: json.JSONDecodeError) -> _UnreadableError:
    if not text:
        return _UnreadableError("they are blank")
    near = text[max(0, error.pos - 20) : error.pos + 20]
    detail = error.msg[:1].lower() + error.msg[1:]
    return _UnreadableError(f"{detail} at line {error.lineno} column {error.colno}, near {json.dumps(near)}")


@attrs.define(eq=False)
class ArgumentSchema:
    """A tool's schema, compiled on first use, and the wording of what does not fit it.

    A schema may come from a stranger: references to other documents are never fetched.
    """

    schema: Mapping[str, JSONValue]
    tool_name: str
    _validator: Validator | None = attrs.field(default=None, init=False, repr=False)

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
        validator = self._validator or self.compile()
        try:
            return None if validator.is_valid(arguments) else self._wording(validator, arguments)
        except ValueError:  # something is not of JSON's own types, such as a kind of str
            return self._problem_of_copy(validator, arguments)

    def _problem_of_copy(self, validator: Validator, arguments: Mapping[str, JSONValue]) -> str | None:
        try:
            values = _plain_object(arguments, ())
        except _RefusedError as error:
            return f"The arguments of {self.tool_name!r} are not JSON: {error}."
        return None if validator.is_valid(values) else self._wording(validator, values)

    def _wording(self, validator: Validator, arguments: Mapping[str, JSONValue]) -> str:
        lines: list[str] = []
        for error in validator.iter_errors(arguments):
            for path, message in _explain(error, self.schema):
                line = f"- {path_text(path) or 'the arguments'}: {message}"
                if line not in lines:
                    lines.append(line)
            if len(lines) > _MAX_PROBLEMS:
                lines[_MAX_PROBLEMS:] = ["- … and more"]
                break
        return "\n".join([f"The arguments of {self.tool_name!r} do not fit its schema:", *lines])


def _compile(schema: Mapping[str, JSONValue], tool_name: str) -> Validator:
    import jsonschema_rs  # 25 ms that a process without tool calls need not spend

    try:
        return jsonschema_rs.validator_for(_plain_object(schema, ()), offline=True)
    except ValueError as error:
        reason = getattr(error, "message", None) or str(error)
        raise ValueError(f"The schema of tool {tool_name!r} is not valid JSON Schema: {reason}") from error


def _explain(error: ValidationError, schema: Mapping[str, JSONValue]) -> list[tuple[Path, str]]:
    """Word one validation error; a union's error is that of the member that was meant."""
    path: Path = tuple(error.instance_path)
    details = error.kind.as_dict()
    match error.kind.name:
        case "required":
            name = str(details["property"])
            return [((*path, name), f"missing{_wanted(error, schema, name)}")]
        case "additionalProperties" | "unevaluatedProperties":
            known = list(_properties(error, schema))
            return [((*path, str(name)), unknown_key(name, known)) for name in details["unexpected"]]
        case "anyOf" | "oneOf" if details.get("context"):
            return _explain_union(error, details["context"], schema)
        case _:
            return [(path, f"expected {_expectation(error)}, got {value_text(error.instance)}")]


def _explain_union(
    error: ValidationError, members: Sequence[Sequence[ValidationError]], schema: Mapping[str, JSONValue]
) -> list[tuple[Path, str]]:
    path = tuple(error.instance_path)
    # A member that took the outer form and refused only a part is the one meant.
    inside = [errors for errors in members if all(_is_about_parts(e, path) for e in errors)]
    if len(inside) == 1:
        return [line for e in inside[0] for line in _explain(e, schema)]
    outer = [_expectation(e) for errors in members for e in errors[:1] if not _is_about_parts(e, path)]
    expected = any_of(outer) or f"one of {len(members)} forms"
    return [(path, f"expected {expected}, got {value_text(error.instance)}")]


def _is_about_parts(error: ValidationError, path: Path) -> bool:
    return tuple(error.instance_path) != path or error.kind.name in ("required", "additionalProperties")


def _expectation(error: ValidationError) -> str:
    """Say what a keyword asks for, as the object of `expected`."""
    keyword, value = error.kind.name, error.kind.value
    match keyword:
        case "type":
            return any_of([_ARTICLES.get(name, name) for name in value])
        case "enum":
            return any_of([json.dumps(option) for option in value])
        case "const":
            return json.dumps(value)
        case _ if keyword in _PHRASES:
            phrase = _PHRASES[keyword].format(value)
            return phrase.removesuffix("s") if value == 1 else phrase
        case _:
            return f"a value that satisfies {keyword!r}"


def _properties(error: ValidationError, schema: Mapping[str, JSONValue]) -> Mapping[str, JSONValue]:
    """Return the properties of the object schema whose keyword failed."""
    place: JSONValue = schema
    for part in list(error.schema_path)[:-1]:
        if isinstance(place, Mapping):
            place = place.get(str(part))
        else:  # the keyword may stand in another document
            place = place[part] if isinstance(place, (list, tuple)) and isinstance(part, int) else None
    properties = place.get("properties") if isinstance(place, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def _wanted(error: ValidationError, schema: Mapping[str, JSONValue], name: str) -> str:
    """Say what a missing property should be, where its schema says so in one word."""
    wanted = _properties(error, schema).get(name)
    kind = wanted.get("type") if isinstance(wanted, Mapping) else None
    return f"; expected {_ARTICLES.get(kind, kind)}" if isinstance(kind, str) else ""


_ARTICLES: Final[Mapping[str, str]] = {
    "array": "an array",
    "boolean": "a boolean",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
_PHRASES: Final[Mapping[str, str]] = {
    "exclusiveMaximum": "less than {}",
    "exclusiveMinimum": "more than {}",
    "falseSchema": "nothing here",
    "format": "text of the format {}",
    "maxItems": "at most {} items",
    "maxLength": "at most {} characters",
    "maxProperties": "at most {} keys",
    "maximum": "at most {}",
    "minItems": "at least {} items",
    "minLength": "at least {} characters",
    "minProperties": "at least {} keys",
    "minimum": "at least {}",
    "multipleOf": "a multiple of {}",
    "pattern": "text that matches the pattern {}",
    "uniqueItems": "items that all differ",
}
