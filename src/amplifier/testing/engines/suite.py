"""The suite: a class that an engine's test class inherits."""

from __future__ import annotations

from typing import Final

import pytest

from amplifier.testing.engines._runs import RUNS
from amplifier.testing.engines.behavior import EngineBehavior, EngineSubject
from amplifier.testing.suite_behaviors import each_of

__all__ = ["ENGINE_BEHAVIORS", "ExecutionEngineTests"]

ENGINE_BEHAVIORS: Final[tuple[EngineBehavior, ...]] = RUNS
"""What is true of every good engine."""


class ExecutionEngineTests:
    """Inherit it, and give it a fixture `subject` that returns the `EngineSubject`, empty for each test."""

    @pytest.mark.anyio
    @each_of(ENGINE_BEHAVIORS)
    async def test_behavior(
        self, behavior: EngineBehavior, subject: EngineSubject
    ) -> None:
        """Check one behaviour."""
        await behavior.require(subject)
