"""What a handler learns of the tool that is called."""

from __future__ import annotations

import json
from collections.abc import MutableMapping

import attrs
import pytest

from amplifier_sdk.convert import to_json
from amplifier_sdk.events import TOOL_PRE, ToolPre
from amplifier_sdk.toolinfo import ToolInfo, called_tool
from tests.doubles import Sentry, Worker, build_session, call, calling

SECRET = "h4Xk9-Qz7vR2"


@attrs.define
class Connected(Worker):
    """A tool that leads to its configuration."""

    effects: tuple[str, ...] = ("network",)
    config: dict[str, str] = attrs.field(factory=lambda: {"api_key": SECRET})


class Mute(Worker):
    """A tool that cannot say what it is."""

    @property
    def effects(self) -> object:
        raise RuntimeError("not now")


async def test_what_is_told_of_a_tool_leads_nowhere() -> None:
    session = build_session(calling(call("work")), "end", tools=[Connected()])
    sentry = Sentry()
    async with session:
        session.coordinator.hooks.register(TOOL_PRE, sentry)
        await session.execute("go")

    described = sentry.seen[0]["tool_obj"]
    assert isinstance(described, ToolInfo)
    assert not hasattr(described, "__dict__")
    for written in (
        json.dumps(to_json(described)),
        repr(described),
        str(attrs.asdict(described)),
    ):
        assert SECRET not in written
        assert len(written) < 1_000
    assert (described.effects, described.read_only) == (frozenset({"network"}), None)


async def test_a_tool_that_cannot_say_what_it_is_runs_all_the_same(
    reports: list[MutableMapping[str, object]],
) -> None:
    session = build_session(calling(call("work")), "end", tools=[Mute()])
    sentry = Sentry()
    async with session:
        session.coordinator.hooks.register(TOOL_PRE, sentry)
        assert await session.execute("go") == "end"

    assert sentry.seen[0]["tool_obj"] is None
    assert [entry["event"] for entry in reports] == ["tool.schema_failed"]


@pytest.mark.parametrize("name", ["work", "other"])
async def test_a_module_finds_the_called_tool_whatever_its_name(name: str) -> None:
    session = build_session("end", tools=[])
    async with session:
        coordinator, tool = session.coordinator, Worker()
        data = ToolPre(tool_name=name, tool_input={}, tool_obj=ToolInfo.of(tool))
        assert called_tool(data, coordinator) is None
        await coordinator.mount("tools", tool, name)
        await coordinator.mount("tools", Worker(), "third")

        assert called_tool(data, coordinator) is tool
        assert called_tool(ToolPre(tool_name=name, tool_input={}), coordinator) is None
