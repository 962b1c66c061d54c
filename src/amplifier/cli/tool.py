"""`amplifier tool`: the tools of a session, and one call of one of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING

import click

from amplifier.cli._options import consent_options, made_of_options, session_choices
from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import notice, one_line, say, visible

if TYPE_CHECKING:
    from amplifier.app.sessions.selection import SelectedSession
    from amplifier.app.sessions.tool_calls import ToolShown
    from amplifier.cli._approval import Consent
    from amplifier.cli._interrupts import Interrupts
    from amplifier_sdk.jsontypes import JSONValue
    from amplifier_sdk.results import ToolResult

__all__ = ["tool"]


@click.group()
def tool() -> None:
    """Look at the tools that a session has, and call one."""


@tool.command("list")
@made_of_options
@output_option
@click.pass_context
def _list(ctx: click.Context, output: str) -> None:
    """List the tools that a session has, with what they do: read, write, exec, network."""
    found = _shown(ctx)
    if output == "json":
        say_json([tool.to_dict() for tool in found])
        return
    rows = [
        (one_line(tool.name), tool.effects_text, one_line(tool.description, 80))
        for tool in found
    ]
    heads = ("NAME", "EFFECTS", "DESCRIPTION")
    say_table(heads, rows, empty="A session has no tool.")


@tool.command("show")
@click.argument("name")
@made_of_options
@output_option
@click.pass_context
def _show(ctx: click.Context, name: str, output: str) -> None:
    """Show the tool NAME: what it does, and the arguments that it takes."""
    found = _shown(ctx, name)[0]
    if output == "json":
        say_json(found.to_dict())
        return
    say(f"{one_line(found.name)} ({found.effects_text})")
    say(visible(found.description))
    say_table(("ARGUMENT", "TYPE", "", "MEANING"), _arguments(found))


@tool.command("invoke")
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
@made_of_options
@consent_options
@output_option
@click.pass_context
def _invoke(
    ctx: click.Context,
    name: str,
    arguments: Sequence[str],
    output: str,
) -> None:
    """Call the tool NAME once and print its result; exit with 1 where it fails.

    A VALUE is JSON where it can be read as that, else text. The call is one of a session: it is checked, hooks may
    deny or change it, and what they ask is asked at the terminal. The session is stored as others are, with what was
    backed up for it.
    """
    from amplifier.cli._interrupts import run_interruptible
    from amplifier.cli._session_selection import chosen_session

    with redirect_stdout(sys.stderr):
        chosen = chosen_session(ctx, keep=None)
        result = run_interruptible(
            partial(_call, chosen, name, arguments, session_choices(ctx).consent),
            "asyncio",
        )
    ctx.exit(_write_result(name, result, output))


async def _call(
    chosen: SelectedSession,
    name: str,
    given: Sequence[str],
    consent: Consent,
    interrupts: Interrupts,
) -> ToolResult:
    import attrs  # with the runtime: help and wrong usage need neither

    from amplifier.app.sessions.opened import open_session
    from amplifier.app.sessions.tool_calls import OneCall, read_arguments, require_tool
    from amplifier.cli._session_selection import report_opening
    from amplifier.cli._terminal import MessageLines
    from amplifier.cli._turns import TURNS
    from amplifier_sdk.capabilities import TYPED_CALLS
    from amplifier_sdk.loops import schema_of

    prompt = f"amplifier tool invoke {name}"
    opening = open_session(
        chosen.composition,
        record=attrs.evolve(chosen.record, command="tool invoke"),
        store=chosen.store,
        needs_provider=False,
        display=MessageLines(),
        approval=consent.approval(),
        accepted=consent.accepted,
        shown=TURNS,
    )
    async with opening as opened:
        report_opening(opened, needs_provider=False)
        coordinator = opened.session.coordinator
        schema = schema_of(require_tool(name, coordinator.tools))
        try:
            call = OneCall(name, read_arguments(given, schema))
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        coordinator.register_capability(TYPED_CALLS, "tool invoke")
        await coordinator.unmount("orchestrator")
        await coordinator.mount("orchestrator", call)
        with interrupts.turn(opened.session):
            async with opened.stream(prompt, typed="") as events:
                async for _ in events:
                    pass
        assert call.result is not None  # a turn that ended made its call
        return call.result


def _write_result(name: str, result: ToolResult, output: str) -> int:
    if output == "json":
        failed: JSONValue
        if result.error is None:
            failed = None
        else:
            failed = dict(result.error)
        say_json(
            {
                "tool": name,
                "success": result.success,
                "output": result.output,
                "error": failed,
            }
        )
    elif result.success:
        say(visible(_text(result)))
    else:
        notice(f"The tool failed. {visible(result.get_serialized_output())}")
    if result.success:
        return 0
    return 1


def _shown(ctx: click.Context, name: str | None = None) -> list[ToolShown]:
    from amplifier.app.sessions.opened import open_session
    from amplifier.app.sessions.tool_calls import require_tool, show_tools, to_look
    from amplifier.cli._interrupts import run_interruptible
    from amplifier.cli._session_selection import chosen_session, report_opening

    async def look(_: Interrupts) -> list[ToolShown]:
        async with open_session(to_look(chosen.composition)) as opened:
            report_opening(opened)
            tools = opened.session.coordinator.tools
            return show_tools(
                tools if name is None else {name: require_tool(name, tools)}
            )

    with redirect_stdout(sys.stderr):
        chosen = chosen_session(ctx, keep=False)
        return run_interruptible(look, "asyncio")


def _arguments(tool: ToolShown) -> list[tuple[str, str, str, str]]:
    properties, required = tool.schema.get("properties"), tool.schema.get("required")
    rows = []
    for name, said in (properties if isinstance(properties, Mapping) else {}).items():
        if isinstance(said, Mapping):
            schema = said
        else:
            schema = {}
        if isinstance(required, list) and name in required:
            needed = "required"
        else:
            needed = ""
        kind = schema.get("type") or " or ".join(
            key for key in ("anyOf", "oneOf", "enum", "$ref") if key in schema
        )
        if not isinstance(kind, str):
            kind = json.dumps(kind)
        meaning = one_line(str(schema.get("description") or ""), 100)
        rows.append((one_line(name), kind, needed, meaning))
    return rows


def _text(result: ToolResult) -> str:
    if isinstance(result.output, (dict, list)):
        return json.dumps(result.output, indent=2, ensure_ascii=False)
    return result.get_serialized_output()
