"""A module's configuration is read strictly, and every problem is told at once."""

from __future__ import annotations

import dataclasses
import enum
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import (
    Annotated,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    TypedDict,
    TypeVar,
)

import attrs
import pytest
from typing_extensions import TypeAliasType

from amplifier_sdk.configuration import read_config
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.limits import Limits


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


@attrs.frozen(kw_only=True)
class Server:
    host: str
    port: int = attrs.field(
        default=80, validator=[attrs.validators.ge(1), attrs.validators.le(65535)]
    )


def _below_top(instance: Settings, _: attrs.Attribute[int], value: int) -> None:
    if value > instance.top:
        raise ValueError(f"bottom is at most top; got {value}")


@attrs.frozen(kw_only=True)
class Settings:
    name: str = "n"
    api_key: str = attrs.field(default="", validator=attrs.validators.max_len(3))
    ratio: float = 0.5
    enabled: bool = False
    mode: Mode = Mode.FAST
    level: Literal["low", "high"] = "low"
    path: Path = Path()
    tags: tuple[str, ...] = ()
    servers: list[Server] = attrs.field(factory=list)
    by_name: Mapping[str, Server] = attrs.field(factory=dict)
    options: Mapping[str, JSONValue] = attrs.field(factory=dict)
    spare: Server | None = None
    top: int = 10
    bottom: int = attrs.field(default=0, validator=_below_top)


@attrs.frozen
class Needy:
    token: str


@attrs.frozen
class Refusing:
    size: int = 3

    def __attrs_post_init__(self) -> None:
        if self.size == 13:
            raise ValueError("size is not 13")


@dataclasses.dataclass
class Plain:
    size: int = 1


def problems_of(cls: type, config: JSONObject | None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read_config(cls, config, subject="configuration of x")
    assert caught.value.subject == "configuration of x"
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("config", [None, {}])
def test_no_configuration_is_every_default(config: JSONObject | None) -> None:
    assert read_config(Settings, config, subject="x") == Settings()
    assert read_config(Plain, config, subject="x") == Plain()


def test_every_kind_of_value_is_read() -> None:
    config: JSONObject = {
        "name": "m",
        "ratio": 1,
        "enabled": True,
        "mode": "slow",
        "level": "high",
        "path": "a/b",
        "tags": ["a", "b"],
        "servers": [{"host": "h", "port": 443}],
        "by_name": {"main": {"host": "h"}},
        "options": {"any": [{"thing": None}]},
        "spare": {"host": "s"},
    }

    assert read_config(Settings, config, subject="x") == Settings(
        name="m",
        ratio=1.0,
        enabled=True,
        mode=Mode.SLOW,
        level="high",
        path=Path("a/b"),
        tags=("a", "b"),
        servers=[Server(host="h", port=443)],
        by_name={"main": Server(host="h")},
        options={"any": [{"thing": None}]},
        spare=Server(host="s"),
    )


def test_values_that_are_ready_are_taken_as_they_are() -> None:
    server = Server(host="h")
    config: dict[str, object] = {
        "servers": (server,),
        "path": Path("a"),
        "mode": Mode.SLOW,
    }

    settings = read_config(Settings, config, subject="x")  # type: ignore[arg-type]  # an embedding program's own

    assert settings.servers == [server]
    assert settings.servers[0] is server
    assert settings == Settings(servers=[server], path=Path("a"), mode=Mode.SLOW)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"nam": "m"}, "nam: unknown; did you mean 'name'?"),
        ({"name": 3}, "name: expected a string, got an integer (3)"),
        ({"name": None}, "name: expected a string, got null"),
        ({"ratio": "0.5"}, 'ratio: expected a number, got a string ("0.5")'),
        ({"ratio": True}, "ratio: expected a number, got a boolean (true)"),
        ({"enabled": "false"}, 'enabled: expected a boolean, got a string ("false")'),
        ({"enabled": 1}, "enabled: expected a boolean, got an integer (1)"),
        ({"top": 3.9}, "top: expected an integer, got a number (3.9)"),
        ({"top": False}, "top: expected an integer, got a boolean (false)"),
        (
            {"mode": "quick"},
            "mode: expected 'fast' or 'slow', got a string (\"quick\")",
        ),
        ({"level": "mid"}, "level: expected 'low' or 'high', got a string (\"mid\")"),
        ({"path": 3}, "path: expected a path, got an integer (3)"),
        ({"tags": "abc"}, 'tags: expected an array, got a string ("abc")'),
        ({"tags": "12"}, 'tags: expected an array, got a string ("12")'),
        ({"tags": ["a", 2]}, "tags[1]: expected a string, got an integer (2)"),
        (
            {"servers": [{"host": "h"}, {"prt": 1, "host": "h"}]},
            "servers[1].prt: unknown; did you mean 'port'?",
        ),
        ({"servers": [{}]}, "servers[0].host: missing; expected a string"),
        ({"servers": [{"host": "h", "port": 0}]}, "servers[0].port: must be >= 1: 0"),
        (
            {"by_name": {"a b": {"host": 1}}},
            'by_name["a b"].host: expected a string, got an integer (1)',
        ),
        (
            {"spare": {"host": "h", "port": 70000}},
            "spare.port: must be <= 65535: 70000",
        ),
        ({"bottom": 11}, "bottom: is at most top; got 11"),
    ],
    ids=str,
)
def test_a_problem_has_its_path_and_its_remedy(
    config: JSONObject, problem: str
) -> None:
    assert problems_of(Settings, config) == [problem]


