"""A worker as a process of its own, for tests that kill it: it notes each step before and after it, in one file.

One that is given the beginning of a statement stops itself, once, after it has executed that.
"""

from __future__ import annotations

import os
import signal
import sys
from threading import Lock

import anyio
import sqlalchemy as sa

from amplifier_module_engine_dbos import open_engine
from amplifier_sdk.engines import WorkerOptions, WorkflowContext
from amplifier_sdk.jsontypes import JSONValue


def stop_at(engine: sa.Engine, statement: str) -> None:
    """Stop this process within the first transaction that executes such a statement."""
    first = Lock()

    def look(*given: object) -> None:
        if str(given[2]).startswith(statement) and first.acquire(blocking=False):
            # to this thread, which executes nothing more before all stop
            signal.raise_signal(signal.SIGSTOP)

    sa.event.listen(engine, "after_cursor_execute", look)


async def main(
    url: str, namespace: str, file: str, steps: str, seconds: str, statement: str
) -> None:
    """Work until the process is ended."""
    log = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def workflow(context: WorkflowContext, _: JSONValue) -> JSONValue:
        values: list[JSONValue] = []
        for number in range(int(steps)):

            async def action(number: int = number) -> JSONValue:
                # one write each, which the system appends whole
                os.write(log, f"began {context.run_id} {number}\n".encode())
                await anyio.sleep(float(seconds))
                return number

            values.append(await context.step(f"{number}", action))
            os.write(log, f"ended {context.run_id} {number}\n".encode())
        return values

    engine = await open_engine(url, namespace=namespace)
    if statement:
        stop_at(engine.database.engine, statement)
    options = WorkerOptions(name=f"worker-{os.getpid()}", period=1.5, max_runs=4)
    os.write(log, f"ready {os.getpid()}\n".encode())
    await engine.work({"steps": workflow}, options)


if __name__ == "__main__":
    backend, url, namespace, file, steps, seconds, statement = sys.argv[1:]
    anyio.run(main, url, namespace, file, steps, seconds, statement, backend=backend)
