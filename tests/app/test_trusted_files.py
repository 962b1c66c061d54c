"""A call that changes what the person trusted is asked about, whatever tool it is of."""

from __future__ import annotations

import json

import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.projects.trust import trust_again
from amplifier.app.sessions.opened import open_session
from amplifier.testing import MockTool
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.jsontypes import JSONObject
from tests.app.projects import composed, trust, write

PLAN: JSONObject = {
    "session": {"orchestrator": "loop-basic", "context": "context-simple"},
    "providers": [{"module": "provider-scripted", "config": {"responses": ["hi"]}}],
}


def make_project(dirs: AppDirs) -> None:
    """Write a project with a trusted hook, and something else."""
    hooks = {
        "PreToolUse": [
            {"hooks": [{"type": "command", "command": "cd tools && ./check.sh"}]}
        ]
    }
    write(dirs.root / ".claude/settings.json", json.dumps({"hooks": hooks}))
    write(dirs.root / "tools/check.sh", "exit 0\n")
    write(dirs.root / "tools/other.sh", "exit 0\n")
    trust(dirs, "hooks")


@pytest.mark.parametrize(
    ("arguments", "asks"),
    [
        ({"filePath": "tools/check.sh"}, True),
        ({"path": "tools/../tools/check.sh"}, True),
        ({"targetFile": ".claude/settings.json"}, True),
        ({"path": ".claude/settings.local.json"}, True),
        ({"path": "tools"}, True),
        ({"source": "x", "destination": "tools/check.sh"}, True),
        ({"path": "tools/other.sh"}, False),
        ({"path": "README.md"}, False),
        ({"text": "tools/check.sh"}, False),
    ],
)
@pytest.mark.parametrize("effects", [("write",), None])
async def test_a_call_that_writes_what_was_trusted_is_asked_about(
    dirs: AppDirs, arguments: JSONObject, asks: bool, effects: tuple[str, ...] | None
) -> None:
    make_project(dirs)
    tool = MockTool("store", effects=effects)

    async with open_session(composed(PLAN, dirs.working_dir)) as opened:
        await opened.session.coordinator.mount("tools", tool)
        host, tools = opened.session.coordinator.host, opened.session.coordinator.tools
        await host.run_tool(ToolCall(id="c1", name="store", arguments=arguments), tools)

    assert bool(tool.calls) is not asks


@pytest.mark.process
async def test_a_command_that_writes_what_was_trusted_is_asked_about(
    dirs: AppDirs,
) -> None:
    make_project(dirs)
    plan = {**PLAN, "tools": ["tool-bash"]}

    async with open_session(composed(plan, dirs.working_dir)) as opened:
        host, tools = opened.session.coordinator.host, opened.session.coordinator.tools
        for number, name in enumerate(("check.sh", "other.sh")):
            arguments: JSONObject = {"command": f"echo changed > tools/{name}"}
            await host.run_tool(
                ToolCall(id=f"c{number}", name="bash", arguments=arguments), tools
            )

    assert (dirs.root / "tools/check.sh").read_text() == "exit 0\n"
    assert (dirs.root / "tools/other.sh").read_text() == "changed\n"


@pytest.mark.process
@pytest.mark.parametrize(
    ("commands", "asks"),
    [
        (["cp tools/other.sh tools/check.sh"], True),
        (["mv tools old"], True),
        (["rm -r tools"], True),
        (["echo x | tee tools/check.sh"], True),
        (["sed -i s/0/1/ tools/*.sh"], True),
        (["perl -pi -e s/0/1/ tools/check.sh"], True),
        (["cd tools", "echo x > check.sh"], True),
        (["cat tools/check.sh", "ls tools", "bash tools/check.sh"], False),
        (["ruff format tools || true", "git status || true"], False),
        (["echo x > tools/other.sh", "mkdir -p tools/new"], False),
        (["cd tools", "echo x > other.sh"], False),
    ],
)
async def test_whatever_commands_may_run_what_trusted_asked_about(
    dirs: AppDirs, commands: list[str], asks: bool
) -> None:
    make_project(dirs)
    shell: JSONObject = {
        "sandbox": "none",
        "default_rules": False,
        "unlisted": "allow",
    }
    plan: JSONObject = {**PLAN, "tools": [{"module": "tool-bash", "config": shell}]}
    results = []

    async with open_session(composed(plan, dirs.working_dir)) as opened:
        coordinator = opened.session.coordinator
        for number, command in enumerate(commands):
            call = ToolCall(
                id=f"c{number}", name="bash", arguments={"command": command}
            )
            results.append(await coordinator.host.run_tool(call, coordinator.tools))

    assert all(result.success for result in results) is not asks
    assert ("exit 0" in (dirs.root / "tools/check.sh").read_text()) is True


def test_what_the_person_takes_away_themselves_is_not_missing(dirs: AppDirs) -> None:
    path = write(dirs.root / ".amplifier/settings.yaml", "profile: {active: dev}\n")
    trust(dirs, "settings")

    with trust_again(dirs, "settings", [".amplifier/settings.yaml"]):
        path.unlink()

    assert ProjectFiles(dirs).lost("settings") == ""
