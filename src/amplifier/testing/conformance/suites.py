"""The suites: classes that a module's test class inherits, and the one-line form."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

import pytest

from amplifier.kernel.modules.loader import ModuleLoader
from amplifier.validation.behaviors import (
    Behavior,
    Samples,
    Subject,
    behaviors,
    check_behavior,
)
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "ConformanceTests",
    "ContextBehaviorTests",
    "HookBehaviorTests",
    "OrchestratorBehaviorTests",
    "ProviderBehaviorTests",
    "ToolBehaviorTests",
    "conformance",
]


class ConformanceTests:
    """What the suites of all types share; inherit one of those.

    Attributes:
        kind: the module type.
        module: whatever the module's entry point names, or the id of an installed module.
        config: the module's configuration.
        samples: what there is to tell about it; see the samples' classes.
        leave_out: behaviours that do not hold of the module, by id, each with the reason.
        loader: where an id is looked up; default what is installed.
        timeout: seconds that one check may take.
    """

    kind: ClassVar[str]
    module: ClassVar[object]
    config: ClassVar[Mapping[str, JSONValue]] = {}
    samples: ClassVar[Samples | None] = None
    leave_out: ClassVar[Mapping[str, str]] = {}
    loader: ClassVar[ModuleLoader | None] = None
    timeout: ClassVar[float] = 30.0

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # a misspelt id would leave out nothing, and its reason would be read by nobody
        unknown = set(cls.leave_out) - {behavior.id for behavior in _of(cls)}
        if unknown:
            raise ValueError(
                f"{cls.__name__}.leave_out names no behaviours: {', '.join(sorted(unknown))}"
            )

    @classmethod
    def subject(cls) -> Subject:
        """Return the module under test.

        Raises:
            TypeError: the class names no module.
        """
        # A function or tool in a class would bind itself to the instance that it is taken from.
        module: object = inspect.getattr_static(cls, "module", None)
        if module is None:
            raise TypeError(
                f"{cls.__name__} names no module: set 'module' to what the entry point names"
            )
        if isinstance(module, staticmethod):
            module = module.__func__
        return Subject(
            kind=cls.kind,
            module=module,
            config=cls.config,
            samples=cls.samples,
            loader=cls.loader,
        )

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make a test of each behaviour of the type."""
        if "behavior" in metafunc.fixturenames:
            found = [pytest.param(each, id=each.id) for each in behaviors(self.kind)]
            metafunc.parametrize("behavior", found)

    @pytest.mark.anyio
    async def test_behavior(self, behavior: Behavior) -> None:
        """Check one behaviour."""
        await self.check(behavior)

    async def check(self, behavior: Behavior) -> None:
        """Check one behaviour; fail with what was seen and what the author does about it."""
        if behavior.id in self.leave_out:
            pytest.skip(self.leave_out[behavior.id])
        outcome = await check_behavior(behavior, self.subject(), timeout=self.timeout)
        if outcome.status == "skipped":
            pytest.skip(outcome.detail)
        if outcome.status == "failed":
            # without a traceback, which would show the checks and not the module
            pytest.fail(
                f"{behavior.says}\n  Seen: {outcome.detail}\n  Fix:  {behavior.fix}",
                pytrace=False,
            )


def _of(cls: type[ConformanceTests]) -> Iterable[Behavior]:
    kind = getattr(cls, "kind", None)
    if isinstance(kind, str):
        return behaviors(kind)
    return ()


class ToolBehaviorTests(ConformanceTests):
    """The suite of tool modules."""

    kind = "tool"


class ProviderBehaviorTests(ConformanceTests):
    """The suite of provider modules."""

    kind = "provider"


class HookBehaviorTests(ConformanceTests):
    """The suite of hook modules."""

    kind = "hook"


class OrchestratorBehaviorTests(ConformanceTests):
    """The suite of orchestrator modules."""

    kind = "orchestrator"


class ContextBehaviorTests(ConformanceTests):
    """The suite of context modules."""

    kind = "context"


_SUITES: Final[Mapping[str, type[ConformanceTests]]] = {
    suite.kind: suite
    for suite in (
        ToolBehaviorTests,
        ProviderBehaviorTests,
        HookBehaviorTests,
        OrchestratorBehaviorTests,
        ContextBehaviorTests,
    )
}


def conformance(
    kind: str,
    module: object,
    *,
    config: Mapping[str, JSONValue] | None = None,
    samples: Samples | None = None,
    leave_out: Mapping[str, str] | None = None,
    loader: ModuleLoader | None = None,
) -> type[ConformanceTests]:
    """Make the suite of a module, to be assigned to a name that begins with `Test`; see `ConformanceTests`.

    Raises:
        ValueError: there is no suite for the type, or `leave_out` names something that is no behaviour.
    """
    if kind not in _SUITES:
        raise ValueError(
            f"There is no suite for the type {kind!r}; known: {', '.join(_SUITES)}"
        )
    members = {
        "module": staticmethod(module)
        if callable(module) and not isinstance(module, type)
        else module,
        "config": config or {},
        "samples": samples,
        "leave_out": leave_out or {},
        "loader": loader,
    }
    return type(f"{kind.title()}Conformance", (_SUITES[kind],), members)
