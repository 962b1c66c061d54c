"""Commands end with everything that descends from them."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import anyio
import pytest

from amplifier_kit.processes import (
    Command,
    CommandEnd,
    ProcessTree,
    allowed_environment,
    run_command,
)
from amplifier_kit.processes._processtable import (
    ProcessEntry,
    descendants,
    marked,
    process_table,
)

pytestmark = pytest.mark.process

SLEEP = "import os, time; time.sleep(60)"


def command(text: str, **changes: object) -> Command:
    values = {
        "argv": ("bash", "-c", text),
        "directory": "/",
        "environment": allowed_environment(),
        **changes,
    }
    return Command(**values)  # type: ignore[arg-type]  # each test names what it changes


def alive(wanted: str) -> list[str]:
    """The command lines, in words, of the live processes whose line begins with a text."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = (
                Path(f"/proc/{pid}/cmdline")
                .read_text(errors="replace")
                .replace("\0", " ")
            )
        except OSError:
            continue
        if line.startswith(wanted):
            found.append(line)
    return found


async def output_of(
    command: Command, timeout: float | None = None
) -> tuple[CommandEnd, bytes]:
    pieces: list[bytes] = []
    with anyio.fail_after(20):
        ending = await run_command(
            command, stdout=pieces.append, stderr=pieces.append, timeout=timeout
        )
    return ending, b"".join(pieces)


async def test_a_command_reports_code_output_and_directory() -> None:
    ending, output = await output_of(
        command("echo out; echo err >&2; cd /usr; pwd >&60; exit 3")
    )

    assert ending == CommandEnd(code=3, directory="/usr")
    assert sorted(output.split()) == [b"err", b"out"]


async def test_a_signal_is_reported_as_shells_do() -> None:
    assert (await output_of(command("kill -TERM $$")))[0].code == 128 + signal.SIGTERM


async def test_the_environment_is_exactly_the_one_given() -> None:
    _, output = await output_of(
        command("env", environment={"PATH": os.environ["PATH"], "A": "b"})
    )

    names = {line.partition(b"=")[0] for line in output.splitlines()}
    assert names - {b"PWD", b"SHLVL", b"_", b"OLDPWD", b"LC_CTYPE"} == {
        b"A",
        b"PATH",
        b"AMPLIFIER_PROCESS_TREE",
    }


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"argv": ("no-such-program",)}, "there is no program 'no-such-program'"),
        ({"argv": ("/etc",)}, "there is no program '/etc'"),
        ({"directory": "/nowhere"}, "No such file or directory: '/nowhere'"),
        ({"argv": ("sh", "a\0b")}, "embedded null"),
    ],
    ids=["program", "folder", "directory", "nul"],
)
async def test_a_command_that_cannot_start_says_why(
    changes: dict[str, object], error: str
) -> None:
    ending, _ = await output_of(command("true", **changes))

    assert ending.code == 127
    assert error in str(ending.error)


async def test_a_program_that_the_system_does_not_start_is_named(
    tmp_path: Path,
) -> None:
    program = tmp_path / "program"
    for content, error in (
        ("#!/no/such/interpreter\n", "No such file or directory"),
        ("echo\n", "Exec format error"),
    ):
        program.write_text(content)
        program.chmod(0o700)
        ending, _ = await output_of(command("", argv=(str(program),)))
        assert ending.error == f"{error}: '{program}'"


async def test_a_command_with_a_log_has_no_other_output(tmp_path: Path) -> None:
    ending, output = await output_of(command("echo out", log=str(tmp_path / "log")))

    assert (ending.code, output, (tmp_path / "log.0").read_bytes()) == (
        0,
        b"",
        b"out\n",
    )


async def test_what_a_command_leaves_running_is_ended_and_counted() -> None:
    ending, _ = await output_of(
        command("sleep 91 & (setsid sleep 91 &) ; setsid sh -c 'sleep 91 & sleep 91' &")
    )

    assert (ending.code, ending.leftover >= 2, ending.survivors) == (0, True, 0)
    assert alive("sleep 91") == []


async def test_timeout_kills_stubborn_processes_and_keeps_output() -> None:
    ending, output = await output_of(
        command("trap '' TERM; echo up; setsid sleep 92 & sleep 92; sleep 92"),
        timeout=0.5,
    )

    assert (ending.timed_out, output) == (True, b"up\n")
    assert alive("sleep 92") == []


async def test_a_request_to_end_can_be_answered() -> None:
    ending, output = await output_of(
        command("trap 'echo bye; exit 0' TERM; echo up; sleep 93 & wait"), timeout=0.5
    )

    assert (ending.code, output) == (0, b"up\nbye\n")


async def test_killing_the_keeper_ends_the_command() -> None:
    ending, _ = await output_of(command("kill -9 $PPID; setsid sleep 94 & sleep 94"))

    assert ending.code == 137
    with anyio.fail_after(20):
        while alive("sleep 94"):  # noqa: ASYNC110  # the system tells nobody
            await anyio.sleep(0.01)


