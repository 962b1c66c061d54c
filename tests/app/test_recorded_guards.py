"""A program that opens a stored session again: never with fewer guards than it had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs
import pytest

from amplifier import (
    PlanOptions,
    ProjectSessions,
    SessionRecord,
    compose,
    fork_session,
    open_session,
    reopen,
)
from amplifier.app.directories import AppDirs
from amplifier.app.sessions.composition import Composition
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.app.projects import write

INSTALLED: Final = ("loop-basic", "context-simple")
RECORD: Final = SessionRecord(session_id="s1", name="kept")
DENY: Final[JSONValue] = {"decision": "deny", "tools": ["delete"]}
PATHS: Final = "denied_write_paths"
TOOL: Final[JSONValue] = {"module": "tool-filesystem", "config": {PATHS: ["secret"]}}
HOOKS: Final[list[JSONValue]] = [
    {"module": "hooks-approval", "config": {"rules": [DENY]}},
    {"module": "hooks-backup"},
]
ALLOWING: Final[JSONValue] = [
    {"module": "hooks-approval", "config": {"rules": [DENY], "otherwise": "allow"}},
    {"module": "hooks-backup"},
]
GUARDED: Final[JSONObject] = {
    "session": {"ask_before_changes": True, "limits": {"session_tool_calls": 5}},
    "providers": [{"module": "provider-scripted", "config": {"responses": ["done"]}}],
    "tools": [TOOL],
    "hooks": HOOKS,
}


def composed(dirs: AppDirs, plan: Mapping[str, JSONValue]) -> Composition:
    text = "\n".join(f"{key}: {value}" for key, value in plan.items())
    write(dirs.home / "profiles/dev.md", f"---\n{text}\n---\n")
    return compose(PlanOptions(profile="dev"), dirs, installed=INSTALLED)


async def opened(
    composition: Composition, store: ProjectSessions, record: SessionRecord = RECORD
) -> None:
    async with open_session(composition, record=record, store=store):
        pass


async def test_what_the_session_lost_is_named_and_nothing_else(dirs: AppDirs) -> None:
    store = ProjectSessions.of(dirs)
    await opened(composed(dirs, GUARDED), store)
    plan = {**GUARDED, "hooks": ["hooks-backup", "hooks-logging"]}
    with pytest.raises(ConfigError) as raised:
        await opened(composed(dirs, plan), store)
    paths = [problem.path for problem in raised.value.problems]
    assert paths == ["hooks[hooks-approval]", "composition"]
    assert "amplifier.reopen" in str(raised.value)


@pytest.mark.parametrize(
    ("section", "weaker", "named"),
    [
        ("hooks", [], "hooks[hooks-backup]"),
        ("hooks", ["hooks-approval", "hooks-backup"], "hooks[hooks-approval]"),
        ("hooks", ALLOWING, "hooks[hooks-approval]"),
        ("tools", ["tool-filesystem"], "tools[tool-filesystem]"),
        (
            "session",
            {"ask_before_changes": True, "limits": {"session_tool_calls": 6}},
            "session.limits.session_tool_calls",
        ),
        (
            "session",
            {"ask_before_changes": False, "limits": {"session_tool_calls": 5}},
            "session.ask_before_changes",
        ),
    ],
    ids=["hooks", "rules", "allows", "denied", "limit", "asks"],
)
async def test_a_session_is_not_resumed_with_a_guard_less(
    dirs: AppDirs, section: str, weaker: JSONValue, named: str
) -> None:
    store = ProjectSessions.of(dirs)
    await opened(composed(dirs, GUARDED), store)
    (session,) = store.all()
    fork = await fork_session(store, session, name="forked")
    for record in (RECORD, fork.record):
        with pytest.raises(ConfigError) as raised:
            await opened(composed(dirs, {**GUARDED, section: weaker}), store, record)
        assert named in [problem.path for problem in raised.value.problems]


async def test_a_guard_may_be_added_and_what_guards_nothing_changed(
    dirs: AppDirs,
) -> None:
    store = ProjectSessions.of(dirs)
    await opened(composed(dirs, GUARDED), store)
    session: JSONValue = {"limits": {"session_tool_calls": 4}}
    tools: JSONValue = ["tool-task", TOOL]
    hooks: JSONValue = ["hooks-logging", *HOOKS]
    more = {**GUARDED, "session": session, "tools": tools, "hooks": hooks}
    await opened(composed(dirs, more), store)
    with pytest.raises(
        ConfigError
    ):  # what was added is recorded, and holds from then on
        await opened(composed(dirs, GUARDED), store)


async def test_what_was_recorded_can_be_restored_or_replaced(dirs: AppDirs) -> None:
    store = ProjectSessions.of(dirs)
    await opened(composed(dirs, GUARDED), store)
    composed(dirs, {})
    options = PlanOptions()
    restored = reopen(store, RECORD, options, dirs).composition
    assert "hooks-approval" in str(restored.plan["hooks"])
    await opened(restored, store)
    current = reopen(store, RECORD, options, dirs, with_current_plan=True)
    await opened(current.composition, store)
    await opened(attrs.evolve(current.composition, replaces_recorded=False), store)


async def test_environment_references_are_compared_by_their_values(
    dirs: AppDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ProjectSessions.of(dirs)
    monkeypatch.setenv("WORD", "secret")
    tool: JSONValue = {"module": "tool-filesystem", "config": {PATHS: ["${WORD}"]}}
    await opened(composed(dirs, {**GUARDED, "tools": [tool]}), store)
    await opened(composed(dirs, GUARDED), store)
    monkeypatch.setenv("WORD", "other")
    with pytest.raises(ConfigError, match=r"tools\[tool-filesystem\]"):
        await opened(composed(dirs, {**GUARDED, "tools": [tool]}), store)
