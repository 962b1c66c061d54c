"""Text or tools, and who says so: the request, or a rule over words, because a model this small cannot tell.

The rule reads the question alone. A tool is wanted when the words of one tool's name occur in it together
with something that could be an argument of that tool (a path, a number, a quoted text or a proper name, by the
types and names of its required parameters), or when two words of the name occur and the question does not ask
for an explanation. It is a rule, it errs, and answers say that it was applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import attrs

from amplifier_module_provider_local.conversation import RequestParts
from amplifier_module_provider_local.schema import is_path, required_parameters
from amplifier_sdk.chat import ChatRequest, Degradation, ToolSpec
from amplifier_sdk.errors import InvalidRequestError, did_you_mean
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["RequiredTools", "choose", "wants_tool"]

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

_BY_RULE: Final = Degradation(
    requested="tool_choice: auto",
    actual="a rule over the words of the question",
    reason="this model is small (135 million parameters) and takes tools by the words of a question;"
    " 'amplifier init' chooses another",
)
_AT_ONCE: Final = Degradation(
    requested="reasoning_effort",
    actual="an answer at once",
    reason="this model does not reason",
)


@attrs.frozen(kw_only=True)
class RequiredTools:
    """The tools one of which is to be called; none for text.

    Args:
        tools: the candidates.
        how: who decided, for the answer's metadata; `None` when there was nothing to decide.
        degradation: what the request asked for and did not get.
    """

    tools: tuple[ToolSpec, ...] = ()
    how: str | None = None
    degradation: Degradation | None = None


def choose(
    request: ChatRequest,
    conversation: RequestParts,
    gate: Literal["lexical", "off"],
    losses: Sequence[Degradation] = (),
) -> RequiredTools:
    """Decide what a request is answered with, and say what of it is lost.

    A tool that the request forces or requires is called, always. When it leaves the choice open, what a tool
    returned since the question is answered with text; otherwise the gate decides. `losses` are what else is lost.

    Raises:
        InvalidRequestError: it forces a tool that it does not offer, or says nothing to take arguments from.
    """
    choice = _choose(request, conversation, gate)
    lost = [*losses]
    if request.reasoning_effort not in (None, "none"):
        lost.append(_AT_ONCE)
    if choice.degradation is not None:
        lost.append(choice.degradation)
    return attrs.evolve(choice, degradation=Degradation.of_all(lost))


def _choose(
    request: ChatRequest, conversation: RequestParts, gate: Literal["lexical", "off"]
) -> RequiredTools:
    tools = tuple(request.tools or ())
    if (name := request.forced_tool) is not None:
        return RequiredTools(
            tools=_fit_to_call((_find(name, tools),), conversation), how="forced"
        )
    match request.tool_choice:
        case "none":
            return RequiredTools()
        case "required":
            if not tools:
                raise InvalidRequestError(
                    "tool_choice 'required' needs tools; the request offers none"
                )
            return RequiredTools(tools=_fit_to_call(tools, conversation), how="grammar")
        case None | "auto":
            if tools:
                return _open_choice(tools, conversation, gate)
            return RequiredTools()
        case other:
            raise InvalidRequestError(
                f"tool_choice is 'auto', 'none', 'required' or {{'type': 'tool', 'name': …}}; got {other!r}"
            )


def _open_choice(
    tools: tuple[ToolSpec, ...],
    conversation: RequestParts,
    gate: Literal["lexical", "off"],
) -> RequiredTools:
    if conversation.has_results:
        return RequiredTools(how="after a result")
    if gate == "off":
        return RequiredTools(
            how="gate: off",
            degradation=attrs.evolve(_BY_RULE, actual="text, since tool_gate is off"),
        )
    meant = conversation.question is not None and wants_tool(
        conversation.question, tools
    )
    return RequiredTools(
        tools=tools if meant else (), how="gate: lexical", degradation=_BY_RULE
    )


def _find(name: str, tools: tuple[ToolSpec, ...]) -> ToolSpec:
    for tool in tools:
        if tool.name == name:
            return tool
    names = [tool.name for tool in tools]
    offered = ", ".join(names) or "no tools"
    raise InvalidRequestError(
        f"tool_choice forces {name!r}, and the request offers {offered}{did_you_mean(name, names)}"
    )


def _fit_to_call(
    tools: tuple[ToolSpec, ...], conversation: RequestParts
) -> tuple[ToolSpec, ...]:
    if conversation.question is None:
        raise InvalidRequestError(
            "A tool call takes its arguments from the last user message; there is none"
        )
    return tools


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
