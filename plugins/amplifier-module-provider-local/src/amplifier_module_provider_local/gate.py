"""Text or a tool: a rule over words, because a model this small cannot tell.

The rule reads the question alone. A tool is wanted when the words of one tool's name occur in it together
with something that could be an argument of that tool (a path, a number, a quoted text or a proper name, by the
types and names of its required parameters), or when two words of the name occur and the question does not ask
for an explanation. It is a rule, it errs, and answers say that it was applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from amplifier_module_provider_local.schema import is_path, required_parameters
from amplifier_sdk.chat import ToolSpec
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["wants_tool"]

_WORD: Final = re.compile(r"[a-z]+")
# A question may be a megabyte: no pattern begins twice within what it reads in one go.
_PATH: Final = re.compile(
    r"(?:^|\s)[\w.~*-]*/[\w./~*-]*|(?:(?<![\w-])-*\w[\w-]*|\*)\.[A-Za-z]\w{0,4}\b"
)
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w/])")
_QUOTED: Final = re.compile(r"[\"“`][^\"“”`]+[\"”`]|(?<!\w)'[^']+'(?!\w)")
_NAME: Final = re.compile(r"(?<![.!?:]\s)(?<!^)\b(?!I\b)[A-Z][\w-]*")
_EXPLANATION: Final = re.compile(
    r"^\s*(?:how (?:do|does|can|could|should|would|to)|why|explain|describe|what (?:is|are) an?)\b",
    re.IGNORECASE,
)
_FILLERS: Final = frozenset(
    {
        "a",
        "an",
        "and",
        "by",
        "for",
        "from",
        "get",
        "in",
        "of",
        "on",
        "the",
        "to",
        "with",
    }
)
_ALSO: Final[Mapping[str, frozenset[str]]] = {
    "add": frozenset({"plus", "sum"}),
    "directory": frozenset({"file", "folder"}),
    "glob": frozenset({"find"}),
    "grep": frozenset({"find", "search"}),
    "list": frozenset({"show"}),
    "read": frozenset({"cat", "open", "show"}),
    "search": frozenset({"find"}),
    "write": frozenset({"save", "create"}),
}


def wants_tool(question: str, tools: Sequence[ToolSpec]) -> bool:
    """Tell whether one of the tools is meant."""
    return not _EXPLANATION.match(question) and any(
        _is_meant(tool, question) for tool in tools
    )


def _is_meant(tool: ToolSpec, question: str) -> bool:
    said = _stems(_WORD.findall(question.lower()))
    hits = sum(_is_said(word, said) for word in _name_words(tool.name))
    if hits >= 2:
        return True
    return hits == 1 and any(
        _could_be(name, value, question)
        for name, value in required_parameters(tool.parameters)
    )


def _name_words(name: str) -> set[str]:
    words = _WORD.findall(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
    return _stems(words) - _FILLERS


def _is_said(word: str, said: set[str]) -> bool:
    return word in said or not said.isdisjoint(_ALSO.get(word, ()))


def _stems(words: Iterable[str]) -> set[str]:
    """Take the plural off words: `files` is `file`, `directories` is `directory`."""
    return {re.sub(r"(?<=[^isu])s$", "", re.sub(r"ies$", "y", word)) for word in words}


def _could_be(name: str, schema: Mapping[str, JSONValue], question: str) -> bool:
    """Tell whether the question holds something that could be this parameter's value."""
    if schema.get("type") in ("integer", "number"):
        return _NUMBER.search(question) is not None
    if is_path(name):
        return _PATH.search(question) is not None
    return any(pattern.search(question) for pattern in (_QUOTED, _PATH, _NAME))
