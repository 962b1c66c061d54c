"""Marked handlers and hook classes."""

from __future__ import annotations

import pytest

from amplifier.kernel.turn.registry import HookRegistry
from amplifier_sdk import HookResult, on
from amplifier_sdk.events import TOOL_POST, TOOL_PRE, ToolPost, ToolPre
from amplifier_sdk.handlers import Subscription, register_handlers, subscriptions_of


@on(TOOL_PRE, priority=5, decides=False, timeout=1.5)
async def watch(event: str, data: ToolPre) -> None:
    """Look on."""


class Guard:
    """Two handlers, one of two events, and what is none."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    @on(TOOL_PRE, priority=10)
    async def late(self, event: str, data: ToolPre) -> HookResult | None:
        """Deny one tool."""
        self.seen.append("late")
        return HookResult.deny("no") if data["tool_name"] == "rm" else None

    @on("tool:post")
    @on("tool:pre")
    def early(self, event: str, data: dict[str, object]) -> None:
        """Note the event."""
        self.seen.append(f"early {event}")

    def helper(self) -> None:
        """No handler."""


class StricterGuard(Guard):
    """Inherits the handlers and adds one."""

    @on(TOOL_POST)
    def after(self, event: str, data: ToolPost) -> None:
        """Note the end."""
        self.seen.append("after")


async def test_a_marked_handler_can_be_called_and_knows_its_events() -> None:
    assert subscriptions_of(watch) == (
        Subscription(event="tool:pre", priority=5, decides=False, timeout=1.5),
    )

    await watch("tool:pre", ToolPre(tool_name="x", tool_input={}))


def test_several_marks_are_several_subscriptions() -> None:
    assert [mark.event for mark in subscriptions_of(Guard.early)] == [
        "tool:pre",
        "tool:post",
    ]


@pytest.mark.parametrize("value", [42, Guard(), Guard.helper])
def test_what_is_not_marked_hears_nothing(value: object) -> None:
    assert subscriptions_of(value) == ()


def test_an_attribute_of_that_name_which_is_no_mark_is_ignored() -> None:
    class Odd:
        __amplifier_subscriptions__ = "mine"

    assert subscriptions_of(Odd()) == ()


async def test_instance_is_heard_in_order_of_priority() -> None:
    hooks, guard = HookRegistry(), Guard()
    assert len(list(register_handlers(hooks, guard))) == 3

    emission = await hooks.emit(TOOL_PRE, ToolPre(tool_name="rm", tool_input={}))

    assert guard.seen == ["early tool:pre", "late"]
    assert (emission.decided_by, emission.reason) == ("Guard.late", "no")


async def test_a_subclass_is_heard_through_its_bases_handlers_too() -> None:
    hooks, guard = HookRegistry(), StricterGuard()
    list(register_handlers(hooks, guard))

    await hooks.emit("tool:post", {})

    assert guard.seen == ["early tool:post", "after"]


async def test_a_marked_function_is_heard_as_it_was_marked() -> None:
    hooks = HookRegistry()
    list(register_handlers(hooks, watch))

    assert hooks.list_handlers() == {"tool:pre": ["watch"]}


async def test_each_registration_can_be_taken_back() -> None:
    hooks, guard = HookRegistry(), Guard()

    for unregister in list(register_handlers(hooks, guard)):
        unregister()

    assert not hooks.has_handlers(TOOL_PRE)
    assert not hooks.has_handlers(TOOL_POST)


async def test_the_mark_says_whether_a_failing_handler_denies() -> None:
    @on(TOOL_PRE, decides=False)
    def clumsy(event: str, data: ToolPre) -> None:
        raise RuntimeError("oops")

    hooks = HookRegistry()
    list(register_handlers(hooks, clumsy))

    assert not (
        await hooks.emit(TOOL_PRE, ToolPre(tool_name="x", tool_input={}))
    ).denied
