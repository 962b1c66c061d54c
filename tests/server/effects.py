"""A module whose tool has an effect that can be counted, as a package that is installed, and a plan that uses it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["CLOCK", "write_effects", "write_package"]

CLOCK: Final = """
import os
import time

own = time.time
time.time = lambda: own() + float(os.environ.get("CLOCK", "0"))
"""
"""A `sitecustomize` that lets the clock of a process be wrong by so many seconds."""

_TOOL = '''
import os

import anyio

from amplifier_sdk import Coordinator, tool


@tool(effects=("write",))
async def effect(step: int, coordinator: Coordinator) -> str:
    """Append a line to a file."""
    line = f"{coordinator.session_id} {step}\\n".encode()
    file = os.open(os.environ["EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, line)
    os.close(file)
    await anyio.sleep(float(os.environ.get("EFFECT_SECONDS", "0")))
    return f"done {step}"
'''


def write_package(
    packages: Path, module: str, source: str, tools: Mapping[str, str]
) -> None:
    """Write a package into a folder, with the ids of its modules and what of it each is."""
    about = packages / f"{module}-1.0.dist-info"
    about.mkdir(parents=True)
    (packages / f"{module}.py").write_text(source)
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n"
    )
    lines = [f"{id_} = {module}:{name}\n" for id_, name in tools.items()]
    (about / "entry_points.txt").write_text("".join(["[amplifier.modules]\n", *lines]))


def write_effects(packages: Path, plan_file: Path, steps: int) -> None:
    """Write the package into a folder, and the plan of a model that calls its tool step by step."""
    write_package(packages, "effects_tool", _TOOL, {"tool-effect": "effect"})
    responses: list[JSONValue] = [
        {"tool_calls": [{"name": "effect", "arguments": {"step": step}}]}
        for step in range(steps)
    ]
    config: JSONObject = {
        "responses": [*responses, "Done."],
        "by_history": True,
        "context_window": 100_000_000,  # else a long turn is compacted
    }
    plan: JSONObject = {
        "session": {
            "orchestrator": "loop-basic",
            "context": "context-simple",
            "limits": {"iterations": steps + 2, "tool_calls": steps + 2},
        },
        "providers": [{"module": "provider-scripted", "config": config}],
        "tools": [{"module": "tool-effect"}],
    }
    plan_file.write_text(json.dumps(plan))