def test_every_problem_is_told_at_once() -> None:
    assert problems_of(
        Settings, {"nam": 1, "ratio": "x", "servers": [{}], "mode": 3}
    ) == [
        'ratio: expected a number, got a string ("x")',
        "mode: expected 'fast' or 'slow', got an integer (3)",
        "servers[0].host: missing; expected a string",
        "nam: unknown; did you mean 'name'?",
    ]


def test_the_error_reads_as_a_list() -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(Server, {"port": "80"}, subject="configuration of tool-x")

    assert str(caught.value) == (
        "The configuration of tool-x has 2 problems:\n"
        "  host: missing; expected a string\n"
        '  port: expected an integer, got a string ("80")'
    )
    assert caught.value.problems[0] == Problem("host", "missing; expected a string")


def test_what_an_empty_configuration_lacks_is_told() -> None:
    assert problems_of(Needy, None) == ["token: missing; expected a string"]


def test_a_class_may_refuse_as_a_whole() -> None:
    with pytest.raises(ConfigError, match="size is not 13") as caught:
        read_config(Refusing, {"size": 13}, subject="x")

    assert isinstance(caught.value.__cause__, ValueError)
    assert read_config(Refusing, {"size": 4}, subject="x") == Refusing(4)


def test_a_secret_is_not_shown() -> None:
    assert problems_of(Needy, {"token": 12345}) == [
        "token: expected a string, got something else (not shown: it may be a secret)"
    ]
    assert problems_of(Settings, {"api_key": "sk-12345"}) == [
        "api_key: not valid (not shown)"
    ]


def test_the_validators_of_limits_speak_with_their_path() -> None:
    assert problems_of(Limits, {"iterations": 0, "tool_timeout": -1}) == [
        "iterations: is a whole number above 0; got 0",
        "tool_timeout: is a number of seconds above 0; got -1.0",
    ]


def test_class_with_unfillable_field_is_authors_error() -> None:
    broken = attrs.make_class("Broken", {"raw": attrs.field(type=bytes)})

    with pytest.raises(TypeError, match=r"bytes \(at Broken\.raw\) has no JSON form"):
        read_config(broken, {"raw": "x"}, subject="x")


@pytest.mark.process
def test_an_empty_configuration_loads_no_library() -> None:
    program = (
        "import dataclasses, sys, attrs\n"
        "from amplifier_sdk.configuration import read_config\n"
        "from amplifier_sdk.limits import Limits\n"
        "more = dataclasses.field(default_factory=list)\n"
        "plain = dataclasses.make_dataclass('Plain', [('size', int, 3), ('more', list, more)])\n"
        "assert read_config(Limits, {}, subject='x') == Limits()\n"
        "assert read_config(plain, None, subject='x') == plain()\n"
        "assert not {'cattrs', 'jsonschema_rs', 'structlog'} & set(sys.modules)\n"
    )

    subprocess.run([sys.executable, "-c", program], check=True)


@attrs.frozen(kw_only=True)
class Mixed:
    """Single values, arrays and choices of them, and one field that holds a class of its own."""

    name: str
    size: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    ratio: float | None = None
    level: Literal["low", "high"] = "low"
    tags: tuple[str, ...] = ()
    pair: tuple[int, str] = (0, "")
    anything: JSONValue = None
    server: Server | None = None


