"""The suite: a class that an engine's test class inherits."""

from __future__ import annotations

from typing import Final

import anyio
import pytest

from amplifier.testing.engines._runs import RUNS
from amplifier.testing.engines.behavior import EngineBehavior, EngineSubject
from amplifier.validation.behaviors import BehaviorFailed

__all__ = ["ENGINE_BEHAVIORS", "ExecutionEngineTests"]

ENGINE_BEHAVIORS: Final[tuple[EngineBehavior, ...]] = RUNS
"""What is true of every good engine."""

TIMEOUT: Final = 30.0
"""Seconds that one check may take."""


class ExecutionEngineTests:
    """Inherit it, and give it a fixture `subject` that returns the `EngineSubject`, empty for each test."""

    @pytest.mark.anyio
    @pytest.mark.parametrize(
        "behavior", [pytest.param(each, id=each.id) for each in ENGINE_BEHAVIORS]
    )
    async def test_behavior(
        self, behavior: EngineBehavior, subject: EngineSubject
    ) -> None:
        """Check one behaviour; fail with what was seen and what the author does about it."""
        try:
            with anyio.fail_after(TIMEOUT):
                await behavior.check(subject)
        except BehaviorFailed as failed:
            pytest.fail(
                f"{behavior.says}\n  Seen: {failed}\n  Fix:  {behavior.fix}",
                pytrace=False,
            )
