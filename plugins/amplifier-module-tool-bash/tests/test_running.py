"""What a command gives back, and what stays for the next one."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import anyio
import pytest

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_module_tool_bash import Bash
from amplifier_sdk.errors import ToolError
from amplifier_sdk.progress import ToolContext, ToolOutput, ToolReport

pytestmark = pytest.mark.process

Mount = Callable[..., Bash]  # type: ignore[explicit-any]  # its options go by name
Run = Callable[..., Awaitable[Mapping[str, object]]]  # type: ignore[explicit-any]  # its options go by name
Running = Callable[[str], list[str]]


async def test_a_command_gives_its_output_errors_and_exit_code(
    shell: Bash, run: Run
) -> None:
    result = await run(shell, "echo out; echo err >&2")

    assert (result["stdout"], result["stderr"], result["returncode"]) == (
        "out\n",
        "err\n",
        0,
    )
    failed = await run(shell, "echo out; exit 3")
    assert (failed["success"], failed["returncode"], failed["stdout"]) == (
        False,
        3,
        "out\n",
    )
    assert "exit code 3" in str(failed["message"])


async def test_a_command_that_a_signal_ends_says_so(shell: Bash, run: Run) -> None:
    assert (await run(shell, "kill -9 $$"))["returncode"] == 137


async def test_the_working_directory_stays_and_variables_do_not(
    shell: Bash, root: Path, run: Run
) -> None:
    (root / "sub").mkdir()

    await run(shell, "cd sub; X=1")

    assert (await run(shell, "pwd; echo [$X]"))["stdout"] == f"{root}/sub\n[]\n"
    assert (await run(shell, "cd ..; exit 4"))["returncode"] == 4
    assert (await run(shell, "pwd"))["stdout"] == f"{root}\n"


async def test_a_working_directory_that_is_gone_is_left(
    shell: Bash, root: Path, run: Run
) -> None:
    await run(shell, "mkdir sub; cd sub; rmdir ../sub")

    assert (await run(shell, "pwd"))["stdout"] == f"{root}\n"
    await run(shell, "mkdir sub; cd sub")
    (root / "sub").rmdir()
    assert (await run(shell, "pwd"))["stdout"] == f"{root}\n"


async def test_git_does_not_obey_folder_that_looks_like_repository(
    shell: Bash, root: Path, run: Run
) -> None:
    await run(shell, "git init -q --bare b")
    (root / "b/config").write_text(
        f"[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch {root}/ran; false\n"
    )

    result = await run(shell, "cd b && git status")

    assert (result["success"], (root / "ran").exists()) == (False, False)
    assert "safe.bareRepository" in str(result["stderr"])


async def test_standard_input_is_empty(shell: Bash, run: Run) -> None:
    assert (await run(shell, "cat; read x; echo $?"))["stdout"] == "1\n"


async def test_text_that_is_no_utf8_is_replaced_and_escapes_are_kept(
    shell: Bash, run: Run
) -> None:
    result = await run(shell, r"printf 'a\377b\033[31mred\033[0m'")

    assert result["stdout"] == "a�b\x1b[31mred\x1b[0m"


async def test_a_command_that_is_no_text_is_refused(shell: Bash, run: Run) -> None:
    for command, problem in (
        ("echo \0", "NUL"),
        ("echo \ud800", "surrogate"),
        ("#" * 200_000, "100000 bytes"),
    ):
        with pytest.raises(ToolError, match=problem):
            await run(shell, command)


async def test_long_output_keeps_head_tail_true_size_and_private_file(
    mount: Mount, run: Run
) -> None:
    shell = mount(max_output_bytes=1000)

    result = await run(shell, "echo first; yes é | head -c 3000000; echo last")

    stdout = str(result["stdout"])
    assert stdout.startswith("first\n")
    assert stdout.endswith("last\n")
    assert "\ufffd" not in stdout
    assert result["stdout_total_bytes"] == 3_000_011
    assert len(stdout) < 1200
    spilled = Path(str(result["stdout_file"]))
    assert (spilled.stat().st_size, spilled.stat().st_mode & 0o777) == (
        3_000_011,
        0o600,
    )
    await shell.aclose()
    assert not spilled.exists()


KILLED: Final = """
import os, signal, sys
import anyio
from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_module_tool_bash import Bash
from amplifier_module_tool_bash.config import BashConfig
from amplifier_sdk.progress import ToolContext

