"""What handlers decided, from the SDK's values to the original's result and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from amplifier.compat.original.models import ContextInjection, HookResult, ToolResult
from amplifier.compat.plain import plain, plain_copy
from amplifier_sdk import results

__all__ = [
    "EmittedResult",
    "native_decision",
    "native_hook_result",
    "original_result",
    "original_value",
]


class EmittedResult(HookResult):
    """What the handlers of an event decided together; `emission` is what it was made of."""

    emission: results.Emission | None = None


def original_result(
    emission: results.Emission,
    shown: Mapping[str, object] | None = None,
    given: Mapping[str, object] | None = None,
) -> EmittedResult:
    """Return what handlers decided as the original's result.

    Args:
        emission: what they decided.
        shown: the data as a module of the original has it.
        given: the same data as the handlers got it; what they left is the very object of `shown` again.
    """
    decisions = emission.decisions
    injections = emission.injections
    question = emission.question
    first = injections[0] if injections else None
    data = {
        key: shown[key]
        if shown is not None
        and given is not None
        and key in shown
        and given.get(key) is value
        else original_value(value)
        for key, value in emission.data.items()
    }
    action = emission.action
    if action == "modify":
        action = "continue"  # the data have the changes, and no loop of the original knows the word
    result = EmittedResult(
        action=action,
        data=data,
        reason=emission.reason,
        context_injection=emission.context_injection,
        context_injection_role=first.role if first else "system",
        ephemeral=emission.ephemeral,
        suppress_output=any(each.result.suppress_output for each in decisions),
        user_message=emission.user_message,
        append_to_last_tool_result=any(
            each.append_to_last_tool_result for each in injections
        ),
        context_injections=[
            ContextInjection(
                content=each.content,
                role=each.role,
                ephemeral=each.ephemeral,
                append_to_last_tool_result=each.append_to_last_tool_result,
                hook_name=each.hook_name,
            )
            for each in injections
        ],
    )
    if question is not None:
        vars(result).update(
            approval_prompt=question.approval_prompt,
            approval_options=question.approval_options,
            approval_timeout=question.approval_timeout,
            approval_default=question.approval_default,
        )
    result.emission = emission
    return result


def original_value(value: object) -> object:
    """Return a value of an event as modules of the original have it."""
    if isinstance(value, results.ToolResult):
        return ToolResult.of(value)
    if type(value) in (dict, list, str, int, float, bool, type(None)):
        return value
    return plain_copy(value)


def native_decision(answer: object) -> results.Emission | results.HookResult:
    """Return what a module of the original wants carried out: what handlers decided together, or its own result."""
    if isinstance(answer, EmittedResult) and answer.emission is not None:
        return answer.emission
    if isinstance(answer, results.Emission):
        return answer
    return native_hook_result(answer)


def native_hook_result(answer: object) -> results.HookResult:
    """Return what a module of the original decided as the SDK's value: plain, and frozen from here on.

    Raises:
        TypeError: it is no result, nor a dict of its fields.
        ValueError: a field has a value that it cannot have.
    """
    if isinstance(answer, Mapping):
        answer = HookResult(**answer)
    if not isinstance(answer, results.HookResult):
        raise TypeError(f"expected a HookResult or None; got {answer!r:.200}")
    return results.HookResult(
        action=answer.action,
        data=_native_data(answer.data),
        reason=_text(answer.reason),
        context_injection=_text(answer.context_injection),
        context_injection_role=answer.context_injection_role,
        # by identity: it can be changed to anything after it was validated
        ephemeral=answer.ephemeral is True,
        approval_prompt=_text(answer.approval_prompt),
        approval_options=answer.approval_options,
        approval_timeout=answer.approval_timeout,
        approval_default=answer.approval_default,
        suppress_output=answer.suppress_output is True,
        user_message=_text(answer.user_message),
        user_message_level=answer.user_message_level,
        user_message_source=_text(answer.user_message_source),
        append_to_last_tool_result=answer.append_to_last_tool_result is True,
    )


def _native_data(data: object) -> dict[str, object] | None:
    if data is None:
        return None
    if not isinstance(data, Mapping):
        raise TypeError(f"'data' is an object; got {type(data).__name__}")
    return {str(key): plain(value) for key, value in data.items()}


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(cast("str", value))
