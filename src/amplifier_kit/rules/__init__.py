"""Rules that say of a tool call whether it runs, is asked about or is refused, by its parsed arguments.

```python
rules = RuleSet.load([{"decision": "allow", "tools": ["write_file"], "paths": ["src/**"]}], directory=Path("/srv/app"))
rules.evaluate(Call(tool_name="write_file", arguments={"path": "src/a.py"}, directory=Path("/srv/app"))).decision
```

Names load when they are first used. Rules on commands read the shell's grammar where `tree-sitter` and
`tree-sitter-bash` are installed; without them a command is compared as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_kit.rules.calls import RuledCall
    from amplifier_kit.rules.rule import Rule
    from amplifier_kit.rules.ruleset import RuleSet
    from amplifier_kit.rules.touched import TouchedPath, touched_paths

__all__ = [
    "Rule",
    "RuleSet",
    "RuledCall",
    "TouchedPath",
    "touched_paths",
]

_HOME = {
    "calls": ("RuledCall",),
    "rule": ("Rule",),
    "ruleset": ("RuleSet",),
    "touched": ("TouchedPath", "touched_paths"),
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
