"""Suites that a module runs on itself: one test for each behaviour of its type, on each backend.

In one line:

```python
from amplifier.testing.conformance import conformance

TestWords = conformance("tool", count_words, samples=ToolSamples(arguments={"count_words": ({"text": "a b"},)}))
```

Or as a class, beside tests of its own:

```python
class TestWords(ToolBehaviorTests):
    module = count_words
    samples = ToolSamples(arguments={"count_words": ({"text": "a b"},)})
```

The tests run with anyio's pytest plugin; the fixture `anyio_backend` says on which backends.
"""

from __future__ import annotations

from amplifier.testing.conformance.suites import (
    ConformanceTests,
    ContextBehaviorTests,
    HookBehaviorTests,
    OrchestratorBehaviorTests,
    ProviderBehaviorTests,
    ToolBehaviorTests,
    conformance,
)
from amplifier.validation.behaviors import (
    Around,
    Case,
    HookSamples,
    ProviderSamples,
    Samples,
    ToolSamples,
)

__all__ = [
    "Around",
    "Case",
    "ConformanceTests",
    "ContextBehaviorTests",
    "HookBehaviorTests",
    "HookSamples",
    "OrchestratorBehaviorTests",
    "ProviderBehaviorTests",
    "ProviderSamples",
    "Samples",
    "ToolBehaviorTests",
    "ToolSamples",
    "conformance",
]
