"""Validators of configurations."""

from __future__ import annotations

from math import inf, nan

import attrs
import pytest

from amplifier_sdk.bounds import (
    amount,
    count,
    fraction,
    integer,
    number,
    pause,
    seconds,
    share,
)


@attrs.frozen(kw_only=True)
class Settings:
    tries: object = attrs.field(default=1, validator=count)
    retries: object = attrs.field(default=0, validator=amount)
    delay: object = attrs.field(default=0.0, validator=pause)
    patience: object = attrs.field(default=1.5, validator=seconds)
    target: object = attrs.field(default=1.0, validator=fraction)
    reserve: object = attrs.field(default=0.0, validator=share)
    window: object = attrs.field(default=512, validator=integer(512))
    turns: object = attrs.field(default=1, validator=integer(0, 5))
    factor: object = attrs.field(default=1.0, validator=number(1))
    heat: object = attrs.field(default=0.0, validator=number(0, 2))


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("tries", 0, "a whole number above 0"),
        ("tries", 1.0, "a whole number above 0"),
        ("tries", True, "a whole number above 0"),
        ("retries", -1, "a whole number from 0"),
        ("retries", 1.0, "a whole number from 0"),
        ("retries", False, "a whole number from 0"),
        ("delay", -0.1, "a number of seconds from 0"),
        ("delay", inf, "a number of seconds from 0"),
        ("delay", True, "a number of seconds from 0"),
        ("patience", 0, "a number of seconds above 0"),
        ("patience", inf, "a number of seconds above 0"),
        ("patience", "1", "a number of seconds above 0"),
        ("target", 0, "a fraction above 0 and up to 1"),
        ("target", 1.1, "a fraction above 0 and up to 1"),
        ("reserve", -0.1, "a fraction from 0 to 1"),
        ("reserve", True, "a fraction from 0 to 1"),
        ("window", 511, "a whole number from 512"),
        ("window", 512.0, "a whole number from 512"),
        ("turns", 6, "a whole number from 0 to 5"),
        ("turns", True, "a whole number from 0 to 5"),
        ("factor", 0.9, "a number from 1"),
        ("factor", inf, "a number from 1"),
        ("factor", nan, "a number from 1"),
        ("heat", 2.1, "a number from 0 to 2"),
        ("heat", "1", "a number from 0 to 2"),
        ("heat", True, "a number from 0 to 2"),
    ],
)
def test_what_is_out_of_bounds_is_named_with_what_it_may_be(
    name: str, value: object, meant: str
) -> None:
    with pytest.raises(ValueError, match=f"{name} is {meant}; got {value!r}"):
        Settings(**{name: value})


def test_what_is_within_bounds_passes() -> None:
    given = {
        "tries": 3,
        "retries": 0,
        "delay": 0,
        "patience": 0.1,
        "target": 0.5,
        "reserve": 1,
    }
    more = {"window": 512, "turns": 5, "factor": 1.5, "heat": 2}

    assert attrs.asdict(Settings(**given, **more)) == given | more
