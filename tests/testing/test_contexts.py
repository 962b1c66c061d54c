"""The context manager that is a list."""

from __future__ import annotations

from amplifier.testing import MockContextManager
from amplifier_sdk.checks import check_instance
from amplifier_sdk.messages import MessageDict

HISTORY: list[MessageDict] = [
    {"role": "user", "content": "Hello"},
    {"role": "tool", "tool_call_id": "c1", "content": "found"},
]


def test_it_satisfies_the_contract() -> None:
    assert check_instance("context", MockContextManager()) == []


async def test_messages_come_back_in_order() -> None:
    context = MockContextManager()

    for message in HISTORY:
        await context.add_message(message)

    assert await context.get_messages() == HISTORY
    assert await context.get_messages_for_request(token_budget=1) == HISTORY
    assert context.messages == HISTORY


async def test_a_history_may_be_given_and_is_copied() -> None:
    given = list(HISTORY)
    context = MockContextManager(given)

    await context.add_message({"role": "user", "content": "More"})

    assert given == HISTORY
    assert len(context.messages) == 3


async def test_what_is_returned_is_not_the_store() -> None:
    context = MockContextManager(HISTORY)

    for returned in (
        await context.get_messages(),
        await context.get_messages_for_request(),
    ):
        assert isinstance(returned, list)
        returned.clear()

    assert context.messages == HISTORY


async def test_setting_replaces_and_clearing_forgets_in_place() -> None:
    context = MockContextManager()
    seen = context.messages

    await context.set_messages(HISTORY)
    assert seen == HISTORY
    await context.clear()
    assert seen == []


def test_roles_and_results_are_at_hand() -> None:
    context = MockContextManager(HISTORY)

    assert context.roles == ["user", "tool"]
    assert context.results == {"c1": "found"}
