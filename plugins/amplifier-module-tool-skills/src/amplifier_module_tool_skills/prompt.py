"""The list of skills that the model sees unasked: names, and as much of the descriptions as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

import attrs

from amplifier_kit.injections import longest_injection
from amplifier_module_tool_skills.bookcase import Bookcase
from amplifier_module_tool_skills.config import Visibility
from amplifier_module_tool_skills.skill_folders import Skill, SkillLibrary
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.events import (
    PROMPT_SUBMIT,
    PROVIDER_REQUEST,
    PromptSubmit,
    ProviderRequest,
)
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.results import HookResult

__all__ = ["HEAD", "SkillListing", "SkillPrompt", "catalogue", "listing"]

HEAD: Final = (
    "Skills are instructions for special tasks. When a task fits one of these, call load_skill with its skill_name"
    " before you begin. Of several such lists the last one counts."
)
"""What every catalogue begins with."""
_SHORTEST: Final = 60
_FRAME: Final = 6

_NAME: Final = "tool-skills"
_LONGEST: Final = 8_000


@runtime_checkable
class _History(Protocol):
    """As much of a context as is needed here: those of the older contract have it too."""

    async def get_messages(self) -> list[MessageDict]: ...


@attrs.define(eq=False)
class SkillPrompt:
    """Puts the list of skills into the history once, or behind the messages of every request."""

    _config: Visibility
    _coordinator: Coordinator
    _bookcase: Bookcase
    _written: tuple[SkillLibrary, str] | None = None
    _last_text: str | None = None

    def listen(self) -> None:
        """Register for the event at which the model gets the list, if it is enabled."""
        hooks, config = self._coordinator.hooks, self._config
        if not config.enabled:
            return
        if config.ephemeral:
            unregister = hooks.register(
                PROVIDER_REQUEST, self.report_now, config.priority, _NAME, decides=False
            )
        else:
            unregister = hooks.register(
                PROMPT_SUBMIT, self.report_once, config.priority, _NAME, decides=False
            )
        self._coordinator.register_cleanup(unregister)

    async def report_now(
        self, _event: str, _data: ProviderRequest
    ) -> HookResult | None:
        """Add the list to one request."""
        text = await self._text()
        if text:
            return HookResult.inject(
                text, role=self._config.inject_role, ephemeral=True
            )
        return None

    async def report_once(self, _event: str, _data: PromptSubmit) -> HookResult | None:
        """Add the list to the history, unless it is there already: a resumed history brings its own."""
        text = await self._text()
        # Twice in a history, the list would cost its tokens in every request.
        if not text or await self._is_known(text):
            return None
        return HookResult.inject(text, role=self._config.inject_role)

    async def _text(self) -> str:
        library = await self._bookcase.library()
        # written once for each library: it is asked for before every request
        if self._written is None or self._written[0] is not library:
            skills = [
                skill for skill in self._bookcase.for_model(library) if skill.is_trusted
            ]
            limit = longest_injection(self._coordinator, _LONGEST)
            text = catalogue(
                skills, most_skills=self._config.max_skills_visible, limit=limit
            )
            self._written = library, text
        return self._written[1]

    async def _is_known(self, text: str) -> bool:
        context = self._coordinator.get("context")
        # without a history to look into, the list is rather told twice than never
        if not isinstance(context, _History):
            return False
        messages = await context.get_messages()
        if text == self._last_text:  # it may have been cleared, with all of the history
            return any(message.get("content") == text for message in messages)
        # only at first: what a resumed history brings says which list the model knows
        self._last_text = text
        contents = (message.get("content") for message in reversed(messages))
        return (
            next((content for content in contents if _is_list(content)), None) == text
        )


def _is_list(content: object) -> bool:
    return isinstance(content, str) and content.startswith(HEAD)


@attrs.frozen
class SkillListing:
    """Skills with their descriptions, cut where they are long, and how many had no room."""

    entries: tuple[tuple[Skill, str], ...]
    left_out: int


def listing(skills: Sequence[Skill], limit: int) -> SkillListing:
    """Take as many skills as have room, in their order; each description gets the same share, the short ones less.

    Args:
        skills: which.
        limit: how many characters names and descriptions may have.
    """
    retained: list[Skill] = []
    room = limit
    for skill in skills:
        # Below this a description says too little to choose by, so fewer skills are
        # shown.
        room -= len(skill.name) + _FRAME + min(len(skill.head.description), _SHORTEST)
        if room < 0:
            break
        retained.append(skill)
    share = _share(
        [len(skill.head.description) for skill in retained],
        limit - sum(len(s.name) + _FRAME for s in retained),
    )
    entries = tuple((skill, _cut(skill.head.description, share)) for skill in retained)
    return SkillListing(entries, len(skills) - len(retained))


def catalogue(skills: Sequence[Skill], *, most_skills: int, limit: int) -> str:
    """Write the list of skills that a model may load; empty when there are none."""
    listed = listing(skills[:most_skills], limit - len(HEAD) - 100)
    if not listed.entries:
        return ""
    left_out = len(skills) - len(listed.entries)
    more = []
    if left_out:
        more = [f"({left_out} more: load_skill with search finds them.)"]
    return "\n".join(
        [HEAD, *(f"- {skill.name}: {text}" for skill, text in listed.entries), *more]
    )


def _share(lengths: Sequence[int], room: int) -> int:
    """Return how long a text may be so that all have room; those that are shorter leave theirs to the others."""
    share = room
    # The shortest first: what they leave over is shared among the longer ones.
    for left, length in zip(range(len(lengths), 0, -1), sorted(lengths), strict=True):
        share = room // left
        if length > share:
            break
        room -= length
    return share


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[: limit - 1].rstrip()}…"
