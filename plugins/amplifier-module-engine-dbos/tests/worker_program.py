"""A worker as a process of its own, for tests that kill it: it notes each step before and after it, in one file."""

from __future__ import annotations

import os
import sys

import anyio

from amplifier_module_engine_dbos import open_engine
from amplifier_sdk.engines import WorkerOptions, WorkflowContext
from amplifier_sdk.jsontypes import JSONValue


async def main(
    backend: str, url: str, namespace: str, file: str, steps: str, seconds: str
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
    options = WorkerOptions(name=f"{backend}-{os.getpid()}", period=1.5, max_runs=4)
    os.write(log, f"ready {os.getpid()}\n".encode())
    await engine.work({"steps": workflow}, options)


if __name__ == "__main__":
    backend, url, namespace, file, steps, seconds = sys.argv[1:]
    anyio.run(main, backend, url, namespace, file, steps, seconds, backend=backend)
