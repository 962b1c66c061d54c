"""By which words an answer may cover a text, and the commands like it: `git push`, with whatever stands behind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from amplifier_kit.shell.grammar import parse_script
from amplifier_kit.shell.programs import LANGUAGES
from amplifier_kit.shell.scripts import Script, ShellSyntaxError, SimpleCommand
from amplifier_kit.shell.wrappers import inner_of

__all__ = ["lone_command", "prefix_of"]

_WORD: Final = re.compile(r"[a-z][a-z0-9:-]*")
_TWO_WORDS: Final = frozenset({
    "apt", "apt-get", "brew", "bundle", "cargo", "composer", "dotnet", "flutter", "gem", "git", "go", "gradle",
    "helm", "mix", "mvn", "npm", "pip", "pip3", "pnpm", "poetry", "terraform", "yarn", "bun",
    "docker", "podman", "kubectl", "systemctl", "uv",
})  # fmt: skip
"""Programs whose first word says what they do."""

_THREE_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "bun": frozenset({"pm"}),
    "docker": frozenset({"compose", "container", "image", "network", "volume"}),
    "npm": frozenset({"run"}),
    "pnpm": frozenset({"run"}),
    "podman": frozenset({"compose", "container", "image", "network", "volume"}),
    "uv": frozenset({"pip", "tool"}),
    "yarn": frozenset({"run"}),
}
"""First words behind which the second says it."""

_ALWAYS_THREE: Final = frozenset({"aws", "az", "gcloud", "gh", "glab"})
_RUNNING: Final = frozenset({
    "alias", "config", "create", "dlx", "eval", "exec", "extension", "fix", "init", "plugin", "run", "shell", "x",
})  # fmt: skip
"""What lets a program run others, or be told to: no word to give an answer for more than one call."""

_ALONE: Final = frozenset({
    "black", "ctest", "curl", "dig", "eslint", "host", "http", "https", "jest", "mypy", "nox", "nslookup", "ping",
    "prettier", "pytest", "ruff", "tox", "traceroute", "tsc", "vitest", "whois",
})  # fmt: skip
"""Programs whose name says what they do. Of no other are two calls alike enough: many run what the words behind say."""

_OF_GIT: Final = frozenset({
    "add", "branch", "checkout", "cherry-pick", "commit", "fetch", "merge", "pull", "push", "remote", "restore",
    "revert", "switch", "tag", "worktree",
})  # fmt: skip
"""What git does without running what the words behind say: not `bisect`, `rebase`, `clone`, `submodule`."""


def prefix_of(text: str, variables: Mapping[str, str] | None = None) -> str | None:
    """Return the words by which an answer may cover a text; `None` where it may cover that very text alone.

    The text is one plain command: nothing else is run, set, opened or put together in it.

    Args:
        text: what the shell is to run.
        variables: those whose values are known.
    """
    command = lone_command(text, variables)
    if command is None:
        return None
    words = [word.static or "" for word in command.words]
    name = words[0]
    if name in LANGUAGES or inner_of(name, command) is not None:
        return None
    chosen = words[: _count(words)]
    if len(chosen) == 1 and name not in _ALONE:
        return None
    if name == "git" and not _OF_GIT.issuperset(chosen[1:]):
        return None
    is_named = len(chosen) == _count(words) and all(map(_WORD.fullmatch, chosen[1:]))
    is_running = chosen[-1] in _RUNNING or (name in _ALWAYS_THREE and not _RUNNING.isdisjoint(chosen))
    return " ".join(chosen) if is_named and not is_running else None


def lone_command(text: str, variables: Mapping[str, str] | None = None) -> SimpleCommand | None:
    """Return the command that a text is, where it is one and nothing besides, and its words are known."""
    try:
        script = parse_script(text, variables or {})
    except ShellSyntaxError:
        return None
    if not _is_plain(script):
        return None
    command = script.commands[0]
    words = [word.static for word in command.words]
    is_known = bool(words) and None not in words and not any(word.is_pattern for word in command.words)
    name = words[0] if words else None
    if command.text.split() != text.split():
        return None  # something stands besides, such as the sign that sends it to the background
    if command.assignments or command.is_function or not is_known or name is None or "/" in name:
        return None
    return command


def _is_plain(script: Script) -> bool:
    return len(script.commands) == 1 and not (script.doubts or script.assignments or script.redirects)


def _count(words: list[str]) -> int:
    """Count the words that say what a command does."""
    name, second = words[0], words[1] if len(words) > 1 else ""
    if name in _ALWAYS_THREE or second in _THREE_WORDS.get(name, ()):
        return 3
    return 2 if name in _TWO_WORDS else 1
