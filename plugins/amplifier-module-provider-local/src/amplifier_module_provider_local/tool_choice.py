"""Text or tools, and who says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import attrs

from amplifier_module_provider_local.conversation import RequestParts
from amplifier_module_provider_local.gate import wants_tool
from amplifier_sdk.chat import ChatRequest, Degradation, ToolSpec
from amplifier_sdk.errors import InvalidRequestError, did_you_mean

__all__ = ["WantedTools", "choose"]

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
class WantedTools:
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
) -> WantedTools:
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
) -> WantedTools:
    tools = tuple(request.tools or ())
    if (name := request.forced_tool) is not None:
        return WantedTools(
            tools=_fit_to_call((_find(name, tools),), conversation), how="forced"
        )
    match request.tool_choice:
        case "none":
            return WantedTools()
        case "required":
            if not tools:
                raise InvalidRequestError(
                    "tool_choice 'required' needs tools; the request offers none"
                )
            return WantedTools(tools=_fit_to_call(tools, conversation), how="grammar")
        case None | "auto":
            if tools:
                return _open_choice(tools, conversation, gate)
            return WantedTools()
        case other:
            raise InvalidRequestError(
                f"tool_choice is 'auto', 'none', 'required' or {{'type': 'tool', 'name': …}}; got {other!r}"
            )


def _open_choice(
    tools: tuple[ToolSpec, ...],
    conversation: RequestParts,
    gate: Literal["lexical", "off"],
) -> WantedTools:
    if conversation.has_results:
        return WantedTools(how="after a result")
    if gate == "off":
        return WantedTools(
            how="gate: off",
            degradation=attrs.evolve(_BY_RULE, actual="text, since tool_gate is off"),
        )
    meant = conversation.question is not None and wants_tool(
        conversation.question, tools
    )
    return WantedTools(
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
