"""What the suites of stores and of engines share: a behaviour as a row of a table, and the test of one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Generic, TypeVar

import anyio
import attrs
import pytest

from amplifier.validation.behaviors import BehaviorFailed

__all__ = ["SuiteBehavior", "each_of"]

SubjectT = TypeVar("SubjectT")

TIMEOUT: Final = 30.0
"""Seconds that one check may take."""


@attrs.frozen(kw_only=True)
class SuiteBehavior(Generic[SubjectT]):
    """Something that is true of every good store or engine.

    Args:
        id: stable between releases, such as `lease.fences-a-late-writer`.
        says: what is true, in one sentence.
        fix: what the author does when it is not.
        check: returns when it is true; raises `BehaviorFailed`.
    """

    id: str
    says: str
    fix: str
    check: Callable[[SubjectT], Awaitable[None]]

    async def require(self, subject: SubjectT) -> None:
        """Check it; fail the test with what was seen and what the author does about it."""
        try:
            with anyio.fail_after(TIMEOUT):
                await self.check(subject)
        except BehaviorFailed as failed:
            pytest.fail(
                f"{self.says}\n  Seen: {failed}\n  Fix:  {self.fix}", pytrace=False
            )


def each_of(behaviors: Iterable[SuiteBehavior[SubjectT]]) -> pytest.MarkDecorator:
    """Make a test of each, by its id; the test has the parameter `behavior`."""
    rows = [pytest.param(each, id=each.id) for each in behaviors]
    return pytest.mark.parametrize("behavior", rows)
