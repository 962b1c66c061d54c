"""The modes of a session: one state, whoever changes it."""

from __future__ import annotations

import pytest

from amplifier import AmplifierSession, ModuleLoader
from amplifier.app.commands.modes import MODES, PlanMode, SessionModes
from amplifier.testing import ScriptedProvider, mounting
from amplifier_sdk.assessments import ACCEPTED, EDITS
from amplifier_sdk.jsontypes import JSONObject


def _session() -> AmplifierSession:
    plan: JSONObject = {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": ["provider-x"],
    }
    modules = {"provider-x": mounting(ScriptedProvider("x"))}
    return AmplifierSession(plan, ModuleLoader(modules=modules))


def _modes(session: AmplifierSession) -> SessionModes:
    return SessionModes(session.coordinator, PlanMode(session.coordinator))


async def test_modes_follow_each_other_in_a_circle() -> None:
    async with _session() as session:
        modes = _modes(session)
        seen = []
        for _ in range(4):
            seen.append(modes.current)
            modes.choose(modes.following)

        assert seen == [*MODES, "ask"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_mode_leaves_what_else_is_accepted(mode: str) -> None:
    async with _session() as session:
        session.coordinator.register_capability(ACCEPTED, frozenset({"other"}))
        modes = _modes(session)
        modes.choose(next(name for name in MODES if name == mode))

        accepted = session.coordinator.get_capability(ACCEPTED)
        assert isinstance(accepted, frozenset)
        assert "other" in accepted
        assert (EDITS in accepted) is (mode == "accept-edits")
        assert modes.plan.is_on is (mode == "plan")


async def test_a_command_and_a_flag_of_the_start_are_seen() -> None:
    async with _session() as session:
        modes = _modes(session)
        session.coordinator.register_capability(ACCEPTED, frozenset({EDITS}))
        seen = [modes.current]
        for on in (True, False):
            modes.plan.turn(on=on)
            seen.append(modes.current)

        assert seen == ["accept-edits", "plan", "accept-edits"]
