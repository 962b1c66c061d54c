"""Shell texts, made from the usages of the table, the grammar of the shell, and ways to hide one thing in another."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from shutil import which
from string import ascii_letters
from typing import Final

from amplifier_kit.shell import standard_table
from amplifier_kit.shell.usages import Option, ProgramUsage

__all__ = ["generate"]

_POOL: Final = tomllib.loads(Path(__file__).with_name("pool.toml").read_text("utf-8"))


def generate(seed: int) -> Iterator[str]:
    """Yield texts without end."""
    random = Random(seed)
    table = standard_table()
    usages = [
        (name, usage)
        for name, usages in table.usages.items()
        for usage in usages
        if _is_runnable(name, usage)
        and usage.below is None
        and not any("run" in each.effects for each in usages)
    ]
    while True:
        name, usage = random.choice(usages)
        text = _call(name, usage, random)
        if random.random() < 0.15:
            other, its = random.choice(usages)
            text = f"{text}{random.choice((' | ', '; ', ' && ', ' || '))}{_call(other, its, random)}"
        wrapper = random.choice(_POOL["wrappers"])
        yield wrapper.replace("@@", text)


def _is_runnable(name: str, usage: ProgramUsage) -> bool:
    program = name.partition(" ")[0]
    if program in _POOL["programs_skipped"] or "*" in program or "run" in usage.effects:
        return False
    if " " in name and program != "git":
        return False
    return which(program) is not None or program in _POOL["builtins"]


def _call(name: str, usage: ProgramUsage, random: Random) -> str:
    words = name.split()
    if words[0] == "git" and random.random() < 0.3:
        words[1:1] = random.choice(
            (
                ["-C", "."],
                ["--no-pager"],
                ["-c", "core.pager=./canary"],
                ["-C", ".git"],
                ["-P"],
            )
        )
    options = [
        option
        for option in usage.options.values()
        if f"{words[0]} {option.name}" not in _POOL["options_skipped"]
    ]
    needed = [option for option in options if option.is_needed]
    chosen = random.sample(
        options, min(len(options), random.choice((0, 0, 1, 1, 2, 3)))
    )
    if needed and random.random() < 0.9:
        chosen.append(random.choice(needed))
    for option in chosen:
        words += _option(option, random)
    if random.random() < 0.05:
        words.append(f"-{random.choice(ascii_letters)}")
    if random.random() < 0.03:
        words.append("--")
    for operand in usage.operands:
        least = 0 if operand.many in ("?", "*", "...") else 1
        most = 1 if operand.many in ("", "?") else 3
        words += (
            _value(operand.kind, random) for _ in range(random.randint(least, most))
        )
    if random.random() < 0.05:
        words.append(random.choice(_POOL["hostile"]))
    return " ".join(words)


def _option(option: Option, random: Random) -> list[str]:
    if not option.kinds or (option.is_attached and random.random() < 0.5):
        return [option.name]
    value = _value(option.kinds[0], random)
    if option.is_attached or (option.name.startswith("--") and random.random() < 0.5):
        return [
            f"{option.name}={value}"
            if option.name.startswith("--")
            else f"{option.name}{value}"
        ]
    return [option.name, value, *(_value(kind, random) for kind in option.kinds[1:])]


def _value(kind: str, random: Random) -> str:
    if random.random() < 0.12:
        return str(random.choice(_POOL["hostile"]))
    if kind.startswith("{"):
        return random.choice(kind[1:-1].split(","))
    value: str = random.choice(_POOL["values"][kind])
    return f'"{value}"' if random.random() < 0.1 and value.isalnum() else value
