"""The suite of engines: one test for each thing that `amplifier_sdk.engines.ExecutionEngine` guarantees.

```python
class TestMyEngine(ExecutionEngineTests):
    @pytest.fixture
    def subject(self, database: str) -> EngineSubject:
        return MySubject(database)
```

An `EngineSubject` opens the engine, as often as it is asked, and kills what works through one. `InMemoryEngine` is the
double for tests of what uses an engine.
"""

from __future__ import annotations

from amplifier.testing.engines.behavior import EngineBehavior, EngineSubject
from amplifier.testing.engines.memory import InMemoryEngine, SharedRuns
from amplifier.testing.engines.suite import ENGINE_BEHAVIORS, ExecutionEngineTests

__all__ = [
    "ENGINE_BEHAVIORS",
    "EngineBehavior",
    "EngineSubject",
    "ExecutionEngineTests",
    "InMemoryEngine",
    "SharedRuns",
]
