"""How long a permission holds, what it is for, how it is taken back, and what is written down."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from amplifier import AmplifierSession
from amplifier.testing import MockApprovalSystem, MockTool
from amplifier_kit.rules.permissions import Permissions
from amplifier_sdk import ToolResult

SESSION = "Allow in this session"
PROJECT = "Allow in this project"

SessionOf = Callable[..., AmplifierSession]  # type: ignore[explicit-any]  # its options go by name
Run = Callable[..., Awaitable[ToolResult]]  # type: ignore[explicit-any]  # likewise


def permissions_of(session: AmplifierSession) -> Permissions:
    """Return the session's permissions."""
    found = session.coordinator.get_capability("approval.permissions")
    assert isinstance(found, Permissions)
    return found


class ProjectContribution(MockTool):
    """A tool that a distribution brought."""

    __module__ = "acme_tools"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the distribution that brings `acme_tools`; return its metadata."""
    metadata = tmp_path / "site" / "acme_tools-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: acme-tools\nVersion: 1.0\n"
    )
    (metadata / "entry_points.txt").write_text(
        "[amplifier.modules]\ntool-acme = acme_tools:Tool\n"
    )
    monkeypatch.syspath_prepend(str(metadata.parent))
    return metadata


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the project's folder."""
    project = tmp_path / "project"
    project.mkdir()
    return project


@pytest.fixture
def record(home: Path) -> Path:
    """Return where decisions are recorded."""
    return home / "audit" / "approvals.jsonl"


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_once_is_once(session_of: SessionOf, run: Run) -> None:
    person = MockApprovalSystem("Allow once")
    async with session_of(MockTool("act"), person=person) as session:
        await run(session, "act")
        await run(session, "act")
    assert len(person.questions) == 2


