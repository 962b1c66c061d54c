"""Cleanups: what modules asked to be run when the session ends, last registered first."""

from __future__ import annotations

from inspect import isawaitable

import anyio

from amplifier.kernel.reports import name_of, report
from amplifier_sdk.contracts import Cleanup

__all__ = ["Cleanups"]


class Cleanups:
    """A session's cleanups; each has `limit` seconds and runs even when the caller is cancelled."""

    __slots__ = ("_limit", "_waiting")

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._waiting: list[Cleanup] = []

    def add(self, cleanup: Cleanup) -> None:
        """Run a cleanup before those that are there already; what cannot be called is ignored."""
        if callable(cleanup):
            self._waiting.append(cleanup)

    async def run(self) -> list[BaseException]:
        """Run them, each once; report and return their failures.

        What is no `Exception`, such as a cancellation that a cleanup lets out, is raised after the rest ran.
        """
        failures: list[BaseException] = []
        leaked: BaseException | None = None
        # taken one by one: a clean-up may register another, which runs as well
        while self._waiting:
            try:
                failures += await self._run(self._waiting.pop())
            except BaseException as error:
                # raised below: what is left must be released first
                leaked = leaked or error
        if leaked is not None:
            raise leaked
        return failures

    async def _run(self, cleanup: Cleanup) -> list[BaseException]:
        name = name_of(cleanup)
        with anyio.CancelScope(shield=True), anyio.move_on_after(self._limit) as scope:
            try:
                answer = cleanup()
                if isawaitable(answer):
                    await answer
            except (Exception, SystemExit) as error:  # foreign code
                report("cleanup.failed", error, cleanup=name)
                return [error]
        if scope.cancelled_caught:
            report("cleanup.timed_out", cleanup=name, seconds=self._limit)
            return [TimeoutError(f"{name} did not finish within {self._limit:g} s")]
        return []
