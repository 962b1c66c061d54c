"""What a new module is called, everywhere: from the one name that its author gives."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from typing import Final

import attrs

import amplifier_sdk
from amplifier_sdk.errors import ConfigError, did_you_mean

__all__ = ["PREFIXES", "ModuleNames", "name_module"]

PREFIXES: Final[Mapping[str, str]] = {
    "context": "context-",
    "hook": "hooks-",
    "orchestrator": "loop-",
    "provider": "provider-",
    "tool": "tool-",
}
"""How the id of a new module of each type begins."""

_SUFFIXES: Final = {
    "context": "Context",
    "orchestrator": "Loop",
    "provider": "Provider",
}
"""What the names of their classes end with."""

_ALSO: Final = {"hook-": "hook", "orchestrator-": "orchestrator"}
"""Beginnings that mean a type as well."""

_TAKEN: Final = frozenset(
    {*amplifier_sdk.__all__, "EventRecorder", "MockTool", "Sequence", "ToolPre"}
)
"""Names that the files of a new module import."""

_DISTRIBUTION: Final = "amplifier-module-"
_WORDS: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MAX_LENGTH: Final = 30


@attrs.frozen(kw_only=True)
class ModuleNames:
    """The names of one module.

    Args:
        type: its type.
        word: the name without the type in front, in lower case with hyphens.
    """

    type: str
    word: str

    @property
    def id(self) -> str:
        """The module's id, `tool-week-days`."""
        return PREFIXES[self.type] + self.word

    @property
    def distribution(self) -> str:
        """The distribution, and its folder, `amplifier-module-tool-week-days`."""
        return _DISTRIBUTION + self.id

    @property
    def package(self) -> str:
        """The package, `amplifier_module_tool_week_days`."""
        return self.distribution.replace("-", "_")

    @property
    def snake(self) -> str:
        """The word in Python's manner, `week_days`."""
        return self.word.replace("-", "_")

    @property
    def title(self) -> str:
        """The word for people, `Week days`."""
        return self.word.replace("-", " ").capitalize()

    @property
    def cls(self) -> str:
        """The class, `WeekDays`; a provider, a loop and a context say what they are.

        Where that is a word of Python's own, a name which the new files import, or one that pytest takes for a test,
        the type stands first.
        """
        name = "".join(part.capitalize() for part in self.word.split("-"))
        name += _SUFFIXES.get(self.type, "")
        if name in _TAKEN or name.startswith("Test") or keyword.iskeyword(name):
            return f"{self.type.capitalize()}{name}"
        return name


def name_module(name: str, type: str | None = None) -> ModuleNames:  # noqa: A002  # the name of the command's option
    """Work out every name of a module from the one that its author gives.

    Args:
        name: such as `week-days`, `tool-week-days` or `amplifier-module-tool-week-days`; capitals, spaces and
            underscores are taken for what they mean.
        type: the module's type; default the one with which the name begins.

    Raises:
        ConfigError: the name cannot be one, the type is unknown, or the two do not agree.
    """
    known = ", ".join(PREFIXES)
    if type is not None and type not in PREFIXES:
        hint = f"{did_you_mean(type, list(PREFIXES))}; known: {known}"
        raise _refuse("type", f"there is no module type {type!r}{hint}")
    plain = re.sub(r"[\s_-]+", "-", name.strip().lower()).removeprefix(_DISTRIBUTION)
    begins = {**{prefix: kind for kind, prefix in PREFIXES.items()}, **_ALSO}
    prefix = next((prefix for prefix in begins if plain.startswith(prefix)), "")
    expected = begins.get(prefix)
    if type is None and expected is None:
        problem = f"{name!r} begins with no type; say which it is: {known}"
        raise _refuse("type", problem)
    if type is not None and expected not in (None, type):
        problem = f"{name!r} begins like a {expected}, but the type is {type}; leave its beginning out"
        raise _refuse("name", problem)
    word = plain.removeprefix(prefix)
    if not _WORDS.fullmatch(word) or len(word) > _MAX_LENGTH:
        rule = f"a name is words of letters and digits with hyphens between them, at most {_MAX_LENGTH} characters"
        problem = f"{name!r} cannot be one: {rule}, and begins with a letter"
        raise _refuse("name", problem)
    if keyword.iskeyword(word):
        raise _refuse("name", f"{word!r} is a word of Python's own; choose another")
    return ModuleNames(type=type or str(expected), word=word)


def _refuse(path: str, message: str) -> ConfigError:
    return ConfigError.of(path, message, subject="new module")
