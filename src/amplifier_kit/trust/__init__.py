"""Trust in what a project's folder brings along: nothing of it runs or is connected to before a person said so.

Trust is in content. What would run is read, hashed and compared with what was trusted; the store lies outside the
project, and changed content is asked about again.

```python
store = TrustStore.in_home()
decision = store.require(folder, "mcp", [".mcp.json"])
if not decision.trusted:
    ...  # show decision.reason and decision.items to the person; when they agree:
    store.grant(decision)
servers = json.loads(decision.contents[".mcp.json"])  # what was judged, not what the file holds by now
```

Everything here blocks: call it in a thread. Writing needs the extra `amplifier[locks]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_kit.trust.closures import (
        changed_code,
        closure_of,
        covered_paths,
        evaluate_project,
    )
    from amplifier_kit.trust.fingerprints import DeclaredItem, UnreadableItemError
    from amplifier_kit.trust.store import PROJECT_FILES, TrustDecision, TrustStore

__all__ = [
    "PROJECT_FILES",
    "DeclaredItem",
    "TrustDecision",
    "TrustStore",
    "UnreadableItemError",
    "changed_code",
    "closure_of",
    "covered_paths",
    "evaluate_project",
]

_HOME = {
    "closures": ("changed_code", "closure_of", "covered_paths", "evaluate_project"),
    "fingerprints": ("DeclaredItem", "UnreadableItemError"),
    "store": ("PROJECT_FILES", "TrustDecision", "TrustStore"),
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
