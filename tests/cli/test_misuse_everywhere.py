"""Every command, given what no command wants: whatever it says of that, a person can read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner

from amplifier.cli import main
from tests.cli.test_misuse import TECHNICAL

pytestmark = pytest.mark.process

_OWN_TERMINAL: Final = frozenset({"chat", "continue", "resume", "run", "serve"})
"""They ask a model, or wait for requests: `test_misuse` has their mistakes."""
_FILES: Final = {
    "bad.json": b'{"a": [1,',
    "binary": b"\x80\x81\x00\xff",
    "empty": b"",
    "odd.json": b'{"session": 3, "providers": {"a": null}, "name": {"x": 1}}',
}
_TEXTS: Final = ("none/at/all", "folder", "x" * 300, "", "\x1b[2J")


def commands(
    command: click.Command, path: tuple[str, ...], context: click.Context
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield the commands below one that groups none, with their names."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        inner = click.Context(below, parent=context, info_name=name)
        yield from commands(below, (*path, name), inner)


def misuses(path: tuple[str, ...], command: click.Command) -> Iterator[list[str]]:
    """Yield lines that use a command wrongly, by each argument and each option that takes a value."""
    values = [*_TEXTS, *_FILES]
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    for value in values if arguments else ():
        yield [*path, *(value for _ in arguments)]
    needed = ["x" for each in arguments if each.required]
    for option in command.params:
        if isinstance(option, click.Option) and not (option.is_flag or option.count):
            for value in values:
                yield [*path, *needed, option.opts[0], value]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project, beside a person's own folder, without a network or an editor."""
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setenv("VISUAL", "true")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / "folder").mkdir()
    for name, data in _FILES.items():
        (folder / name).write_bytes(data)
    monkeypatch.chdir(folder)


_NAMES: Final = sorted({*main.list_commands(click.Context(main))} - _OWN_TERMINAL)


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("name", _NAMES)
def test_what_a_command_refuses_can_be_read(name: str) -> None:
    context = click.Context(main, info_name="amplifier")
    group = main.get_command(context, name)
    assert group is not None
    unreadable = []
    inner = click.Context(group, parent=context, info_name=name)
    for path, command in commands(group, (name,), inner):
        for line in misuses(path, command):
            result = CliRunner().invoke(main, line, input="")
            if result.exit_code and TECHNICAL.search(result.output):
                unreadable.append((line, result.output))

    assert unreadable == []