@pytest.mark.parametrize(
    "config",
    [
        {
            "name": "n",
            "size": 3.0,
            "ratio": 1,
            "level": "high",
            "tags": ["a"],
            "pair": [1, "b"],
            "anything": {"a": [1]},
        },
        {"name": "n", "ratio": None, "tags": []},
        {"size": 2, "nam": "n"},
        {
            "name": 1,
            "size": True,
            "ratio": "1",
            "level": "mid",
            "tags": ["a", 1],
            "pair": [1],
            "sizes": 1,
        },
        {"name": "n", "size": 0},
    ],
)
def test_config_without_classes_in_it_is_read_as_one_with_them(
    config: JSONObject,
) -> None:
    """The second is read by the converter, the first without it."""
    others = {**config, "server": {"host": "h"}}

    assert _outcome(config) == _outcome(others)


def _outcome(config: JSONObject) -> Mixed | tuple[Problem, ...]:
    try:
        return attrs.evolve(read_config(Mixed, config, subject="settings"), server=None)
    except ConfigError as error:
        return error.problems


def test_a_dataclass_without_a_default_must_be_told() -> None:
    needy = dataclasses.make_dataclass("Needy", [("size", int)])

    assert problems_of(needy, {}) == ["size: missing; expected an integer"]


def _even(count: int) -> int:
    if count % 2:
        raise ValueError(f"an even number is wanted; got {count}")
    return count


@attrs.frozen
class Converted:
    """Every kind of check that attrs has."""

    tags: tuple[str, ...] = attrs.field(
        default=(), converter=tuple, validator=attrs.validators.min_len(1)
    )
    count: int = attrs.field(default=2, converter=_even)
    odd: int = attrs.field(default=1, validator=attrs.validators.in_([1, 3]))


def test_validators_see_what_converters_made() -> None:
    assert problems_of(Converted, {"tags": [], "odd": 2}) == [
        "tags: length must be >= 1: 0",
        "odd: must be in [1, 3] (got 2)",
    ]


def test_a_converter_that_refuses_is_told_with_its_field() -> None:
    assert problems_of(Converted, {"tags": ["a"], "count": 13}) == [
        "count: an even number is wanted; got 13"
    ]


def _ascii(text: str) -> str:
    text.encode("ascii")
    return text


@attrs.frozen
class Host:
    name: str = attrs.field(default="", converter=_ascii)


@attrs.frozen
class Port:
    name: str = ""
    port: int = 80

    def __attrs_pre_init__(self, name: str = "", port: int = 80) -> None:
        if not name and port != 80:
            raise ValueError("a port needs the name of its host")


def test_an_error_of_python_itself_is_told_whole() -> None:
    assert problems_of(Host, {"name": "g\u00fcn"}) == [
        (
            "name: 'ascii' codec can't encode character '\\xfc' in position 1: "
            "ordinal not in range(128)"
        )
    ]


def test_class_that_refuses_fields_together_names_no_field() -> None:
    assert problems_of(Port, {"port": 8}) == ["a port needs the name of its host"]


class Size(TypedDict):
    width: int
    unit: NotRequired[Literal["mm", "in"]]


@attrs.define
class Node:
    name: str
    children: list[Node] = attrs.field(factory=list)
    next: Node | None = None


UserId = NewType("UserId", str)
Rows = TypeAliasType("Rows", Sequence[Sequence[int]])


@attrs.frozen
class Shapes:
    size: Size | None = None
    sizes: Sequence[Size] = ()
    pair: tuple[int, str] = (1, "a")
    nothing: tuple[()] = ()
    names: frozenset[str] = frozenset()
    loose: list = attrs.field(factory=list)  # type: ignore[type-arg]  # as authors write it
    open: dict = attrs.field(factory=dict)  # type: ignore[type-arg]
    by_mode: dict[Mode, int] = attrs.field(factory=dict)
    text_first: list[str | Path] = attrs.field(factory=list)
    path_first: list[Path | str] = attrs.field(factory=list)
    id: UserId = UserId("u")
    rows: Rows = ()
    noted: Annotated[int, "a number"] = 0
    tree: Node | None = None
    anything: object = None
    _hidden: int = 0


@pytest.mark.parametrize(
    ("config", "values"),
    [
        ({"size": {"width": 3}}, {"size": {"width": 3}}),
        (
            {"sizes": [{"width": 3, "unit": "mm"}]},
            {"sizes": [{"width": 3, "unit": "mm"}]},
        ),
        ({"pair": [3, "x"], "nothing": []}, {"pair": (3, "x")}),
        ({"names": ["a", "a"]}, {"names": frozenset({"a"})}),
        (
            {"loose": [1, "a"], "open": {"a": [None]}},
            {"loose": [1, "a"], "open": {"a": [None]}},
        ),
        ({"by_mode": {"fast": 1}}, {"by_mode": {Mode.FAST: 1}}),
        (
            {"id": "me", "noted": 4, "anything": {"a": 1}},
            {"id": "me", "noted": 4, "anything": {"a": 1}},
        ),
        ({"rows": [[1], []]}, {"rows": [[1], []]}),
        ({"hidden": 4}, {"hidden": 4}),
        (
            {"tree": {"name": "a", "children": [{"name": "b"}], "next": {"name": "c"}}},
            {"tree": Node("a", [Node("b")], Node("c"))},
        ),
    ],
    ids=str,
)
def test_every_shape_of_value_is_read(
    config: JSONObject, values: dict[str, object]
) -> None:
    expected = Shapes(**values)  # type: ignore[arg-type]  # each is a field's

    assert read_config(Shapes, config, subject="x") == expected


