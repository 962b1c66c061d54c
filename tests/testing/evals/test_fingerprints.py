"""Fingerprints: the same for the same, another for whatever differs, an error where nobody can tell."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import Path

import attrs
import pytest

from amplifier import Agent
from amplifier.testing import AutoModel
from amplifier.testing.evals.fingerprints import Describer, digest
from amplifier_sdk import tool
from amplifier_sdk.errors import ConfigError


class Size(Enum):
    SMALL = 1
    LARGE = 2


class Plain:
    def method(self) -> int:
        return 1


@attrs.frozen
class Options:
    size: Size
    others: tuple[object, ...] = ()


RATE = 2


def rated(number: int) -> int:
    return RATE * number


def calling(number: int) -> int:
    return rated(number) + len(json.dumps(number))


def tripled(number: int) -> int:
    """Multiply."""
    return 3 * number


def adder(amount: int) -> Callable[[int], int]:
    return lambda number: number + amount


@tool
def doubled(number: int) -> int:
    """Multiply."""
    return 2 * number


def fingerprint(value: object, version: str = "") -> str:
    return digest(Describer(version).describe(value, "it"))


VALUES: tuple[object, ...] = (
    None,
    0,
    False,
    "0",
    0.0,
    Decimal(0),
    Path("0"),
    [],
    (),
    {},
    [0],
    {"a": 0},
    {"a": 1},
    {0, 1},
    frozenset({0, 1}),
    Size.SMALL,
    Size.LARGE,
    re.compile("a"),
    re.compile("a", re.IGNORECASE),
    json,
    Options(Size.SMALL),
    Options(Size.LARGE),
    Plain,
    rated,
    calling,
    tripled,
    doubled,
    adder(1),
    adder(2),
    partial(tripled, 1),
    partial(tripled, 2),
    Agent("local"),
    Agent("local", instructions="Be brief."),
    Agent("local", output=Options),
    Agent("local", output=int),
    Agent("local", tools=[doubled]),
    Agent("local", tools=[tripled]),
    Agent("local", deps=Size.SMALL),
    Agent("local", plan={"session": {"limits": {"tokens": 9}}}),
)


def test_values_that_differ_have_fingerprints_that_differ() -> None:
    fingerprints = [fingerprint(value) for value in VALUES]

    assert len(set(fingerprints)) == len(VALUES)
    assert fingerprints == [fingerprint(value) for value in VALUES]


def test_a_function_is_another_where_what_it_refers_to_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = fingerprint(rated), fingerprint(calling), fingerprint(tripled)

    monkeypatch.setattr(sys.modules[__name__], "RATE", 3)

    after = fingerprint(rated), fingerprint(calling), fingerprint(tripled)
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, False, True]


def test_an_override_is_no_secret() -> None:
    agent = Agent("local")
    before = fingerprint(agent, "1")

    with agent.override(model=AutoModel()):
        assert fingerprint(agent, "1") != before
        with pytest.raises(ConfigError, match=r"it\.model \(of an override\)"):
            fingerprint(agent)


@pytest.mark.parametrize(
    "value",
    [
        Plain(),
        [Plain()],
        {"a": Plain()},
        Options(Size.SMALL, (Plain(),)),
        Plain().method,
        partial(fingerprint, Plain()),
        Agent(AutoModel()),
        Agent("local", deps=Plain()),
    ],
)
def test_what_cannot_be_described_needs_a_version(value: object) -> None:
    with pytest.raises(ConfigError, match=r"^The experiment .*\n  it.*version="):
        fingerprint(value)
    assert fingerprint(value, "1")


def test_what_holds_itself_has_a_fingerprint() -> None:
    ring: list[object] = []
    ring.append(ring)

    def again(number: int) -> int:
        return again(number - 1)

    assert fingerprint(ring) != fingerprint(again)


PROGRAM = """
from amplifier import Agent
from amplifier.testing.evals.fingerprints import Describer, digest
def check(text: str) -> bool:
    "Check."
    return text in {"a", "b", "c", "d", "e"}
print(digest(Describer("").describe([check, {"a", "b", "c"}, Agent("local", tools=[check])], "it")))
"""


@pytest.mark.process
def test_another_process_makes_the_same_fingerprint() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"},
            check=True,
            capture_output=True,
            text=True,
            timeout=50,
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(said) == 1
