"""Shell texts, read with a real grammar and evaluated by rules.

Needs the distributions `tree-sitter` and `tree-sitter-bash`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_kit.shell.grammar import parse_script as parse_script
    from amplifier_kit.shell.path_policy import PathPolicy as PathPolicy
    from amplifier_kit.shell.policy import PolicyDecision as PolicyDecision
    from amplifier_kit.shell.policy import ShellPolicy as ShellPolicy
    from amplifier_kit.shell.rules import CommandRule as CommandRule
    from amplifier_kit.shell.rules import PathRule as PathRule
    from amplifier_kit.shell.scripts import ShellSyntaxError as ShellSyntaxError
    from amplifier_kit.shell.scripts import SimpleCommand as SimpleCommand
    from amplifier_kit.shell.scripts import Word as Word
    from amplifier_kit.shell.table import Table as Table
    from amplifier_kit.shell.table import standard_table as standard_table

__all__ = [
    "CommandRule",
    "PathPolicy",
    "PathRule",
    "PolicyDecision",
    "ShellPolicy",
    "ShellSyntaxError",
    "SimpleCommand",
    "Table",
    "Word",
    "parse_script",
    "standard_table",
]

_HOME = {
    "PathPolicy": "path_policy",
    "PathRule": "rules",
    "CommandRule": "rules",
    "ShellPolicy": "policy",
    "ShellSyntaxError": "scripts",
    "SimpleCommand": "scripts",
    "Table": "table",
    "PolicyDecision": "policy",
    "Word": "scripts",
    "parse_script": "grammar",
    "standard_table": "table",
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
