"""What an object lacks of its module type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

import pytest

from amplifier_sdk import tool
from amplifier_sdk.checks import MEMBERS, ContractFinding, check_instance
from amplifier_sdk.hookspecs import KINDS
from tests.sdk.authoring.doubles import Answers, PlainContext


async def handler(event: str, data: dict[str, object]) -> None:
    """Handle."""


@tool
def good_tool(x: int) -> int:
    """Do."""
    return x


class Watch:
    async def __call__(self, event: str, data: dict[str, object]) -> None:
        """Handle."""

    async def method(self, event: str, data: dict[str, object]) -> None:
        """Handle."""


class GoodLoop:
    async def execute(
        self,
        prompt: str,
        context: object,
        providers: object,
        tools: object,
        hooks: object,
        coordinator: object,
    ) -> str:
        return prompt


class Greedy:
    name = "greedy"
    description = "Takes anything"

    async def execute(self, *args: object, **kwargs: object) -> None:
        """Do."""


@pytest.mark.parametrize(
    ("kind", "instance"),
    [
        ("provider", Answers()),
        ("tool", good_tool),
        ("tool", Greedy()),
        ("hook", Watch()),
        ("hook", Watch().method),
        ("hook", handler),
        ("orchestrator", GoodLoop()),
        ("context", PlainContext()),
        ("of an application", object()),
    ],
)
def test_what_has_all_members_is_fine(kind: str, instance: object) -> None:
    assert check_instance(kind, instance) == []


def test_every_module_type_has_its_members() -> None:
    assert set(MEMBERS) == {kind.name for kind in KINDS}


@pytest.mark.parametrize("kind", MEMBERS)
def test_an_object_lacks_every_member(kind: str) -> None:
    class Nothing:
        __call__ = None

    assert [finding.member for finding in check_instance(kind, Nothing())] == [
        m.name for m in MEMBERS[kind]
    ]


async def _executes(self: object, input: object) -> None:
    """Do."""


def _tool(**members: object) -> object:
    given: Mapping[str, object] = {
        "name": "x",
        "description": "y",
        "execute": _executes,
        **members,
    }
    return type("Odd", (), dict(given))()


async def _takes_nothing(self: object) -> None:
    """Do."""


async def _takes_more(
    self: object, input: object, session: object, *, clock: object
) -> None:
    """Do."""


async def _takes_defaults(
    self: object, input: object, session: object = None, *, clock: object = None
) -> None:
    """Do."""


def _blocks(self: object, input: object) -> None:
    """Do."""


class _Unreadable:
    __signature__: ClassVar[str] = "none"

    async def __call__(self) -> None:
        """Do."""


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"name": None}, "name: missing; it is a property with a name"),
        ({"name": ""}, "name: empty; give it a name"),
        ({"description": 7}, "description: not a string: 7"),
        ({"execute": None}, "execute: missing; it is an async method"),
        ({"execute": "x"}, "execute: not callable: 'x'"),
        ({"execute": _blocks}, "execute: not async; write it as 'async def'"),
        (
            {"execute": _takes_nothing},
            "execute: takes 0 arguments; it is called with 1",
        ),
        (
            {"execute": _takes_more},
            "execute: needs 'session', 'clock', which nobody gives; add a default",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(
    members: Mapping[str, object], text: str
) -> None:
    assert list(map(str, check_instance("tool", _tool(**members)))) == [text]


def test_further_arguments_with_defaults_are_fine() -> None:
    assert check_instance("tool", _tool(execute=_takes_defaults)) == []


def test_a_signature_that_cannot_be_read_is_not_judged() -> None:
    assert check_instance("tool", _tool(execute=_Unreadable())) == []


def test_a_finding_reads_as_a_line() -> None:
    assert str(ContractFinding("name", "missing")) == "name: missing"


class Named(Protocol):
    label: str


class Judge(Named, Protocol):
    """An application's own type."""

    unnoted = "a constant of the protocol's own"  # type: ignore[misc]  # as authors may write it

    @property
    def rank(self) -> int: ...

    def judge(
        self, text: str, /, times: int, loud: bool = False, *, slow: bool
    ) -> bool: ...

    async def appeal(self, text: str) -> bool: ...

    def _hidden(self) -> None: ...


class Fair:
    label = "fair"
    rank: int | None = None

    def judge(self, text: str, times: int, *, slow: bool = False) -> bool:
        return True

    async def appeal(self, text: str) -> bool:
        return True


class Hasty:
    label = "hasty"

    def judge(self, text: str) -> bool:
        return True

    def appeal(self, text: str) -> bool:
        return True


def test_instance_of_custom_type_is_checked_by_protocol() -> None:
    assert check_instance("judge", Fair(), Judge) == []
    assert [str(finding) for finding in check_instance("judge", Hasty(), Judge)] == [
        "rank: missing; it is an attribute",
        "judge: takes 1 arguments; it is called with 2",
        "appeal: not async; write it as 'async def'",
    ]
    assert [finding.member for finding in check_instance("judge", object(), Judge)] == [
        *("label", "rank", "judge", "appeal")
    ]


def test_an_own_type_may_be_a_class_or_promise_nothing() -> None:
    assert check_instance("judge", object()) == []
    assert check_instance("judge", Fair(), Fair) == []
    assert [str(finding) for finding in check_instance("judge", Hasty(), Fair)] == [
        "class: not an instance of Fair"
    ]
