"""Commands that run in the background, until they end or the session does."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from typing import Final

import anyio
import attrs

from amplifier_kit.processes import JobLog, ProcessTree
from amplifier_module_tool_bash.surroundings import ShellEnvironment
from amplifier_sdk.errors import ToolError, did_you_mean
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["Job", "Jobs"]

KEPT: Final = 32
"""How many jobs that ended are remembered."""


@attrs.define(eq=False, kw_only=True)
class Job:
    """One command in the background."""

    id: str
    command: str
    tree: ProcessTree
    log: JobLog
    needs: ExitStack
    started: float
    is_closed: bool = False

    @property
    def is_running(self) -> bool:
        """Whether anything of it is alive."""
        return self.tree.ending is None

    async def close(self) -> None:
        """End it with all its processes; its log stays."""
        if not self.is_closed:
            self.is_closed = True
            try:
                await self.tree.aclose()
            finally:
                self.needs.close()

    def to_json(self) -> JSONObject:
        """Return the job as a model reads it."""
        ending = self.tree.ending
        data: JSONObject = {
            "job": self.id,
            "command": self.command
            if len(self.command) <= 200
            else f"{self.command[:200]}…",
            "running": ending is None,
            "seconds": round(time.monotonic() - self.started, 1),
            "output_bytes": self.log.total,
        }
        if ending is None:
            return data
        return {**data, "returncode": ending.code, **_error(ending.error)}


def _error(error: str | None) -> JSONObject:
    if error is None:
        return {}
    return {"error": error}


class Jobs:
    """The jobs of one session.

    Args:
        surroundings: where they run.
        limit: how many may run at once.
    """

    def __init__(self, surroundings: ShellEnvironment, limit: int) -> None:
        self._surroundings = surroundings
        self._limit = limit
        self._jobs: dict[str, Job] = {}
        self._started = 0

    async def start(self, text: str, *, network: bool = False) -> Job:
        """Start a command.

        Raises:
            ToolError: too many are running, or no process can be started.
        """
        await self.tidy()
        running = [job.id for job in self._jobs.values() if job.is_running]
        if len(running) >= self._limit:
            raise ToolError(
                f"{len(running)} jobs are running, the most there may be; stop one: {', '.join(running)}"
            )
        # never the number of jobs: an id must not name another job later
        self._started += 1
        name = f"job-{self._started}"
        log = f"{self._surroundings.scratch}/output/{name}"
        with ExitStack() as needs:
            command = needs.enter_context(
                self._surroundings.prepared(text, log=log, network=network)
            )
            try:
                tree = ProcessTree.start(command)
            except OSError as error:
                raise ToolError(
                    f"no process can be started: {error.strerror}"
                ) from error
            job = Job(
                id=name,
                command=text,
                tree=tree,
                log=JobLog(log),
                # from here on the job itself releases what it needs
                needs=needs.pop_all(),
                started=time.monotonic(),
            )
        self._jobs[name] = job
        return job

    def find(self, name: str) -> Job:
        """Return a job.

        Raises:
            ToolError: there is none of that name.
        """
        if name not in self._jobs:
            known = ", ".join(self._jobs) or "none"
            raise ToolError(
                f"there is no job {name!r}{did_you_mean(name, list(self._jobs))}; known: {known}"
            )
        return self._jobs[name]

    def listed(self) -> list[JSONObject]:
        """Return the jobs as a model reads them."""
        return [job.to_json() for job in self._jobs.values()]

    async def tidy(self) -> None:
        """Release what jobs that ended hold, and forget the oldest of them."""
        ended = [job for job in self._jobs.values() if not job.is_running]
        for job in ended:
            # one that ended by itself still holds what was prepared for it
            await job.close()
        # the latest stay, so that a model can still read how they ended
        for job in ended[:-KEPT]:
            del self._jobs[job.id]
            folder, _, name = job.log.name.rpartition("/")
            for entry in os.listdir(folder):
                if entry.startswith(f"{name}."):
                    os.unlink(f"{folder}/{entry}")

    async def aclose(self) -> None:
        """End all jobs, beside each other."""
        async with anyio.create_task_group() as closing:
            for job in self._jobs.values():
                closing.start_soon(job.close)
