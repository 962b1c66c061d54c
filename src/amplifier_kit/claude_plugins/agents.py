"""Agents in Markdown: front matter, and the instruction that the agent's history begins with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.claude_plugins.commandfiles import command_patterns
from amplifier_kit.claude_plugins.loosefields import LooseFile, folded, parse_loosely
from amplifier_kit.claude_plugins.toolnames import tool_named
from amplifier_kit.files.documents import named_errors, read_text
from amplifier_sdk.errors import ConfigError, Problem

__all__ = ["ClaudeAgent", "read_agent"]

_FIELDS: Final = frozenset(
    {
        "name",
        "description",
        "model",
        "color",
        "tools",
        "allowed-tools",
        "disallowedTools",
        "permissionMode",
    }
)
_ONLY: Final = ("tools", "allowed-tools")
_WITHOUT: Final = "disallowedTools"
_SAFE_MODE: Final = "plan"
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_LONGEST_DESCRIPTION: Final = 5_000
_INHERITED: Final = frozenset({"", "inherit"})


@attrs.frozen(kw_only=True)
class ClaudeAgent:
    """An agent.

    Args:
        name: what it is called by.
        description: when to use it.
        instruction: its system prompt.
        tools: the tools that it may use, by our names; of `bash` also some commands alone, as `Bash(git:*)`. `None`
            for all.
        disallowed_tools: the tools that it may not use, by our names.
        model: its model, as the file names it; `None` for its caller's.
        color: how it is shown.
    """

    name: str
    description: str
    instruction: str
    tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()
    model: str | None = None
    color: str | None = None


def read_agent(path: Path) -> ClaudeAgent:
    """Read the file of an agent.

    Raises:
        ConfigError: the file cannot be read, lacks a name, a description or a prompt, or limits the agent in a way
            that is not understood.
    """
    subject = f"file {str(path)!r}"
    with named_errors(subject):
        read = parse_loosely(read_text(path), _FIELDS)
    name = read.text("name") or path.stem
    problems = []
    if not _NAME.fullmatch(name):
        problems.append(
            Problem(
                "name",
                f"lower-case letters, digits and hyphens, 64 at most; got {name!r:.80}",
            )
        )
    if not read.text("description"):
        problems.append(
            Problem("description", "a text that says when to use the agent is missing")
        )
    if not read.body.strip():
        problems.append(Problem("", "the prompt below the front matter is missing"))
    problems += _unknown_limits(read)
    tools, without = _tools(read, problems), _named(read, _WITHOUT, problems)
    if problems:
        raise ConfigError(problems, subject=subject)
    model = read.text("model")
    return ClaudeAgent(
        name=name,
        description=read.text("description")[:_LONGEST_DESCRIPTION],
        instruction=read.body.strip(),
        tools=tools,
        disallowed_tools=tuple(dict.fromkeys(map(tool_named, without or ()))),
        model=None if model in _INHERITED else model,
        color=read.text("color") or None,
    )


def _unknown_limits(read: LooseFile) -> Iterator[Problem]:
    """Yield the fields that would limit an agent and that nothing reads."""
    for name in read.fields:
        if name not in _FIELDS and "tool" in folded(name):
            yield Problem(
                name,
                f"no such field; an agent's tools are limited by 'tools' and {_WITHOUT!r}",
            )
    if read.text("permissionMode").lower() == _SAFE_MODE:
        yield Problem(
            "permissionMode",
            "'plan' is not supported; name the tools that only read under 'tools'",
        )


def _tools(read: LooseFile, problems: list[Problem]) -> tuple[str, ...] | None:
    """Return the tools that an agent may use: those that every field which limits them names."""
    limits = [
        named
        for name in _ONLY
        if (named := _named(read, name, problems)) is not None and "*" not in named
    ]
    if not limits:
        return None
    found = [entry for entry in limits[0] if all(entry in named for named in limits)]
    return tuple(dict.fromkeys(_limited(entry, problems) for entry in found))


def _limited(entry: str, problems: list[Problem]) -> str:
    """Return our name of a tool; a limit to some commands stays with it."""
    name, inner = tool_named(entry), entry.partition("(")[2].rstrip(")").strip()
    if inner in ("", "*"):
        return name
    if name != "bash" or not command_patterns([entry]):
        problem = f"{entry!r:.80} limits what cannot be limited here; of Bash some commands can, as Bash(git:*)"
        problems.append(Problem("tools", problem))
    return entry.strip()


def _named(
    read: LooseFile, name: str, problems: list[Problem]
) -> tuple[str, ...] | None:
    """Return the tools that a field names; `None` where it is not there. What is no list of names is a problem."""
    if name not in read.fields:
        return None
    value = read.fields[name]
    is_list = isinstance(value, list) and all(
        isinstance(item, str) and item.strip() for item in value
    )
    if not is_list and not (isinstance(value, str) and value.strip()):
        problem = (
            f"names of tools, [] for none; leave it out for all; got {value!r:.80}"
        )
        problems.append(Problem(name, problem))
        return ()
    return read.words(name) or ()
