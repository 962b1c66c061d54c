"""Runs one case in this process and prints its rows as JSON: `python -m benchmarks.measure CASE BACKEND SECONDS`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Final

from benchmarks.cases import (
    agents,
    checks,
    demands,
    durable,
    emits,
    paced,
    processes,
    served,
    sessions,
    stores,
    streams,
    turns,
)
from benchmarks.pairing import Effort
from benchmarks.rows import Row

CASES: Final[dict[str, Callable[[str, Effort], list[Row]]]] = {
    "iteration": turns.iteration,
    "yielding": turns.yielding,
    "journal": turns.journal,
    "first": turns.first,
    "growth": turns.growth,
    "turn": turns.turn,
    "parallel": turns.parallel,
    "history": turns.history,
    "compaction": streams.compaction,
    "deltas": streams.deltas,
    "paced": paced.paced,
    "served": served.served,
    "emits": emits.emits,
    "sessions": sessions.sessions,
    "building": sessions.building,
    "agents": agents.agents,
    "ready": processes.ready,
    "imports": processes.imports,
    "discovery": processes.discovery,
    "checks": checks.checks,
    "demands": demands.demands,
    "stores": stores.stores,
    "durable": durable.durable,
}

if __name__ == "__main__":
    case, backend, seconds = sys.argv[1:]
    print(json.dumps(CASES[case](backend, Effort(seconds=float(seconds)))))
