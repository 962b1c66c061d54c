"""What the module's configuration means, and what it refuses."""

from __future__ import annotations

import attrs
import pytest

from amplifier.testing import MockDisplaySystem, create_test_session
from amplifier_module_tool_mcp import McpConfig, ServerConfig, mount
from amplifier_module_tool_mcp.variables import MissingVariableError, expand
from amplifier_sdk.configuration import read_config
from amplifier_sdk.errors import ConfigError, OwnerTaskError
from amplifier_sdk.jsontypes import JSONValue


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({"type": "sse", "url": "https://a.example"}, "gave up"),
        ({"command": "x", "url": "https://a.example"}, "either a command or a url"),
        ({"type": "http", "command": "x"}, "does not go with command"),
        ({"type": "stdio", "url": "https://a.example"}, "does not go with url"),
        ({"url": "ftp://a.example"}, "http:// or https://"),
        ({"url": "https://a.example", "args": ["x"]}, "args does not go with url"),
        ({"command": "x", "headers": {"A": "b"}}, "headers does not go with command"),
        ({"command": "x", "call_timeout": 4000}, "at most 3600"),
        ({"command": "x", "comand": "y"}, "did you mean 'command'"),
    ],
    ids=[
        "sse",
        "both",
        "http",
        "stdio",
        "scheme",
        "args",
        "headers",
        "timeout",
        "unknown",
    ],
)
def test_a_server_that_makes_no_sense_is_refused(
    server: dict[str, JSONValue], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        read_config(McpConfig, {"servers": {"s": server}}, subject="test")


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in attrs.fields_dict(McpConfig)
        if name.endswith(("timeout", "_bytes"))
    ],
)
@pytest.mark.parametrize(
    "value", [0, -1, "10", True], ids=["zero", "negative", "text", "boolean"]
)
def test_every_limit_is_a_number_above_zero(name: str, value: JSONValue) -> None:
    with pytest.raises(ConfigError, match=name):
        read_config(McpConfig, {name: value}, subject="test")


def test_what_may_be_secret_is_not_in_text_of_configuration() -> None:
    shown = repr(
        ServerConfig(
            url="https://u:secret@a.example", headers={"Authorization": "secret"}
        )
    )

    assert "secret" not in shown


def test_default_stands_for_variable_that_is_empty_or_missing() -> None:
    written = ServerConfig(
        command="x",
        args=("${EMPTY}", "${EMPTY:-a}", "${MISSING:-b}", "${MISSING:-}", "${FULL:-c}"),
    )
    expanded = expand(written, {"EMPTY": "", "FULL": "d"})

    assert expanded.config.args == ("", "a", "b", "", "d")
    with pytest.raises(MissingVariableError, match="MISSING is not set"):
        expand(ServerConfig(command="${MISSING}"), {})


@pytest.mark.process
async def test_the_person_is_told_once_what_cannot_be_used() -> None:
    display = MockDisplaySystem()
    session = create_test_session(
        "a", "b", tools=[mount], configs={"tool-0": {"servers": {"s": {"command": "no-such-program-anywhere"}}}},
        display_system=display,
    )  # fmt: skip
    async with session:
        await session.execute("hello")
        await session.execute("again")

    reported = [
        shown.message for shown in display.messages if "MCP server" in shown.message
    ]
    assert len(reported) == 1
    assert reported[0].startswith("MCP server 's' cannot be used: there is no program")


async def test_without_a_task_group_the_mount_says_what_to_write() -> None:
    session = create_test_session(
        tools=[mount], configs={"tool-0": {"servers": {"s": {"command": "x"}}}}
    )

    with pytest.raises(OwnerTaskError, match="async with"):
        await mount(session.coordinator, {"servers": {"s": {"command": "x"}}})
