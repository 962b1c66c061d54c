"""The two questions that make a tool call, which tool and with what arguments, and examples of right answers to them.

Requests and answers are made from the tools' own descriptions: a small model learns by example.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from amplifier_module_provider_local.conversation import SpeakerTurn
from amplifier_module_provider_local.schema import is_path, required_parameters, sketch
from amplifier_sdk.chat import ToolSpec
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["argument_examples", "ask_for_arguments", "ask_for_name", "name_examples"]

_LONGEST_NAME: Final = 64  # tokens

_EXAMPLES: Final = 3
_FEW_TOOLS: Final = 8
"""Up to so many tools have two examples each, more have one, to keep the prompt short."""

_WORDS: Final = ("alpha", "beta", "gamma", "delta")
_FILES: Final = ("alpha.txt", "docs/beta.md", "gamma.csv", "delta.json")
_FOLDERS: Final = ("alpha", "docs/beta", "gamma", "delta")
_NUMBERS: Final = (7, 12, 40, 3)
_CLAUSE: Final = re.compile(r"[.,;:(\n]")
_MAX_WORDS: Final = 10


def argument_examples(tool: ToolSpec) -> list[SpeakerTurn]:
    """Return three requests for one tool, each with its arguments as JSON."""
    turns = []
    for number in range(_EXAMPLES):
        arguments = _arguments(tool, number)
        turns += [
            SpeakerTurn("user", _request(tool, arguments)),
            SpeakerTurn("assistant", json.dumps(arguments)),
        ]
    return turns


def name_examples(tools: Sequence[ToolSpec]) -> list[SpeakerTurn]:
    """Return requests for every tool, each with the tool's name; the tools take turns."""
    turns = []
    for number in range(2 if len(tools) <= _FEW_TOOLS else 1):
        for tool in tools:
            turns += [
                SpeakerTurn("user", _request(tool, _arguments(tool, number))),
                SpeakerTurn("assistant", tool.name),
            ]
    return turns


def _request(tool: ToolSpec, arguments: JSONObject) -> str:
    said = ", ".join(_said(value) for value in arguments.values())
    if said:
        return f"{_summary(tool)}: {said}"
    return _summary(tool)


def _summary(tool: ToolSpec) -> str:
    """Return the beginning of the description, a few words long; the name where there is none."""
    first = _CLAUSE.split((tool.description or "").strip(), maxsplit=1)[0]
    words = first.split() or re.split(r"[\W_]+", tool.name)
    return " ".join(words[:_MAX_WORDS])


def _said(value: JSONValue) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _arguments(tool: ToolSpec, number: int) -> JSONObject:
    parameters = required_parameters(tool.parameters)
    return {
        name: _value(name, schema, number + index)
        for index, (name, schema) in enumerate(parameters)
    }


def _value(name: str, schema: Mapping[str, JSONValue], number: int) -> JSONValue:
    choices = schema.get("enum")
    if isinstance(choices, Sequence) and choices:
        return choices[number % len(choices)]
    if "const" in schema:
        return schema["const"]
    match schema.get("type"):
        case "integer":
            return _NUMBERS[number % len(_NUMBERS)]
        case "number":
            return _NUMBERS[number % len(_NUMBERS)] + 0.5
        case "boolean":
            return number % 2 == 0
        case "null":
            return None
        case "array":
            items = schema.get("items")
            if isinstance(items, Mapping):
                return [_value(name, items, number)]
            return []
        case "object":
            properties = schema.get("properties")
            parts = properties.items() if isinstance(properties, Mapping) else ()
            return {
                key: _value(key, part, number)
                for key, part in parts
                if isinstance(part, Mapping)
            }
        case _:
            return _word(name, number)


def _word(name: str, number: int) -> str:
    if not is_path(name):
        return _WORDS[number % len(_WORDS)]
    paths = _FILES
    if "dir" in name.lower() or "folder" in name.lower():
        paths = _FOLDERS
    return paths[number % len(paths)]


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
