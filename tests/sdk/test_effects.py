"""What tools say that they do, and what follows from it."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_sdk import tool
from amplifier_sdk.effects import (
    EFFECTS,
    Effect,
    checked_effects,
    effects_of,
    read_only_of,
)


@attrs.define
class Declaring:
    """A tool as far as it says what it does."""

    effects: object = None
    read_only: object = None


@pytest.mark.parametrize(
    ("effects", "read_only"),
    [
        (("read",), True),
        (("write",), False),
        (("exec",), False),
        (("read", "write"), False),
        (("network",), None),
        (("write", "network"), None),
    ],
    ids=["read", "write", "exec", "read and write", "network", "write and network"],
)
def test_effects_say_whether_a_tool_changes_something(
    effects: tuple[Effect, ...], read_only: bool | None
) -> None:
    @tool(effects=effects)
    def act() -> None:
        """Act."""

    assert effects_of(act) == frozenset(effects)
    assert (act.effects, act.read_only) == (effects, read_only)
    assert read_only_of(Declaring(effects)) is read_only


def test_what_a_tool_says_of_order_counts_more() -> None:
    @tool(effects=("read",), read_only=False)
    def next_line() -> None:
        """Go on."""

    assert next_line.read_only is False
    assert read_only_of(Declaring(("write",), read_only=True)) is True
    assert read_only_of(Declaring(("read",), read_only="yes")) is None


def test_read_only_alone_says_nothing_of_effects() -> None:
    @tool(read_only=True)
    def act() -> None:
        """Act."""

    assert effects_of(act) is None
    assert act.read_only is True


@pytest.mark.parametrize(
    "reported",
    [(), ("reed",), "read", ("read", 5)],
    ids=["none", "misspelt", "text", "number"],
)
def test_what_is_no_effect_is_refused_where_the_tool_is_made(
    reported: tuple[Effect, ...],
) -> None:
    def act() -> None:
        """Act."""

    with pytest.raises(
        TypeError,
        match="Tool 'act': effects are one or more of read, write, exec, network",
    ):
        tool(effects=reported)(act)


def test_a_tool_cannot_write_and_change_nothing() -> None:
    def act() -> None:
        """Act."""

    with pytest.raises(
        TypeError,
        match="Tool 'act' cannot be read-only and have the effects read, write",
    ):
        tool(effects=("write", "read"), read_only=True)(act)


@pytest.mark.parametrize(
    "reported",
    [None, (), "read", ("read", "odd"), ["read", []], 7],
    ids=["none", "empty", "text", "odd", "list", "number"],
)
def test_tool_with_senseless_effects_may_do_anything(
    reported: object,
) -> None:
    assert effects_of(Declaring(reported)) is None
    assert read_only_of(Declaring(reported)) is None


def test_a_name_stands_in_for_a_tool_that_says_nothing() -> None:
    silent, speaking, garbled = Declaring(), Declaring(("exec",)), Declaring("read")

    assert effects_of(silent, name="grep") == frozenset({"read"})
    assert effects_of(
        silent, name="grep", configured={"grep": ["network"]}
    ) == frozenset({"network"})
    assert effects_of(
        speaking, name="grep", configured={"grep": ["read"]}
    ) == frozenset({"exec"})
    assert effects_of(garbled, name="grep") is None
    assert effects_of(silent, name="mine") is None


@given(st.lists(st.sampled_from(EFFECTS), min_size=1))
def test_effects_are_kept_once_and_in_one_order(reported: list[Effect]) -> None:
    checked = checked_effects(reported)

    assert set(checked) == set(reported)
    assert list(checked) == [effect for effect in EFFECTS if effect in checked]
    assert checked_effects(checked) == checked
