"""Ctrl-C and other signals, as a terminal and a service manager send them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.cli.programs import BACKENDS, read_until, start, write_plan

pytestmark = pytest.mark.process


def _calling(name: str, **arguments: JSONValue) -> JSONObject:
    return {"deltas": ["begin"], "tool_calls": [{"name": name, "arguments": arguments}]}


@BACKENDS
def test_the_second_press_stops_a_running_step(tmp_path: Path, backend: str) -> None:
    plan = write_plan(tmp_path, [_calling("wait"), "never"], "tool-trials")

    with start("run", "hi", "--plan", str(plan), "--backend", backend) as process:
        read_until(process.stderr, "tool wait")
        os.killpg(process.pid, signal.SIGINT)
        read_until(process.stderr, "Ctrl-C again stops at once.")
        os.killpg(process.pid, signal.SIGINT)
        read_until(process.stderr, "Cancelled.")
        assert process.wait(30) == 130
        assert process.stdout is not None
        assert process.stdout.read() == b"begin\n"


@BACKENDS
def test_the_first_press_lets_the_running_step_finish(
    tmp_path: Path, backend: str
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    plan = write_plan(
        tmp_path, [_calling("receive", path=str(pipe)), "never"], "tool-trials"
    )

    with start(
        "run", "hi", "--plan", str(plan), "--backend", backend, "--output", "ndjson"
    ) as process:
        read_until(process.stdout, "tool_started")
        os.killpg(process.pid, signal.SIGINT)
        read_until(process.stderr, "Stopping after this step.")
        pipe.write_text("received", "utf-8")
        assert process.stdout is not None
        rest = process.stdout.read().decode()
        assert process.wait(30) == 130

    finished, error = [json.loads(line) for line in rest.splitlines()[-2:]]
    assert (finished["type"], finished["success"], finished["output"]) == (
        "tool_finished",
        True,
        "received",
    )
    assert (error["type"], error["error"], error["text"]) == (
        "error",
        "TurnCancelled",
        "begin",
    )


@pytest.mark.parametrize(
    ("number", "backend"), [(signal.SIGTERM, "asyncio"), (signal.SIGHUP, "trio")]
)
def test_other_signals_end_the_command_at_once(
    tmp_path: Path, backend: str, number: signal.Signals
) -> None:
    plan = write_plan(tmp_path, [_calling("wait")], "tool-trials")

    with start("run", "hi", "--plan", str(plan), "--backend", backend) as process:
        read_until(process.stderr, "tool wait")
        process.send_signal(number)
        assert process.wait(30) == 128 + number
        assert process.stdout is not None
        assert process.stdout.read() == b"begin\n"


def test_signal_that_ends_command_is_last_line_of_ndjson(
    tmp_path: Path,
) -> None:
    plan = write_plan(tmp_path, [_calling("wait")], "tool-trials")

    with start("run", "hi", "--plan", str(plan), "--output", "ndjson") as process:
        read_until(process.stdout, "tool_started")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
        assert process.stdout is not None
        last = json.loads(process.stdout.read().splitlines()[-1])

    assert (last["type"], last["message"]) == ("error", "Ended by signal 15")


def test_one_press_is_enough_before_a_turn_runs(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, ["never"], "provider-forever")

    with start("run", "hi", "--plan", str(plan)) as process:
        read_until(process.stderr, "mounting")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(30) == 130


@BACKENDS
def test_a_blocked_thread_keeps_no_process_alive(tmp_path: Path, backend: str) -> None:
    plan = write_plan(tmp_path, [_calling("block")], "tool-trials")

    with start("run", "hi", "--plan", str(plan), "--backend", backend) as process:
        read_until(process.stderr, "blocking")
        os.killpg(process.pid, signal.SIGINT)
        read_until(process.stderr, "Ctrl-C again stops at once.")
        os.killpg(process.pid, signal.SIGINT)
        read_until(process.stderr, "Left behind: ")
        assert process.wait(30) == 130
        assert process.stdout is not None
        assert process.stdout.read() == b"begin\n"


def test_a_signal_that_was_ignored_by_the_parent_stays_ignored(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, [_calling("wait")], "tool-trials")

    with start("run", "hi", "--plan", str(plan), ignored=[signal.SIGINT]) as process:
        read_until(process.stderr, "tool wait")
        os.killpg(process.pid, signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
        assert process.stderr is not None
        assert b"Stopping" not in process.stderr.read()


def test_a_press_while_standard_input_is_read_cancels() -> None:
    reading, writing = os.pipe()

    with start("run", stdin=reading) as process:
        os.close(reading)
        # more than a pipe holds: it returns once somebody reads
        os.write(writing, b"x" * 200_000)
        # a press right before the system call is heard with the next one
        while process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
        os.close(writing)
        assert process.stderr is not None
        assert (process.returncode, process.stderr.read()) == (130, b"Cancelled.\n")
