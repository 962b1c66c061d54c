"""`amplifier agent`: the agents that a session may delegate to."""

from __future__ import annotations

import click

from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import notice, one_line, say, visible

__all__ = ["agent"]


@click.group()
def agent() -> None:
    """List the agents, look at one, and export one of a program's."""


@agent.command("list")
@output_option
def _list(output: str) -> None:
    """List the agents that can be used."""
    from amplifier.app.agents.library import AgentLibrary

    library = AgentLibrary.of()
    found = library.all().values()
    for file in library.invalid:
        notice(f"warning: {one_line(file.problem, 1000)}")
    if output == "json":
        say_json(
            [
                {
                    "name": agent.name,
                    "level": agent.level,
                    "path": str(agent.path),
                    "description": agent.description,
                }
                for agent in found
            ]
        )
        return
    rows = [(each.name, each.level, one_line(each.description, 70)) for each in found]
    say_table(("NAME", "LEVEL", "DESCRIPTION"), rows, empty="There is no agent.")


@agent.command("show")
@click.argument("name")
@output_option
def _show(name: str, output: str) -> None:
    """Show the agent NAME: its file, its partial mount plan, its instruction."""
    import json

    from amplifier.app.agents.library import AgentLibrary
    from amplifier_sdk.secret import withhold

    agent = AgentLibrary.of().require(name)
    plan = withhold(agent.plan)
    if output == "json":
        say_json(
            {
                "name": agent.name,
                "level": agent.level,
                "path": str(agent.path),
                "plan": plan,
            }
        )
        return
    system = plan.pop("system", None)
    say(f"{agent.name} ({agent.level}, {one_line(str(agent.path))})")
    if agent.description:
        say(visible(agent.description))
    rest = {key: value for key, value in plan.items() if key != "description"}
    if rest:
        say(visible(json.dumps(rest, indent=2, ensure_ascii=False)))
    if isinstance(system, dict) and isinstance(system.get("instruction"), str):
        say("")
        say(visible(system["instruction"]))


@agent.command("export")
@click.argument("place", metavar="MODULE:NAME")
def _export(place: str) -> None:
    """Write the plan of an Agent of yours as YAML, by the Python module that has it.

    'amplifier run --plan FILE' runs it, and Agent(plan=Path(FILE)) makes an agent of it again. What
    stands under keys named as secrets is withheld.
    """
    from contextlib import redirect_stdout
    from sys import stderr

    from amplifier.cli._agent_turns import find_agent
    from amplifier_kit.files.documents import yaml_text
    from amplifier_sdk.convert import to_json
    from amplifier_sdk.secret import withhold

    # standard output is the plan's, whatever the module prints
    with redirect_stdout(stderr):
        found = find_agent(place)
        whole = found.plan()
    plan = withhold(whole)
    if plan != whole:
        notice(
            "warning: what stands under keys named as secrets is withheld; give it by the environment"
        )
    objects = found.own_modules()
    if objects:
        notice(
            f"warning: {', '.join(objects)}: objects of the program, which the agent that is made of the plan has to be"
            f" given again; 'amplifier run --agent {place}' runs it with them"
        )
    say(yaml_text(to_json(plan)).rstrip("\n"))
