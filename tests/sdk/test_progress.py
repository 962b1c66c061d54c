"""What a tool may say while it runs, as the tool sees it."""

from __future__ import annotations

import pytest

from amplifier_sdk import ToolContext, ToolError, ToolOutput, ToolProgress, tool
from amplifier_sdk.progress import ToolReport, ToolWithContext


def test_reports_go_to_who_takes_them() -> None:
    reports: list[ToolReport] = []
    context = ToolContext("c1", "build", reports.append)

    context.progress("compiling", done=3, total=10)
    context.progress(done=0.5)
    context.output("warning\n")
    context.output("")

    assert reports == [
        ToolProgress(
            call_id="c1", tool_name="build", message="compiling", done=3, total=10
        ),
        ToolProgress(call_id="c1", tool_name="build", done=0.5),
        ToolOutput(call_id="c1", tool_name="build", text="warning\n"),
    ]


def test_where_nobody_listens_reports_go_nowhere() -> None:
    context = ToolContext()

    context.progress("compiling")
    context.output("x")
    context.check()

    assert (context.call_id, context.tool_name) == ("", "")


def test_call_over_says_so_to_whoever_still_works_for_it() -> None:
    reports: list[ToolReport] = []
    context = ToolContext("c1", "build", reports.append)
    context.end()

    for use in (context.check, context.progress, lambda: context.output("x")):
        with pytest.raises(
            ToolError,
            match="The call of 'build' is over: it was cancelled or passed its deadline",
        ):
            use()

    assert reports == []


def test_a_tool_that_takes_its_context_is_known_by_it() -> None:
    @tool
    def build(context: ToolContext) -> str:
        """Build."""
        return "built"

    assert isinstance(build, ToolWithContext)
    assert build.takes_context
