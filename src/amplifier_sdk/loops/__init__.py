"""The base class of orchestrators: a loop is a page, because the duties are here and in the host.

`Loop.execute` is the contract's five-argument call. It opens a `Turn`, emits the events that a turn owes
(balanced, also on error and cancel) and leaves the order of the steps to `run`:

```python
@orchestrator
class BasicLoop(Loop):
    name = "loop-basic"

    async def run(self, turn: Turn) -> str:
        while True:
            response = await turn.complete()
            if not response.tool_calls:
                return response.text
            await turn.run_tools(response.tool_calls)
```

A loop that takes a `LoopConfig` as `config` has its settings: which provider is asked, and with what.
"""

from __future__ import annotations

from amplifier_sdk.loops.config import LoopConfig, RoleCandidate
from amplifier_sdk.loops.loop import Loop
from amplifier_sdk.loops.priorities import choose_provider
from amplifier_sdk.loops.specs import schema_of, tool_spec
from amplifier_sdk.loops.turn import Turn

__all__ = [
    "Loop",
    "LoopConfig",
    "RoleCandidate",
    "Turn",
    "choose_provider",
    "schema_of",
    "tool_spec",
]
