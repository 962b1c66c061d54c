"""The two questions that make a tool call: which tool, and with what arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from amplifier_module_provider_local.conversation import SpeakerTurn
from amplifier_module_provider_local.examples import argument_examples, name_examples
from amplifier_module_provider_local.schema import sketch
from amplifier_sdk.chat import ToolSpec
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["ask_for_arguments", "ask_for_name"]

_LONGEST_NAME: Final = 64  # tokens


def ask_for_name(question: str, tools: Sequence[ToolSpec]) -> JSONObject:
    """Return the request whose answer is the name of one of the tools: a grammar allows nothing else."""
    turns = [
        SpeakerTurn("system", "Name the tool for the request."),
        *name_examples(tools),
        SpeakerTurn("user", question),
    ]
    return {
        "messages": [turn.to_json() for turn in turns],
        "grammar": "root ::= " + " | ".join(json.dumps(tool.name) for tool in tools),
        "temperature": 0,
        "max_tokens": _LONGEST_NAME,
    }


def ask_for_arguments(question: str, tool: ToolSpec, *, max_tokens: int) -> JSONObject:
    """Return the request whose answer is the arguments of the tool: its schema allows nothing else."""
    system = f"Extract the arguments of {tool.name} from the request as JSON."
    turns = [
        SpeakerTurn("system", system),
        *argument_examples(tool),
        SpeakerTurn("user", question),
    ]
    return {
        "messages": [turn.to_json() for turn in turns],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"schema": sketch(tool.parameters)},
        },
        "temperature": 0,
        "max_tokens": max_tokens,
    }
