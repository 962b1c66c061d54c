"""The modules that are installed, those that are published with Amplifier, and what to type for one that is not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from amplifier.kernel.modules.loader import ModuleInfo, ModuleLoader
from amplifier_kit.installation import install_command

__all__ = ["OWN_MODULES", "how_to_add", "how_to_get", "list_modules"]

OWN_MODULES: Final = frozenset(
    {
        "context-persistent",
        "context-simple",
        "hooks-approval",
        "hooks-backup",
        "hooks-logging",
        "hooks-otel",
        "hooks-redaction",
        "hooks-shell",
        "hooks-status-context",
        "hooks-streaming-ui",
        "hooks-todo-reminder",
        "loop-basic",
        "loop-events",
        "loop-streaming",
        "provider-anthropic",
        "provider-azure-openai",
        "provider-chat-completions",
        "provider-local",
        "provider-ollama",
        "provider-openai",
        "provider-scripted",
        "tool-bash",
        "tool-filesystem",
        "tool-mcp",
        "tool-skills",
        "tool-task",
        "tool-todo",
        "tool-web",
    }
)
"""Their distributions are called `amplifier-module-ID`; nobody else's may be guessed from an id."""


def how_to_add(module: str, installed: Collection[str]) -> str:
    """Return what helps where a module is not installed.

    Only a distribution of Amplifier's own is named to pip: under the name that a misspelt id makes, anybody may publish
    a package.
    """
    add = how_to_get(module)
    if module in OWN_MODULES:
        return add
    near = _nearest(module, sorted({*installed, *OWN_MODULES}))
    if near is None:
        return add
    return f"did you mean {near!r}? {add}"


def how_to_get(module: str) -> str:
    """Return the command that installs a module of Amplifier's own, or that adds one of the person's."""
    if module in OWN_MODULES:
        return f"install it with: {install_command(f'amplifier-module-{module}')}"
    return f"'amplifier module add {module} --source FOLDER' adds one of yours"


def _nearest(module: str, known: Sequence[str]) -> str | None:
    # costs some milliseconds, and only a mistake needs it
    from difflib import get_close_matches

    # Without their prefix: `tool-` alone makes any two short ids look alike.
    prefix, dash, name = module.partition("-")
    begin = prefix + dash
    alike = [each.removeprefix(begin) for each in known if each.startswith(begin)]
    near = get_close_matches(name, alike, n=1, cutoff=0.6)
    if near:
        return begin + near[0]
    return None


def list_modules(kind: str | None = None) -> list[ModuleInfo]:
    """List the modules that are installed or lie below `AMPLIFIER_MODULES`, sorted by id.

    Args:
        kind: only modules of this type.
    """
    found = ModuleLoader().discover()
    return [module for module in found if kind in {None, module.type}]