def test_the_first_member_of_a_union_that_fits_is_taken() -> None:
    shapes = read_config(
        Shapes, {"text_first": ["a"], "path_first": ["a"]}, subject="x"
    )

    assert shapes.text_first == ["a"]
    assert shapes.path_first == [Path("a")]


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (
            {"size": {"width": "3"}},
            'size.width: expected an integer, got a string ("3")',
        ),
        ({"size": {"unit": "mm"}}, "size.width: missing; expected an integer"),
        (
            {"size": {"width": 1, "unit": "cm"}},
            "size.unit: expected 'mm' or 'in', got a string (\"cm\")",
        ),
        ({"size": 3}, "size: expected an object or null, got an integer (3)"),
        ({"sizes": {}}, "sizes: expected an array, got an object with 0 keys"),
        ({"pair": [1]}, "pair: expected an array of 2 items, got an array with 1 item"),
        ({"pair": ["1", "a"]}, 'pair[0]: expected an integer, got a string ("1")'),
        (
            {"nothing": [1]},
            "nothing: expected an array of 0 items, got an array with 1 item",
        ),
        ({"names": "ab"}, 'names: expected an array, got a string ("ab")'),
        ({"open": []}, "open: expected an object, got an array with 0 items"),
        (
            {"by_mode": {"medium": 1}},
            "by_mode.medium: expected 'fast' or 'slow', got a string (\"medium\")",
        ),
        ({"id": 3}, "id: expected a string, got an integer (3)"),
        ({"noted": True}, "noted: expected an integer, got a boolean (true)"),
        (
            {"tree": {"name": "a", "children": [{"nme": "b", "name": "b"}]}},
            "tree.children[0].nme: unknown; did you mean 'name'?",
        ),
        ({"_hidden": 4}, "_hidden: unknown; did you mean 'hidden'?"),
        ({3: 4}, '["3"]: unknown; the known keys are '),
    ],
    ids=str,
)
def test_a_shape_that_does_not_fit_is_told(config: JSONObject, problem: str) -> None:
    (reported,) = problems_of(Shapes, config)

    assert reported.startswith(problem)


T = TypeVar("T")


@attrs.frozen
class Box(Generic[T]):
    content: T


@attrs.frozen
class Unfillable:
    data: bytes = b""
    box: Box[int] | None = None
    more: list[Broken] = attrs.field(factory=list)


@attrs.frozen
class Broken:
    raw: complex = 0j


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"data": "x"}, r"bytes \(at Unfillable\.data\) has no JSON form"),
        (
            {"box": {"content": 3}},
            r"Box\[int\] \(at Unfillable\.box\) has no JSON form",
        ),
        (
            {"more": [{"raw": 1}]},
            r"complex \(at Unfillable\.more\.raw\) has no JSON form",
        ),
    ],
)
def test_a_field_that_nothing_can_fill_is_named_with_its_class(
    config: JSONObject, message: str
) -> None:
    assert read_config(Unfillable, {"more": []}, subject="x") == Unfillable()
    with pytest.raises(TypeError, match=message):
        read_config(Unfillable, config, subject="x")


@pytest.mark.parametrize("config", [{"size": 3}, {"size": 3, "server": {"host": "h"}}])
def test_validator_that_breaks_is_no_problem_of_configuration(
    config: JSONObject,
) -> None:
    def broken(_: object, attribute: attrs.Attribute[int], value: int) -> None:
        raise LookupError(f"{attribute.name} {value}")

    fields = {
        "size": attrs.field(type=int, validator=broken),
        "server": attrs.field(type=Server, default=None),
    }
    cls = attrs.make_class("Odd", fields)

    with pytest.raises(LookupError, match="size 3"):
        read_config(cls, config, subject="x")


class Bounds(NamedTuple):
    """What `annotated_types` and others put beside a type."""

    ge: object = None
    gt: object = None
    le: object = None
    lt: object = None
    multiple_of: object = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None


