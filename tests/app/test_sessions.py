"""What the application adds to a session before its first turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier.app.sessions import open_session
from amplifier_sdk.errors import ConfigError, ModuleNotFoundError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.app.projects import composed

SCRIPTED: JSONValue = {"module": "provider-scripted", "config": {"responses": ["done"]}}


def _plan(*providers: JSONValue, tools: tuple[str, ...] = ()) -> JSONObject:
    session = {"orchestrator": "loop-basic", "context": "context-simple"}
    return {"session": session, "providers": list(providers), "tools": list(tools)}


async def test_a_session_is_ready_and_knows_where_the_person_works(tmp_path: Path) -> None:
    async with open_session(composed(_plan(SCRIPTED), tmp_path), session_id="s1") as session:
        assert session.session_id == "s1"
        assert session.coordinator.get_capability("session.working_dir") == str(tmp_path)
        assert await session.execute("hello") == "done"

    assert not session.initialized


async def test_a_session_without_its_only_provider_does_not_open(tmp_path: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="provider-scrpted"):
        async with open_session(composed(_plan("provider-scrpted"), tmp_path)):
            raise AssertionError


async def test_several_failed_providers_are_told_in_one_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        async with open_session(composed(_plan("provider-x", "provider-y"), tmp_path)):
            raise AssertionError

    assert [problem.path for problem in caught.value.problems] == ["provider-x", "provider-y"]


async def test_a_session_goes_on_with_the_providers_and_tools_that_work(tmp_path: Path) -> None:
    async with open_session(composed(_plan("provider-x", SCRIPTED, tools=("tool-x",)), tmp_path)) as session:
        assert [failure.module_id for failure in session.failures] == ["provider-x", "tool-x"]


async def test_a_failed_tool_is_no_reason_to_miss_a_provider(tmp_path: Path) -> None:
    async with open_session(composed(_plan(tools=("tool-x",)), tmp_path)) as session:
        assert [failure.module_id for failure in session.failures] == ["tool-x"]


async def test_the_first_tool_must_be_mounted(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such tool is mounted; mounted: none"):
        async with open_session(composed(_plan(SCRIPTED), tmp_path), first_tool="read_file"):
            raise AssertionError


async def test_a_misspelt_first_tool_names_the_nearest(tmp_path: Path) -> None:
    plan = _plan(SCRIPTED, tools=("tool-filesystem",))

    with pytest.raises(ConfigError, match=r"'read_fil': .*mounted: .*did you mean 'read_file'"):
        async with open_session(composed(plan, tmp_path), first_tool="read_fil"):
            raise AssertionError


async def test_a_first_tool_that_is_mounted_is_fine(tmp_path: Path) -> None:
    plan = _plan(SCRIPTED, tools=("tool-filesystem",))

    async with open_session(composed(plan, tmp_path), first_tool="read_file") as session:
        assert session.initialized
