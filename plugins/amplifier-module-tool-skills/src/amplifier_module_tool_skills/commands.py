"""Skills as commands that a person types: `/NAME` and what they add to it."""

from __future__ import annotations

from functools import partial

from anyio import to_thread

from amplifier_kit.commands import (
    CommandError,
    CommandPrompt,
    SessionCommand,
    refusing_command,
)
from amplifier_module_tool_skills.bookcase import Bookcase
from amplifier_module_tool_skills.config import SkillsConfig
from amplifier_module_tool_skills.contents import read_body
from amplifier_module_tool_skills.skill_folders import Skill
from amplifier_sdk.errors import ToolError

__all__ = ["commands_of"]

_PLACE = "$ARGUMENTS"


async def commands_of(bookcase: Bookcase, config: SkillsConfig) -> list[SessionCommand]:
    """Return a command for each skill that a person may call and somebody stands for."""
    library = await bookcase.library()
    refused = [
        refusing_command(name, bookcase.refusal(library, name), source="skill:project")
        for name in library.refused
    ]
    return refused + [
        SessionCommand(
            name=skill.name,
            make=partial(_prompt, skill, config.max_characters),
            description=skill.head.description,
            argument_hint=skill.head.argument_hint or "",
            source=f"skill:{skill.source}",
        )
        for skill in library.skills.values()
        # A skill that nobody trusts has no place in a prompt, which counts as the
        # person's word.
        if skill.head.for_person and skill.is_trusted
    ]


async def _prompt(skill: Skill, limit: int, arguments: str) -> CommandPrompt:
    """Make the prompt: the skill's instructions, with what the person typed where they want it, else behind them."""
    try:
        body = await to_thread.run_sync(read_body, skill)
    except ToolError as error:
        raise CommandError(error.message) from error
    if len(body) > limit:
        raise CommandError(
            f"the skill {skill.name!r} has {len(body)} characters; a prompt takes {limit}"
        )
    text = f"Follow the skill {skill.name!r}, whose files are in {skill.folder}:\n\n"
    if _PLACE in body:
        return CommandPrompt(text=text + body.replace(_PLACE, arguments))
    return CommandPrompt(
        text=f"{text}{body}\n\nArguments: {arguments}"
        if arguments.strip()
        else text + body
    )
