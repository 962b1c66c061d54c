"""The person at the other end."""

from __future__ import annotations

import pytest

from amplifier.testing import MockApprovalSystem, MockDisplaySystem
from amplifier.testing.people import AskedQuestion, ShownMessage
from amplifier_sdk import ApprovalTimeoutError


async def ask(person: MockApprovalSystem, prompt: str = "May I?") -> str:
    return await person.request_approval(prompt, ["Allow", "Deny"], 5.0, "deny")


async def test_a_person_allows_unless_told_otherwise() -> None:
    person = MockApprovalSystem()

    assert await ask(person) == "Allow"
    assert person.questions == [AskedQuestion("May I?", ("Allow", "Deny"), 5.0, "deny")]


async def test_answers_come_in_order_and_the_last_one_stays() -> None:
    person = MockApprovalSystem("Deny", "Allow")

    assert [await ask(person) for _ in range(3)] == ["Deny", "Allow", "Allow"]


async def test_answer_may_be_error_or_function_of_question() -> None:
    async def careful(question: AskedQuestion) -> str:
        return "Deny" if "rm" in question.prompt else "Allow"

    person = MockApprovalSystem(ApprovalTimeoutError("nobody"), careful)

    with pytest.raises(ApprovalTimeoutError):
        await ask(person)
    assert [await ask(person, prompt) for prompt in ("rm -r /", "ls")] == [
        "Deny",
        "Allow",
    ]


def test_a_screen_keeps_what_it_shows() -> None:
    screen = MockDisplaySystem()

    screen.show_message("Careful", "warning")
    screen.show_message("Done", "info", "hook:mine")

    assert screen.messages == [
        ShownMessage("Careful", "warning", "hook"),
        ShownMessage("Done", "info", "hook:mine"),
    ]


def test_a_screen_may_fail() -> None:
    screen = MockDisplaySystem(OSError("gone"))

    with pytest.raises(OSError, match="gone"):
        screen.show_message("Careful", "warning")
    assert len(screen.messages) == 1
