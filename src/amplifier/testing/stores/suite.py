"""The suite: a class that a store's test class inherits."""

from __future__ import annotations

from typing import Final

import anyio
import pytest

from amplifier.testing.stores._contents import CONTENTS
from amplifier.testing.stores._leases import LEASES
from amplifier.testing.stores._lists import LISTS
from amplifier.testing.stores._questions import QUESTIONS
from amplifier.testing.stores._quotas import QUOTAS
from amplifier.testing.stores.behavior import StoreBehavior, StoreSubject
from amplifier.validation.behaviors import BehaviorFailed

__all__ = [
    "QUOTA_BEHAVIORS",
    "STORE_BEHAVIORS",
    "MeteredStoreTests",
    "SessionStoreTests",
]

STORE_BEHAVIORS: Final[tuple[StoreBehavior, ...]] = (
    *LEASES,
    *CONTENTS,
    *LISTS,
    *QUESTIONS,
)
"""What is true of every good store."""

QUOTA_BEHAVIORS: Final[tuple[StoreBehavior, ...]] = QUOTAS
"""What is true of every good store that has accounts as well."""

TIMEOUT: Final = 30.0
"""Seconds that one check may take."""


class SessionStoreTests:
    """Inherit it, and give it a fixture `subject` that returns the `StoreSubject`, empty for each test."""

    @pytest.mark.anyio
    @pytest.mark.parametrize(
        "behavior", [pytest.param(each, id=each.id) for each in STORE_BEHAVIORS]
    )
    async def test_behavior(
        self, behavior: StoreBehavior, subject: StoreSubject
    ) -> None:
        """Check one behaviour; fail with what was seen and what the author does about it."""
        await _require(behavior, subject)


class MeteredStoreTests:
    """The same for the accounts of a store, `amplifier_kit.quotas.QuotaStore`."""

    @pytest.mark.anyio
    @pytest.mark.parametrize(
        "behavior", [pytest.param(each, id=each.id) for each in QUOTA_BEHAVIORS]
    )
    async def test_quota_behavior(
        self, behavior: StoreBehavior, subject: StoreSubject
    ) -> None:
        """Check one behaviour; fail with what was seen and what the author does about it."""
        await _require(behavior, subject)


async def _require(behavior: StoreBehavior, subject: StoreSubject) -> None:
    try:
        with anyio.fail_after(TIMEOUT):
            await behavior.check(subject)
    except BehaviorFailed as failed:
        pytest.fail(
            f"{behavior.says}\n  Seen: {failed}\n  Fix:  {behavior.fix}",
            pytrace=False,
        )
