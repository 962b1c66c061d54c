"""The suite of stores of sessions: one test for each thing that `amplifier_sdk.stores.SessionStore` guarantees.

```python
class TestMyStore(SessionStoreTests):
    @pytest.fixture
    def subject(self, database: str) -> StoreSubject:
        return MySubject(database)
```

A `StoreSubject` opens the store, as often as it is asked, and ends the leases in it as if their time had passed. The
tests run with anyio's pytest plugin; the fixture `anyio_backend` says on which backends.
"""

from __future__ import annotations

from amplifier.testing.stores.behavior import StoreBehavior, StoreSubject
from amplifier.testing.stores.suite import STORE_BEHAVIORS, SessionStoreTests

__all__ = [
    "STORE_BEHAVIORS",
    "SessionStoreTests",
    "StoreBehavior",
    "StoreSubject",
]
