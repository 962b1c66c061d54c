"""What an answer covers: one call of one tool, as it was shown, in one turn; and who may wait for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio
import attrs
import pytest

from amplifier.app.questions.books import FileQuestions
from amplifier.app.questions.stored_approvals import (
    HELD,
    StoredApprovals,
    is_open,
    is_waited_for,
)
from amplifier.app.store.stored_questions import (
    changing_questions,
    read_questions,
    void_questions,
)
from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_sdk.approvals import ApprovalRequest
from amplifier_sdk.errors import (
    ApprovalPendingError,
    ApprovalTimeoutError,
    ApprovalUnavailableError,
    QuestionClosedError,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.person_questions import PersonQuestion
from amplifier_sdk.results import HookResult
from amplifier_sdk.stores import StoredQuestion
from amplifier_sdk.tools import tool

_OPTIONS = ("Allow once", "Allow always", "Deny")


@tool
async def send(text: str) -> str:
    """Send a text."""
    return text


def _request(text: object = "hello", **changes: object) -> ApprovalRequest:
    details: dict[str, object] = {
        "tool_input": {"text": text},
        "prompt": "send: Shall it?",
        "hook": "rules",
        "options": _OPTIONS,
        "allowing": _OPTIONS[:2],
        "covers": "send to anybody",
        "tool_call_id": "c1",
        **changes,
    }
    return ApprovalRequest(
        tool_name=str(changes.get("tool", "send")),
        action="Shall it?",
        risk_level="high",
        details=details,
        timeout=20,
    )


def _wanted(message: str = "Whom?", **changes: object) -> PersonQuestion:
    details: Mapping[str, object] = {
        "tool_input": {"text": "hello"},
        "message": message,
        "number": 0,
        "tool_call_id": "c1",
        **changes,
    }
    return PersonQuestion(
        tool_name="send",
        prompt=f"send\n{message}",
        schema={"type": "string", "enum": ["ann", "bob"]},
        details=details,
        is_repeatable=True,
    )


@attrs.define(eq=False)
class Case:
    """The questions of a turn, and what was shown of them."""

    folder: Path
    coordinator: ModuleCoordinator
    shown: list[JSONObject] = attrs.field(factory=list)

    def approvals(
        self, turn: str = "t1", *, is_patient: bool = False
    ) -> StoredApprovals:
        return StoredApprovals(
            session_id="s1",
            turn_id=turn,
            book=FileQuestions(self.folder),
            coordinator=self.coordinator,
            shows=self.shown.append,
            is_patient=is_patient,
        )

    def stored(self) -> list[StoredQuestion]:
        return [*read_questions(self.folder).values()]

    def answer(self, option: str, value: str | None = None) -> None:
        """Answer what is open: questions with options, and those with a schema."""
        with changing_questions(self.folder) as known:
            for key, question in known.items():
                if question.answer is None:
                    answer = option if question.options or value is None else value
                    known[key] = question.with_answer(answer, by="ann", now=0.0)


@pytest.fixture
async def case(tmp_path: Path) -> Case:
    made = ModuleCoordinator()
    await made.mount("tools", send, "send")
    return Case(tmp_path, made)


async def _ask(
    approvals: StoredApprovals, request: ApprovalRequest | PersonQuestion
) -> None:
    with pytest.raises(ApprovalPendingError):
        if isinstance(request, ApprovalRequest):
            await approvals.request_approval(request)
        else:
            await approvals.ask_person(request)


@pytest.mark.parametrize(
    ("answer", "approved"), [("Allow once", True), ("Deny", False)]
)
async def test_an_answer_counts_for_its_call(
    case: Case, answer: str, approved: bool
) -> None:
    await _ask(case.approvals(), _request())
    await _ask(case.approvals(), _request())
    case.answer(answer)
    response = await case.approvals().request_approval(_request())

    reported = answer if approved else f"answered {answer!r} by ann"
    assert (response.approved, response.reason) == (approved, reported)
    kinds = [str(each["type"]).removeprefix("approval_") for each in case.shown]
    assert kinds == ["requested", "answered"]


@pytest.mark.parametrize(
    "changed",
    [
        _request("hello "),
        _request(["hello"]),
        _request(prompt="The agent 'x' asks:\nsend: Shall it?"),
        _request(hook="other"),
        _request(agents=["helper"]),
        _request(tool_call_id="c2"),
        _request(session_id="child"),
    ],
)
async def test_an_answer_covers_no_other_call(
    case: Case, changed: ApprovalRequest
) -> None:
    await _ask(case.approvals(), _request())
    case.answer("Allow once")

    await _ask(case.approvals(), changed)


async def test_an_answer_covers_no_call_of_another_turn(case: Case) -> None:
    await _ask(case.approvals("t1"), _request())
    case.answer("Allow once")

    await _ask(case.approvals("t2"), _request())


async def test_allow_always_covers_what_was_shown_and_no_changed_tool(
    case: Case,
) -> None:
    await _ask(case.approvals(), _request())
    case.answer("Allow always")
    covered = await case.approvals("t2").request_approval(_request("bye"))
    case.coordinator.tools["send"] = attrs.evolve(send, description="Send to all.")
    await _ask(case.approvals("t2"), _request("bye"))

    assert covered.approved


async def test_an_answer_does_not_cover_a_tool_that_says_something_else_now(
    case: Case,
) -> None:
    await _ask(case.approvals(), _request())
    await _ask(case.approvals(), _wanted())
    case.answer("Allow once", '"bob"')
    case.coordinator.tools["send"] = attrs.evolve(send, description="Send to all.")

    await _ask(case.approvals(), _request())
    await _ask(case.approvals(), _wanted())


async def test_a_call_with_a_secret_is_asked_about_in_vain_by_nobody(
    case: Case,
) -> None:
    """What is stored of it is not what would run, so no answer could let it run."""
    secret = f"sk-ant-api03-{'Ab3dE5fG7h' * 9}"
    with pytest.raises(ApprovalUnavailableError, match="from a variable or a file"):
        await case.approvals().request_approval(_request(f"key={secret}"))

    assert case.stored() == []
    assert case.shown == []


async def test_what_takes_no_answer_any_more_denies(case: Case) -> None:
    await _ask(case.approvals(), _request())
    void_questions(case.folder, "t1")

    with pytest.raises(ApprovalTimeoutError):
        await case.approvals().request_approval(_request())


async def test_five_minutes_are_no_time_that_a_handler_named(case: Case) -> None:
    """They are the default, for a person at a screen."""
    usual = HookResult.ask("Shall it?").approval_timeout
    await _ask(case.approvals(), attrs.evolve(_request(), timeout=usual))
    (question,) = case.stored()

    assert question.expires is None


async def test_a_patient_turn_waits_longer_than_its_handler(case: Case) -> None:
    await _ask(case.approvals(), _request())
    await _ask(case.approvals("t2", is_patient=True), _request())
    limits = {str(each.details["turn_id"]): each.expires for each in case.stored()}

    assert limits["t1"] is not None
    assert limits["t2"] is None


async def test_what_a_tool_asks_is_another_question_than_an_approval(
    case: Case,
) -> None:
    """A tool cannot word what it asks so that the answer allows its call."""
    await _ask(case.approvals(), _request())
    same = _wanted("send: Shall it?", prompt="send: Shall it?", hook="rules")
    await _ask(case.approvals(), same)
    ids = {each.question_id for each in case.stored()}
    kinds = [(bool(each.options), each.schema is not None) for each in case.stored()]

    assert len(ids) == 2
    assert sorted(kinds) == [(False, True), (True, False)]


@pytest.mark.parametrize(
    "changed",
    [
        _wanted("Who?"),
        _wanted(number=1),
        _wanted(tool_input={"text": "bye"}),
        _wanted(agents=["helper"]),
        attrs.evolve(_wanted(), schema={"type": "string"}),
    ],
)
async def test_a_tools_answer_covers_no_other_question(
    case: Case, changed: PersonQuestion
) -> None:
    await _ask(case.approvals(), _wanted())
    case.answer('"bob"')

    assert await case.approvals().ask_person(_wanted()) == "bob"
    await _ask(case.approvals(), changed)


@pytest.mark.parametrize(
    "answer", ["ann", '"eve"', "7", "Allow once", "{", "[" * 9999, "NaN"]
)
async def test_a_store_takes_no_answer_that_does_not_fit(
    case: Case, answer: str
) -> None:
    await _ask(case.approvals(), _wanted())

    with pytest.raises(QuestionClosedError):
        case.answer(answer)


async def test_held_question_waits_until_it_is_answered(case: Case) -> None:
    held = attrs.evolve(_wanted(), is_repeatable=False)
    heard: list[JSONValue] = []

    async def wait() -> None:
        heard.append(await case.approvals().wait_for_person(held))

    await _ask(case.approvals(), held)
    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        case.answer('"ann"')
    (question,) = case.stored()

    assert heard == ["ann"]
    assert question.details[HELD] is True
    assert not is_waited_for(question, "t1")


async def test_held_question_of_a_call_that_ends_is_withdrawn(case: Case) -> None:
    held = attrs.evolve(_wanted(), is_repeatable=False)
    await _ask(case.approvals(), held)
    with anyio.move_on_after(0) as scope:
        await case.approvals().wait_for_person(held)
    await case.approvals().withdraw_left()
    (question,) = case.stored()

    assert scope.cancelled_caught
    assert not is_open(question)
    assert case.shown[-1]["type"] == "approval_withdrawn"


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (_request(tool="unknown"), "no tool 'unknown'"),
        (_request(object()), "no JSON form"),
    ],
)
async def test_what_cannot_be_compared_is_not_stored(
    case: Case, request_: ApprovalRequest, problem: str
) -> None:
    with pytest.raises(ApprovalUnavailableError, match=problem):
        await case.approvals().request_approval(request_)

    assert case.stored() == []


async def test_what_is_stored_holds_no_secret(case: Case) -> None:
    key = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    await _ask(case.approvals(), _request(prompt=f"send: {key}"))
    await _ask(case.approvals(), _wanted(f"{key}?", tool_input={"text": key}))
    (file,) = case.folder.glob("questions.json")

    assert key not in file.read_text()
    assert key not in str(case.shown)
