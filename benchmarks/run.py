"""Measures the runtime and holds it against its bars.

    python benchmarks/run.py [--quick] [--peers VENVS] [--json OUT] [CASE …]

Every case runs in a process of its own and is held against a floor that ran in the same process, taken turn
about. Nothing here fails because a bar is missed: the table says so, and a reader decides.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

# this file runs as a program: its own folder is on the path, and its parent is not
if TYPE_CHECKING:
    from benchmarks.rows import Row

ROOT: Final = Path(__file__).resolve().parent.parent
BACKENDS: Final = ("asyncio", "trio")
CASES: Final = (
    "iteration",
    "yielding",
    "journal",
    "first",
    "growth",
    "turn",
    "demands",
    "emits",
    "parallel",
    "sessions",
    "history",
    "compaction",
    "deltas",
    "paced",
    "served",
    "ready",
    "building",
    "agents",
    "durable",
)
ONCE: Final = ("imports", "discovery", "checks", "stores")
"""Cases that no event loop takes part in."""

PEERS: Final = {
    "llm": ("benchmarks.peers.llm_chain", "llm"),
    "amplifier-core": ("benchmarks.peers.amplifier_core_session", "amplifier-core"),
    "agent-framework": (
        "benchmarks.peers.agent_framework_agent",
        "agent-framework-core",
    ),
    "pydantic-ai": ("benchmarks.peers.pydantic_ai_agent", "pydantic-ai-slim"),
    "arguments": ("benchmarks.peers.argument_checks", "pydantic msgspec"),
}
"""The adapters, and what they need, by the names of the folders in which their virtual environments lie."""

BESIDE: Final = {"langgraph": "langgraph langgraph-checkpoint-postgres psycopg[binary]"}
"""What peers of the case `durable` need, which runs them itself: they share its database."""

SECONDS: Final = 5.0
QUICK: Final = 0.5
"""Seconds of sampling for each figure."""

LONGEST: Final = 1800
"""Seconds that one process may take: a turn of a thousand calls alone takes a minute in some peers."""


class MeasuringError(Exception):
    """A process that measures ended without its rows."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cases and print the table."""
    options = _parser().parse_args(arguments)
    seconds = QUICK if options.quick else SECONDS
    rows: list[Row] = []
    failures: list[str] = []
    if options.peers is not None:
        os.environ["AMPLIFIER_BENCH_PEERS"] = str(options.peers.absolute())
    for missing in _missing(options.peers):
        print(missing, file=sys.stderr)
    for interpreter, module, *words in _jobs(options.cases, options.peers):
        print("measuring", *(words or [module]), file=sys.stderr)
        try:
            rows += _measure(interpreter, module, [*words, str(seconds)])
        except MeasuringError as failure:
            failures.append(str(failure))
    print(_table(rows))
    if options.peers is not None:
        print(f"\n{_beside(rows)}")
    if options.json is not None:
        options.json.write_text(
            json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    if failures:
        sys.exit("\n".join(failures))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Measure the runtime and hold it against its bars."
    )
    parser.add_argument(
        "cases",
        nargs="*",
        metavar="CASE",
        help=f"any of {', '.join((*CASES, *ONCE))}; default all",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a sample of under two minutes: good for a trend only",
    )
    parser.add_argument(
        "--peers",
        type=Path,
        metavar="VENVS",
        help=f"a folder of environments: {', '.join(PEERS)}",
    )
    parser.add_argument(
        "--json", type=Path, metavar="OUT", help="also write the rows to this file"
    )
    return parser


def _jobs(cases: Sequence[str], peers: Path | None) -> Iterator[tuple[str, ...]]:
    """Yield an interpreter, a module and its arguments for each process to run."""
    for case in cases or (*CASES, *ONCE):
        for backend in BACKENDS if case not in ONCE else BACKENDS[:1]:
            yield (sys.executable, "benchmarks.measure", case, backend)
    if peers is None:
        return
    for name, (module, _) in PEERS.items():
        if _python_of(peers, name).exists():
            yield (str(_python_of(peers, name).absolute()), module)


def _missing(peers: Path | None) -> Iterator[str]:
    """Say which peers' environments are not there, and how to make them."""
    if peers is None:
        return
    needed = {name: needs for name, (_, needs) in PEERS.items()}
    for name, needs in (needed | BESIDE).items():
        if not _python_of(peers, name).exists():
            make = f"python -m venv {peers / name} && {peers / name}/bin/pip install {needs}"
            yield f"not measured: {name}; its environment is missing, make it with: {make}"


def _python_of(peers: Path, name: str) -> Path:
    return peers / name / "bin" / "python"


def _measure(interpreter: str, module: str, words: Sequence[str]) -> list[Row]:
    """Run one case in a process of its own and read its rows.

    Raises:
        MeasuringError: it ended without them, or took too long.
    """
    environment = dict(os.environ)
    if interpreter != sys.executable:
        # a peer sees what its own environment holds
        environment.pop("PYTHONPATH", None)
    command = [interpreter, "-m", module, *words]
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment,
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired as error:
        raise MeasuringError(
            f"{' '.join(command)} took longer than {LONGEST} s"
        ) from error
    if done.returncode != 0:
        raise MeasuringError(f"{' '.join(command)} failed:\n{done.stderr}")
    rows: list[Row] = json.loads(done.stdout.splitlines()[-1])
    return rows


def _table(rows: Sequence[Row]) -> str:
    """Write the rows as a table in Markdown."""
    lines = [
        "| what | measured | bar | holds | on this machine |",
        "| --- | ---: | ---: | --- | --- |",
    ]
    for row in rows:
        limit, unit = row["bar"], row["unit"]
        shown = "" if limit is None else f"{limit:g}{unit}"
        holds = "" if limit is None else "yes" if row["measured"] <= limit else "**no**"
        lines.append(
            f"| {row['what']} | {_shown(row['measured'])}{unit} | {shown} | {holds} | {row['detail']} |"
        )
    return "\n".join(lines)


def _beside(rows: Sequence[Row]) -> str:
    """Write what peers were measured in as well: a line a case, ours on both event loops first."""
    shown = {row["what"]: f"{_shown(row['measured'])}{row['unit']}" for row in rows}
    named = [what.partition(": ") for what in shown]
    peers = [peer for peer in PEERS if any(name == peer for name, _, _ in named)]
    head = ["case", *(f"ours, {backend}" for backend in BACKENDS), *peers]
    lines = [head, ["---", *("---:" for _ in head[1:])]]
    for case in dict.fromkeys(case for name, _, case in named if name in peers):
        ours = [f"{case}, {backend}" for backend in BACKENDS]
        theirs = [f"{peer}: {case}" for peer in peers]
        lines.append([case, *(shown.get(what, "") for what in (*ours, *theirs))])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
