"""What the module's configuration means, and what it refuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_module_tool_bash import Bash, BashConfig
from amplifier_sdk.errors import ConfigError, ToolError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.tools import tools_of

Mount = Callable[..., Bash]  # type: ignore[explicit-any]  # its options go by name
Run = Callable[..., Awaitable[Mapping[str, object]]]  # type: ignore[explicit-any]  # its options go by name


def test_the_module_is_four_tools_with_described_arguments(shell: Bash) -> None:
    tools = tools_of(shell)

    assert [tool.name for tool in tools] == [
        "bash",
        "bash_output",
        "bash_stop",
        "bash_status",
    ]
    for tool in tools:
        properties = tool.input_schema["properties"]
        assert isinstance(properties, Mapping)
        assert all(
            isinstance(entry, Mapping) and entry["description"]
            for entry in properties.values()
        )


def test_an_unknown_key_is_an_error_that_names_the_nearest(mount: Mount) -> None:
    with pytest.raises(ConfigError, match=r"time_out.*timeout"):
        mount(time_out=3)
    with pytest.raises(ConfigError, match=r"rules\[0\]"):
        mount(rules=[{"decision": "maybe", "commands": ["x"]}])


@pytest.mark.parametrize(
    "name",
    ["max_output_bytes", "max_spill_bytes", "max_jobs", "timeout", "max_timeout"],
)
@pytest.mark.parametrize("value", [0, -1, True, "10"])
def test_every_limit_is_a_number_above_zero(
    mount: Mount, name: str, value: JSONValue
) -> None:
    with pytest.raises(ConfigError, match=name):
        mount(**{name: value})


def test_an_endless_command_cannot_be_configured() -> None:
    for wrong in (float("inf"), 3601):
        with pytest.raises(ValueError, match="max_timeout"):
            BashConfig(max_timeout=wrong)
    with pytest.raises(ValueError, match="max_jobs is a whole number"):
        BashConfig(max_jobs=0)


def test_folders_that_do_not_exist_are_all_named(mount: Mount, root: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        mount(working_dir="nowhere", writable_paths=["also/nowhere"])

    assert [problem.path for problem in caught.value.problems] == [
        "working_dir",
        "writable_paths",
    ]


@pytest.mark.process
async def test_commands_start_in_the_configured_folder(
    mount: Mount, run: Run, root: Path
) -> None:
    (root / "sub").mkdir()

    assert (await run(mount(working_dir="sub"), "pwd"))["stdout"] == f"{root}/sub\n"


@pytest.mark.process
async def test_without_capability_they_start_in_process_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(root)
    shell = Bash(BashConfig(sandbox="none"), ModuleCoordinator())

    assert (await run(shell, "pwd"))["stdout"] == f"{root}\n"
    await shell.aclose()


@pytest.mark.process
async def test_a_command_takes_the_configured_time_at_most(
    mount: Mount, run: Run
) -> None:
    assert (await run(mount(timeout=0.3), "sleep 60"))["timed_out"] is True


@pytest.mark.process
async def test_what_is_judged_is_the_folder_that_was_gone_to(
    mount: Mount, run: Run, root: Path
) -> None:
    shell = mount(unlisted="ask", default_rules=True, protected_paths=["guarded"])
    (root / "guarded").mkdir()
    (root / "guarded" / "a").touch()

    await run(shell, "cd guarded")

    assert shell.permission.assess("rm a").decision == "ask"


@pytest.mark.process
async def test_command_runs_in_folder_in_which_it_was_decided_on(
    mount: Mount, run: Run, root: Path
) -> None:
    shell = mount(unlisted="ask", default_rules=True)
    (root / "sub").mkdir()
    (root / "sub/a.txt").write_text("one\n")
    permission = shell.permission

    for command in ("echo two > a.txt", "unheard-of"):
        permission.assess(command)
        await run(shell, "cd sub")
        with pytest.raises(ToolError, match=r"decided on in .*; call again"):
            permission.check(command)
        assert permission.assess(command).directory == str(root / "sub")
        assert not permission.check(command)
        await run(shell, "cd ..")

    assert (root / "sub/a.txt").read_text() == "one\n"


@pytest.mark.process
async def test_a_folder_that_is_gone_decides_on_nothing(
    mount: Mount, run: Run, root: Path
) -> None:
    shell = mount(unlisted="ask", default_rules=True)
    (root / "a.txt").touch()
    (root / "sub").mkdir()
    permission = shell.permission
    await run(shell, "cd sub")
    assert permission.assess("echo two > a.txt").decision == "allow"

    (root / "sub").rmdir()

    with pytest.raises(ToolError, match="call again"):
        permission.check("echo two > a.txt")
    assert permission.assess("echo two > a.txt").decision is None
