"""Documents that people write: YAML 1.2 and JSON, read strictly into JSON data.

YAML has its core schema alone: `yes`, `010` and dates are text or plain numbers, tags and merge keys have no
meaning, keys are text. A key that stands twice, a value that JSON cannot hold, and a file that grows without
bounds through its aliases are errors with line and column.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Final, NoReturn, Protocol, TypeAlias

import yaml
from yaml import CSafeLoader

from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_VALUES",
    "DocumentError",
    "find_line",
    "find_lines",
    "named_errors",
    "parse_yaml",
    "read_document",
    "read_mapping",
    "read_text",
    "yaml_text",
]

MAX_BYTES: Final = 4_000_000
"""How many bytes a file may hold."""

MAX_DEPTH: Final = 100
"""How deep lists and mappings may nest."""

MAX_VALUES: Final = 100_000
"""How many values a document may hold, each alias counted with all it stands for."""

_TOO_DEEP: Final = f"it nests deeper than {MAX_DEPTH} levels"
_CORE: Final = "tag:yaml.org,2002:"
_SCALARS: Final[Mapping[str, tuple[str, str]]] = {
    "null": (r"~|null|Null|NULL|", "~nN"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
}
"""The plain scalars of YAML 1.2 that are no text: their pattern, and the characters they begin with."""


class _Mark(Protocol):
    """A position, counted from 0, in the classes of either of PyYAML's parsers."""

    line: int
    column: int


class _CoreLoader(CSafeLoader):
    """A loader that knows the scalars of YAML 1.2 and no others."""

    yaml_implicit_resolvers = {}  # noqa: RUF012  # PyYAML keeps its table in the class


for _name, (_pattern, _first) in _SCALARS.items():
    _CoreLoader.add_implicit_resolver(
        f"{_CORE}{_name}", re.compile(rf"(?:{_pattern})\Z"), [*_first]
    )
_CoreLoader.add_implicit_resolver(f"{_CORE}null", re.compile(r"\Z"), [""])


class _CoreDumper(yaml.SafeDumper):
    """A writer that leaves without quotes what no reader takes for anything but text."""

    # of YAML 1.1 as well: not everybody reads 1.2
    yaml_implicit_resolvers = {  # noqa: RUF012  # PyYAML keeps its table in the class
        first: [
            *yaml.SafeDumper.yaml_implicit_resolvers.get(first, ()),
            *_CoreLoader.yaml_implicit_resolvers.get(first, ()),
        ]
        for first in {
            *yaml.SafeDumper.yaml_implicit_resolvers,
            *_CoreLoader.yaml_implicit_resolvers,
        }
    }

    def ignore_aliases(self, _: object) -> bool:
        return True


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar(f"{_CORE}str", text, style=style)


_CoreDumper.add_representer(str, _write_text)


class DocumentError(Exception):
    """A document is not well formed.

    Args:
        place: where, as line and column counted from 1; empty when it is no one place.
        message: what is wrong there.
    """

    def __init__(self, place: str, message: str) -> None:
        self.place = place
        self.message = message
        super().__init__(f"{place}: {message}")


