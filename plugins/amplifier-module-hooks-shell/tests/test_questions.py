"""Questions to the person, as commands of plugin folders ask for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from amplifier import AmplifierSession
from amplifier.testing import MockApprovalSystem
from amplifier_sdk import ApprovalSystem, ApprovalTimeoutError, ToolResult
from amplifier_sdk.jsontypes import JSONValue

OpenSession = Callable[..., AmplifierSession]  # type: ignore[explicit-any]  # its options go by name
Run = Callable[..., Awaitable[ToolResult]]  # type: ignore[explicit-any]  # likewise
WritePlugin = Callable[..., Path]  # type: ignore[explicit-any]  # likewise
Ask = Callable[[ApprovalSystem | None, JSONValue], Awaitable[ToolResult]]
DATABASE: JSONValue = {
    "question": "Which database should we use?",
    "header": "Database",
    "options": [
        {"label": "PostgreSQL", "description": "relational"},
        {"label": "Redis", "description": "in memory"},
        {"label": "None"},
    ],
}


@pytest.fixture
def ask(write_plugin: WritePlugin, open_session: OpenSession, run: Run) -> Ask:
    async def ask(person: ApprovalSystem | None, *questions: JSONValue) -> ToolResult:
        config = {
            "plugins": [
                str(write_plugin(None, {"commands/setup.md": "Use AskUserQuestion."}))
            ]
        }
        async with open_session(config, approval_system=person) as session:
            return await run(session, "AskUserQuestion", questions=list(questions))

    return ask


async def test_the_person_chooses_an_answer(ask: Ask) -> None:
    person = MockApprovalSystem("redis")
    result = await ask(person, DATABASE)

    assert result.output == {"answers": {"Which database should we use?": "Redis"}}
    assert person.questions[0].options == ("PostgreSQL", "Redis", "None", "Other")
    assert (
        "Database: Which database should we use?\n- PostgreSQL: relational\n"
        in person.questions[0].prompt
    )


async def test_the_person_chooses_several(ask: Ask) -> None:
    person = MockApprovalSystem("Redis", "PostgreSQL", "Done")
    assert isinstance(DATABASE, dict)
    result = await ask(person, {**DATABASE, "multiSelect": True})

    assert result.output == {
        "answers": {"Which database should we use?": ["Redis", "PostgreSQL"]}
    }
    assert person.questions[1].options == ("PostgreSQL", "None", "Other", "Done")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (("Redis", "Other"), ["Redis", "Other"]),
        (("PostgreSQL", "Redis", "None"), ["PostgreSQL", "Redis", "None"]),
    ],
    ids=["something else", "all"],
)
async def test_choosing_ends_with_other_answer_or_none_left(
    ask: Ask, answers: tuple[str, ...], expected: list[str]
) -> None:
    assert isinstance(DATABASE, dict)
    result = await ask(MockApprovalSystem(*answers), {**DATABASE, "multiSelect": True})

    assert result.output == {"answers": {"Which database should we use?": expected}}


@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
async def test_no_answer_is_a_failed_result(ask: Ask, several: bool) -> None:
    assert isinstance(DATABASE, dict)
    for person in (
        MockApprovalSystem(ApprovalTimeoutError("late")),
        MockApprovalSystem("Nothing"),
        None,
    ):
        result = await ask(person, {**DATABASE, "multiSelect": several})

        assert not result.success
        assert "The person gave no answer" in result.get_serialized_output()


async def test_an_answer_is_never_a_permission_that_holds(ask: Ask) -> None:
    person = MockApprovalSystem("Allow always (answer)")
    options: JSONValue = [{"label": "Allow always"}, {"label": "Deny"}]
    result = await ask(person, {"question": "Go\x1b[2J on?", "options": options})

    assert result.output == {"answers": {"Go\x1b[2J on?": "Allow always (answer)"}}
    assert person.questions[0].options == (
        "Allow always (answer)",
        "Deny (answer)",
        "Other",
    )


@pytest.mark.parametrize(
    "question",
    [
        {"question": "x"},
        {"question": "x", "options": []},
        {"options": [{"label": "a"}, {"label": "b"}]},
    ],
    ids=["no options", "too few", "no question"],
)
async def test_a_question_that_does_not_fit_is_not_asked(
    ask: Ask, question: JSONValue
) -> None:
    person = MockApprovalSystem()
    assert not (await ask(person, question)).success
    assert not person.questions
