"""How deep a call lies, which everybody sees who reads a traceback or steps through it."""

from __future__ import annotations

import pytest

from benchmarks.frames import count_frames


@pytest.mark.parametrize(("end", "most"), [("provider", 10), ("tool", 7)])
async def test_calls_lie_no_deeper(end: str, most: int) -> None:
    """Between `execute` and the provider, and between `run_tools` and the function of a tool."""
    frames = (await count_frames())[end]
    assert len(frames) <= most, " > ".join(frames)
