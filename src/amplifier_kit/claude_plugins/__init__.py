"""Plugin folders as Claude Code has them: their hooks, commands, agents and skills, read into values.

Nothing here runs anything. Needs the extras that bring PyYAML and locks; functions that take a path block, so call them
in a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_kit.claude_plugins.agents import ClaudeAgent as ClaudeAgent
    from amplifier_kit.claude_plugins.commandfiles import CommandFile as CommandFile
    from amplifier_kit.claude_plugins.commandfiles import (
        command_patterns as command_patterns,
    )
    from amplifier_kit.claude_plugins.commandfiles import parse_command as parse_command
    from amplifier_kit.claude_plugins.copies import write_copies as write_copies
    from amplifier_kit.claude_plugins.folders import ClaudePlugin as ClaudePlugin
    from amplifier_kit.claude_plugins.folders import is_plugin as is_plugin
    from amplifier_kit.claude_plugins.folders import read_plugin as read_plugin
    from amplifier_kit.claude_plugins.hookfiles import HookEntry as HookEntry
    from amplifier_kit.claude_plugins.hookfiles import read_hooks as read_hooks
    from amplifier_kit.claude_plugins.loosefields import parse_loosely as parse_loosely
    from amplifier_kit.claude_plugins.named_paths import path_inside as path_inside
    from amplifier_kit.claude_plugins.own_folder import OwnPlugin as OwnPlugin
    from amplifier_kit.claude_plugins.own_folder import (
        evaluate_plugin as evaluate_plugin,
    )
    from amplifier_kit.claude_plugins.own_folder import judge_plugin as judge_plugin
    from amplifier_kit.claude_plugins.own_folder import lost_plugins as lost_plugins
    from amplifier_kit.claude_plugins.own_folder import own_plugins as own_plugins
    from amplifier_kit.claude_plugins.servers import SERVER_KEYS as SERVER_KEYS
    from amplifier_kit.claude_plugins.servers import (
        server_documents as server_documents,
    )
    from amplifier_kit.claude_plugins.toolnames import CALLS as CALLS
    from amplifier_kit.claude_plugins.toolnames import claude_calls as claude_calls
    from amplifier_kit.claude_plugins.toolnames import to_claude as to_claude
    from amplifier_kit.claude_plugins.toolnames import tool_named as tool_named

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
    "is_plugin",
    "judge_plugin",
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
    "CALLS": "toolnames",
    "SERVER_KEYS": "servers",
    "ClaudeAgent": "agents",
    "ClaudePlugin": "folders",
    "CommandFile": "commandfiles",
    "HookEntry": "hookfiles",
    "OwnPlugin": "own_folder",
    "claude_calls": "toolnames",
    "command_patterns": "commandfiles",
    "evaluate_plugin": "own_folder",
    "is_plugin": "folders",
    "judge_plugin": "own_folder",
    "lost_plugins": "own_folder",
    "own_plugins": "own_folder",
    "parse_command": "commandfiles",
    "parse_loosely": "loosefields",
    "path_inside": "named_paths",
    "read_hooks": "hookfiles",
    "read_plugin": "folders",
    "server_documents": "servers",
    "to_claude": "toolnames",
    "tool_named": "toolnames",
    "write_copies": "copies",
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
