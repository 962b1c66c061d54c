"""The rules and what a tool says of a call are one decision; an answer reaches as far as the person chose."""

from __future__ import annotations

import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import attrs
import pytest

from amplifier import AmplifierSession
from amplifier.testing import MockApprovalSystem, MockTool
from amplifier_kit.commands import CommandAnswer, CommandError, SessionCommand
from amplifier_kit.rules.permissions import Permissions
from amplifier_sdk import ToolResult
from amplifier_sdk.assessments import ACCEPTED, Assessment, Coverage
from amplifier_sdk.jsontypes import JSONObject

SessionOf = Callable[..., AmplifierSession]  # type: ignore[explicit-any]  # its options go by name
Run = Callable[..., Awaitable[ToolResult]]  # type: ignore[explicit-any]  # likewise

PUSHES = Coverage(key="command git push", label="commands that begin with 'git push'")
DAY = 86_400.0


class Shell(MockTool):
    """A tool that says of its calls what it is told to."""

    __module__ = "acme_tools"

    def __init__(self, said: Assessment, name: str = "sh") -> None:
        super().__init__(name, effects=("exec",))
        self.said = said

    async def assess_call(self, input: JSONObject, /) -> Assessment:
        """Say it; a call of another remote is another kind."""
        return self.said


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the distribution that brings `acme_tools`."""
    metadata = tmp_path / "site" / "acme_tools-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: acme-tools\nVersion: 1.0\n"
    )
    (metadata / "entry_points.txt").write_text(
        "[amplifier.modules]\ntool-acme = acme_tools:Tool\n"
    )
    monkeypatch.syspath_prepend(str(metadata.parent))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    return project


ASK = Assessment(decision="ask", reason="no rule lets it run", coverages=(PUSHES,))
ALLOW = Assessment(decision="allow")
FIRM = Assessment(decision="ask", reason="it may hold secrets", is_firm=True)
RULE = {"decision": "allow", "tools": ["sh"]}


@pytest.mark.parametrize(
    ("said", "config", "questions", "runs"),
    [
        (ALLOW, {}, 0, True),
        (ASK, {}, 1, False),
        (ASK, {"rules": [RULE]}, 0, True),
        (FIRM, {"rules": [RULE]}, 1, False),
        (ASK, {"otherwise": "allow"}, 1, False),
        (ASK, {"tools": {"sh": {"require_approval": False}}}, 1, False),
        (ALLOW, {"tools": {"sh": {"require_approval": True}}}, 1, False),
        (ALLOW, {"otherwise": "deny"}, 0, False),
        (ALLOW, {"rules": [{"decision": "deny", "tools": ["sh"]}]}, 0, False),
        (Assessment(decision="deny", reason="never"), {"rules": [RULE]}, 0, False),
        (Assessment(decision="ask", problem="it cannot"), {}, 0, False),
        (Assessment(effects=("read",)), {}, 0, True),
        (Assessment(effects=("write",)), {}, 1, False),
    ],
)
async def test_a_call_has_one_judge(
    said: Assessment,
    config: dict[str, object],
    questions: int,
    runs: bool,
    session_of: SessionOf,
    run: Run,
) -> None:
    person = MockApprovalSystem("Deny")
    tool = Shell(said)
    async with session_of(tool, person=person, config=config) as session:
        assert (await run(session, "sh", command="git push")).success is runs
    assert len(person.questions) == questions


async def test_the_question_shows_what_the_tool_says(
    folder: Path, session_of: SessionOf, run: Run
) -> None:
    said = Assessment(
        effects=("exec", "network"),
        decision="ask",
        reason="no rule lets it run",
        details="It gets the network.",
        coverages=(PUSHES,),
        directory="/srv/sub",
    )
    person = MockApprovalSystem("Deny")
    async with session_of(Shell(said), person=person, folder=folder) as session:
        await run(session, "sh", command="git push")
    assert person.questions[0].prompt == (
        'sh {"command": "git push"}\n'
        "It gets the network.\n"
        "Risk: high (exec, network). Asked because no rule lets it run.\n"
        "'Allow in this session' and 'Allow in this project' cover exactly this call, in /srv/sub.\n"
        "What outlasts this session ends after 30 days; 'amplifier permissions' takes it back."
    )
    assert person.questions[0].options == (
        "Allow once",
        "Allow in this session",
        "Allow in this project",
        "Allow commands that begin with 'git push' in this session",
        "Allow commands that begin with 'git push' in this project",
        "Allow commands that begin with 'git push' everywhere",
        "Deny",
    )


@pytest.mark.parametrize(
    ("scope", "same", "other_session", "other_folder"),
    [
        ("in this session", True, False, False),
        ("in this project", True, True, False),
        ("everywhere", True, True, True),
    ],
)
async def test_a_kind_of_calls_is_allowed_as_far_as_the_person_said(
    scope: str,
    same: bool,
    other_session: bool,
    other_folder: bool,
    folder: Path,
    tmp_path: Path,
    home: Path,
    session_of: SessionOf,
    run: Run,
) -> None:
    person = MockApprovalSystem(
        f"Allow commands that begin with 'git push' {scope}", "Deny"
    )
    tool = Shell(ASK)
    async with session_of(tool, person=person, folder=folder) as session:
        assert (await run(session, "sh", command="git push")).success
        assert (
            await run(session, "sh", command="git push origin main")
        ).success is same
        tool.said = Assessment(decision="ask", reason="another kind")
        assert not (await run(session, "sh", command="git push; rm x")).success
    tool.said = ASK
    async with session_of(tool, person=person, folder=folder) as session:
        assert (
            await run(session, "sh", command="git push --tags")
        ).success is other_session
    async with session_of(
        tool, person=person, folder=tmp_path / "elsewhere"
    ) as session:
        assert (
            await run(session, "sh", command="git push --tags")
        ).success is other_folder
    stored = home / "approvals" / "projects.json"
    assert stored.exists() is (scope != "in this session")
    assert not list(folder.iterdir())
    if stored.exists():
        assert stat.S_IMODE(stored.stat().st_mode) == 0o600


async def test_folder_below_another_name_of_tool_is_another_call(
    folder: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem("Allow in this session", "Deny")
    tool = Shell(Assessment(decision="ask", reason="odd", directory="/srv/a"))
    async with session_of(tool, person=person, folder=folder) as session:
        assert (await run(session, "sh", command="make")).success
        assert (await run(session, "sh", command="make")).success
        tool.said = Assessment(decision="ask", reason="odd", directory="/srv/b")
        assert not (await run(session, "sh", command="make")).success


@pytest.mark.parametrize(
    "answer",
    [
        "Allow in this session",
        "Allow in this project",
        "Allow commands that begin with 'git push' in this session",
        "Allow commands that begin with 'git push' everywhere",
    ],
)
async def test_an_answer_holds_while_the_call_is_confined_as_it_was(
    answer: str, folder: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem(answer, "Deny")
    tool = Shell(attrs.evolve(ASK, confinement="Confined by bubblewrap."))
    async with session_of(tool, person=person, folder=folder) as session:
        assert (await run(session, "sh", command="git push")).success
        assert (await run(session, "sh", command="git push")).success
        for other in ("Not confined.", ""):
            tool.said = attrs.evolve(ASK, confinement=other)
            assert not (await run(session, "sh", command="git push")).success
    assert "\nConfined by bubblewrap.\n" in person.questions[0].prompt


async def test_a_permission_ends_and_is_asked_about_again(
    folder: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem(
        "Allow commands that begin with 'git push' everywhere", "Deny"
    )
    async with session_of(
        Shell(ASK), person=person, folder=folder, config={"permission_days": 2}
    ) as session:
        permissions = session.coordinator.get_capability("approval.permissions")
        assert isinstance(permissions, Permissions)
        now = permissions.clock()
        assert (await run(session, "sh", command="git push")).success
        permissions.clock = lambda: now + 1.9 * DAY
        assert (await run(session, "sh", command="git push")).success
        permissions.clock = lambda: now + 2.1 * DAY
        assert await permissions.list() == ()
        assert not (await run(session, "sh", command="git push")).success
    assert "after 2 days" in person.questions[0].prompt


async def test_without_an_end_nothing_is_said_of_one(
    folder: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem("Allow commands that begin with 'git push' everywhere")
    async with session_of(
        Shell(ASK), person=person, folder=folder, config={"permission_days": None}
    ) as session:
        assert (await run(session, "sh", command="git push")).success
        (answer,) = [await command.make("") for command in await commands_of(session)]
    assert "ends after" not in person.questions[0].prompt
    assert isinstance(answer, CommandAnswer)
    assert "until" not in answer.text


async def test_what_whoever_opened_session_accepts_is_not_asked_about(
    session_of: SessionOf, run: Run
) -> None:
    edit = Assessment(
        effects=("write",), coverages=(Coverage(key="edits", label="edits"),)
    )
    async with session_of(Shell(edit), person=MockApprovalSystem("Deny")) as session:
        assert not (await run(session, "sh")).success
        session.coordinator.register_capability(ACCEPTED, frozenset({"edits"}))
        assert (await run(session, "sh")).success


async def commands_of(session: AmplifierSession) -> list[SessionCommand]:
    """Return the chat's commands of the session."""
    found: list[SessionCommand] = []
    for offered in await session.coordinator.collect_contributions("cli.commands"):
        assert isinstance(offered, list)
        found += offered
    return found


