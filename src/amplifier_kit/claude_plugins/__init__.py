"""Plugin folders as Claude Code has them: their hooks, commands, agents and skills, read into values.

Nothing here runs anything. Needs the extras that bring PyYAML and locks; functions that take a path block, so call them
in a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_kit.claude_plugins.agents import ClaudeAgent
    from amplifier_kit.claude_plugins.commandfiles import (
        CommandFile,
        command_patterns,
        parse_command,
    )
    from amplifier_kit.claude_plugins.folders import (
        ClaudePlugin,
        is_plugin,
        path_inside,
        read_plugin,
    )
    from amplifier_kit.claude_plugins.hookfiles import HookEntry, read_hooks
    from amplifier_kit.claude_plugins.loosefields import parse_loosely
    from amplifier_kit.claude_plugins.own_folder import (
        OwnPlugin,
        evaluate_plugin,
        evaluate_trust,
        lost_plugins,
        own_plugins,
        write_copies,
    )
    from amplifier_kit.claude_plugins.servers import SERVER_KEYS, server_documents
    from amplifier_kit.claude_plugins.toolnames import (
        CALLS,
        claude_calls,
        to_claude,
        tool_named,
    )

__all__ = [
    "CALLS",
    "SERVER_KEYS",
    "ClaudeAgent",
    "ClaudePlugin",
    "CommandFile",
    "HookEntry",
    "OwnPlugin",
    "claude_calls",
    "command_patterns",
    "evaluate_plugin",
    "evaluate_trust",
    "is_plugin",
    "lost_plugins",
    "own_plugins",
    "parse_command",
    "parse_loosely",
    "path_inside",
    "read_hooks",
    "read_plugin",
    "server_documents",
    "to_claude",
    "tool_named",
    "write_copies",
]

_HOME = {
    "agents": ("ClaudeAgent",),
    "commandfiles": ("CommandFile", "command_patterns", "parse_command"),
    "folders": ("ClaudePlugin", "is_plugin", "path_inside", "read_plugin"),
    "hookfiles": ("HookEntry", "read_hooks"),
    "loosefields": ("parse_loosely",),
    "own_folder": (
        "OwnPlugin",
        "evaluate_plugin",
        "evaluate_trust",
        "lost_plugins",
        "own_plugins",
        "write_copies",
    ),
    "servers": ("SERVER_KEYS", "server_documents"),
    "toolnames": ("CALLS", "claude_calls", "to_claude", "tool_named"),
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
