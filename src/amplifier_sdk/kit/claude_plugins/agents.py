"""Agents in Markdown: front matter, and the instruction that the agent's history begins with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import attrs

from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.kit.claude_plugins.loosefields import parse_loosely
from amplifier_sdk.kit.claude_plugins.toolnames import tool_named
from amplifier_sdk.kit.documents import DocumentError, read_text

__all__ = ["AgentFile", "read_agent"]

_FIELDS: Final = frozenset({"name", "description", "model", "color", "tools"})
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_LONGEST_DESCRIPTION: Final = 5_000
_INHERITED: Final = frozenset({"", "inherit"})


@attrs.frozen(kw_only=True)
class AgentFile:
    """An agent.

    Args:
        name: what it is called by.
        description: when to use it.
        instruction: its system prompt.
        tools: our names of the tools that it may use; `None` for all.
        model: its model, as the file names it; `None` for its caller's.
        color: how it is shown.
    """

    name: str
    description: str
    instruction: str
    tools: tuple[str, ...] | None = None
    model: str | None = None
    color: str | None = None


def read_agent(path: Path) -> AgentFile:
    """Read the file of an agent.

    Raises:
        ConfigError: the file cannot be read, or lacks a name, a description or a prompt.
    """
    subject = f"file {str(path)!r}"
    try:
        read = parse_loosely(read_text(path), _FIELDS)
    except DocumentError as error:
        raise ConfigError([Problem(error.place, error.message)], subject=subject) from error
    name = read.text("name") or path.stem
    problems = []
    if not _NAME.fullmatch(name):
        problems.append(Problem("name", f"lower-case letters, digits and hyphens, 64 at most; got {name!r:.80}"))
    if not read.text("description"):
        problems.append(Problem("description", "a text that says when to use the agent is missing"))
    if not read.body.strip():
        problems.append(Problem("", "the prompt below the front matter is missing"))
    if problems:
        raise ConfigError(problems, subject=subject)
    model = read.text("model")
    return AgentFile(
        name=name,
        description=read.text("description")[:_LONGEST_DESCRIPTION],
        instruction=read.body.strip(),
        tools=_tools(read.words("tools")),
        model=None if model in _INHERITED else model,
        color=read.text("color") or None,
    )


def _tools(named: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if not named or "*" in named:
        return None
    return tuple(dict.fromkeys(map(tool_named, named)))