async def main():
    config = BashConfig(sandbox="none", unlisted="allow", max_output_bytes=1000, working_dir=sys.argv[1])
    shell = Bash(config, ModuleCoordinator())
    result = await shell.bash("yes | head -c 5000", ToolContext("id", "bash", lambda report: None))
    print(result.output["stdout_file"], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""


def test_killed_program_leaves_output_in_private_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "temporary").mkdir()

    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "work")],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "TMPDIR": str(tmp_path / "temporary"),
        },
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == -signal.SIGKILL, done.stderr
    spilled = Path(done.stdout.splitlines()[-1])
    (folder,) = (tmp_path / "temporary").iterdir()
    assert spilled.is_relative_to(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [spilled]


async def test_the_file_of_a_long_output_has_a_largest_size(
    mount: Mount, run: Run
) -> None:
    result = await run(
        mount(max_output_bytes=1000, max_spill_bytes=5000), "yes | head -c 100000"
    )

    assert Path(str(result["stdout_file"])).stat().st_size == 5000
    assert result["stdout_total_bytes"] == 100_000
    assert "the first 5000 are in" in str(result["stdout"])


async def test_output_is_shown_while_the_command_runs(shell: Bash) -> None:
    heard: list[ToolReport] = []

    await shell.bash(
        r"printf 'one\303'; sleep 0.1; printf '\251'",
        ToolContext("id", "bash", heard.append),
    )

    texts = [report.text for report in heard if isinstance(report, ToolOutput)]
    assert "".join(texts) == "oneé"
    await shell.bash("yes | head -c 3000000", ToolContext("id", "bash", heard.append))
    assert (
        sum(len(report.text) for report in heard if isinstance(report, ToolOutput))
        < 1_300_000
    )


async def test_a_timeout_keeps_what_was_put_out(shell: Bash, run: Run) -> None:
    result = await run(shell, "echo before; sleep 60", timeout=0.4)

    assert (result["success"], result["stdout"], result["timed_out"]) == (
        False,
        "before\n",
        True,
    )
    assert "did not finish within 0.4 s" in str(result["message"])


@pytest.mark.parametrize("seconds", [0, -1, 601, float("nan")])
async def test_a_timeout_has_limits(shell: Bash, seconds: float, run: Run) -> None:
    with pytest.raises(ToolError, match="between 0 and 600 seconds"):
        await run(shell, "true", timeout=seconds)


async def test_only_listed_variables_reach_a_command(
    mount: Mount, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    for name in (
        "ANTHROPIC_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "MY_TOKEN",
        "BASH_ENV",
        "SSH_AUTH_SOCK",
        "PASSED_ON",
    ):
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("BASH_FUNC_ls%%", "() { echo canary; }")

    result = await run(
        mount(env_allow=["PASSED_*"], env={"ADDED": "yes"}),
        "env; ls; cat /proc/$PPID/environ",
    )

    assert str(result["stdout"]).count("canary") == 1
    assert "PASSED_ON=canary" in str(result["stdout"])
    assert "ADDED=yes" in str(result["stdout"])


async def test_what_a_command_leaves_running_ends_with_it(
    shell: Bash, root: Path, run: Run, running: Running
) -> None:
    result = await run(shell, "sleep 61 & (setsid sleep 62 &) ; echo done")

    assert (result["stdout"], result["ended_processes"]) == ("done\n", 2)
    assert not running("sleep 6")


@pytest.mark.parametrize(
    "command", ["sleep 63", "setsid sleep 63", "(setsid sleep 63 &) & wait; sleep 63"]
)
async def test_cancelling_a_call_ends_every_process(
    shell: Bash, command: str, running: Running
) -> None:
    with anyio.fail_after(10):
        async with anyio.create_task_group() as calls:
            started = anyio.Event()
            calls.start_soon(
                shell.bash,
                f"echo up; {command}",
                ToolContext("", "", lambda _: started.set()),
            )
            await started.wait()
            calls.cancel_scope.cancel()

    assert not running("sleep 63")


async def test_hook_variables_follow_configured_ones(
    mount: Mount, run: Run, coordinator: ModuleCoordinator
) -> None:
    shell = mount(env={"OWN": "configured"})
    coordinator.register_capability(
        "session.environment", {"SET": "by a hook", "OWN": "by a hook"}
    )
    result = await run(shell, 'echo "$SET, $OWN"')

    assert result["stdout"] == "by a hook, configured\n"
