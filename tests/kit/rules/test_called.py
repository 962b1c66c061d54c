"""A call as a handler hears of it: its shell texts stand where the tool runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier.testing import MockTool, TestCoordinator
from amplifier_kit.rules.called import call_of
from amplifier_sdk.assessments import Assessment
from amplifier_sdk.effects import Effect
from amplifier_sdk.events import ToolPre
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.toolinfo import ToolInfo

PROJECT = Path("/srv/shop")


class Shell(MockTool):
    """A tool that says where it works."""

    said: Assessment | None = None
    asked = 0

    async def assess_call(self, input: JSONObject, /) -> Assessment | None:
        self.asked += 1
        return self.said


@pytest.mark.parametrize(
    ("said", "folder"),
    [
        (None, None),
        (Assessment(), None),
        (Assessment(directory="/srv/shop/src"), Path("/srv/shop/src")),
    ],
)
async def test_a_shell_stays_where_its_tool_says(
    said: Assessment | None, folder: Path | None
) -> None:
    shell = Shell("sh", effects=("exec",))
    shell.said = said
    coordinator = TestCoordinator()
    await coordinator.mount("tools", shell, name="sh")
    described = ToolInfo.of(shell)
    data = ToolPre(tool_name="sh", tool_input={"command": "ls"}, tool_obj=described)

    call = await call_of(data, coordinator, PROJECT)

    assert call is not None
    assert (call.directory, call.shell_directory) == (PROJECT, folder)
    assert call.effects == frozenset[Effect]({"exec"})


async def test_a_call_without_a_shell_text_is_not_assessed() -> None:
    shell = Shell("sh", effects=("exec",))
    described = ToolInfo.of(shell)
    data = ToolPre(tool_name="sh", tool_input={"path": "x"}, tool_obj=described)

    assert await call_of(data, TestCoordinator(), PROJECT) is not None
    assert shell.asked == 0


async def test_arguments_that_are_no_object_are_no_call() -> None:
    data = ToolPre(tool_name="sh", tool_input="x")  # type: ignore[typeddict-item]  # what another handler may do

    assert await call_of(data, TestCoordinator(), PROJECT) is None
