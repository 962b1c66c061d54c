"""The tool: what a model calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from anyio import to_thread

from amplifier_kit.commands import COMMANDS
from amplifier_module_tool_skills.bookcase import Bookcase
from amplifier_module_tool_skills.commands import commands_of
from amplifier_module_tool_skills.config import SkillsConfig
from amplifier_module_tool_skills.contents import (
    Excerpt,
    describe,
    files_of,
    read_body,
    read_file,
    summary,
)
from amplifier_module_tool_skills.events import (
    SKILL_LOADED,
    SKILLS_DISCOVERED,
    SkillLoaded,
)
from amplifier_module_tool_skills.prompt import SkillPrompt, listing
from amplifier_module_tool_skills.skill_folders import Skill, SkillLibrary
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.decorators import toolset
from amplifier_sdk.errors import ToolError, did_you_mean
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.progress import ToolContext
from amplifier_sdk.results import ToolResult

__all__ = ["Skills"]

_MAX_PROBLEMS: Final = 20
_LONGEST_NAME: Final = 100


@toolset
class Skills:
    """Skills of the project, the person and of other modules: a list first, and what a model asks for then.

    Nothing of a skill is run, and none of it widens what the session may do.
    """

    name: Final = "load_skill"
    description: Final = (
        "Load a skill: instructions for a special task, such as a workflow, a format or a team's rules. Load the skill"
        " that fits a task before you begin with it, and follow it. Its files are read with 'file', by the names that"
        " the instructions use; paths in it start at skill_directory.\n"
        "Give one of: skill_name (load it; with file, read that file of it), list (all skills), search (those whose"
        " name or description has these words), info (what is known of one, without its instructions). Where a result"
        " has next_offset more follows: call again with offset."
    )
    input_schema: Final[Mapping[str, JSONValue]] = {
        "type": "object",
        "properties": {
            "skill_name": {"type": "string", "description": "The skill to load."},
            "file": {
                "type": "string",
                "description": "A file of this skill to read instead: references/api.md.",
            },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "The first character to return of a long text.",
            },
            "list": {"type": "boolean", "description": "True lists all skills."},
            "search": {"type": "string", "description": "Words to find skills by."},
            "info": {"type": "string", "description": "The skill to describe."},
        },
        "additionalProperties": False,
    }
    read_only: Final = True
    effects: Final = ("read",)
    takes_context: Final = True

    def __init__(self, config: SkillsConfig, coordinator: Coordinator) -> None:
        self._config = config
        self._coordinator = coordinator
        self._bookcase = Bookcase(config, coordinator, config.folders())
        self._pinned = 0
        SkillPrompt(config.visibility, coordinator, self._bookcase).listen()
        coordinator.register_capability("skills", self._bookcase)
        coordinator.register_contributor(
            COMMANDS, "tool-skills", partial(commands_of, self._bookcase, config)
        )
        coordinator.register_contributor(
            "trust.pending", "tool-skills", self._bookcase.waiting
        )
        events = [str(SKILLS_DISCOVERED), str(SKILL_LOADED)]
        coordinator.register_contributor(
            "observability.events", "tool-skills", lambda: events
        )

    async def execute(
        self, input: JSONObject, /, *, context: ToolContext | None = None
    ) -> ToolResult:
        """List, find, describe or load skills, or read a file of one.

        Args:
            input: the arguments, checked against the schema.
            context: the call's own, whose result stays in the model's view.
        """
        try:
            return ToolResult(output=await self._answer(input, context))
        except ToolError as error:
            return ToolResult.failure(error.message, **error.details)

    async def _answer(
        self, input: JSONObject, context: ToolContext | None
    ) -> JSONObject:
        library = await self._bookcase.library()
        skills = self._bookcase.for_model(library)
        wanted = input.get("info") or input.get("skill_name")
        # before the look-up: another skill of that name must not stand in for it
        if refusal := self._bookcase.refusal(library, str(wanted)):
            raise ToolError(refusal)
        if input.get("list"):
            return self._list(library, skills)
        if words := str(input.get("search") or "").casefold().split():
            return self._listed([skill for skill in skills if _has(skill, words)])
        if name := input.get("info"):
            return await to_thread.run_sync(describe, self._find(skills, str(name)))
        if not (name := input.get("skill_name")):
            raise ToolError("give skill_name, list, search or info")
        skill, offset = self._find(skills, str(name)), input.get("offset")
        if isinstance(offset, int):
            # A negative offset would count from the end.
            start = max(0, offset)
        else:
            start = 0
        if file := input.get("file"):
            return await self._read(skill, str(file), start)
        return await self._load(skill, start, context)

    def _list(self, library: SkillLibrary, skills: Sequence[Skill]) -> JSONObject:
        data = self._listed(skills)
        if not skills:
            data["message"] = (
                f"No skills in {', '.join(self._bookcase.sources) or 'any folder'}"
            )
        if problems := self._bookcase.problems(library):
            data["problems"] = list(problems[:_MAX_PROBLEMS])
        return data

    def _listed(self, skills: Sequence[Skill]) -> JSONObject:
        listed = listing(skills, self._config.max_characters)
        data: JSONObject = {
            "count": len(skills),
            "skills": [
                summary(skill, description) for skill, description in listed.entries
            ],
        }
        return data | ({"left_out": listed.left_out} if listed.left_out else {})

    def _find(self, skills: Sequence[Skill], name: str) -> Skill:
        found = next((skill for skill in skills if skill.name == name), None)
        if found is None:
            hint = (
                did_you_mean(name[:_LONGEST_NAME], [skill.name for skill in skills])
                or "; list shows all that there are"
            )
            raise ToolError(f"there is no skill {name[:_LONGEST_NAME]!r}{hint}")
        return found

    async def _read(self, skill: Skill, file: str, offset: int) -> JSONObject:
        text = await to_thread.run_sync(
            read_file, skill, file, self._config.max_file_bytes
        )
        part = Excerpt(
            skill=skill, text=text, offset=offset, limit=self._config.max_characters
        )
        return {"skill_name": skill.name, "file": file, **part.to_json()}

    async def _load(
        self, skill: Skill, offset: int, context: ToolContext | None
    ) -> JSONObject:
        # read at each call: a person may edit a skill while the session runs
        body = await to_thread.run_sync(read_body, skill)
        files = await to_thread.run_sync(files_of, skill)
        part = Excerpt(
            skill=skill, text=body, offset=offset, limit=self._config.max_characters
        )
        data = part.to_json()
        # what nobody trusts must not outlast the compaction of its result
        if skill.is_trusted:
            self._pin(context, len(str(data["content"])))
        payload = SkillLoaded(
            skill_name=skill.name,
            source=skill.source,
            skill_directory=str(skill.folder),
            content_length=len(body),
            version=skill.head.version,
        )
        await self._coordinator.hooks.emit(SKILL_LOADED, payload)
        place: JSONObject = {
            "skill_directory": str(skill.folder),
            "loaded_from": skill.source,
        }
        return {"skill_name": skill.name, **place, **data, **files}

    def _pin(self, context: ToolContext | None, size: int) -> None:
        """Pin the call's result in every view, as long as there is room for pins."""
        pin = self._coordinator.get_capability("context.pin")
        # contexts without views have nothing to pin, and a direct call has no id
        if context is None or not context.call_id or not callable(pin):
            return
        # pins are never compacted, so without a bound they could fill the window
        if self._pinned + size <= self._config.pin_characters:
            self._pinned += size
            pin(context.call_id)


def _has(skill: Skill, words: Sequence[str]) -> bool:
    text = f"{skill.name} {skill.head.description}".casefold()
    return all(word in text for word in words)
