"""Tools that ask a person, as a package that is installed, and plans whose model or whose agents call them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.server.effects import write_package
from tests.server.serving import Site

__all__ = ["calling_tool", "plan_of_agents", "plan_that_asks", "write_tools"]

_TOOLS = '''
import os
from pathlib import Path

from amplifier_sdk import ToolContext, tool


def note(line: str) -> None:
    with Path(os.environ["EFFECTS"]).open("a") as file:
        file.write(f"{line}\\n")


@tool(asks_first=True)
async def deploy(target: str, context: ToolContext) -> str:
    """Deploy."""
    note(f"ran {target}")
    branch = await context.ask(f"Which branch for {target}?", options=["main", "next"])
    note(f"deployed {branch}")
    return f"deployed {branch}"


@tool
async def upload(context: ToolContext) -> str:
    """Upload."""
    note("begun")
    label = await context.ask("Which label?")
    note(f"uploaded {label}")
    return f"uploaded {label}"


@tool(asks_first=True)
async def hurry(context: ToolContext) -> str:
    """Hurry."""
    answer = await context.ask("Quick?", timeout=0.3)
    return f"heard {answer}"
'''


def write_tools(site: Site) -> None:
    """Write the package."""
    tools = {f"tool-{name}": name for name in ("deploy", "upload", "hurry")}
    write_package(site.home / "packages", "asked_tools", _TOOLS, tools)


def calling_tool(name: str, **arguments: JSONValue) -> JSONValue:
    """An answer of a model that calls a tool."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def plan_that_asks(site: Site, *responses: JSONValue) -> None:
    """Write the plan of a model that may call the tools."""
    site.plan(*responses)
    file = site.home / "plan.json"
    plan = json.loads(file.read_text())
    plan["tools"] += [
        {"module": f"tool-{name}"} for name in ("deploy", "upload", "hurry")
    ]
    # the tools ask by themselves, and nobody is asked whether they may
    plan["hooks"] = [
        each for each in plan["hooks"] if each["module"] != "hooks-approval"
    ]
    file.write_text(json.dumps(plan))


def plan_of_agents(site: Site, depth: int, responses: Sequence[JSONValue]) -> None:
    """Let the model delegate to an agent, which delegates in turn, until one of a depth answers by a script."""
    file = site.home / "plan.json"
    plan = json.loads(file.read_text())
    plan["providers"][0]["config"] = _delegating(site, 0)
    plan["tools"].append({"module": "tool-task"})
    plan["agents"] = {
        f"agent-{level}": {
            "description": f"Level {level}.",
            "system": {"instruction": f"Work at level {level}."},
            "providers": [
                {
                    "module": "provider-scripted",
                    "config": _script(site, level, responses)
                    if level == depth
                    else _delegating(site, level),
                }
            ],
        }
        for level in range(1, depth + 1)
    }
    file.write_text(json.dumps(plan))


def _delegating(site: Site, level: int) -> JSONObject:
    task = calling_tool(
        "task", agent=f"agent-{level + 1}", instruction=f"Do what level {level} needs"
    )
    return _script(site, level, [task, f"Level {level} is done."])


def _script(site: Site, level: int, responses: Sequence[JSONValue]) -> JSONObject:
    script = site.home / f"level-{level}.json"
    script.write_text(json.dumps(list(responses)))
    return {"responses": str(script), "by_history": True}
