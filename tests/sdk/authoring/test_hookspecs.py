"""Typed hookspecs over a real plugin manager."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pluggy import PluginManager

from amplifier_sdk import hookspec
from amplifier_sdk.errors import HookspecError
from amplifier_sdk.hookspecs import KINDS, PROJECT


@hookspec
async def greeting(name: str, times: int) -> str:
    """Say hello."""
    raise NotImplementedError


class Plain:
    @greeting.impl
    async def hello(self, name: str, times: int) -> str:
        return f"hello {name}" * times


class Brief:
    """Asks for one argument, and for another with a default."""

    @greeting.impl
    async def hello(self, name: str, times: int = 7) -> str:
        return f"{times} x {name}"


class Short:
    """Asks for the last argument alone."""

    @greeting.impl  # type: ignore[arg-type]  # type checkers want every argument, pluggy does not
    async def hello(self, times: int) -> str:  # type: ignore[misc]  # a consequence of the line above
        return str(times)


@pytest.fixture
def manager() -> PluginManager:
    manager = PluginManager(PROJECT)
    greeting.add_to(manager)
    return manager


def test_a_spec_knows_its_name_and_its_arguments() -> None:
    assert greeting.name == "greeting"
    assert greeting.parameters == ("name", "times")


async def test_only_the_plugin_that_is_meant_is_called(manager: PluginManager) -> None:
    plain, brief = Plain(), Brief()
    manager.register(plain)
    manager.register(brief)

    assert await greeting.call(manager, plain, name="you", times=2) == [
        "hello youhello you"
    ]
    assert await greeting.call(manager, brief, "you", times=3) == ["3 x you"]
    assert await greeting.call(manager, object(), "you", 3) == []


async def test_an_implementation_may_take_fewer_arguments(
    manager: PluginManager,
) -> None:
    short = Short()
    manager.register(short)

    assert await greeting.call(manager, short, "you", 3) == ["3"]


def test_an_implementation_must_be_async() -> None:
    with pytest.raises(
        HookspecError,
        match=r"say: an implementation of greeting is an 'async def' function",
    ):

        @greeting.impl  # type: ignore[arg-type]  # what is refused
        def say(name: str, times: int) -> str:
            return name


def test_an_implementation_cannot_yield() -> None:
    async def say(name: str) -> AsyncIterator[str]:
        yield name

    with pytest.raises(
        HookspecError,
        match="x: an implementation of greeting returns what it mounts; it cannot 'yield'",
    ):
        greeting.check(say, "x")


def test_an_implementation_cannot_ask_for_what_the_spec_lacks() -> None:
    async def say(nmae: str) -> str:
        return nmae

    with pytest.raises(
        HookspecError,
        match=r"plugin 'x': greeting has no argument 'nmae'; it has name, times",
    ):
        greeting.check(say, "plugin 'x'")


def test_what_has_no_name_is_still_refused_by_its_text() -> None:
    with pytest.raises(HookspecError, match="42: an implementation"):
        greeting.impl(42)  # type: ignore[call-overload]  # what is refused


def test_the_five_module_types_stand_in_mounting_order() -> None:
    assert [kind.name for kind in KINDS] == [
        "orchestrator",
        "context",
        "provider",
        "tool",
        "hook",
    ]
    assert [kind.spec.name for kind in KINDS] == [
        f"amplifier_{kind.name}" for kind in KINDS
    ]
    assert {kind.spec.parameters for kind in KINDS} == {("coordinator", "config")}
    assert [kind.name for kind in KINDS if kind.single] == ["orchestrator", "context"]
