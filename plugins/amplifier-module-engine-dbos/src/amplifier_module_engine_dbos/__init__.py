"""An engine on DBOS: `open_engine` opens it on a SQLite file or a PostgreSQL database."""

from __future__ import annotations

from amplifier_module_engine_dbos._engine import DBOSEngine, open_engine

__all__ = ["DBOSEngine", "open_engine"]