async def test_a_sessions_permission_is_for_the_very_same_call(
    session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem(SESSION, "Deny")
    async with session_of(MockTool("act"), person=person) as session:
        assert (await run(session, "act", a=1, b=2)).success
        assert (await run(session, "act", b=2, a=1)).success
        assert len(person.questions) == 1
        assert not (await run(session, "act", a=1, b=3)).success
    async with session_of(MockTool("act"), person=person) as other:
        assert not (await run(other, "act", a=1, b=2)).success


async def test_a_projects_permission_holds_in_other_sessions(
    site: Path, folder: Path, home: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem(PROJECT, "Deny")
    async with session_of(
        ProjectContribution("act"), person=person, folder=folder
    ) as session:
        assert (await run(session, "act", a=1)).success
    async with session_of(
        ProjectContribution("act"), person=person, folder=folder
    ) as other:
        assert (await run(other, "act", a=1)).success
        assert not (await run(other, "act", a=2)).success
    assert len(person.questions) == 2
    stored = home / "approvals" / "projects.json"
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert not list(folder.iterdir())


async def test_a_projects_permission_is_for_its_folder(
    site: Path, folder: Path, tmp_path: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem(PROJECT, "Deny")
    async with session_of(
        ProjectContribution("act"), person=person, folder=folder
    ) as session:
        assert (await run(session, "act")).success
    async with session_of(
        ProjectContribution("act"), person=person, folder=tmp_path / "other"
    ) as other:
        assert not (await run(other, "act")).success


async def test_another_version_of_the_tool_is_asked_about_again(
    site: Path, folder: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem(PROJECT, "Deny")
    async with session_of(
        ProjectContribution("act"), person=person, folder=folder
    ) as session:
        assert (await run(session, "act")).success
    newer = site.with_name("acme_tools-2.0.dist-info")
    site.rename(newer)
    (newer / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: acme-tools\nVersion: 2.0\n"
    )
    async with session_of(
        ProjectContribution("act"), person=person, folder=folder
    ) as other:
        assert not (await run(other, "act")).success


async def test_another_definition_of_the_tool_is_asked_about_again(
    site: Path, folder: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem(PROJECT, "Deny")
    async with session_of(
        ProjectContribution("act"), person=person, folder=folder
    ) as session:
        assert (await run(session, "act")).success
    changed = ProjectContribution("act", description="Does something else.")
    async with session_of(changed, person=person, folder=folder) as other:
        assert not (await run(other, "act")).success


async def test_tool_without_distribution_gets_no_project_permission(
    folder: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem(PROJECT)
    async with session_of(MockTool("act"), person=person, folder=folder) as session:
        assert not (await run(session, "act")).success
    assert PROJECT not in person.questions[0].options


async def test_a_project_that_holds_the_store_keeps_no_permission(
    site: Path, home: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem("Deny")
    async with session_of(
        ProjectContribution("act"), person=person, folder=home.parent
    ) as session:
        await run(session, "act")
    assert PROJECT not in person.questions[0].options


@pytest.mark.parametrize(
    ("scopes", "options"),
    [
        (["once"], ("Allow once", "Deny")),
        (["session"], (SESSION, "Deny")),
        (["project", "once"], ("Allow once", PROJECT, "Deny")),
        ([], ("Allow once", "Deny")),
    ],
    ids=["once", "session", "project", "none"],
)
async def test_scopes_are_those_configured(
    scopes: list[str],
    options: tuple[str, ...],
    site: Path,
    folder: Path,
    session_of: SessionOf,
    run: Run,
) -> None:
    person = MockApprovalSystem("Deny")
    async with session_of(
        ProjectContribution("act"),
        person=person,
        folder=folder,
        config={"scopes": scopes},
    ) as session:
        await run(session, "act")
    assert person.questions[0].options == options


async def test_permissions_are_listed_without_secrets_and_taken_back(
    site: Path, folder: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem(PROJECT, SESSION, "Deny")
    async with session_of(
        ProjectContribution("act"), MockTool("do"), person=person, folder=folder
    ) as session:
        await run(session, "act", password="hunter2-hunter2")
        await run(session, "do")
        permissions = permissions_of(session)
        first, second = await permissions.list()
        assert (first.tool_name, first.scope, first.distribution) == (
            "act",
            "project",
            "acme-tools 1.0",
        )
        assert (second.tool_name, second.scope, second.distribution) == (
            "do",
            "session",
            "",
        )
        assert "hunter2" not in first.action
        assert await permissions.revoke(first.id)
        assert await permissions.revoke(second.id)
        assert not await permissions.revoke(first.id)
        assert await permissions.list() == ()
        assert not (await run(session, "act", password="hunter2-hunter2")).success
        assert not (await run(session, "do")).success


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"x": 1}', '{"x": {"id": "y"}}', "null"],
    ids=["torn", "list", "number", "other", "null"],
)
async def test_a_damaged_store_allows_nothing(
    content: str, site: Path, folder: Path, home: Path, session_of: SessionOf, run: Run
) -> None:
    stored = home / "approvals" / "projects.json"
    stored.parent.mkdir(parents=True, mode=0o700)
    stored.write_text(content)
    person = MockApprovalSystem("Deny")
    async with session_of(
        ProjectContribution("act"), person=person, folder=folder
    ) as session:
        assert not (await run(session, "act")).success
    assert len(person.questions) == 1


async def test_a_store_that_others_may_write_allows_nothing(
    site: Path, folder: Path, home: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem(PROJECT, "Deny")
    async with session_of(
        ProjectContribution("act"), person=person, folder=folder
    ) as session:
        assert (await run(session, "act")).success
    (home / "approvals" / "projects.json").chmod(0o666)
    async with session_of(
        ProjectContribution("act"), person=person, folder=folder
    ) as other:
        assert not (await run(other, "act")).success


async def test_a_permission_that_cannot_be_kept_holds_once(
    site: Path, folder: Path, home: Path, session_of: SessionOf, run: Run
) -> None:
    home.mkdir()
    (home / "approvals").write_text("in the way")
    person = MockApprovalSystem(PROJECT)
    async with session_of(
        ProjectContribution("act"), person=person, folder=folder
    ) as session:
        assert (await run(session, "act")).success
        assert (await run(session, "act")).success
    assert len(person.questions) == 2


# -- the record


async def test_decisions_are_recorded_in_order_without_secrets(
    record: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem("Allow once", "Deny")
    rules = [{"decision": "deny", "tools": ["delete"]}]
    tools = (MockTool("act"), MockTool("look", effects=("read",)), MockTool("delete"))
    async with session_of(*tools, person=person, config={"rules": rules}) as session:
        await run(session, "look")
        await run(
            session, "act", token="sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
        )
        await run(session, "act")
        await run(session, "delete")
    assert [(line["tool"], line["decision"]) for line in lines(record)] == [
        ("look", "allowed"),
        ("act", "asked"),
        ("act", "granted"),
        ("act", "asked"),
        ("act", "refused"),
        ("delete", "denied"),
    ]
    assert "abcdefghijklm" not in record.read_text()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600


async def test_a_line_that_was_cut_off_costs_no_other(
    record: Path, session_of: SessionOf, run: Run
) -> None:
    record.parent.mkdir(parents=True, mode=0o700)
    record.write_text('{"decision": "al')
    record.chmod(0o600)
    async with session_of(MockTool("look", effects=("read",))) as session:
        await run(session, "look")
    assert json.loads(record.read_text().splitlines()[1])["decision"] == "allowed"


@pytest.mark.parametrize("require", [False, True], ids=["wanted", "required"])
async def test_what_cannot_be_recorded_denied_where_records_required(
    require: bool,
    home: Path,
    caplog: pytest.LogCaptureFixture,
    session_of: SessionOf,
    run: Run,
) -> None:
    home.mkdir()
    (home / "audit").write_text("in the way")
    tool, asked = MockTool("look", effects=("read",)), MockTool("act")
    config = {"audit": {"require_record": require}}
    person = MockApprovalSystem("Allow once")
    async with session_of(tool, asked, person=person, config=config) as session:
        assert (await run(session, "look")).success is not require
        assert (await run(session, "act")).success is not require
    assert ("cannot be recorded" in caplog.text) is not require
    assert len(person.questions) == (0 if require else 1)


async def test_unrecordable_answer_is_denied_if_records_required(
    record: Path, session_of: SessionOf, run: Run
) -> None:
    async def answer(_: object) -> str:
        record.chmod(0o666)
        return "Allow once"

    tool = MockTool("act")
    config = {"audit": {"require_record": True}}
    async with session_of(
        tool, person=MockApprovalSystem(answer), config=config
    ) as session:
        result = await run(session, "act")
    assert "can be written by others" in str(result)
    assert not tool.calls


async def test_a_record_is_no_link(
    record: Path, tmp_path: Path, session_of: SessionOf, run: Run
) -> None:
    record.parent.mkdir(parents=True, mode=0o700)
    record.symlink_to(tmp_path / "elsewhere")
    async with session_of(
        MockTool("look", effects=("read",)), config={"audit": {"require_record": True}}
    ) as session:
        assert not (await run(session, "look")).success
    assert not (tmp_path / "elsewhere").exists()


async def test_the_record_can_be_elsewhere_or_nowhere(
    tmp_path: Path, record: Path, session_of: SessionOf, run: Run
) -> None:
    elsewhere = tmp_path / "records" / "decisions.jsonl"
    for audit in ({"path": str(elsewhere)}, {"enabled": False}):
        async with session_of(
            MockTool("look", effects=("read",)), config={"audit": audit}
        ) as session:
            await run(session, "look")
    assert len(lines(elsewhere)) == 1
    assert not record.exists()


async def test_a_record_with_a_second_name_is_not_written(
    record: Path, tmp_path: Path, session_of: SessionOf, run: Run
) -> None:
    record.parent.mkdir(parents=True, mode=0o700)
    record.touch(mode=0o600)
    os.link(record, tmp_path / "second")
    async with session_of(
        MockTool("look", effects=("read",)), config={"audit": {"require_record": True}}
    ) as session:
        assert not (await run(session, "look")).success


async def test_a_permission_for_one_session_is_none_in_the_store(
    site: Path, folder: Path, home: Path, session_of: SessionOf, run: Run
) -> None:
    person = MockApprovalSystem(PROJECT, "Deny")
    async with session_of(
        ProjectContribution("act"), person=person, folder=folder
    ) as session:
        assert (await run(session, "act")).success
        stored = home / "approvals" / "projects.json"
        stored.write_text(
            stored.read_text()
            .replace('"scope": "project"', '"scope": "session"')
            .replace('"scope":"project"', '"scope":"session"')
        )
        assert not (await run(session, "act")).success
        with pytest.raises(OSError, match="stands for another permission"):
            await permissions_of(session).list()
