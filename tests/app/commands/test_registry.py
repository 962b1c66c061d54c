"""Commands are found by what is typed, and none hides another one for good."""

from __future__ import annotations

import pytest

from amplifier.app.commands.registry import (
    CommandRegistry,
    Typed,
    commands_of_modules,
    read_line,
)
from amplifier.testing import TestCoordinator
from amplifier_kit.commands import CommandAnswer, CommandError, SessionCommand


async def _make(arguments: str) -> CommandAnswer:
    return CommandAnswer(text=arguments)


def command(name: str, *aliases: str, source: str = "") -> SessionCommand:
    return SessionCommand(name=name, make=_make, aliases=aliases, source=source)


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("/help", Typed("help", "")),
        ("  /Help  ", Typed("help", "")),
        ("/save  my talk.md ", Typed("save", "my talk.md")),
        ("/plan first\nthen", Typed("plan", "first\nthen")),
        ("/plan\nfirst", Typed("plan", "first")),
        ("/plugin:shop:review 3", Typed("plugin:shop:review", "3")),
        ("/", Typed("help", "")),
        ("/? undo", Typed("?", "undo")),
        ("/??", None),
        ("/etc/hosts", None),
        ("/etc/hosts is odd", None),
        ("what is /help", None),
        ("", None),
        ("//", None),
    ],
    ids=repr,
)
def test_a_line_is_a_command_or_a_prompt(line: str, typed: Typed | None) -> None:
    assert read_line(line) == typed


def test_first_has_name_and_others_their_aliases_and_source() -> None:
    registry = CommandRegistry()
    first, second = (
        command("review"),
        command("review", "shop-review", source="plugin:shop"),
    )
    third = command("review", source="user")
    registry.add([first])
    registry.add([second, third])

    assert registry.find("REVIEW") is first
    assert registry.find("shop-review") is second
    assert registry.find("plugin:shop:review") is second
    assert registry.find("user:review") is third
    assert list(registry.listed) == ["review", "shop-review", "user:review"]
    assert registry.names == [
        "plugin:shop:review",
        "review",
        "shop-review",
        "user:review",
    ]


def test_a_command_that_no_name_reaches_is_left_out() -> None:
    registry = CommandRegistry()
    registry.add([command("a"), command("a"), command("with blank"), command("a\x1b")])
    assert list(registry.listed) == ["a"]


def test_command_waits_for_turn_unless_it_said_that_it_need_not() -> None:
    registry = CommandRegistry()
    registry.add([command("status", "?")], at_once=True)
    registry.add([command("undo"), command("status", source="user")])
    assert [name for name in registry.names if registry.is_at_once(name)] == [
        "?",
        "status",
    ]
    assert registry.is_at_once("Status")
    assert not registry.is_at_once("unheard-of")


def test_an_unknown_command_names_the_nearest() -> None:
    registry = CommandRegistry()
    registry.add([command("status")])
    with pytest.raises(
        CommandError, match=r"There is no command /stats; did you mean '/status'\?"
    ):
        registry.find("stats")


async def test_modules_contribute_commands_and_bad_ones_are_skipped() -> None:
    coordinator = TestCoordinator()
    offered = command("x")
    coordinator.register_contributor(
        "cli.commands", "good", lambda: [offered, "no command"]
    )
    coordinator.register_contributor("cli.commands", "odd", lambda: "x")
    assert await commands_of_modules(coordinator) == [offered]
