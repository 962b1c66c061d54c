"""What was shown is not held: a chat of many pages takes no more memory than a short one."""

from __future__ import annotations

import tracemalloc

import pytest

from amplifier.app.settings.schema import DisplaySettings
from amplifier.cli._chat._markdown import Rendering
from amplifier.cli._chat._painter import Painter
from amplifier_kit.redaction import SinkRedactor, StrictRedactor
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.progress import ToolOutput
from amplifier_sdk.results import ToolResult
from amplifier_sdk.streaming import TextDelta, ToolFinished, ToolStarted
from tests.sample import size

pytestmark = pytest.mark.figures

_PAGE = ("word " * 15 + "\n") * 23 + "\n"
_PAGES = size(2_000, 10_000)
_HELD = 1_000_000
"""Bytes that may be held of what was shown."""


def test_what_was_shown_is_not_held() -> None:
    shown = 0

    def show(text: str) -> None:
        nonlocal shown
        shown += len(text)

    painter = Painter(
        show,
        lambda: None,
        Rendering(is_rich=False, has_colour=False),
        SinkRedactor(StrictRedactor()),
        DisplaySettings(),
    )
    painter.paint(TextDelta(text=_PAGE))
    tracemalloc.start()
    try:
        for number in range(_PAGES // 2):
            painter.paint(TextDelta(text=_PAGE))
            call = ToolCall(id=str(number), name="bash", arguments={"command": "make"})
            painter.paint(ToolStarted(call=call))
            painter.paint(ToolOutput(call_id=call.id, tool_name="bash", text=_PAGE))
            painter.paint(ToolFinished(call=call, result=ToolResult(output="x")))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert shown > _PAGES // 2 * len(_PAGE)
    assert held < _HELD
