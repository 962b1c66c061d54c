"""A module's configuration is read strictly, and every problem is told at once."""

from __future__ import annotations

import dataclasses
import enum
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import attrs
import pytest

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
    port: int = attrs.field(default=80, validator=[attrs.validators.ge(1), attrs.validators.le(65535)])


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
    config: dict[str, object] = {"servers": (server,), "path": Path("a"), "mode": Mode.SLOW}

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
        ({"mode": "quick"}, "mode: expected 'fast' or 'slow', got a string (\"quick\")"),
        ({"level": "mid"}, "level: expected 'low' or 'high', got a string (\"mid\")"),
        ({"path": 3}, "path: expected a path, got an integer (3)"),
        ({"tags": "abc"}, 'tags: expected an array, got a string ("abc")'),
        ({"tags": "12"}, 'tags: expected an array, got a string ("12")'),
        ({"tags": ["a", 2]}, "tags[1]: expected a string, got an integer (2)"),
        ({"servers": [{"host": "h"}, {"prt": 1, "host": "h"}]}, "servers[1].prt: unknown; did you mean 'port'?"),
        ({"servers": [{}]}, "servers[0].host: missing; expected a string"),
        ({"servers": [{"host": "h", "port": 0}]}, "servers[0].port: 'port' must be >= 1: 0"),
        ({"by_name": {"a b": {"host": 1}}}, 'by_name["a b"].host: expected a string, got an integer (1)'),
        ({"spare": {"host": "h", "port": 70000}}, "spare.port: 'port' must be <= 65535: 70000"),
        ({"bottom": 11}, "bottom is at most top; got 11"),
    ],
    ids=str,
)
def test_a_problem_has_its_path_and_its_remedy(config: JSONObject, problem: str) -> None:
    assert problems_of(Settings, config) == [problem]


def test_every_problem_is_told_at_once() -> None:
    assert problems_of(Settings, {"nam": 1, "ratio": "x", "servers": [{}], "mode": 3}) == [
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
    assert problems_of(Settings, {"api_key": "sk-12345"}) == ["api_key: not valid (not shown)"]


def test_the_validators_of_limits_speak_with_their_path() -> None:
    assert problems_of(Limits, {"iterations": 0, "tool_timeout": -1}) == [
        "iterations: iterations is a whole number above 0; got 0",
        "tool_timeout: tool_timeout is a number of seconds above 0; got -1.0",
    ]


def test_a_class_with_a_field_that_nothing_can_fill_is_an_error_of_its_author() -> None:
    broken = attrs.make_class("Broken", {"raw": attrs.field(type=bytes)})

    with pytest.raises(TypeError, match=r"bytes \(at Broken\.raw\) has no JSON form"):
        read_config(broken, {"raw": "x"}, subject="x")


def test_reading_a_configuration_loads_no_library() -> None:
    program = (
        "import sys, attrs\n"
        "from amplifier_sdk.configuration import read_config\n"
        "from amplifier_sdk.limits import Limits\n"
        "read_config(Limits, {'iterations': 3}, subject='x')\n"
        "assert not {'cattrs', 'jsonschema_rs', 'json_repair', 'structlog'} & set(sys.modules)\n"
    )

    subprocess.run([sys.executable, "-c", program], check=True)
