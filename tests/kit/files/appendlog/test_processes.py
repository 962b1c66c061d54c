"""Several processes at one log: each waits for its turn or is refused, and no record is mixed with another."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from amplifier_kit.files.appendlog import AppendLogFile, Expected

NOTES = Expected(holds="notes")

WRITER = """
import sys
from pathlib import Path
from amplifier_kit.files.appendlog import AppendLogFile, Expected, encode_line
from amplifier_sdk.stores import LogEntry

path, writer, count, sizes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), [int(n) for n in sys.argv[4:]]
for number in range(count):
    log = AppendLogFile.open(path, Expected(holds="notes"), timeout=30)
    size = sizes[number % len(sizes)]
    log.append(encode_line(LogEntry(kind="note", data=[writer, number, "x" * size], at=1)))
    log.close()
"""

KILLED = """
import os, sys
from pathlib import Path
from amplifier_kit.files.appendlog import AppendLogFile, Expected, encode_line
from amplifier_sdk.stores import LogEntry

log = AppendLogFile.open(Path(sys.argv[1]), Expected(holds="notes"))
number = 0
while True:
    log.append(encode_line(LogEntry(kind="note", data=[number, "x" * (number % 5000)], at=1)))
    os.write(1, b"%d\\n" % number)
    number += 1
"""


@contextmanager
def process(program: str, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def write_at_once(path: Path, writers: int, count: int, sizes: tuple[int, ...]) -> None:
    with ExitStack() as stack:
        children = [
            stack.enter_context(process(WRITER, path, writer, count, *sizes))
            for writer in range(writers)
        ]
        assert [child.wait(300) for child in children] == [0] * writers

    log = AppendLogFile.open(path, NOTES)
    log.close()
    found = [record.data for record in log.records]
    assert log.damage == ()
    assert len(found) == writers * count
    for writer in range(writers):
        own = [data for data in found if isinstance(data, list) and data[0] == writer]
        assert own == [
            [writer, number, "x" * sizes[number % len(sizes)]]
            for number in range(count)
        ]


@pytest.mark.process
def test_writers_that_wait_for_each_other_mix_nothing(tmp_path: Path) -> None:
    write_at_once(tmp_path / "notes.jsonl", 3, 8, (100, 20_000, 300_000))


@pytest.mark.slow
@pytest.mark.skipif(
    "AMPLIFIER_KILL_POINTS" not in os.environ, reason="a minute: nox -s kill_points"
)
@pytest.mark.timeout(600)
def test_eight_writers_with_lines_of_any_size_mix_nothing(tmp_path: Path) -> None:
    write_at_once(tmp_path / "notes.jsonl", 8, 40, (100, 1_000_000, 4_096, 65_536))


@pytest.mark.process
@pytest.mark.parametrize("count", [3])
def test_what_a_killed_process_acknowledged_is_there(
    tmp_path: Path, count: int
) -> None:
    path = tmp_path / "notes.jsonl"
    for _ in range(count):
        path.unlink(missing_ok=True)
        with process(KILLED, path) as child:
            assert child.stdout is not None
            for _ in range(50):
                child.stdout.readline()
            child.kill()
            acknowledged = 50 + len(child.stdout.read().splitlines())

        log = AppendLogFile.open(path, NOTES)
        log.close()
        found = [record.data for record in log.records]
        assert found == [
            [number, "x" * (number % 5000)] for number in range(len(found))
        ]
        assert len(found) in (acknowledged, acknowledged + 1)