async def test_the_chat_lists_permissions_and_takes_them_back(
    folder: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem(
        "Allow commands that begin with 'git push' everywhere",
        "Allow in this session",
        "Deny",
    )
    tool = Shell(ASK)
    async with session_of(tool, person=person, folder=folder) as session:
        (command,) = await commands_of(session)
        nothing = await command.make("")
        await run(session, "sh", command="git push")
        tool.said = Assessment(decision="ask", reason="odd")
        await run(session, "sh", command="make")
        listed = await command.make("")
        assert isinstance(nothing, CommandAnswer)
        assert isinstance(listed, CommandAnswer)
        first, second = listed.text.splitlines()
        assert "everywhere, until" in first
        assert first.endswith("sh: commands that begin with 'git push'")
        assert "session" in second
        for wrong in ("revoke", "forget x", "revoke zzz", "revoke "):
            with pytest.raises(CommandError):
                await command.make(wrong)
        await command.make(f"revoke {first.split()[0]}")
        assert not (await run(session, "sh", command="make x")).success
        await command.make("revoke all")
        assert not (await run(session, "sh", command="make")).success
    assert nothing.text == "Nothing is allowed for longer than one call."


async def test_a_child_shares_what_was_allowed_for_the_session(
    folder: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem(
        "Allow commands that begin with 'git push' in this session", "Deny"
    )
    async with session_of(Shell(ASK), person=person, folder=folder) as session:
        assert (await run(session, "sh", command="git push")).success
        child = session.fork()
        async with child:
            assert (await run(child, "sh", command="git push origin")).success
    assert len(person.questions) == 1


@pytest.mark.parametrize(
    "config",
    [
        {"rules": [{"decision": "ask", "tools": ["sh"]}]},
        {"tools": {"sh": {"require_approval": True}}},
    ],
    ids=["rule", "tool"],
)
async def test_answer_about_kinds_never_answers_configured_question(
    config: dict[str, object], session_of: SessionOf, run: Run
) -> None:
    kinds = MockApprovalSystem("Allow commands that begin with 'git push' everywhere")
    async with session_of(Shell(ASK), person=kinds) as session:
        assert (await run(session, "sh", command="git push")).success
    person = MockApprovalSystem("Deny")
    async with session_of(Shell(ASK), person=person, config=config) as session:
        session.coordinator.register_capability(ACCEPTED, frozenset({PUSHES.key}))
        assert not (await run(session, "sh", command="git push --force")).success

    (question,) = person.questions
    assert "begin with" not in str(question)


async def test_permission_of_scope_not_configured_does_not_count(
    session_of: SessionOf, run: Run
) -> None:
    lasting = MockApprovalSystem("Allow in this project")
    async with session_of(Shell(ASK), person=lasting) as session:
        assert (await run(session, "sh", command="git push")).success
    person = MockApprovalSystem("Deny")
    async with session_of(
        Shell(ASK), person=person, config={"scopes": ["once"]}
    ) as session:
        assert not (await run(session, "sh", command="git push")).success

    assert len(person.questions) == 1


async def test_claimed_parent_shares_no_permission(
    session_of: SessionOf, run: Run
) -> None:
    alice = MockApprovalSystem("Allow in this session")
    bob = MockApprovalSystem("Deny")
    async with session_of(Shell(ASK), person=alice) as session:
        assert (await run(session, "sh", command="git push")).success
        plan, loader = session.config, session.loader
        async with AmplifierSession(
            plan, loader, "bobs", session.session_id, bob
        ) as other:
            assert not (await run(other, "sh", command="git push")).success
        async with session.fork() as child:
            assert (await run(child, "sh", command="git push")).success

    assert len(bob.questions) == 1
    assert len(alice.questions) == 1
