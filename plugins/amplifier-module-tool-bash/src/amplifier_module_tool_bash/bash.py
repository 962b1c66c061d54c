"""The tools: what a model calls, and the result of a command as it reads it."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from functools import partial
from typing import Final

from anyio import to_thread

from amplifier_kit.files.session_folders import working_directory
from amplifier_kit.processes import Capture, CommandEnd, run_command
from amplifier_module_tool_bash.config import BashConfig
from amplifier_module_tool_bash.jobs import Jobs
from amplifier_module_tool_bash.permission import CommandPermission
from amplifier_module_tool_bash.surroundings import ShellEnvironment, check_text
from amplifier_sdk.assessments import Assessment
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.decorators import toolset
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.progress import TOOL_OUTPUT, ToolContext
from amplifier_sdk.results import ToolResult
from amplifier_sdk.tools import tool

__all__ = ["Bash", "result_of"]

_LONGEST_CALL: Final = 3700.0
_MAX_LIVE: Final = 1 << 20
_NAME: Final = "bash"


@toolset
class Bash:
    """A shell whose working directory stays from call to call, and commands in the background.

    Rules decide on each command before it runs; what they ask about goes to the person through the session's
    approval. Whatever a command started is dead when its call ends, background jobs when the session does.
    """

    def __init__(self, config: BashConfig, coordinator: Coordinator) -> None:
        self._config = config
        self._coordinator = coordinator
        self._surroundings = ShellEnvironment(
            config,
            working_directory(coordinator),
            partial(coordinator.get_capability, "session.environment"),
        )
        self.permission: Final = CommandPermission(config, self._surroundings)
        self._jobs = Jobs(self._surroundings, config.max_jobs)
        self._calls = 0
        coordinator.register_contributor(
            "observability.events", "tool-bash", lambda: [str(TOOL_OUTPUT)]
        )

    @tool(name=_NAME, effects=("exec",), timeout=_LONGEST_CALL)
    async def bash(
        self,
        command: str,
        context: ToolContext,
        timeout: float | None = None,
        run_in_background: bool = False,
        network: bool = False,
    ) -> ToolResult:
        """Run a bash command and return its output and exit code.

        The working directory stays for the next call; variables and functions do not. Standard input is empty. Long
        output is shown by its head and tail. Processes that a command leaves running are ended with it: use
        run_in_background for servers and watchers, and bash_output to read what they put out.

        Args:
            command: the shell text.
            timeout: seconds until the command is ended.
            run_in_background: start the command and return at once with the id of its job.
            network: ask for access to the network, for a command that needs it and does not look so.
        """
        seconds = self._check(command, timeout)
        sandbox = await self._surroundings.choose_sandbox()
        # evaluated anew: the folder may be another than when the call was assessed
        has_network = self.permission.check(command, network=network)
        if run_in_background:
            job = await self._jobs.start(command, network=has_network)
            return ToolResult(output={**job.to_json(), "sandbox": sandbox})
        return await self._run(command, seconds, context, network=has_network)

    @bash.assessor
    async def _assess_bash(
        self,
        command: str,
        timeout: float | None = None,
        run_in_background: bool = False,
        network: bool = False,
    ) -> Assessment:
        """ShellPolicy a command before it runs: by what keeps it from running at all, and by the rules."""
        del run_in_background  # what it does is the same
        self._check(command, timeout)
        await self._surroundings.choose_sandbox()  # what has none is asked about
        return self.permission.assess(command, network=network)

    @tool(effects=("read",))
    async def bash_output(self, job: str, since: int = 0) -> JSONObject:
        """Read what a background job has put out, from a position on.

        Args:
            job: the job's id.
            since: the position, in bytes; `next` in the result is where to go on.
        """
        found = self._jobs.find(job)
        page = found.log.read(max(0, since), self._config.max_output_bytes)
        data = found.to_json()
        await self._jobs.tidy()
        return {
            **data,
            "output": page.data.decode("utf-8", "replace"),
            "start": page.start,
            "next": page.end,
            "more": page.end < page.total,
        }

    @tool(effects=("exec",))
    async def bash_stop(self, job: str) -> JSONObject:
        """End a background job with all its processes.

        Args:
            job: the job's id.
        """
        found = self._jobs.find(job)
        await found.close()
        return found.to_json()

    @tool(effects=("read",))
    async def bash_status(self) -> JSONObject:
        """Tell the working directory, the sandbox that commands run in, and the background jobs."""
        try:
            sandbox = await self._surroundings.choose_sandbox()
        except ToolError as error:
            return {
                "sandbox": "none",
                "problem": error.message,
                "directory": self._surroundings.directory,
                "jobs": [],
            }
        await self._jobs.tidy()
        return {
            "directory": self._surroundings.directory,
            "sandbox": sandbox,
            "network": self._config.network or sandbox == "none",
            "writable": list(self._surroundings.writable),
            "jobs": list(self._jobs.listed()),
        }

    async def aclose(self) -> None:
        """End all jobs and remove what commands put in the temporary folder."""
        try:
            await self._jobs.aclose()
        finally:
            await to_thread.run_sync(self._surroundings.remove)

    def _check(self, command: str, timeout: float | None) -> float:
        """Return how long a command may take.

        Raises:
            ToolError: it is no text that a shell takes, or may not take that long.
        """
        seconds = self._config.timeout
        if timeout is not None:
            seconds = timeout
        if not 0 < seconds <= self._config.max_timeout:
            raise ToolError(
                f"timeout is between 0 and {self._config.max_timeout:g} seconds; got {seconds:g}"
            )
        check_text(command)
        return seconds

    async def _run(
        self, text: str, seconds: float, context: ToolContext, *, network: bool
    ) -> ToolResult:
        self._calls += 1
        files = f"{self._surroundings.scratch}/output/call-{self._calls}"
        limit, spill = self._config.max_output_bytes, self._config.max_spill_bytes
        stdout = Capture(limit, f"{files}.stdout", spill)
        stderr = Capture(limit, f"{files}.stderr", spill)
        try:
            with self._surroundings.prepared(text, network=network) as command:
                try:
                    ending = await run_command(
                        command,
                        stdout=_both(stdout.write, _live(context)),
                        stderr=_both(stderr.write, _live(context)),
                        timeout=seconds,
                    )
                except OSError as error:
                    raise ToolError(
                        f"no process can be started: {error.strerror}"
                    ) from error
        finally:
            # the result names these files, so they are complete before it is made
            stdout.close()
            stderr.close()
        self._surroundings.move(ending.directory)
        sandbox = self._surroundings.sandbox
        facts: JSONObject = {
            "directory": self._surroundings.directory,
            "sandbox": sandbox,
        }
        if sandbox != "none":
            facts["network"] = network
        return result_of(ending, stdout, stderr, timeout=seconds, facts=facts)


def _both(
    first: Callable[[bytes], object], second: Callable[[bytes], object]
) -> Callable[[bytes], None]:
    def take(data: bytes) -> None:
        first(data)
        second(data)

    return take


def _live(context: ToolContext) -> Callable[[bytes], None]:
    """Return what shows output while the command runs, up to a size; it knows characters that are cut in two."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    shown = 0

    def show(data: bytes) -> None:
        nonlocal shown
        if shown > _MAX_LIVE:
            return
        shown += len(data)
        context.output(decoder.decode(data))
        if shown > _MAX_LIVE:
            context.output(
                "\n[... more output follows, which is not shown while the command runs ...]\n"
            )

    return show


