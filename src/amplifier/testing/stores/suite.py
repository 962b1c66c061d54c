"""The suite: a class that a store's test class inherits."""

from __future__ import annotations

from typing import Final

import pytest

from amplifier.testing.stores._contents import CONTENTS
from amplifier.testing.stores._leases import LEASES
from amplifier.testing.stores._lists import LISTS
from amplifier.testing.stores._questions import QUESTIONS
from amplifier.testing.stores._quotas import QUOTAS
from amplifier.testing.stores.behavior import StoreBehavior, StoreSubject
from amplifier.testing.suite_behaviors import each_of

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


class SessionStoreTests:
    """Inherit it, and give it a fixture `subject` that returns the `StoreSubject`, empty for each test."""

    @pytest.mark.anyio
    @each_of(STORE_BEHAVIORS)
    async def test_behavior(
        self, behavior: StoreBehavior, subject: StoreSubject
    ) -> None:
        """Check one behaviour."""
        await behavior.require(subject)


class MeteredStoreTests:
    """The same for the accounts of a store, `amplifier_kit.quotas.QuotaStore`."""

    @pytest.mark.anyio
    @each_of(QUOTA_BEHAVIORS)
    async def test_quota_behavior(
        self, behavior: StoreBehavior, subject: StoreSubject
    ) -> None:
        """Check one behaviour."""
        await behavior.require(subject)
