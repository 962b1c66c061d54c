"""Every limit is finite and above zero."""

from __future__ import annotations

import math

import attrs
import pytest

from amplifier_sdk.limits import Limits

COUNTS = ["iterations", "tool_calls", "parallel_tools", "tokens"]
TIMES = [field.name for field in attrs.fields(Limits) if field.name.endswith("timeout")]


def test_the_defaults_are_finite() -> None:
    limits = Limits()

    assert (limits.iterations, limits.tool_calls, limits.parallel_tools) == (50, 200, 8)
    assert (limits.tool_timeout, limits.provider_idle_timeout, limits.provider_timeout) == (120, 60, 600)
    assert (limits.hook_timeout, limits.cleanup_timeout, limits.import_timeout) == (30, 5, 10)
    assert limits.tokens is None


def test_every_field_is_a_count_or_a_time() -> None:
    assert {field.name for field in attrs.fields(Limits)} == {*COUNTS, *TIMES}


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3", math.inf])
def test_a_count_is_a_whole_number_above_zero(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"{name} is a whole number above 0; got "):
        Limits(**{name: value})  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, True, "3", None])
def test_a_time_is_a_finite_number_of_seconds_above_zero(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"{name} is a number of seconds above 0; got "):
        Limits(**{name: value})  # type: ignore[arg-type]  # that is the point


def test_limits_may_be_narrowed() -> None:
    limits = Limits(iterations=1, tokens=1000, tool_timeout=0.5)

    assert (limits.iterations, limits.tokens, limits.tool_timeout) == (1, 1000, 0.5)
