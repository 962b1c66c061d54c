"""Texts of a skill, part by part: its body, and the files beside it."""

from __future__ import annotations

from typing import Final

import attrs

from amplifier_kit.trust.untrusted import UNTRUSTED, mark_untrusted, without_marks
from amplifier_module_tool_skills.skill_folders import Skill, SkillError, parse_skill
from amplifier_module_tool_skills.skill_folders.files import MAIN
from amplifier_module_tool_skills.skill_folders.finder import MAX_SKILL_BYTES
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["Excerpt", "describe", "files_of", "read_body", "read_file", "summary"]

_MAX_FILES: Final = 100


@attrs.frozen(kw_only=True)
class Excerpt:
    """A text, and the part of it that a result holds."""

    skill: Skill
    text: str
    offset: int
    limit: int

    def to_json(self) -> JSONObject:
        """Write the part; a text that nobody stands for stands between marks."""
        part = self.text[self.offset : self.offset + self.limit]
        data: JSONObject = {"content": part, **_trust(self.skill)}
        if not self.skill.is_trusted:
            # each part by itself, or the second one would arrive without marks
            data["content"] = mark_untrusted(part, str(self.skill.folder))
        if self.offset or len(part) < len(self.text):
            data |= {"offset": self.offset, "total_characters": len(self.text)}
        if self.offset + len(part) < len(self.text):
            data["next_offset"] = self.offset + len(part)
        return data


def read_body(skill: Skill) -> str:
    """Read a skill's instructions, as they are now; may block.

    Raises:
        ToolError: they cannot be read any more.
    """
    text = _decoded(skill.files.read(MAIN, MAX_SKILL_BYTES), MAIN)
    try:
        return parse_skill(text, skill.name).body
    except SkillError as error:
        raise ToolError(
            f"the skill {skill.name!r} changed and cannot be used any more: {error}"
        ) from error


def read_file(skill: Skill, name: str, limit: int) -> str:
    """Read a file beside a skill's instructions as text; may block.

    Raises:
        ToolError: there is no such file, it lies elsewhere, is larger, or is no text.
    """
    return _decoded(skill.files.read(name, limit), name)


def describe(skill: Skill) -> JSONObject:
    """Write all that is known of a skill, without its instructions; may block."""
    head = skill.head
    data: JSONObject = {
        "name": head.name,
        "description": _said(skill, head.description),
        "version": head.version,
        "license": head.license,
        "compatibility": head.compatibility,
        "path": str(skill.folder),
        "source": skill.source,
        **_trust(skill),
    }
    if not skill.is_trusted:
        return {
            key: value
            for key, value in data.items()
            if key not in ("version", "license", "compatibility")
        }
    if head.allowed_tools:
        data["allowed_tools"] = list(head.allowed_tools)
    if head.metadata:
        data["metadata"] = dict(head.metadata)
    if head.remarks:
        data["remarks"] = list(head.remarks)
    return {key: value for key, value in data.items() if value is not None} | files_of(
        skill
    )


def files_of(skill: Skill) -> JSONObject:
    """Name the files beside a skill's instructions; may block. Names of a stranger are not told."""
    # a name is text of whoever wrote the skill, and could give orders
    if not skill.is_trusted:
        return {}
    names = skill.files.names()
    data: JSONObject = {}
    if names:
        data["files"] = list(names[:_MAX_FILES])
    if len(names) > _MAX_FILES:
        data["more_files"] = True
    return data


def summary(skill: Skill, description: str) -> JSONObject:
    """Write a skill's entry in a list, with what has room of its description; that of a stranger is left out."""
    return {
        "name": skill.name,
        **({"description": description} if skill.is_trusted else _trust(skill)),
    }


def _said(skill: Skill, text: str) -> str:
    if skill.is_trusted:
        return text
    return mark_untrusted(text, str(skill.folder))


def _trust(skill: Skill) -> JSONObject:
    if skill.is_trusted:
        return {}
    return {"trust": UNTRUSTED}


def _decoded(data: bytes, name: str) -> str:
    try:
        text = data.decode("utf-8-sig")
        # such bytes decode without an error, but are no text
        if "\0" in text:
            raise ValueError("it holds a NUL")
    except ValueError as error:
        raise ToolError(
            f"{without_marks(name)!r:.200} is no text ({len(data)} bytes); use it by its path"
        ) from error
    return text
