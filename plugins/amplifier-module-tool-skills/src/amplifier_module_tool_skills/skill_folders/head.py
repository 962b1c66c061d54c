"""What a `SKILL.md` says of its skill, and the instructions below."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Final

import attrs

from amplifier_kit.claude_plugins.loosefields import parse_loosely
from amplifier_kit.files.documents import DocumentError
from amplifier_kit.files.frontmatter import parse_front_matter
from amplifier_kit.trust.untrusted import without_unseen
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "MAX_DESCRIPTION",
    "MAX_NAME",
    "SkillError",
    "SkillHead",
    "SkillText",
    "is_skill_name",
    "parse_skill",
]

MAX_NAME: Final = 64
"""Characters of a name."""

MAX_DESCRIPTION: Final = 1024
"""Characters of a description."""

_MAX_COMPATIBILITY: Final = 500
_MAX_SHORT: Final = 200
_MAX_METADATA: Final = 4_000
_FIELDS: Final = (
    "name",
    "description",
    "license",
    "compatibility",
    "version",
    "allowed-tools",
    "metadata",
    "argument-hint",
    "disable-model-invocation",
    "user-invocable",
)
_TOOL: Final = re.compile(r"[^\s,()]+(?:\([^()]*\))?")


class SkillError(ValueError):
    """A `SKILL.md` is none; the message says why, without any of its text."""


@attrs.frozen(kw_only=True)
class SkillHead:
    """What a skill is.

    Args:
        name: letters and digits in lower case with hyphens between them, 64 characters at most.
        description: what it does and when to use it, in one line.
        license: its license, or the file that holds it.
        compatibility: what it needs around it.
        version: its version.
        allowed_tools: the tools that its author would have run unasked; nothing follows from it.
        metadata: what else the author says.
        argument_hint: what a person writes behind its name.
        for_model: whether a model may load it by itself.
        for_person: whether a person may call it by its name.
        remarks: what its author should change.
    """

    name: str
    description: str
    license: str | None = None
    compatibility: str | None = None
    version: str | None = None
    allowed_tools: tuple[str, ...] = ()
    metadata: Mapping[str, JSONValue] = attrs.field(factory=dict)
    argument_hint: str | None = None
    for_model: bool = True
    for_person: bool = True
    remarks: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class SkillText:
    """A `SKILL.md` in its two parts."""

    head: SkillHead
    body: str


def parse_skill(text: str, folder_name: str) -> SkillText:
    """Read a `SKILL.md`. What is not as the format has it is read as far as it can be, and remarked on.

    Args:
        text: the file's text.
        folder_name: the name of its folder, which is the skill's where the text gives no sound one.

    Raises:
        SkillError: it has no front matter that can be read, no description, or no name can be made of what it says.
    """
    remarks: list[str] = []
    parts, body = _parts(text, remarks)
    fields = _Fields(parts, remarks)
    head = SkillHead(
        name=_name(fields, folder_name),
        description=_description(fields),
        license=fields.line("license", _MAX_SHORT),
        compatibility=fields.line("compatibility", _MAX_COMPATIBILITY),
        version=fields.line("version", _MAX_SHORT) or _version(fields),
        allowed_tools=fields.tools("allowed-tools"),
        metadata=fields.mapping("metadata"),
        argument_hint=fields.line("argument-hint", _MAX_SHORT),
        for_model=not fields.flag("disable-model-invocation", default=False),
        for_person=fields.flag("user-invocable", default=True),
    )
    return SkillText(head=attrs.evolve(head, remarks=tuple(remarks)), body=body.strip())


def is_skill_name(name: str) -> bool:
    """Tell whether a name is as the format wants it."""
    return (
        0 < len(name) <= MAX_NAME
        and name == name.lower()
        and all(part.isalnum() for part in name.split("-"))
        # names that look alike must not be different names
        and unicodedata.is_normalized("NFKC", name)
    )


def _parts(text: str, remarks: list[str]) -> tuple[Mapping[str, JSONValue], str]:
    """Part a text into its fields and its body; front matter that is no sound YAML is read by its known fields."""
    try:
        front = parse_front_matter(text)
        fields, body = front.fields, front.body
    except DocumentError as error:
        try:
            loose = parse_loosely(text, _FIELDS)
        except DocumentError:
            raise SkillError(
                "its front matter does not end; close it with a line of '---'"
            ) from error
        remarks.append(
            f"the front matter is no sound YAML ({error.place or 'as a whole'}); put texts in quotes"
        )
        fields, body = loose.fields, loose.body
    if not fields:
        raise SkillError(
            "it has no front matter; begin it with '---', name, description and '---'"
        )
    return fields, body


def _name(fields: _Fields, folder_name: str) -> str:
    """Return the name that is given, else the folder's, else what can be made of one of them."""
    given = unicodedata.normalize("NFKC", fields.line("name", 1000) or "")
    folder = unicodedata.normalize("NFKC", folder_name)
    name = next(
        filter(is_skill_name, (given, folder, _made(given), _made(folder))), None
    )
    if name is None:
        raise SkillError(
            "it has no name of letters, digits and hyphens, and neither has its folder"
        )
    if name != given:
        fields.remarks.append(
            f"name is of letters and digits in lower case with hyphens between them, at most {MAX_NAME}; it is called"
            f" {name!r} here"
        )
    elif name != folder:
        fields.remarks.append("name is not that of its folder")
    return name


