"""The suite of stores of sessions: one test for each thing that `amplifier_sdk.stores.SessionStore` guarantees.

```python
class TestMyStore(SessionStoreTests):
    @pytest.fixture
    def subject(self, database: str) -> StoreSubject:
        return MySubject(database)
```

A `StoreSubject` opens the store, as often as it is asked, and ends the leases in it as if their time had passed. The
tests run with anyio's pytest plugin; the fixture `anyio_backend` says on which backends. `MeteredStoreTests` does the
same for the accounts of a store, `amplifier_kit.quotas.QuotaStore`.
"""

from __future__ import annotations

from amplifier.testing.stores.behavior import StoreBehavior, StoreSubject
from amplifier.testing.stores.suite import (
    QUOTA_BEHAVIORS,
    STORE_BEHAVIORS,
    MeteredStoreTests,
    SessionStoreTests,
)

__all__ = [
    "QUOTA_BEHAVIORS",
    "STORE_BEHAVIORS",
    "MeteredStoreTests",
    "SessionStoreTests",
    "StoreBehavior",
    "StoreSubject",
]
