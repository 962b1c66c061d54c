"""What a plugin may do once somebody agrees to it, in lines that can be compared."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.claude_plugins import (
    SERVER_KEYS,
    ClaudeAgent,
    ClaudePlugin,
    CommandFile,
    HookEntry,
    parse_loosely,
    server_documents,
)
from amplifier_kit.files.documents import DocumentError, read_text
from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["Ability", "abilities_of", "modules_for", "unsupported_parts"]

_DIRECTIVE: Final = re.compile(r"!(?: ?)`([^`\n]+)`")
_VARIABLE: Final = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")
_PLAIN: Final = re.compile(r"[^\s'\";]+")
_OWN: Final = ("CLAUDE_PLUGIN_ROOT", "CLAUDE_PROJECT_DIR", "AMPLIFIER_WORKING_DIR")
_SKILL: Final = "SKILL.md"
_MAX_DEPTH: Final = 4
_UNSUPPORTED: Final = {
    ".lsp.json": "language servers",
    "bin": "programs for the shell",
    "monitors": "monitors",
    "output-styles": "output styles",
    "themes": "themes",
}


@attrs.frozen(kw_only=True, order=True)
class Ability:
    """One thing that a plugin may do.

    Args:
        kind: `hook`, `server`, `command`, `agent`, `skill`.
        name: of what, such as an event, a server's name, or a command.
        detail: what it does.
        runs: whether something runs, or is connected to.
    """

    kind: str
    name: str
    detail: str = ""
    runs: bool = False


def abilities_of(plugin: ClaudePlugin) -> tuple[Ability, ...]:
    """Return what a plugin may do, in the order of kinds and names. The function blocks.

    Raises:
        ConfigError: a file that declares servers cannot be read.
    """
    found = [
        *map(_hook, plugin.hooks),
        *_servers(plugin.root),
        *map(_command, plugin.commands),
        *map(_agent, plugin.agents),
        *_skills(plugin.skills),
    ]
    return tuple(sorted(found))


def modules_for(abilities: Sequence[Ability]) -> tuple[str, ...]:
    """Return the modules that a session needs so that a plugin takes effect."""
    kinds = {ability.kind for ability in abilities}
    wanted = {
        "hooks-shell": kinds & {"hook", "command", "agent", "skill"},
        "tool-skills": kinds & {"skill"},
        "tool-mcp": kinds & {"server"},
    }
    return tuple(module for module, needed in wanted.items() if needed)


def unsupported_parts(folder: Path) -> tuple[str, ...]:
    """Return what a plugin's folder has that takes no effect here."""
    return tuple(
        what for name, what in _UNSUPPORTED.items() if (folder / name).exists()
    )


def _hook(hook: HookEntry) -> Ability:
    name = " ".join(filter(None, (hook.event, hook.matcher)))
    if hook.kind == "prompt":
        return Ability(kind="hook", name=name, detail=f"asks the model: {hook.text}")
    return Ability(kind="hook", name=name, detail=f"runs: {hook.text}", runs=True)


def _servers(root: Path) -> Iterator[Ability]:
    for _, document in server_documents(root):
        if isinstance(document, ConfigError):
            raise document
        for key in SERVER_KEYS:
            for name, entry in as_object(document.get(key)).items():
                yield _server(name, as_object(entry))


def _server(name: str, entry: JSONObject) -> Ability:
    words = map(str, [entry.get("command"), *as_list(entry.get("args"))])
    detail = f"starts: {_listed(words)}"
    if isinstance(entry.get("url"), str):
        detail = f"connects to: {entry['url']}"
    detail += "".join(_surroundings(entry))
    allowed = map(str, as_list(entry.get("env_allow")))
    passed = [*allowed, *dict.fromkeys(_variables(entry))]
    if passed:
        detail += f"; gets your {', '.join(passed)}"
    return Ability(kind="server", name=name, detail=detail, runs=True)


def _surroundings(entry: JSONObject) -> Iterator[str]:
    """Yield what a server is given besides: any of it may change what runs, or who is asked."""
    if isinstance(entry.get("cwd"), str):
        yield f"; in the folder: {entry['cwd']}"
    for key, verb in (("env", "with"), ("headers", "sends")):
        pairs = as_object(entry.get(key)).items()
        if pairs:
            yield f"; {verb}: {_listed(f'{name}={value}' for name, value in pairs)}"


def _listed(words: Iterable[str]) -> str:
    """Write words, quoted where they have to be, so that no two lists of them look alike."""
    return " ".join(
        word if _PLAIN.fullmatch(word) else shlex.quote(word) for word in words
    )


def _variables(value: JSONValue) -> Iterator[str]:
    if isinstance(value, str):
        yield from (name for name in _VARIABLE.findall(value) if name not in _OWN)
    for item in [*as_object(value).values(), *as_list(value)]:
        yield from _variables(item)


def _command(command: CommandFile) -> Ability:
    texts = _DIRECTIVE.findall(command.body)
    details = [f"runs: {text}" for text in texts]
    # Without a text that runs, what it allows itself allows nothing.
    if texts and command.allowed_tools:
        details.append(f"unasked: {', '.join(command.allowed_tools)}")
    return Ability(
        kind="command",
        name=f"/{':'.join(filter(None, (command.folder, command.name)))}",
        detail="; ".join(details or [command.description]),
        runs=bool(texts),
    )


def _agent(agent: ClaudeAgent) -> Ability:
    tools = "all tools"
    if agent.tools is not None:
        tools = f"tools: {', '.join(agent.tools) or 'none'}"
    if agent.disallowed_tools:
        tools += f", without {', '.join(agent.disallowed_tools)}"
    return Ability(kind="agent", name=agent.name, detail=tools)


def _skills(folders: Sequence[Path]) -> Iterator[Ability]:
    seen = set[Path]()
    for folder in folders:
        for depth in range(_MAX_DEPTH + 1):
            for path in sorted(folder.glob("/".join([*["*"] * depth, _SKILL]))):
                if path not in seen:
                    seen.add(path)
                    yield _skill(path)


def _skill(path: Path) -> Ability:
    try:
        head = parse_loosely(read_text(path), frozenset({"name", "description"}))
    except (ConfigError, DocumentError):
        return Ability(kind="skill", name=path.parent.name, detail="cannot be read")
    return Ability(
        kind="skill",
        name=head.text("name") or path.parent.name,
        detail=" ".join(head.text("description").split())[:100],
    )