def _made(text: str) -> str:
    return re.sub(r"[\W_]+", "-", text.lower()).strip("-")[:MAX_NAME].strip("-")


def _description(fields: _Fields) -> str:
    description = fields.line("description", MAX_DESCRIPTION)
    if not description:
        raise SkillError(
            "it has no description; say in one what it does and when to use it"
        )
    return description


def _version(fields: _Fields) -> str | None:
    return _Fields(fields.mapping("metadata"), []).line("version", _MAX_SHORT)


@attrs.frozen
class _Fields:
    """Reads the fields of front matter, and remarks on what does not fit."""

    fields: Mapping[str, JSONValue]
    remarks: list[str]

    def line(self, key: str, limit: int) -> str | None:
        """Return a text as one line without what nobody sees; `None` when there is none."""
        value = self.fields.get(key)
        # `version: 1.0` is a number in YAML
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        if value is not None and not isinstance(value, str):
            self.remarks.append(f"{key} is a text; put it in quotes")
            return None
        text = " ".join(without_unseen(value or "").split())
        if len(text) > limit:
            self.remarks.append(
                f"{key} has {len(text)} characters, {limit} of them count"
            )
            text = text[: limit - 1].rstrip() + "…"
        return text or None

    def flag(self, key: str, *, default: bool) -> bool:
        value = self.fields.get(key, default)
        if value in ("true", "false"):  # fields that were no sound YAML are texts
            value = value == "true"
        if isinstance(value, bool):
            return value
        self.remarks.append(f"{key} is true or false")
        return default

    def mapping(self, key: str) -> Mapping[str, JSONValue]:
        value = self.fields.get(key)
        if value is None:
            return {}
        if isinstance(value, Mapping) and len(json.dumps(value)) <= _MAX_METADATA:
            return value
        self.remarks.append(
            f"{key} is a mapping of at most {_MAX_METADATA} characters; it is left out"
        )
        return {}

    def tools(self, key: str) -> tuple[str, ...]:
        value = self.fields.get(key)
        if isinstance(value, list):
            entries = value
        else:
            entries = [value]
        texts = [without_unseen(entry) for entry in entries if isinstance(entry, str)]
        if value is not None and len(texts) < len(entries):
            self.remarks.append(f"{key} is a text or a list of texts")
        return tuple(
            match[:_MAX_SHORT] for text in texts for match in _TOOL.findall(text)
        )[:100]
