"""Counts the frames that stand in every traceback: `python -m benchmarks.frames`.

Between the application's call of `execute` and the provider, and between a loop's call of `run_tools` and the function
of the tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import currentframe
from types import FrameType
from typing import Final

import anyio

from amplifier import AmplifierSession, ModuleLoader
from amplifier_module_context_simple import SimpleContext
from amplifier_module_loop_basic import BasicLoop
from amplifier_sdk import ChatRequest, ChatResponse, provider, tool
from benchmarks.floor import PROMPT
from benchmarks.subject import PLAN, PreparedModel, answers

__all__ = ["count_frames"]

_FOUND: Final[dict[str, list[str]]] = {}


@tool
async def noop(x: int, y: str = "") -> str:
    """Note the frames below and return the number as text.

    Args:
        x: the number.
        y: anything.
    """
    _FOUND["tool"] = _frames_down_to("run_tools")
    return str(x)


@provider
class TracedModel(PreparedModel):
    """A prepared model that notes the frames below its call."""

    async def complete(self, request: ChatRequest, /) -> ChatResponse:
        """Note the frames and give the next answer."""
        _FOUND["provider"] = _frames_down_to("execute")
        return await super().complete(request)


def _frames_down_to(name: str) -> list[str]:
    """Return the functions of the product between the caller and the outermost call of a name, outermost first."""
    names: list[str] = []
    frame: FrameType | None = currentframe()
    while frame is not None:
        if str(frame.f_globals["__name__"]).startswith("amplifier"):
            names.append(frame.f_code.co_qualname)
        frame = frame.f_back
    outermost = max(
        index for index, found in enumerate(names) if found.rpartition(".")[2] == name
    )
    return names[:outermost][::-1]


async def count_frames() -> Mapping[str, list[str]]:
    """Run one turn with a tool call and return the functions between both ends of each call."""
    modules = {
        "loop-basic": BasicLoop,
        "context-simple": SimpleContext,
        "provider-prepared": TracedModel,
        "tool-noop": noop,
    }
    async with AmplifierSession(PLAN, ModuleLoader(modules=modules)) as session:
        model = session.coordinator.get("providers", "prepared")
        if not isinstance(model, TracedModel):
            raise TypeError("the plan mounts another model than it names")
        model.prepare(answers([1]))
        await session.execute(PROMPT)
    return dict(_FOUND)


if __name__ == "__main__":
    for end, functions in anyio.run(count_frames).items():
        print(f"{len(functions):3} frames to the {end}: {' > '.join(functions)}")