def result_of(
    ending: CommandEnd,
    stdout: Capture,
    stderr: Capture,
    *,
    timeout: float,
    facts: JSONObject,
) -> ToolResult:
    """Return the result: a success when the exit code is 0.

    Args:
        ending: how the command ended.
        stdout: its output.
        stderr: its error output.
        timeout: seconds that it was given.
        facts: what else is known of the run.
    """
    output: JSONObject = {
        "stdout": stdout.text(),
        "stderr": stderr.text(),
        "returncode": ending.code,
        **facts,
    }
    for name, capture in (("stdout", stdout), ("stderr", stderr)):
        if capture.is_cut:
            output |= {"truncated": True, f"{name}_total_bytes": capture.total}
            if capture.spilled is not None:
                output[f"{name}_file"] = capture.spilled
    if ending.leftover:
        output["ended_processes"] = ending.leftover
    if ending.survivors:
        output["processes_that_could_not_be_ended"] = ending.survivors
    # before the exit code, which is only that of a process that was killed
    if ending.timed_out:
        message = (
            f"The command did not finish within {timeout:g} s and was ended with all its processes; what it put out"
            " until then is here. Give it more time with timeout, or set run_in_background"
        )
        return ToolResult.failure(message, **{**output, "timed_out": True})
    if ending.error is not None:
        return ToolResult.failure(
            f"The command could not be started: {ending.error}", **output
        )
    if ending.code:
        return ToolResult.failure(
            f"The command ended with exit code {ending.code}", **output
        )
    return ToolResult(output=output)
