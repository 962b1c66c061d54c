"""Every command with arguments that make it do its work, run in the working directory by `python -I FILE WORKSHOP`.

The workshop is a folder with what the commands are given: a plan, a repository, a module. A line of JSON for each
command says how it ended.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click
from click.testing import CliRunner, Result

from amplifier.cli import main

__all__ = ["COMMANDS", "leaves"]

PLANNED: Final = ("--plan", "{shop}/plan.json")
COMMANDS: Final[Sequence[tuple[str, Sequence[str], int]]] = [
    ("", (), 0),
    ("version", (), 0),
    ("completion", ("bash",), 0),
    ("compat check", ("loop-basic",), 0),
    ("doctor", (), 0),
    ("provider use", ("provider-scripted", "--config", 'responses=["Done."]'), 0),
    ("run", ("Look at @notes.md here.", *PLANNED), 0),
    ("run", ("Look at AGENTS.md here.", "--profile", "foundation:base"), 0),
    ("chat", PLANNED, 2),  # it needs a terminal, which it has in a test of its own
    ("continue", ("More.",), 0),
    ("session list", (), 0),
    ("session rename", ("{session}", "first"), 0),
    ("resume", ("first", "More."), 0),
    ("session show", ("first",), 0),
    ("session tag", ("first", "a"), 0),
    ("session tree", ("first",), 0),
    ("session search", ("Look",), 0),
    ("session export", ("first", "-o", "{shop}/first.json"), 0),
    ("session fork", ("first", "--name", "second"), 0),
    ("session diagnose", ("first",), 0),
    ("session repair", ("first",), 0),
    ("session remove", ("second", "--yes"), 0),
    ("session cleanup", ("--older-than", "30d", "--yes"), 0),
    ("logs", ("--session", "first"), 0),
    ("trace", ("first", "--to", "{shop}/trace.html"), 0),
    ("session import", ("{shop}/first.json",), 0),
    ("session move", ("{shop}/gone",), 1),  # it moves what a test of its own makes
    ("agent list", (), 0),
    ("agent show", ("explorer",), 0),
    ("agent export", ("shop:agent",), 2),  # what a person names is imported
    ("bundle add", ("{shop}/bundle.yaml",), 0),
    ("bundle list", (), 0),
    ("bundle show", ("shop",), 0),
    ("bundle validate", ("shop",), 0),
    ("bundle use", ("shop",), 0),
    ("bundle current", (), 0),
    ("bundle update", (), 0),
    ("bundle reset", (), 0),
    ("bundle remove", ("shop",), 0),
    ("collection install", ("git+file://{shop}/collection",), 0),
    ("collection add", ("git+file://{shop}/collection", "--force"), 0),
    ("collection list", (), 0),
    ("collection show", ("shop",), 0),
    ("collection update", (), 0),
    ("collection verify", (), 0),
    ("collection accept", ("shop",), 1),
    ("collection remove", ("shop",), 0),
    ("config set", ("sessions.keep", "true"), 0),
    ("config get", ("sessions.keep",), 0),
    ("config explain", ("sessions.keep",), 0),
    ("config list", (), 0),
    ("config path", (), 0),
    ("config edit", (), 0),
    ("config validate", (), 0),
    ("config unset", ("sessions.keep",), 0),
    ("config secret set", ("SHOP_API_KEY", "--from-env", "SHOP_KEY"), 0),
    ("config secret list", (), 0),
    ("config secret remove", ("SHOP_API_KEY",), 0),
    ("module list", (), 0),
    ("module types", (), 0),
    ("module new", ("tool-sample", "--path", "{shop}"), 0),
    (
        "module add",
        ("tool-sample", "--source", "{shop}/amplifier-module-tool-sample"),
        0,
    ),
    ("module show", ("tool-bash",), 0),
    ("module why", ("tool-bash",), 0),
    ("module update", (), 0),
    ("module remove", ("tool-sample",), 0),
    ("module validate", ("tool-todo", "--behavioral"), 0),
    ("plugin add", ("{shop}/plugin", "--yes"), 0),
    ("plugin list", (), 0),
    ("plugin show", ("plugin",), 0),
    ("plugin update", (), 0),
    ("plugin remove", ("plugin",), 0),
    ("profile list", (), 0),
    ("profile show", ("foundation:base",), 0),
    ("profile validate", ("foundation:base",), 0),
    ("profile diff", ("foundation:base", "foundation:dev"), 0),
    ("profile use", ("foundation:base",), 0),
    ("profile new", ("sailor",), 0),
    ("profile edit", ("nobody",), 1),  # there is none
    ("profile remove", ("sailor", "--yes"), 0),
    ("profile current", (), 0),
    ("profile reset", (), 0),
    ("provider list", (), 0),
    ("provider current", (), 0),
    ("provider models", ("provider-scripted",), 0),
    ("provider test", ("provider-scripted",), 0),
    ("tool list", PLANNED, 0),
    ("tool show", ("bash", *PLANNED), 0),
    ("tool invoke", ("list_directory", "path=.", *PLANNED), 0),
    (
        "init",
        ("--yes", "--provider", "provider-anthropic", "--key-from-env", "SHOP_KEY"),
        0,
    ),
    ("permissions", (), 0),
    ("permissions list", (), 0),
    ("permissions revoke", ("--all",), 0),
    ("questions", (), 0),
    ("questions list", (), 0),
    ("questions show", ("nothing",), 1),  # nothing waits here
    ("answer", ("nothing", "allow"), 1),
    ("token add", ("olga",), 0),
    ("token list", (), 0),
    ("token remove", ("olga",), 0),
    ("serve", ("--store", "nowhere://here"), 1),  # it would serve until a signal
    ("worker", ("--engine", "nowhere://here"), 1),  # likewise
    ("acp", PLANNED, 0),  # the editor is gone at once
    ("mcp add", ("shop", "--", "no-such-program"), 0),
    ("mcp list", PLANNED, 0),
    ("mcp tools", (), 0),
    ("mcp show", ("shop",), 0),
    ("mcp login", ("shop",), 1),  # nobody signs in to a program
    ("mcp logout", ("shop",), 1),
    ("mcp remove", ("shop",), 0),
    ("mcp serve", PLANNED, 0),
    ("trust", (), 1),
    ("trust list", (), 0),
    ("trust show", (), 0),
    ("trust revoke", (), 0),
    ("trust grant", ("commands",), 0),
]
"""Each command, its arguments and the code it ends with, in an order in which each finds what it needs."""


def leaves() -> Iterator[str]:
    """Yield every command that does something by itself, as it is typed."""
    yield from _leaves(main, (), click.Context(main))


def _leaves(
    command: click.Command, words: tuple[str, ...], context: click.Context
) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield " ".join(words)
        return
    if command.invoke_without_command:
        yield " ".join(words)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _leaves(found, (*words, name), context)


def _session() -> str:
    """Return the id of the latest session."""
    listed = json.loads(_invoke(["session", "list", "--json"]).stdout)
    return str(listed[0]["session_id"])


def _invoke(words: Sequence[str]) -> Result:
    return CliRunner().invoke(main, [*words], input="")


def run_all(shop: Path) -> Iterator[dict[str, str | int]]:
    """Run each command in this process and yield how it ended."""
    for name, arguments, _ in COMMANDS:
        session = _session() if "{session}" in arguments else ""
        words = [
            word.format(shop=shop, session=session)
            for word in (*name.split(), *arguments)
        ]
        result = _invoke(words)
        yield {
            "command": name,
            "code": result.exit_code,
            "output": result.output[-2000:],
        }


if __name__ == "__main__":
    for ended in run_all(Path(sys.argv[1])):
        sys.stdout.write(json.dumps(ended) + "\n")
    found = {
        name: str(getattr(module, "__file__", ""))
        for name, module in sys.modules.items()
    }
    here = os.getcwd()
    imported = [name for name, file in found.items() if file.startswith(f"{here}/")]
    sys.stdout.write(
        json.dumps(
            {
                "imported": imported,
                "path": [folder for folder in sys.path if folder == here],
            }
        )
    )
    sys.stdout.flush()
    os._exit(0)
