"""Commands in the background."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import anyio
import pytest

from amplifier_module_tool_bash import Bash, jobs
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject

pytestmark = pytest.mark.process

Mount = Callable[..., Bash]  # type: ignore[explicit-any]  # its options go by name
Run = Callable[..., Awaitable[Mapping[str, object]]]  # type: ignore[explicit-any]  # its options go by name
Running = Callable[[str], list[str]]


async def output_with(shell: Bash, job: str, wanted: str) -> JSONObject:
    """Read a job's output from its start until it holds a text."""
    with anyio.fail_after(10):
        while wanted not in str((page := await shell.bash_output(job))["output"]):  # noqa: ASYNC110  # a job tells nobody
            await anyio.sleep(0.01)
    return page


async def ended(shell: Bash, job: str) -> JSONObject:
    """Wait until a job has ended."""
    with anyio.fail_after(10):
        while (page := await shell.bash_output(job))["running"]:  # noqa: ASYNC110  # a job tells nobody
            await anyio.sleep(0.01)
    return page


async def test_a_job_runs_on_and_is_read_from_where_one_was(
    shell: Bash, run: Run
) -> None:
    started = await run(shell, "echo one; sleep 71", background=True)
    page = await output_with(shell, str(started["job"]), "one\n")

    assert (started["running"], page["running"], page["next"], page["more"]) == (
        True,
        True,
        4,
        False,
    )
    assert (await shell.bash_output("job-1", since=4))["output"] == ""
    assert (await shell.bash_output("job-1", since=2))["output"] == "e\n"


async def test_a_job_that_ended_tells_its_exit_code(shell: Bash, run: Run) -> None:
    await run(shell, "echo out; echo err >&2; exit 5", background=True)

    page = await ended(shell, "job-1")

    assert (page["returncode"], page["output"]) == (5, "out\nerr\n")


async def test_stopping_a_job_ends_all_its_processes(
    shell: Bash, run: Run, running: Running
) -> None:
    await run(shell, "setsid sleep 72 & (sleep 72 &); echo up; wait", background=True)
    await output_with(shell, "job-1", "up")

    stopped = await shell.bash_stop("job-1")

    assert stopped["running"] is False
    assert running("sleep 72") == []
    assert (await shell.bash_stop("job-1"))["running"] is False


async def test_the_end_of_the_session_ends_every_job(
    mount: Mount, run: Run, running: Running
) -> None:
    shell = mount()
    for _ in range(3):
        await run(
            shell, "trap '' TERM; setsid sleep 73 & echo up; sleep 73", background=True
        )
    for job in ("job-1", "job-2", "job-3"):
        await output_with(shell, job, "up")

    with anyio.fail_after(2):
        await shell.aclose()

    assert running("sleep 73") == []


async def test_no_more_jobs_run_than_allowed(mount: Mount, run: Run) -> None:
    shell = mount(max_jobs=1)
    await run(shell, "true", background=True)
    await ended(shell, "job-1")
    await run(shell, "sleep 74", background=True)

    with pytest.raises(ToolError, match=r"1 jobs are running, .*stop one: job-2"):
        await run(shell, "true", background=True)


async def test_a_job_that_does_not_exist_is_named(shell: Bash, run: Run) -> None:
    with pytest.raises(ToolError, match="no job 'job-1'; known: none"):
        await shell.bash_output("job-1")
    await run(shell, "true", background=True)
    with pytest.raises(ToolError, match="no job 'job-2'; did you mean 'job-1'"):
        await shell.bash_stop("job-2")


async def test_a_long_log_keeps_its_latest_part(mount: Mount, run: Run) -> None:
    shell = mount(max_spill_bytes=1000, max_output_bytes=600)
    await run(shell, "yes | head -c 5000; echo end", background=True)
    await ended(shell, "job-1")

    page = await shell.bash_output("job-1")

    assert (page["output_bytes"], page["start"], page["next"], page["more"]) == (
        5004,
        4000,
        4600,
        True,
    )
    assert str((await shell.bash_output("job-1", since=4600))["output"]).endswith(
        "end\n"
    )


async def test_only_the_latest_jobs_that_ended_are_remembered(
    shell: Bash, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "KEPT", 2)
    for number in range(1, 5):
        await run(shell, "true", background=True)
        await ended(shell, f"job-{number}")
    status = await shell.bash_status()

    assert isinstance(status["jobs"], list)
    assert [job["job"] for job in status["jobs"] if isinstance(job, Mapping)] == [
        "job-3",
        "job-4",
    ]


async def test_the_status_tells_directory_sandbox_and_jobs(
    shell: Bash, run: Run, root: Path
) -> None:
    await run(shell, "x" * 300 + "; sleep 75", background=True)

    status = await shell.bash_status()

    assert (status["directory"], status["sandbox"], status["network"]) == (
        str(root),
        "none",
        True,
    )
    assert isinstance(status["jobs"], list)
    (job,) = status["jobs"]
    assert isinstance(job, Mapping)
    assert (job["job"], job["running"], len(str(job["command"]))) == (
        "job-1",
        True,
        201,
    )


async def test_a_job_that_cannot_start_says_why(
    shell: Bash, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")

    with pytest.raises(ToolError, match="no process can be started: No such file"):
        await run(shell, "true", background=True)
    with pytest.raises(ToolError, match="no process can be started: No such file"):
        await run(shell, "true")


async def test_a_shell_that_is_missing_is_named(mount: Mount, run: Run) -> None:
    shell = mount(env={"PATH": "/nowhere"})

    assert "there is no program 'bash'" in str((await run(shell, "true"))["message"])
    await run(shell, "true", background=True)
    assert "there is no program 'bash'" in str((await ended(shell, "job-1"))["error"])
