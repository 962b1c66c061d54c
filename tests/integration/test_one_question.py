"""A command has one judge, whoever is mounted: with and without approval the same commands run and ask once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from amplifier import AmplifierSession
from amplifier.testing import MockApprovalSystem
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import ToolResult

pytestmark = pytest.mark.process

COMMANDS = (
    Path(__file__).resolve().parents[2]
    / "plugins"
    / "amplifier-module-tool-bash"
    / "tests"
    / "commands"
)
ONLY_HOOK: JSONObject = {
    "module": "hooks-approval",
    "config": {"audit": {"enabled": False}},
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is worked in."""
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "home"))
    return folder


def a_session(
    person: MockApprovalSystem,
    folder: Path,
    hooks: Sequence[JSONObject],
    *,
    runs: bool = True,
) -> AmplifierSession:
    """Make a session with a shell, which asks before changes; one that runs nothing finds no bash."""
    shell: JSONObject = {} if runs else {"env": {"PATH": "/nonexistent"}}
    session = AmplifierSession(
        {
            "session": {
                "orchestrator": "loop-basic",
                "context": "context-simple",
                "ask_before_changes": True,
                "limits": {"tool_calls": 10_000},
            },
            "providers": [
                {"module": "provider-scripted", "config": {"responses": ["end"]}}
            ],
            "tools": [{"module": "tool-bash", "config": shell}],
            "hooks": list(hooks),
        },
        approval_system=person,
    )
    session.coordinator.register_capability("session.working_dir", str(folder))
    return session


async def run(session: AmplifierSession, command: str) -> ToolResult:
    """Call the shell as a model does."""
    call = ToolCall(id="c1", name="bash", arguments={"command": command})
    return await session.coordinator.host.run_tool(call, session.coordinator.tools)


@pytest.mark.parametrize("hooks", [[ONLY_HOOK], []], ids=["approval", "session"])
@pytest.mark.parametrize(
    "command", ["echo hi", "pwd; true", "x=1; echo $x", "test -d ."]
)
async def test_what_the_rules_let_run_runs_without_a_question(
    command: str, hooks: list[JSONObject], folder: Path
) -> None:
    person = MockApprovalSystem("Deny")
    async with a_session(person, folder, hooks) as session:
        assert (await run(session, command)).success
    assert not person.questions


@pytest.mark.parametrize("hooks", [[ONLY_HOOK], []], ids=["approval", "session"])
async def test_no_dangerous_command_runs_and_none_asked_about_twice(
    hooks: list[JSONObject], folder: Path
) -> None:
    texts = [
        text
        for name in ("dangerous", "dangerous_unseen", "dangerous_tricks")
        for text in (COMMANDS / f"{name}.txt")
        .read_text()
        .removesuffix("\n")
        .split("\n----\n")
    ]
    person = MockApprovalSystem("Deny")
    ran, twice = [], []
    async with a_session(person, folder, hooks, runs=False) as session:
        for text in texts:
            before = len(person.questions)
            result = await run(session, text)
            if result.error is None or result.error.get("type") != "denied":
                ran.append(text)
            if len(person.questions) > before + 1:
                twice.append(text)
    assert (ran, twice) == ([], [])
    assert len(person.questions) > len(texts) / 2
    assert not list(folder.iterdir())


async def test_session_that_runs_nothing_would_run_what_is_allowed(
    folder: Path,
) -> None:
    async with a_session(
        MockApprovalSystem("Allow once"), folder, [], runs=False
    ) as session:
        result = await run(session, "touch x")
    assert result.error is not None
    assert result.error.get("type") != "denied"
    assert not list(folder.iterdir())


async def test_a_prefix_that_was_allowed_covers_no_other_command(folder: Path) -> None:
    """What begins with the same words but does more, or other things, is asked about."""
    prefix = "Allow commands that begin with 'git push' in this session"
    person = MockApprovalSystem(prefix, "Deny")
    async with a_session(person, folder, [ONLY_HOOK]) as session:
        assert "128" in str(await run(session, "git push origin a"))
        assert "128" in str(await run(session, "git push origin b --tags"))
        assert len(person.questions) == 1
        for text in (
            "git push; touch x",
            "git push > x",
            "git push $(touch x)",
            "git push .env",
            "A=1 git push",
            "git pushx",
            "git push elsewhere a",
            "git push &",
        ):
            assert not (await run(session, text)).success
    assert len(person.questions) == 9
    assert not list(folder.iterdir())