PERCENT: Final = Bounds(ge=0, le=100)
OPEN: Final = Bounds(gt=Decimal(0), lt=Decimal(1))
FEW: Final = Bounds(min_length=1, max_length=2)
LOWER: Final = Bounds(pattern="^[a-z]+$")


@attrs.frozen
class Bounded:
    share: Annotated[int | None, PERCENT, "in percent"] = None
    part: Annotated[Decimal, OPEN] = Decimal("0.5")
    even: Annotated[int, Bounds(multiple_of=2)] = 0
    names: Annotated[list[str], FEW] = attrs.field(factory=lambda: ["a"])
    word: Annotated[str, LOWER] = "a"
    lost: Annotated[object, PERCENT, FEW, LOWER] = None
    start: Annotated[datetime, Bounds(ge=datetime(2030, 1, 1, tzinfo=UTC))] | None = (
        None
    )
    wait: timedelta = timedelta(0)
    place: Place = (0, 0)  # type: ignore[assignment]  # never read


class Place(NamedTuple):
    x: int
    y: int = 0


def test_what_stands_beside_a_type_holds() -> None:
    config: JSONObject = {
        "share": 100,
        "part": "0.25",
        "even": 4,
        "names": ["a", "b"],
        "word": "abc",
        "start": "2030-01-01T00:00:00Z",
        "wait": "PT30S",
        "place": [3],
    }

    bounded = read_config(Bounded, config, subject="x")

    assert bounded == Bounded(
        share=100,
        part=Decimal("0.25"),
        even=4,
        names=["a", "b"],
        word="abc",
        start=datetime(2030, 1, 1, tzinfo=UTC),
        wait=timedelta(seconds=30),
        place=Place(3),
    )
    assert read_config(Bounded, {"share": None}, subject="x") == Bounded()


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"share": 101}, "share: expected at most 100, got an integer (101)"),
        ({"share": -1}, "share: expected at least 0, got an integer (-1)"),
        ({"share": "x"}, 'share: expected an integer or null, got a string ("x")'),
        ({"part": 0}, "part: expected more than 0, got an integer (0)"),
        ({"part": "1.0"}, 'part: expected less than 1, got a string ("1.0")'),
        ({"even": 3}, "even: expected a multiple of 2, got an integer (3)"),
        (
            {"names": []},
            "names: expected a length of at least 1, got an array with 0 items",
        ),
        (
            {"names": ["a", "b", "c"]},
            "names: expected a length of at most 2, got an array with 3 items",
        ),
        (
            {"word": "A"},
            'word: expected text that matches the pattern ^[a-z]+$, got a string ("A")',
        ),
        ({"lost": "a"}, 'lost: expected at least 0, got a string ("a")'),
        ({"lost": 3}, "lost: expected a length of at least 1, got an integer (3)"),
        (
            {"start": "2029-12-31T00:00:00Z"},
            "start: expected at least 2030-01-01 00:00:00+00:00, got a string",
        ),
        (
            {"wait": 30},
            "wait: expected a duration such as PT1H30M, got an integer (30)",
        ),
        (
            {"place": []},
            "place: expected an array of 1 to 2 items, got an array with 0 items",
        ),
    ],
    ids=str,
)
def test_a_value_beyond_what_stands_beside_its_type_is_told(
    config: JSONObject, problem: str
) -> None:
    (reported,) = problems_of(Bounded, config)

    assert reported.startswith(problem)


@attrs.frozen
class Numbered:
    id: Annotated[int, LOWER]


def test_what_no_text_fits_is_told_by_its_pattern() -> None:
    assert problems_of(Numbered, {"id": 3}) == [
        "id: expected text that matches the pattern ^[a-z]+$, got an integer (3)"
    ]


@pytest.mark.parametrize(
    ("message", "reported"),
    [
        ("size is too large", "size: is too large"),
        ("'size' must be >= 3: 1", "size: must be >= 3: 1"),
        ("Length of 'size' must be >= 1: 0", "size: length must be >= 1: 0"),
        ("sizes are too large", "size: sizes are too large"),
        ("Size and size differ", "size: Size and size differ"),
    ],
)
def test_a_validators_sentence_does_not_name_its_field_again(
    message: str, reported: str
) -> None:
    def refuse(_: object, attribute: attrs.Attribute[int], value: int) -> None:
        raise ValueError(message)

    cls = attrs.make_class(
        "Refusing", {"size": attrs.field(type=int, validator=refuse)}
    )

    assert problems_of(cls, {"size": 3}) == [reported]
