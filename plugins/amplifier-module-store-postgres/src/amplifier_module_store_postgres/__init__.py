"""A store of sessions in PostgreSQL: `amplifier_sdk.SessionStore` for many machines.

```python
store = await open_store("postgresql://amplifier@db.example/amplifier", namespace="shop")
try:
    lease = await store.acquire("s1", owner="worker 1", period=30)
finally:
    await store.aclose()
```
"""

from __future__ import annotations

from amplifier_module_store_postgres._store import PostgresSessionStore, open_store

__all__ = ["PostgresSessionStore", "open_store"]