@contextmanager
def named_errors(subject: str) -> Iterator[None]:
    """Let what a document is not be an error of what it stands in.

    Raises:
        ConfigError: the document is no UTF-8, or not well formed; names the subject, line and column.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8 at byte {error.start}; save it as UTF-8"
        raise ConfigError.of("", problem, subject=subject) from error
    except DocumentError as error:
        problems = [Problem(error.place, error.message)]
        # whoever catches it asks whether the file is missing
        raise ConfigError(problems, subject=subject) from error.__cause__ or error


def read_document(path: Path) -> JSONValue:
    """Read a file: JSON when its name ends in `.json`, else YAML. An empty YAML file is `None`.

    Raises:
        ConfigError: the file cannot be read, or is not what its name says; names line and column.
    """
    text = read_text(path)
    with named_errors(f"file {str(path)!r}"):
        if path.suffix == ".json":
            return _read_json(text)
        return parse_yaml(text)


def read_text(path: Path) -> str:
    """Read a file of UTF-8 text, without its byte order mark; what is no file of at most 4 MB is not waited for.

    Raises:
        ConfigError: the file cannot be read, is no regular file, is too large, or is not UTF-8.
    """
    with named_errors(f"file {str(path)!r}"):
        try:
            data = _read_bytes(path)
        except OSError as error:
            why = f"it cannot be read: {error.strerror or error}"
            raise DocumentError("", why) from error
        except ValueError as error:  # a NUL or half a surrogate pair in the path
            why = f"no file can be called so: {error}"
            raise DocumentError("", why) from error
        return data.decode("utf-8-sig")


def _read_bytes(path: Path) -> bytes:
    # A pipe without a writer would keep `open` for ever.
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise DocumentError("", "it is no regular file")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DocumentError("", f"it is larger than {MAX_BYTES} bytes")
    return data


def read_mapping(path: Path) -> JSONObject:
    """Read a file that holds a mapping; an empty one holds an empty mapping.

    Raises:
        ConfigError: as `read_document`, or the file holds something else.
    """
    document = read_document(path)
    if document is None or isinstance(document, dict):
        return document or {}
    raise ConfigError.of(
        "",
        f"a mapping; got {type(document).__name__}",
        subject=f"file {str(path)!r}",
    )


def yaml_text(value: JSONValue) -> str:
    """Write JSON data as YAML, which `parse_yaml` reads back as it was."""
    return yaml.dump(
        value,
        Dumper=_CoreDumper,
        sort_keys=False,
        allow_unicode=True,
        width=float("inf"),
    )


def parse_yaml(text: str) -> JSONValue:
    """Read a text as YAML; an empty one is `None`.

    Raises:
        DocumentError: the text is not what it should be.
    """
    try:
        _check_depth(text)
        node = yaml.compose(text, Loader=_CoreLoader)
    # before its base class: this one knows the place
    except yaml.MarkedYAMLError as error:
        what = " ".join(filter(None, (error.context, error.problem)))
        raise DocumentError(
            _place(error.problem_mark or error.context_mark), what
        ) from error
    except yaml.YAMLError as error:
        raise DocumentError("", " ".join(str(error).split())) from error
    if node is None:
        return None
    return _NodeReader().read(node, 1)


def find_line(text: str, path: Sequence[str | int]) -> int | None:
    """Return the line, counted from 1, on which a value of a YAML text begins, or as much of its path as there is.

    Args:
        text: a text that `parse_yaml` reads.
        path: the keys and indexes that lead to the value.
    """
    return find_lines(text, [path])[0]


def find_lines(text: str, paths: Iterable[Sequence[str | int]]) -> list[int | None]:
    """Return the line of each of several values, as `find_line` does; the text is read once."""
    root = yaml.compose(text, Loader=_CoreLoader)
    # by identity: nodes cannot be hashed by content, and live as long as the root
    # does
    known: dict[int, _Parts] = {}
    return [_line(root, path, known) for path in paths]


_Parts: TypeAlias = "dict[str | int, tuple[yaml.Node, yaml.Node]]"
"""What names each part of a node, and the part."""


def _line(
    node: yaml.Node | None, path: Sequence[str | int], known: dict[int, _Parts]
) -> int | None:
    line: int | None = None
    for part in path:
        if id(node) not in known:
            known[id(node)] = _parts(node)
        found = known[id(node)].get(part)
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line


def _parts(node: yaml.Node | None) -> _Parts:
    if isinstance(node, yaml.MappingNode):
        return {
            key.value: (key, value)
            for key, value in node.value
            if isinstance(key, yaml.ScalarNode)
        }
    if isinstance(node, yaml.SequenceNode):
        return dict(enumerate((item, item) for item in node.value))
    return {}


# -- JSON


def _read_json(text: str) -> JSONValue:
    try:
        value: JSONValue = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant
        )
    except json.JSONDecodeError as error:
        raise DocumentError(
            f"line {error.lineno}, column {error.colno}", error.msg
        ) from error
    except ValueError as error:  # a number of thousands of digits
        raise DocumentError("", str(error)) from error
    except RecursionError as error:
        raise DocumentError("", "it nests too deep") from error
    return value


def _object(pairs: list[tuple[str, JSONValue]]) -> JSONObject:
    result: JSONObject = {}
    for key, value in pairs:
        # JSON leaves it open which of two equal keys counts, so readers would
        # differ
        if key in result:
            raise DocumentError(
                "", f"key {key!r} stands twice in one object; keep one of them"
            )
        result[key] = value
    return result


def _constant(name: str) -> NoReturn:
    raise DocumentError("", f"{name} is no JSON number")


# -- YAML


def _check_depth(text: str) -> None:
    """Refuse deep nesting before nodes are composed: that recurses in C, without a limit."""
    depth = 0
    try:
        # events are read one by one, so that this needs no depth of its own
        for event in yaml.parse(text, Loader=CSafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > MAX_DEPTH:
                raise DocumentError(_place(event.start_mark), _TOO_DEEP)
    except yaml.MarkedYAMLError as error:
        # a bound of the parser's own, reached while it reads ahead
        if "nesting depth" not in str(error.problem):
            raise
        raise DocumentError(_place(error.problem_mark), _TOO_DEEP) from error


class _NodeReader:
    """Turns nodes into JSON data; a node that is named by aliases is read once for each of them."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def read(self, node: yaml.Node, depth: int) -> JSONValue:
        # each use of an alias counts anew: "billion laughs" are few nodes and
        # many values
        self._left -= 1
        if self._left < 0:
            raise _misfit(
                node,
                f"with its aliases the document holds more than {MAX_VALUES} values",
            )
        if depth > MAX_DEPTH:
            raise _misfit(
                node,
                f"with its aliases it nests deeper than {MAX_DEPTH} levels, or holds itself",
            )
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_CORE}map":
            return self._mapping(node, depth)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_CORE}seq":
            return [self.read(item, depth + 1) for item in node.value]
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        raise _misfit(node, f"tag {node.tag!r} has no meaning here; leave it out")

    def _mapping(self, node: yaml.MappingNode, depth: int) -> JSONObject:
        result: JSONObject = {}
        for key_node, value_node in node.value:
            if (
                not isinstance(key_node, yaml.ScalarNode)
                or key_node.tag != f"{_CORE}str"
            ):
                raise _misfit(key_node, "a key must be text; put it in quotes")
            key = key_node.value
            if key in result:
                raise _misfit(
                    key_node,
                    f"key {key!r} stands twice in one mapping; keep one of them",
                )
            result[key] = self.read(value_node, depth + 1)
        return result


def _scalar(node: yaml.ScalarNode) -> JSONValue:
    text: str = node.value
    match node.tag.removeprefix(_CORE):
        case "str":
            return text
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return _integer(node, text)
        case "float":
            return _number(node, text)
        case _:
            raise _misfit(node, f"tag {node.tag!r} has no meaning here; leave it out")


def _integer(node: yaml.ScalarNode, text: str) -> int:
    # not base 0: YAML 1.2 reads `010` as ten, and Python refuses it
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    try:
        return int(text, base)
    except ValueError as error:
        # thousands of digits, or a tag that the text does not fit
        raise _misfit(node, str(error)) from error


def _number(node: yaml.ScalarNode, text: str) -> float:
    try:
        number = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError as error:  # a tag that the text does not fit
        raise _misfit(node, str(error)) from error
    if not isfinite(number):
        raise _misfit(node, f"{text} is no JSON number; put it in quotes if it is text")
    return number


def _misfit(node: yaml.Node, message: str) -> DocumentError:
    return DocumentError(_place(node.start_mark), message)


def _place(mark: _Mark | None) -> str:
    assert mark is not None  # the parser gives one to all that it reads and refuses
    return f"line {mark.line + 1}, column {mark.column + 1}"
