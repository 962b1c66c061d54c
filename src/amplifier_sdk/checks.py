"""Does an object have what its module type promises: one table, used by the loader, the validation and tests.

A missing or misshapen member is named with its remedy, before anybody calls it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Final, Literal

import attrs

__all__ = ["Finding", "Member", "check_instance"]


@attrs.frozen
class Member:
    """One member of a contract: its name and what it must be."""

    name: str
    shape: Literal["text", "name", "method", "async method"]
    parameters: int = 0
    by_name: tuple[str, ...] = ()  # what the kernel gives besides, to those who ask for it


@attrs.frozen
class Finding:
    """One way in which an object misses its contract."""

    member: str
    problem: str

    def __str__(self) -> str:
        return f"{self.member}: {self.problem}"


MEMBERS: Final[Mapping[str, tuple[Member, ...]]] = {
    "provider": (
        Member("name", "name"),
        Member("get_info", "method"),
        Member("list_models", "async method"),
        Member("complete", "async method", 1),
        Member("parse_tool_calls", "method", 1),
    ),
    "tool": (Member("name", "name"), Member("description", "text"), Member("execute", "async method", 1)),
    "hook": (Member("__call__", "async method", 2),),
    "orchestrator": (Member("execute", "async method", 5, ("coordinator",)),),
    "context": (
        Member("add_message", "async method", 1),
        Member("get_messages_for_request", "async method"),
        Member("get_messages", "async method"),
        Member("set_messages", "async method", 1),
        Member("clear", "async method"),
    ),
}
"""What each module type's instances must have, by the type's name."""


def check_instance(kind: str, instance: object) -> list[Finding]:
    """Return what an instance lacks of its type; an unknown type promises nothing."""
    return [finding for member in MEMBERS.get(kind, ()) if (finding := _check(instance, member)) is not None]


def _check(instance: object, member: Member) -> Finding | None:
    # A function's own `__call__` does not tell how the function is written.
    is_function = member.name == "__call__" and inspect.isroutine(instance)
    value: object = instance if is_function else getattr(instance, member.name, None)
    if value is None:
        return Finding(member.name, f"missing; it is {_ARTICLE[member.shape]}")
    if member.shape in ("text", "name"):
        return _check_text(value, member)
    if not callable(value):
        return Finding(member.name, f"not callable: {value!r}")
    if member.shape == "async method" and not _is_async(value):
        return Finding(member.name, "not async; write it as 'async def'")
    return _check_arity(value, member)


def _check_text(value: object, member: Member) -> Finding | None:
    if not isinstance(value, str):
        return Finding(member.name, f"not a string: {value!r}")
    return None if value or member.shape == "text" else Finding(member.name, "empty; give it a name")


_ARTICLE: Final = {
    "text": "a property with text",
    "name": "a property with a name",
    "method": "a method",
    "async method": "an async method",
}


def _is_async(function: object) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004  # doubles may be objects with an async __call__
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _check_arity(function: object, member: Member) -> Finding | None:
    assert callable(function)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None  # a built-in tells nothing about its parameters
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    beyond = [name for name in needed[member.parameters :] if name not in member.by_name]
    if beyond:
        return Finding(member.name, f"needs {', '.join(map(repr, beyond))}, which nobody gives; add a default")
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return None
    takes = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(takes) < member.parameters:
        return Finding(member.name, f"takes {len(takes)} arguments; it is called with {member.parameters}")
    return None
