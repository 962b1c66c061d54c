"""Which texts reach the network, by the programs that they name: a sandbox lets one do so that was allowed for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from amplifier_kit.shell.coverage import lone_command
from amplifier_kit.shell.grammar import parse_script
from amplifier_kit.shell.scripts import HOLE, ShellSyntaxError, SimpleCommand
from amplifier_kit.shell.wrappers import inner_of

__all__ = ["installs_what_is_locked", "reaches_network"]

_MAX_DEPTH: Final = 5
_ALWAYS: Final = frozenset({
    "apt", "apt-get", "aria2c", "aws", "az", "brew", "curl", "dig", "dnf", "doctl", "flyctl", "ftp", "gcloud", "gh",
    "glab", "heroku", "host", "http", "https", "httpie", "nc", "ncat", "netlify", "nslookup", "npx", "ping", "pipx",
    "rsync", "scp", "sftp", "skopeo", "socat", "ssh", "telnet", "traceroute", "twine", "uvx", "vercel", "wget",
    "whois", "yum",
})  # fmt: skip
_BY_WORDS: Final[Mapping[str, AbstractSet[str]]] = {
    "bun": {"add", "create", "i", "install", "outdated", "publish", "update", "x"},
    "bundle": {"add", "install", "outdated", "update"},
    "cargo": {"add", "fetch", "install", "login", "publish", "search", "update"},
    "composer": {"install", "outdated", "require", "update"},
    "docker": {"build", "compose", "login", "pull", "push", "run"},
    "dotnet": {"add", "nuget", "restore", "tool"},
    "gem": {"fetch", "install", "outdated", "push", "update"},
    "git": {"clone", "fetch", "ls-remote", "pull", "push", "submodule"},
    "go": {"get", "install", "mod"},
    "gradle": {"--refresh-dependencies", "publish"},
    "helm": {"install", "pull", "push", "repo", "upgrade"},
    "kubectl": frozenset(),
    "mix": {"deps.get", "deps.update", "hex.info"},
    "mvn": {"deploy", "dependency:go-offline", "dependency:resolve"},
    "npm": {
        "add",
        "audit",
        "ci",
        "i",
        "install",
        "outdated",
        "publish",
        "up",
        "update",
        "view",
    },
    "pip": {"download", "index", "install"},
    "pnpm": {"add", "audit", "i", "install", "outdated", "publish", "update"},
    "poetry": {"add", "install", "lock", "publish", "update"},
    "terraform": {"apply", "destroy", "init", "plan", "refresh"},
    "uv": {"add", "lock", "pip", "publish", "sync", "tool"},
    "yarn": {"", "add", "audit", "install", "outdated", "publish", "upgrade"},
}
"""Programs of which some words reach it; of one without words all do."""

_LOCKED: Final = (
    ("bun", "install", "--frozen-lockfile"),
    ("bundle", "install"),
    ("cargo", "fetch"),
    ("composer", "install"),
    ("dotnet", "restore"),
    ("go", "mod", "download"),
    ("mix", "deps.get"),
    ("npm", "ci"),
    ("npm", "install"),
    ("pip", "install", "-r"),
    ("pip3", "install", "-r"),
    ("pnpm", "install"),
    ("poetry", "install"),
    ("uv", "sync"),
    ("yarn", "install"),
)
"""How commands begin that install what the project's own files name; the rules say with which words they may run."""


def reaches_network(text: str, variables: Mapping[str, str] | None = None) -> bool:
    """Whether one of a text's commands is known to reach the network.

    Args:
        text: what the shell is to run.
        variables: those whose values are known.
    """
    return _reaches(text, variables or {}, 0)


def installs_what_is_locked(
    text: str, variables: Mapping[str, str] | None = None
) -> bool:
    """Whether a text is one command that installs what the project's own files name, and nothing besides."""
    command = lone_command(text, variables)
    if command is None:
        return False
    words = tuple(word.static for word in command.words)
    return any(words[: len(start)] == start for start in _LOCKED)


def _reaches(text: str, variables: Mapping[str, str], depth: int) -> bool:
    try:
        commands = parse_script(text, variables).commands
    # Allowing is decided elsewhere: here an unreadable text only gets no network.
    except ShellSyntaxError:
        return False
    return any(_command_reaches(command, variables, depth) for command in commands)


def _command_reaches(
    command: SimpleCommand, variables: Mapping[str, str], depth: int
) -> bool:
    if depth > _MAX_DEPTH:
        return False
    name = (command.words[0].static or "").rpartition("/")[2]
    inner = inner_of(name, command)
    if inner is not None:
        nested = any(
            _command_reaches(each, variables, depth + 1) for each in inner.commands
        )
        return nested or any(
            _reaches(each, variables, depth + 1) for each in inner.texts
        )
    words = [
        value
        for word in command.words[1:]
        for value in word.values
        if HOLE not in value
    ]
    return _program_reaches(name, words)


def _program_reaches(name: str, words: Sequence[str]) -> bool:
    # `python -m pip install` is `pip install`
    if name.startswith("python") and words[:1] == ["-m"]:
        name, words = "".join(words[1:2]), words[2:]
    if name in _ALWAYS:
        return True
    known = _BY_WORDS.get("pip" if name == "pip3" else name)
    if known is None:
        return False
    first = next((word for word in words if not word.startswith("-")), "")
    return not known or first in known or not known.isdisjoint(words)
