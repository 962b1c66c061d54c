"""Shell texts, read with a real grammar and evaluated by rules.

Needs the distributions `tree-sitter` and `tree-sitter-bash`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_kit.shell.grammar import parse_script
    from amplifier_kit.shell.path_policy import PathPolicy
    from amplifier_kit.shell.policy import PolicyDecision, ShellPolicy
    from amplifier_kit.shell.rules import CommandRule, PathRule
    from amplifier_kit.shell.scripts import ShellSyntaxError, SimpleCommand, Word
    from amplifier_kit.shell.table import Table, standard_table

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
    "grammar": ("parse_script",),
    "path_policy": ("PathPolicy",),
    "policy": ("PolicyDecision", "ShellPolicy"),
    "rules": ("CommandRule", "PathRule"),
    "scripts": ("ShellSyntaxError", "SimpleCommand", "Word"),
    "table": ("Table", "standard_table"),
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
