"""Contribution channels and capabilities: modules offer, others ask."""

from __future__ import annotations

from collections.abc import MutableMapping

from amplifier import ModuleCoordinator

Reports = list[MutableMapping[str, object]]


async def test_contributors_answer_in_the_order_in_which_they_registered() -> None:
    coordinator = ModuleCoordinator()

    async def later() -> object:
        return ["b"]

    coordinator.register_contributor("events", "one", lambda: "a")
    coordinator.register_contributor("events", "two", later)
    coordinator.register_contributor("events", "one", lambda: 0)
    coordinator.register_contributor("events", "none", lambda: None)
    coordinator.register_contributor("other", "one", lambda: "not asked")

    assert await coordinator.collect_contributions("events") == ["a", ["b"], 0]
    assert await coordinator.collect_contributions("unheard of") == []


async def test_a_contributor_that_fails_is_reported_and_skipped(reports: Reports) -> None:
    coordinator = ModuleCoordinator()

    def fail() -> object:
        raise ValueError("no")

    coordinator.register_contributor("costs", "broken", fail)
    coordinator.register_contributor("costs", "fine", lambda: 1)

    assert await coordinator.collect_contributions("costs") == [1]
    (report,) = reports
    assert (report["event"], report["channel"], report["contributor"]) == (
        "channel.contributor_failed",
        "costs",
        "broken",
    )


def test_a_later_capability_replaces_an_earlier_one() -> None:
    coordinator = ModuleCoordinator()

    coordinator.register_capability("session.working_dir", "/a")
    coordinator.register_capability("session.working_dir", "/b")

    assert coordinator.get_capability("session.working_dir") == "/b"
    assert coordinator.get_capability("unheard of") is None


def test_modules_may_set_attributes_of_their_own_on_a_coordinator() -> None:
    coordinator = ModuleCoordinator()

    coordinator.mine = 1  # type: ignore[attr-defined]
    coordinator.session_state["seen"] = True

    assert coordinator.mine == 1  # type: ignore[attr-defined]
    assert coordinator.config == {}
    assert coordinator.session is None
