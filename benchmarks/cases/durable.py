"""Turns whose every step is stored in PostgreSQL, beside bare DBOS and LangGraph on the same server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final

import psycopg

from amplifier.testing.postgres import PASSWORD, find_programs, running_server
from benchmarks.durable.samples import sampling
from benchmarks.pairing import Effort
from benchmarks.rows import Row, bar, figure

__all__ = ["PEERS_FOLDER", "durable"]

PEERS_FOLDER: Final = "AMPLIFIER_BENCH_PEERS"
"""The variable that names the folder of the peers' environments."""

LONG: Final = 100
LONGEST: Final = 1000
"""Steps of a turn; that of a turn of one step is taken off, and so what a turn costs whatever its length."""

BAR: Final = 1.5
ROOT: Final = Path(__file__).resolve().parent.parent.parent

Sample = Callable[[int], float]


def durable(backend: str, effort: Effort) -> list[Row]:
    """Take turns with bare DBOS, and with LangGraph where it is installed: seconds that pass, the server's included."""
    programs = find_programs()
    if programs is None:
        print("not measured: durable needs PostgreSQL", file=sys.stderr)
        return []
    os.environ["PGPASSWORD"] = PASSWORD
    with running_server(programs) as server, ExitStack() as stack:
        samples: dict[str, Sample] = {}
        for name, command in _commands(backend).items():
            database = _new_database(server.url(), name)
            place = [*command[:3], server.url(database), *command[3:]]
            running = sampling(place, PYTHONPATH=str(ROOT))
            samples[name] = stack.enter_context(running)
        rounds = 3 + int(effort.seconds)
        rows = _rows(backend, [*_rounds(samples, LONG, rounds)], LONG)
        if "LangGraph" in samples:
            # whose checkpoints hold all that was said
            growing = {name: samples[name] for name in ("ours", "LangGraph")}
            rows += _rows(backend, [*_rounds(growing, LONGEST, 1)], LONGEST)
    return rows


def _commands(backend: str) -> Mapping[str, Sequence[str]]:
    """Return the programs; behind the first three words of each comes the database."""
    programs = {
        "ours": (sys.executable, "-m", "benchmarks.durable.stored_turns", backend),
        "bare DBOS": (sys.executable, "-m", "benchmarks.durable.bare_dbos"),
    }
    peers = os.environ.get(PEERS_FOLDER)
    python = Path(peers or "") / "langgraph/bin/python"
    if peers is not None and python.exists():
        module = "benchmarks.durable.langgraph_saver"
        programs["LangGraph"] = (str(python), "-m", module)
    return programs


def _new_database(url: str, name: str) -> str:
    database = name.lower().replace(" ", "_")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}".encode())
    return database


def _rounds(
    samples: Mapping[str, Sample], steps: int, count: int
) -> Iterator[dict[str, float]]:
    """Yield the seconds of a step in each round."""
    for sample in samples.values():
        sample(1)
    for _ in range(count):
        yield {
            name: (sample(steps + 1) - sample(1)) / steps
            for name, sample in samples.items()
        }


def _rows(backend: str, taken: Sequence[Mapping[str, float]], steps: int) -> list[Row]:
    ours = f"{median(each['ours'] for each in taken) * 1e3:.3g} ms"
    rows = []
    for name in taken[0]:
        if name == "ours":
            continue
        ratio = median(each["ours"] / each[name] for each in taken)
        theirs = f"{median(each[name] for each in taken) * 1e3:.3g} ms"
        what = f"durable step beside {name}, of {steps:,}, {backend}"
        detail = f"an answer and a tool call: {ours}, theirs {theirs}; {len(taken)} turns each"
        if name == "bare DBOS":
            rows.append(bar(what, ratio, BAR, detail))
        else:
            rows.append(figure(what, ratio, detail))
    return rows
