"""The suites as a module's own tests use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

import pytest

from amplifier.testing.conformance import (
    ConformanceTests,
    ContextBehaviorTests,
    HookBehaviorTests,
    OrchestratorBehaviorTests,
    ProviderBehaviorTests,
    ToolBehaviorTests,
    conformance,
)
from amplifier.validation.behaviors import Behavior, behaviors
from amplifier_sdk import tool
from tests.validation.behaviors.sound import Echo, Notebook, mounting


def _named(kind: str, name: str) -> Behavior:
    return next(behavior for behavior in behaviors(kind) if behavior.id == name)


@tool
def shout(text: str) -> str:
    """Say a text aloud."""
    return text.upper()


class Generated:
    """Takes the tests that a suite makes, as pytest does."""

    fixturenames = ("anyio_backend", "behavior")

    def __init__(self) -> None:
        self.ids: list[object] = []

    def parametrize(self, _: str, found: Sequence[object]) -> None:
        self.ids += [getattr(each, "id", None) for each in found]


@pytest.mark.parametrize(
    ("kind", "suite"),
    [
        ("tool", ToolBehaviorTests),
        ("provider", ProviderBehaviorTests),
        ("hook", HookBehaviorTests),
        ("orchestrator", OrchestratorBehaviorTests),
        ("context", ContextBehaviorTests),
    ],
)
def test_a_suite_has_a_test_for_each_behavior_of_its_type(
    kind: str, suite: type[ConformanceTests]
) -> None:
    generated = Generated()

    suite().pytest_generate_tests(cast("pytest.Metafunc", generated))

    assert generated.ids == [found.id for found in behaviors(kind)]
    marks = vars(ConformanceTests)["test_behavior"].pytestmark
    assert "anyio" in {mark.name for mark in marks}


async def test_a_failed_behavior_says_what_was_seen_and_what_to_do() -> None:
    suite = conformance("tool", shout)

    with pytest.raises(pytest.fail.Exception) as caught:
        await suite().check(_named("tool", "tool.describes-every-argument"))

    assert str(caught.value) == (
        "Every argument has a description.\n"
        "  Seen: Without a description: shout.text\n"
        "  Fix:  Describe each argument: in the docstring's Args section, or under 'description' in the schema."
    )


async def test_a_behavior_that_is_left_out_is_skipped_with_the_reason() -> None:
    suite = conformance(
        "tool",
        shout,
        leave_out={"tool.describes-every-argument": "they speak for themselves"},
    )

    with pytest.raises(pytest.skip.Exception, match="they speak for themselves"):
        await suite().check(_named("tool", "tool.describes-every-argument"))


async def test_a_behavior_that_does_not_apply_is_skipped() -> None:
    with pytest.raises(pytest.skip.Exception, match="no sample 'slow' is given"):
        await conformance("tool", shout)().check(
            _named("tool", "tool.obeys-its-deadline")
        )


def test_what_is_left_out_must_be_a_behavior() -> None:
    with pytest.raises(ValueError, match=r"leave_out names no behaviours: tool\.sings"):
        conformance("tool", shout, leave_out={"tool.sings": "it does"})


def test_an_unknown_type_is_an_error_that_names_the_known() -> None:
    with pytest.raises(
        ValueError, match="'agent'; known: tool, provider, hook, orchestrator, context"
    ):
        conformance("agent", shout)


def test_a_suite_without_a_module_says_so() -> None:
    class TestNothing(ToolBehaviorTests):
        """A suite without a module."""

    with pytest.raises(TypeError, match="TestNothing names no module"):
        TestNothing.subject()


MOUNT = mounting(Echo)


def test_a_module_in_a_class_is_taken_as_it_is() -> None:
    class TestTool(ToolBehaviorTests):
        """A tool, which would bind itself to an instance."""

        module: ClassVar[object] = shout

    class TestMount(ToolBehaviorTests):
        """A function, which would be a method."""

        module: ClassVar[object] = MOUNT

    class TestContext(ContextBehaviorTests):
        """A class."""

        module: ClassVar[object] = Notebook

    assert TestTool.subject().module is shout
    assert TestMount.subject().module is MOUNT
    assert conformance("tool", MOUNT).subject().module is MOUNT
    assert TestContext.subject().module is Notebook
