"""Plan mode: by what tools do, not by what they are called."""

from __future__ import annotations

import pytest

from amplifier import AmplifierSession, ModuleLoader
from amplifier.app.commands.modes import PlanMode
from amplifier.testing import ScriptedProvider, mounting
from amplifier_sdk import tool
from amplifier_sdk.effects import Effect
from amplifier_sdk.jsontypes import JSONObject
from tests.doubles import Step, call, calling


def _tool(name: str, effects: tuple[Effect, ...] | None, ran: list[str]) -> object:
    @tool(name=name)
    async def run() -> str:
        """Do something."""
        ran.append(name)
        return "did it"

    if effects is not None:
        run.effects = effects  # as a tool that says what it does
    return run


@pytest.fixture
def ran() -> list[str]:
    return []


def _session(provider: ScriptedProvider, ran: list[str]) -> AmplifierSession:
    kinds: dict[str, tuple[Effect, ...] | None] = {
        "look": ("read",),
        "write_file": ("read", "write"),
        "launch": ("exec",),
        "call_home": ("read", "network"),
        "silent": None,
        "bash": None,
    }
    modules = {
        f"tool-{name}": _tool(name, effects, ran) for name, effects in kinds.items()
    }
    plan: JSONObject = {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": ["provider-x"],
        "tools": list(modules),
    }
    return AmplifierSession(
        plan, ModuleLoader(modules={"provider-x": mounting(provider), **modules})
    )


NAMES = ("look", "write_file", "launch", "call_home", "silent", "bash")


def is_on(mode: PlanMode) -> bool:
    return mode.is_on


def _all_tools() -> Step:
    return calling(*(call(name) for name in NAMES))


async def test_only_tools_that_read_run_and_the_model_learns_why(
    ran: list[str],
) -> None:
    provider = ScriptedProvider(_all_tools(), "a plan", _all_tools(), "done")
    async with _session(provider, ran) as session:
        mode = PlanMode(session.coordinator)
        mode.turn(on=True)
        mode.turn(on=True)
        assert is_on(mode)
        await session.execute("plan it")
        assert ran == ["look"]
        shown = str(await session.coordinator.context.get_messages())
        for name, why in (
            ("write_file", "its effects are write"),
            ("launch", "its effects are exec"),
            ("call_home", "its effects are network"),
            ("silent", "it does not say what it does"),
        ):
            assert f"{name!r} may not run in it: {why}" in shown.replace(
                '\\"', '"'
            ).replace("\\'", "'")
        assert "Plan mode is on. Find out" in str(list(provider.requests[0].messages))
        assert "Plan mode is on. Find out" not in shown

        mode.turn(on=False)
        assert not is_on(mode)
        await session.execute("do it")
        assert sorted(ran[1:]) == sorted(NAMES)
        assert "Plan mode is on. Find out" not in str(
            list(provider.requests[-1].messages)
        )


async def test_a_tool_that_is_not_there_is_refused(ran: list[str]) -> None:
    async with _session(ScriptedProvider("x"), ran) as session:
        assert (
            PlanMode(session.coordinator).refusal("unheard-of")
            == "it does not say what it does"
        )


async def test_agent_that_session_delegates_to_is_in_plan_mode_too(
    ran: list[str],
) -> None:
    provider = ScriptedProvider(_all_tools(), "a plan", _all_tools(), "done")
    async with _session(provider, ran) as session:
        mode = PlanMode(session.coordinator)
        mode.turn(on=True)
        child = await session.spawn(agent_name="self", instruction="plan it")
        assert ran == ["look"]
        assert "Plan mode is on. Find out" in str(list(provider.requests[0].messages))

        mode.turn(on=False)
        await session.resume(sub_session_id=child.session_id, instruction="do it")
        assert sorted(ran[1:]) == sorted(NAMES)
