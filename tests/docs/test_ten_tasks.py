"""The page of ten tasks: its transcripts are typed, and its keys and commands are counted."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

from tests.cli.programs import open_terminal
from tests.docs import shop_model

PAGE: Final = (
    Path(__file__).resolve().parents[2] / "docs/get-started/ten-tasks.md"
).read_text("utf-8")
WHO: Final = ("here", "Claude Code", "llm")
_BLOCK: Final = re.compile(
    r"^<!-- (here|Claude Code|llm) -->\n```console\n(.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_TYPED: Final = re.compile(r"(?P<prompt>Your choice \(.*\): |> )(?P<keys>.+)")
_KEY: Final = re.compile(r"\[[\w-]+\]")
_KEYS: Final = {"[Ctrl-D]": "\x04"}
_END: Final = "=== end"
_SCRIPTS: Final = Path(sys.executable).parent


@attrs.define
class Command:
    """A line for the shell with what follows: answers, and what is printed."""

    text: str
    lines: list[str] = attrs.field(factory=list)
    is_file: bool = False

    def keys(self) -> int:
        if self.is_file:
            return sum(len(line) + 1 for line in (self.text, *self.lines))
        return len(self.text) + 1 + sum(map(_keys, self.lines))


def _keys(line: str) -> int:
    """Count the keys of a line: those of an answer, or of one that consists of keys in brackets."""
    typed = _TYPED.fullmatch(line)
    keys = typed["keys"] if typed else line
    if all(map(_KEY.fullmatch, keys.split())):
        return len(keys.split())
    return len(keys) + 1 if typed else 0


def commands_of(block: str) -> list[Command]:
    """Part a transcript; what is typed without a new command is of one with an empty text."""
    found: list[Command] = []
    for line in block.splitlines():
        in_file = found and found[-1].is_file and found[-1].lines[-1:] != ["END"]
        if line.startswith("$ ") and not in_file:
            found.append(Command(line[2:], is_file=line.endswith("<<'END'")))
        else:
            found = found or [Command("")]
            found[-1].lines.append(line)
    return found


def tasks() -> Iterator[tuple[str, dict[str, list[Command]]]]:
    """Yield each task of the page: its heading, and whose commands do it."""
    for section in PAGE.split("\n## ")[1:]:
        blocks = {who: commands_of(text) for who, text in _BLOCK.findall(section)}
        yield section.partition("\n")[0], blocks


def row(heading: str, blocks: dict[str, list[Command]]) -> str:
    """Return the row of the table that a task has."""
    commands, keys = [], []
    for who in WHO:
        found = blocks.get(who)
        commands.append("-" if found is None else _count(found))
        keys.append("-" if found is None else str(_all_keys(found)))
    if heading.startswith("1."):  # copied
        commands[0], keys = "2", ["copied"] * 3
    return f"| {' | '.join([heading, *commands, *keys])} |"


def _count(found: list[Command]) -> str:
    return str(sum(bool(command.text) for command in found))


def _all_keys(found: list[Command]) -> int:
    return sum(command.keys() - (0 if command.text else 1) for command in found)


def test_the_table_counts_what_is_typed() -> None:
    rows = [row(heading, blocks) for heading, blocks in tasks()]

    assert len(rows) == 10
    table = [line for line in PAGE.splitlines() if re.match(r"\| \d+\. ", line)]
    assert table == rows


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's folder with a project, whose model knows the questions of the page."""
    home, project = tmp_path / "home", tmp_path / "home/shop"
    module = "amplifier-module-provider-shop/amplifier_module_provider_shop"
    (home / "modules" / module).mkdir(parents=True)
    shutil.copy(shop_model.__file__, home / "modules" / module / "__init__.py")
    (home / ".amplifier").mkdir()
    (home / ".amplifier/settings.yaml").write_text("config: {active: provider-shop}\n")
    (home / ".config/zed").mkdir(parents=True)
    project.mkdir()
    (project / "notes.txt").write_text("The meeting is on Friday at 10:00 in room 4.\n")
    for name, value in {
        "HOME": str(home),
        "AMPLIFIER_MODULES": str(home / "modules"),
        "PATH": f"{_SCRIPTS}{os.pathsep}{os.environ['PATH']}",
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AMPLIFIER_HOME", raising=False)
    monkeypatch.chdir(project)
    name = "-c user.name=a -c user.email=a@example.org"
    for words in (
        "init -q -b main",
        "add .",
        f"{name} commit -qm All",
        "init -q --bare .git/copy.git",
        "remote add origin .git/copy.git",
    ):
        subprocess.run(["git", *words.split()], check=True)
    return home


@pytest.mark.process
@pytest.mark.timeout(120)
@pytest.mark.skipif(
    not (_SCRIPTS / "amplifier").exists(),
    reason="the command amplifier is not installed here",
)
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
def test_the_transcripts_are_what_happens(home: Path) -> None:
    for _, blocks in tasks():
        for command in blocks.get("here", []):
            _run(command)
    _speaks_with_the_editor(home)


def _run(command: Command) -> None:
    """Type a command and its answers; each of its lines comes, in this order."""
    text = command.text
    if command.is_file:
        text = "\n".join((text, *command.lines, ""))
    with open_terminal("/bin/bash", "-c", f"{text}\necho {_END} $?") as terminal:
        for line in [] if command.is_file else command.lines:
            typed = _TYPED.fullmatch(line)
            if typed is None:
                # `…` stands for what is left out.
                for part in filter(None, line.split("…")):
                    terminal.read_until(part)
            elif typed["prompt"] == "> ":
                terminal.read_prompt()
                terminal.type(_KEYS.get(typed["keys"], f"{typed['keys']}\r"))
            else:
                terminal.read_until(typed["prompt"])
                terminal.type(f"{typed['keys']}\r")
        terminal.read_until(f"{_END} 0")


def _speaks_with_the_editor(home: Path) -> None:
    written = json.loads((home / ".config/zed/settings.json").read_text())
    agent = written["agent_servers"]["Amplifier"]
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": 1, "clientCapabilities": {}},
    }
    done = subprocess.run(
        [agent["command"], *agent["args"]],
        input=f"{json.dumps(asked)}\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["result"]["protocolVersion"] == 1
