"""What the typed hookspecs accept and refuse. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import assert_type

import amplifier_sdk
from amplifier_sdk import Coordinator
from amplifier_sdk import hookspecs as specs
from amplifier_sdk.hookspecs import Config, HookSpec, amplifier_contributions, amplifier_tool, hookspec
from amplifier_sdk.middleware import Proceed, ToolRun, TurnCall, amplifier_around_turn
from amplifier_sdk.results import ToolResult
from pluggy import PluginManager


@amplifier_tool.impl
async def mount(coordinator: Coordinator, config: Config) -> object:
    return coordinator.get(str(config))


mounted: Callable[[Coordinator, Config], Coroutine[object, object, object]] = mount


@amplifier_tool.impl
async def mount_with_a_wider_argument(coordinator: Coordinator, config: object) -> list[str]:
    return [str(config)]


class Plugin:
    @amplifier_tool.impl
    async def mount(self, coordinator: Coordinator, config: Config) -> object:
        return self


@amplifier_tool.impl  # error: arg-type
async def mount_with_a_wrong_argument(coordinator: Coordinator, config: str) -> object:
    return config


@amplifier_tool.impl  # error: arg-type
async def mount_with_a_misspelt_argument(coordinator: Coordinator, confg: Config) -> object:
    return confg


@amplifier_tool.impl  # error: arg-type
def mount_without_async(coordinator: Coordinator, config: Config) -> object:
    return config


class WrongPlugin:
    @amplifier_tool.impl  # error: arg-type
    def mount(self, coordinator: Coordinator, config: Config) -> object:
        return self


@amplifier_contributions.impl
async def contribute(coordinator: Coordinator, channel: str) -> object:
    return coordinator.session_id if channel == "names" else None


@amplifier_contributions.impl  # error: arg-type
async def contribute_to_no_channel(coordinator: Coordinator, topic: str) -> object:
    return topic


@hookspec
async def greeting(name: str, times: int = 1) -> str:
    """Say hello."""
    raise NotImplementedError


spec: HookSpec[[str, int], str] = greeting
wrong_spec: HookSpec[[int, int], str] = greeting  # error: assignment


@greeting.impl
async def greet(name: str, times: int = 1) -> str:
    return name * times


@greeting.impl  # error: arg-type
async def greet_with_a_wrong_return(name: str, times: int = 1) -> int:
    return len(name) * times


async def call(manager: PluginManager, plugin: object) -> None:
    assert_type(await greeting.call(manager, plugin, "Ada"), list[str])
    assert_type(await greeting.call(manager, plugin, name="Ada", times=2), list[str])
    await greeting.call(manager, plugin, 1)  # error: arg-type
    await greeting.call(manager, plugin, "Ada", time=2)  # error: call-arg


specs.amplifier_tol  # error: attr-defined
amplifier_sdk.tol  # error: attr-defined


@amplifier_around_turn.impl
async def surrounded(call: TurnCall, proceed: Proceed[TurnCall, str]) -> str:
    return await proceed(call)


@amplifier_around_turn.impl  # error: arg-type
async def of_a_tool(call: ToolRun, proceed: Proceed[ToolRun, ToolResult]) -> ToolResult:
    return await proceed(call)
