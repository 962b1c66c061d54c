"""Does an object have what its module type promises: one table, used by the loader, the validation and tests.

A missing or misshapen member is named with its remedy, before anybody calls it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, Generic, Literal, Protocol
from weakref import WeakKeyDictionary

import attrs

from amplifier_sdk._callables import parameters_of
from amplifier_sdk.values import Value

__all__ = ["ContractFinding", "Member", "check_instance"]


@attrs.frozen(eq=False, repr=False)
class Member(Value):
    """One member of a contract: its name and what it must be."""

    name: str
    shape: Literal["text", "name", "value", "method", "async method"]
    parameters: int = 0
    # what the kernel gives besides, to those who ask for it
    by_name: tuple[str, ...] = ()


@attrs.frozen(eq=False, repr=False)
class ContractFinding(Value):
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
    "tool": (
        Member("name", "name"),
        Member("description", "text"),
        Member("execute", "async method", 1),
    ),
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


def check_instance(
    kind: str, instance: object, protocol: type | None = None
) -> list[ContractFinding]:
    """Return what an instance lacks of its type.

    Args:
        kind: the type's name.
        instance: what was mounted or is to be.
        protocol: what instances of an application's own type satisfy, a `Protocol` or any class; without
            one such a type promises nothing.
    """
    members = MEMBERS.get(kind)
    if members is None and protocol is not None:
        if not getattr(protocol, "_is_protocol", False):
            is_one = isinstance(instance, protocol)
            if is_one:
                return []
            return [
                ContractFinding("class", f"not an instance of {protocol.__qualname__}")
            ]
        members = _members_of(protocol)
    return [
        finding
        for member in members or ()
        if (finding := _check(instance, member)) is not None
    ]


@lru_cache(maxsize=64)
def _members_of(protocol: type) -> tuple[Member, ...]:
    """Return what a protocol asks for: its annotations, properties and methods, its bases' first."""
    found: dict[str, Member] = {}
    for cls in reversed(protocol.__mro__):
        if cls not in (object, Protocol, Generic):
            found |= {member.name: member for member in _own_members(cls)}
    return tuple(found.values())


def _own_members(cls: type) -> Iterator[Member]:
    yield from (Member(name, "value") for name in inspect.get_annotations(cls))
    for name, value in vars(cls).items():
        if name.startswith("_") and name != "__call__":
            continue
        if inspect.isfunction(value):
            parameters = list(inspect.signature(value).parameters.values())[1:]
            by_position = [
                p
                for p in parameters
                if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            ]
            needed = sum(p.default is p.empty for p in by_position)
            yield Member(
                name,
                "async method" if inspect.iscoroutinefunction(value) else "method",
                needed,
            )
        elif isinstance(value, property):
            yield Member(name, "value")


_SOUND: Final[WeakKeyDictionary[type, set[Member]]] = WeakKeyDictionary()
"""The methods of classes that were found to be as they must be: sessions mount instances of the same classes."""


def _check(instance: object, member: Member) -> ContractFinding | None:
    """Check one member; a method that the class itself defines is checked once for all its instances."""
    cls = type(instance)
    # an instance may have something of its own in a method's place
    if member in _SOUND.get(cls, ()) and member.name not in getattr(
        instance, "__dict__", ()
    ):
        return None
    finding = _check_member(instance, member)
    if (
        finding is None
        and member.shape in _METHODS
        and inspect.isfunction(vars(cls).get(member.name))
    ):
        _SOUND.setdefault(cls, set()).add(member)
    return finding


_METHODS: Final = frozenset({"method", "async method"})


def _check_member(instance: object, member: Member) -> ContractFinding | None:
    # A function's own `__call__` does not show how the function is written.
    is_function = member.name == "__call__" and inspect.isroutine(instance)
    value: object
    value = instance
    if not is_function:
        value = getattr(instance, member.name, None)
    if member.shape == "value":
        if hasattr(instance, member.name):
            return None
        return ContractFinding(member.name, "missing; it is an attribute")
    if value is None:
        return ContractFinding(member.name, f"missing; it is {_ARTICLE[member.shape]}")
    if member.shape in ("text", "name"):
        return _check_text(value, member)
    if not callable(value):
        return ContractFinding(member.name, f"not callable: {value!r}")
    if member.shape == "async method" and not _is_async(value):
        return ContractFinding(member.name, "not async; write it as 'async def'")
    return _check_arity(value, member)


def _check_text(value: object, member: Member) -> ContractFinding | None:
    if not isinstance(value, str):
        return ContractFinding(member.name, f"not a string: {value!r}")
    if value or member.shape == "text":
        return None
    return ContractFinding(member.name, "empty; give it a name")


_ARTICLE: Final = {
    "text": "a property with text",
    "name": "a property with a name",
    "method": "a method",
    "async method": "an async method",
}


def _is_async(function: object) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004  # doubles may be objects with an async __call__
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _check_arity(function: object, member: Member) -> ContractFinding | None:
    assert callable(function)
    try:
        parameters = parameters_of(function)
    except (TypeError, ValueError):
        return None  # a built-in has no signature
    needed = [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    beyond = [
        name for name in needed[member.parameters :] if name not in member.by_name
    ]
    if beyond:
        return ContractFinding(
            member.name,
            f"needs {', '.join(map(repr, beyond))}, which nobody gives; add a default",
        )
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return None
    takes = [
        p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(takes) < member.parameters:
        return ContractFinding(
            member.name,
            f"takes {len(takes)} arguments; it is called with {member.parameters}",
        )
    return None