async def test_a_program_that_is_killed_leaves_no_command() -> None:
    tree = ProcessTree.start(command("echo up; setsid sleep 95 & sleep 95"))
    assert tree.stdout is not None
    await anyio.wait_readable(tree.stdout)

    tree._control.close()  # noqa: SLF001  # as the system does for a program that is gone

    with anyio.fail_after(20):
        while alive("sleep 95"):  # noqa: ASYNC110  # the system tells nobody
            await anyio.sleep(0.01)
    await tree.aclose()


async def test_keeper_that_does_not_answer_killed_with_all_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("amplifier_kit.processes.trees._END_SECONDS", 0.05)
    tree = ProcessTree.start(command("echo up; setsid sleep 96"))
    assert tree.stdout is not None
    await anyio.wait_readable(tree.stdout)
    os.kill(tree._process.pid, signal.SIGSTOP)  # noqa: SLF001  # nobody else knows the keeper

    with anyio.fail_after(20):
        await tree.aclose()
        while alive("sleep 96"):  # noqa: ASYNC110  # the system tells nobody
            await anyio.sleep(0.01)
    assert tree.ending == CommandEnd(code=137)


async def test_a_timeout_of_a_keeper_that_does_not_answer_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("amplifier_kit.processes.trees._END_SECONDS", 0.05)

    ending, _ = await output_of(command("kill -STOP $PPID; sleep 97"), timeout=0.3)

    assert ending.timed_out
    with anyio.fail_after(20):
        while alive("sleep 97"):  # noqa: ASYNC110  # the system tells nobody
            await anyio.sleep(0.01)


async def test_nothing_is_left_when_no_process_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")

    with pytest.raises(FileNotFoundError):
        ProcessTree.start(command("true"))


async def test_a_keeper_that_ends_before_its_order_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")

    def refuse(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(socket.socket, "sendall", refuse)
    ending, _ = await output_of(command("true"))

    assert ending.code == 137


def test_descendants_are_found_without_those_of_others() -> None:
    table = {
        1: ProcessEntry(0, ended=False),
        2: ProcessEntry(1, ended=False),
        3: ProcessEntry(2, ended=True),
        4: ProcessEntry(1, ended=False),
        5: ProcessEntry(4, ended=False),
    }

    assert sorted(descendants(1, table)) == [2, 3, 4, 5]
    assert sorted(descendants(1, table, but={4})) == [2, 3]


def test_the_table_of_processes_has_this_one_however_it_is_read() -> None:
    for table in (process_table(), process_table("/nowhere")):
        assert table[os.getpid()] == ProcessEntry(os.getppid(), ended=False)


def test_a_process_that_ends_while_it_is_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/stat").touch()
    (tmp_path / "12").mkdir()
    (tmp_path / "13").mkdir()
    (tmp_path / "13/stat").write_text("13 (a) b) Z 7 0\n")
    (tmp_path / "13/environ").write_text("X=token")
    (tmp_path / "notes").touch()

    assert process_table(str(tmp_path)) == {13: ProcessEntry(7, ended=True)}
    assert marked("token", str(tmp_path)) == [13]
    assert marked("other", str(tmp_path)) == []
    assert marked("token", "/nowhere") == []


@pytest.mark.parametrize("size", [0, 1, 300_000], ids=["nothing", "a little", "much"])
async def test_a_command_reads_its_input_to_the_end(size: int) -> None:
    ending, output = await output_of(command("cat; echo end", input="ä" * size))

    assert ending.code == 0
    assert output.decode() == "ä" * size + "end\n"


async def test_a_command_need_not_read_its_input() -> None:
    ending, _ = await output_of(command("exec 0<&-; exit 3", input="x" * 1_000_000))

    assert ending.code == 3


async def test_interactive_command_written_to_until_input_closed() -> None:
    tree = ProcessTree.start(command("cat; echo over", interactive=True))
    pieces: list[bytes] = []
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tree.pump, tree.stdout, pieces.append)
            await tree.send(b"x" * 300_000)  # more than a pipe holds
            tree.close_input()
            tree.close_input()
            with pytest.raises(BrokenPipeError, match="is closed"):
                await tree.send(b"more")
            assert (await tree.wait()).code == 0
        await tree.aclose()

    assert b"".join(pieces) == b"x" * 300_000 + b"over\n"


async def test_command_that_does_not_read_input_sees_it_closed() -> None:
    tree = ProcessTree.start(
        command("exec 0<&-; echo closed; sleep 60", interactive=True)
    )
    try:
        with anyio.fail_after(20):
            await anyio.wait_readable(tree.stdout or 0)
            with pytest.raises(BrokenPipeError):
                await tree.send(b"x" * 300_000)
    finally:
        await tree.aclose()


def test_interactive_command_that_cannot_start_leaves_no_handle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(11, "no more processes")

    monkeypatch.setattr("subprocess.Popen", refuse)
    handles = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="no more processes"):
        ProcessTree.start(command("true", interactive=True))

    assert len(os.listdir("/proc/self/fd")) == handles
