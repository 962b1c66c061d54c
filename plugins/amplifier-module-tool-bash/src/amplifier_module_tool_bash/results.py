"""The result of a command, as a model reads it."""

from __future__ import annotations

from amplifier_kit.processes import Capture, CommandEnd
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import ToolResult

__all__ = ["result_of"]


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
