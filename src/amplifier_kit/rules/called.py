"""The call that a handler of `tool:pre` hears of, as rules see it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from amplifier_kit.rules.calls import COMMAND_KEYS, RuledCall
from amplifier_sdk.assessments import assess
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.effects import effects_of
from amplifier_sdk.events import ToolPre
from amplifier_sdk.toolinfo import called_tool

__all__ = ["call_of"]


async def call_of(
    data: ToolPre, coordinator: Coordinator, directory: Path
) -> RuledCall | None:
    """Return the call, with its shell texts where its tool runs them; `None` where its arguments are no object.

    Args:
        data: what the handler was given.
        coordinator: the session's.
        directory: where relative paths start.
    """
    # another handler may have put anything there
    arguments: object = data["tool_input"]
    if not isinstance(arguments, Mapping):
        return None
    effects = effects_of(data.get("tool_obj"), name=data["tool_name"])
    call = RuledCall(
        tool_name=data["tool_name"],
        arguments=arguments,
        directory=directory,
        effects=effects,
    )
    if not any(True for _ in call.values_of(COMMAND_KEYS)):
        return call
    # A shell stays in the folder where its last command ended: only the tool knows it.
    said = await assess(called_tool(data, coordinator), dict(arguments))
    if said is None or said.directory is None:
        return call
    return attrs.evolve(call, shell_directory=Path(said.directory))
