"""Every limit is finite and above zero."""

from __future__ import annotations

import math
from decimal import Decimal

import attrs
import pytest

from amplifier_sdk.limits import LimitChanges, Limits

COUNTS = [
    "iterations",
    "tool_calls",
    "parallel_tools",
    "parallel_children",
    "tokens",
    "session_tokens",
    "session_tool_calls",
]
AMOUNTS = ["cost_usd", "session_cost_usd"]
NAMES = [field.name for field in attrs.fields(Limits)]
TIMES = [
    name
    for name in NAMES
    if name.endswith("timeout") or name in ("wall_time", "hook_warning")
]


def test_the_defaults_are_finite() -> None:
    limits = Limits()

    assert (limits.iterations, limits.tool_calls, limits.parallel_tools) == (
        50,
        200,
        40,
    )
    assert (
        limits.tool_timeout,
        limits.provider_idle_timeout,
        limits.provider_timeout,
    ) == (120, 60, 600)
    assert (limits.hook_timeout, limits.cleanup_timeout, limits.import_timeout) == (
        30,
        5,
        10,
    )
    assert (limits.wall_time, limits.delegation_depth, limits.parallel_children) == (
        3600,
        3,
        8,
    )
    assert (limits.tokens, limits.cost_usd) == (None, None)
    assert (
        limits.session_tokens,
        limits.session_cost_usd,
        limits.session_tool_calls,
    ) == (None, None, None)


def test_every_field_is_a_count_an_amount_or_a_time() -> None:
    assert set(NAMES) == {*COUNTS, *AMOUNTS, *TIMES, "delegation_depth"}


def test_the_limits_of_one_turn_are_limits() -> None:
    assert set(LimitChanges.__annotations__) < set(NAMES)


@pytest.mark.parametrize("name", AMOUNTS)
@pytest.mark.parametrize(
    ("value", "read"),
    [("0.1", "0.1"), (0.1, "0.1"), (3, "3"), (Decimal("1.50"), "1.50"), (None, None)],
)
def test_an_amount_is_read_as_it_is_written(
    name: str, value: object, read: str | None
) -> None:
    limits = Limits(**{name: value})  # type: ignore[arg-type]  # any form

    assert getattr(limits, name) == (None if read is None else Decimal(read))


@pytest.mark.parametrize("name", AMOUNTS)
@pytest.mark.parametrize(
    "value", [0, -1, "much", "", math.inf, "NaN", True, [1], Decimal(0)]
)
def test_an_amount_is_a_number_of_dollars_above_zero(name: str, value: object) -> None:
    with pytest.raises(
        ValueError, match=r"a number of US dollars above 0, or its decimal text; got "
    ):
        Limits(**{name: value})  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("value", [-1, True, 1.0, "1", None])
def test_a_depth_is_a_whole_number_from_zero(value: object) -> None:
    assert Limits(delegation_depth=0).delegation_depth == 0
    with pytest.raises(
        ValueError, match="delegation_depth is a whole number from 0; got "
    ):
        Limits(delegation_depth=value)  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3", math.inf])
def test_a_count_is_a_whole_number_above_zero(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"{name} is a whole number above 0; got "):
        Limits(**{name: value})  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, True, "3", None])
def test_a_time_is_a_finite_number_of_seconds_above_zero(
    name: str, value: object
) -> None:
    with pytest.raises(
        ValueError, match=rf"{name} is a number of seconds above 0; got "
    ):
        Limits(**{name: value})  # type: ignore[arg-type]  # that is the point


def test_limits_may_be_narrowed() -> None:
    limits = Limits(iterations=1, tokens=1000, tool_timeout=0.5)

    assert (limits.iterations, limits.tokens, limits.tool_timeout) == (1, 1000, 0.5)
