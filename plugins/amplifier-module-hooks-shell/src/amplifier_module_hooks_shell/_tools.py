"""The tools that commands of plugin folders count on: questions to the person, and the commands themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from amplifier_kit.commands import CommandError
from amplifier_kit.open_data import as_list
from amplifier_module_hooks_shell._commands import Commands
from amplifier_module_hooks_shell._surroundings import NAME, HookEnvironment
from amplifier_sdk.events import APPROVAL_GRANTED, ApprovalGranted
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import HookResult, ToolResult

__all__ = ["AskUserQuestion", "SlashCommand"]

_OTHER: Final = "Other"
_DONE: Final = "Done"
_MAX_CATALOGUE: Final = 2_000
_RESERVED: Final = frozenset(
    {"allow", "allow once", "allow always", "deny", "other", "done"}
)
_OPTION: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "label": {
            "type": "string",
            "minLength": 1,
            "maxLength": 100,
            "description": "The answer, in a few words.",
        },
        "description": {
            "type": "string",
            "maxLength": 500,
            "description": "What choosing it means.",
        },
    },
    "required": ["label"],
}
_QUESTION: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "question": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1000,
            "description": "The whole question.",
        },
        "header": {
            "type": "string",
            "maxLength": 40,
            "description": "A word or two that name it.",
        },
        "multiSelect": {
            "type": "boolean",
            "description": "Whether several answers may be chosen.",
        },
        "options": {"type": "array", "minItems": 2, "maxItems": 8, "items": _OPTION},
    },
    "required": ["question", "options"],
}


class AskUserQuestion:
    """Asks the person questions with answers to choose from, one question at a time.

    Args:
        surroundings: the session's, through whose approval the person is asked.
    """

    name: Final = "AskUserQuestion"
    description: Final = (
        "Ask the person one to four questions, each with answers to choose from. They may also answer that none fits; "
        "then ask them to say it in their own words."
    )
    effects: Final = ("read",)
    read_only: Final = True
    input_schema: Final[JSONObject] = {
        "type": "object",
        "properties": {
            "questions": {
                "type": "array",
                "minItems": 1,
                "maxItems": 4,
                "items": _QUESTION,
            }
        },
        "required": ["questions"],
    }

    def __init__(self, surroundings: HookEnvironment) -> None:
        self._hooks = surroundings.coordinator.hooks

    async def execute(self, input: Mapping[str, JSONValue]) -> ToolResult:
        """Ask, and return the answers by question; nobody who answers is a failed result."""
        answers: JSONObject = {}
        for question in _mappings(input.get("questions")):
            text, header = str(question["question"]), str(question.get("header") or "")
            asked = text
            if header:
                asked = f"{header}: {text}"
            options = {
                _label(option): str(option.get("description") or "")
                for option in _mappings(question["options"])
            }
            several = question.get("multiSelect") is True
            found = await (
                self._choose_several(asked, options)
                if several
                else self._choose(asked, options)
            )
            if isinstance(found, ToolResult):
                return found
            answers[text] = found
        return ToolResult(output={"answers": answers})

    async def _choose(
        self, asked: str, options: Mapping[str, str]
    ) -> JSONValue | ToolResult:
        lines = [
            f"- {label}: {meaning}" if meaning else f"- {label}"
            for label, meaning in options.items()
        ]
        return await self._ask("\n".join([asked, *lines]), [*options, _OTHER])

    async def _choose_several(
        self, asked: str, options: Mapping[str, str]
    ) -> JSONValue | ToolResult:
        chosen: list[JSONValue] = []
        while len(chosen) < len(options):
            left = {
                label: meaning
                for label, meaning in options.items()
                if label not in chosen
            }
            message = "\nSeveral may be chosen."
            if chosen:
                message = f"\nChosen so far: {', '.join(map(str, chosen))}"
            lines = [
                f"- {label}: {meaning}" if meaning else f"- {label}"
                for label, meaning in left.items()
            ]
            found = await self._ask(
                "\n".join([asked + message, *lines]), [*left, _OTHER, _DONE]
            )
            if isinstance(found, ToolResult):
                return found
            if found == _DONE:
                break
            chosen.append(found)
            if found == _OTHER:
                break
        return chosen

    async def _ask(self, text: str, options: Sequence[str]) -> str | ToolResult:
        """Ask one question, and return the option that was chosen; a failed result when none was."""
        asked = "".join(
            character if character.isprintable() or character == "\n" else " "
            for character in text
        )
        heard: list[str] = []

        def note(_: str, data: ApprovalGranted) -> None:
            if asked in data["prompt"]:
                heard.append(data.get("reason", ""))

        unregister = self._hooks.register(
            APPROVAL_GRANTED, note, 0, NAME, decides=False
        )
        try:
            question = HookResult.ask(asked, options=options, allowing=options)
            decided = await self._hooks.host.process_hook_result(
                question, "question:asked", NAME
            )
        finally:
            unregister()
        if decided.denied:
            return ToolResult.failure(f"The person gave no answer: {decided.reason}")
        return next(
            (
                option
                for option in options
                if heard and option.casefold() == heard[-1].casefold()
            ),
            _OTHER,
        )


class SlashCommand:
    """Gives the model a command of a plugin as the prompt that it is.

    Args:
        commands: the session's; those that a person alone may use are left out.
    """

    name: Final = "SlashCommand"
    effects: Final = ("read", "exec")
    read_only: Final = False
    input_schema: Final[JSONObject] = {
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "minLength": 2,
                "description": "The command with its arguments: /name arguments",
            }
        },
        "required": ["command"],
    }

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._names = [
            command for command in commands.found if not command.file.is_manual
        ]
        lines: list[str] = []
        for command in self._names:
            hint = ""
            if command.file.argument_hint:
                hint = f" {command.file.argument_hint}"
            lines.append(f"- /{command.name}{hint}: {command.file.description}")
        listed = "\n".join(lines)
        if len(listed) > _MAX_CATALOGUE:
            listed = f"{listed[:_MAX_CATALOGUE].rpartition(chr(10))[0]}\n- … and more"
        self.description: Final = (
            "Use a command: the result is instructions to "
            f"follow now. Only these commands exist:\n{listed}"
        )

    async def execute(self, input: Mapping[str, JSONValue]) -> ToolResult:
        """Return the prompt that a command makes."""
        name, _, arguments = (
            str(input.get("command", "")).strip().removeprefix("/").partition(" ")
        )
        command = self._commands.named(name)
        if command is None or command not in self._names:
            known = ", ".join(f"/{each.name}" for each in self._names)[:500]
            return ToolResult.failure(
                f"There is no command /{name[:80]}; known: {known or 'none'}"
            )
        try:
            text = await self._commands.expand(command, arguments, by_model=True)
        except CommandError as error:
            return ToolResult.failure(str(error))
        return ToolResult(output=command.loaded.said(text))


def _mappings(value: JSONValue) -> list[Mapping[str, JSONValue]]:
    return [entry for entry in as_list(value) if isinstance(entry, Mapping)]


def _label(option: Mapping[str, JSONValue]) -> str:
    """Return an option's label as it can be offered: on one line, and no word that means more."""
    label = (
        " ".join(
            "".join(c if c.isprintable() else " " for c in str(option["label"])).split()
        )
        or "?"
    )
    if label.casefold() in _RESERVED:
        return f"{label} (answer)"
    return label
