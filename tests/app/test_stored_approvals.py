"""What an answer covers: one call of one tool, as it was shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from amplifier.app.questions.stored_approvals import StoredApprovals
from amplifier.app.store.stored_questions import changing_questions, read_questions
from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_sdk.approvals import ApprovalRequest
from amplifier_sdk.errors import ApprovalUnavailableError
from amplifier_sdk.events import TOOL_PRE
from amplifier_sdk.results import Decision, Emission, HookResult
from amplifier_sdk.stores import StoredQuestion
from amplifier_sdk.tools import tool


@tool
async def send(text: str) -> str:
    """Send a text."""
    return text


def _request(text: object = "hello", **changes: object) -> ApprovalRequest:
    details: dict[str, object] = {
        "tool_input": {"text": text},
        "prompt": "send: Shall it?",
        "hook": "rules",
        **changes,
    }
    name = str(changes.get("tool", "send"))
    return ApprovalRequest(
        tool_name=name, action="Shall it?", risk_level="high", details=details
    )


@pytest.fixture
async def coordinator() -> ModuleCoordinator:
    made = ModuleCoordinator()
    await made.mount("tools", send, "send")
    return made


@pytest.fixture
def approvals(coordinator: ModuleCoordinator, tmp_path: Path) -> StoredApprovals:
    return StoredApprovals("s1", tmp_path, coordinator)


async def _ask(approvals: StoredApprovals, request: ApprovalRequest) -> None:
    with pytest.raises(ApprovalUnavailableError, match="asked later"):
        await approvals.request_approval(request)


def _answer(folder: Path, answer: str) -> None:
    with changing_questions(folder) as known:
        for key, question in known.items():
            if question.answer is None:
                known[key] = question.with_answer(answer, by="ann", now=0.0)


def _stored(folder: Path) -> list[StoredQuestion]:
    return [*read_questions(folder).values()]


@pytest.mark.parametrize(("answer", "approved"), [("allow", True), ("deny", False)])
async def test_an_answer_counts_once(
    approvals: StoredApprovals, tmp_path: Path, answer: str, approved: bool
) -> None:
    await _ask(approvals, _request())
    await _ask(approvals, _request())
    _answer(tmp_path, answer)
    response = await approvals.request_approval(_request())
    await _ask(approvals, _request())

    assert (response.approved, response.reason) == (
        approved,
        f"answered {answer!r} by ann",
    )
    assert [each.details.get("is_used") for each in _stored(tmp_path)] == [True, None]


@pytest.mark.parametrize(
    "changed",
    [
        _request("hello "),
        _request(["hello"]),
        _request(prompt="The agent 'x' asks:\nsend: Shall it?"),
        _request(hook="other"),
        _request(agents=["helper"]),
    ],
)
async def test_an_answer_covers_no_other_call(
    approvals: StoredApprovals, tmp_path: Path, changed: ApprovalRequest
) -> None:
    await _ask(approvals, _request())
    _answer(tmp_path, "allow")

    await _ask(approvals, changed)


async def test_an_answer_does_not_cover_a_tool_that_says_something_else_now(
    approvals: StoredApprovals, coordinator: ModuleCoordinator, tmp_path: Path
) -> None:
    await _ask(approvals, _request())
    _answer(tmp_path, "allow")
    changed = attrs.evolve(send, description="Send a text to everybody.")
    coordinator.tools["send"] = changed

    await _ask(approvals, _request())


async def test_a_voided_answer_covers_nothing(
    approvals: StoredApprovals, tmp_path: Path
) -> None:
    await _ask(approvals, _request())
    _answer(tmp_path, "allow")
    with changing_questions(tmp_path) as known:
        for key, question in known.items():
            known[key] = attrs.evolve(question, is_void=True)

    await _ask(approvals, _request())


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (_request(tool="unknown"), "no tool 'unknown'"),
        (_request(object()), "no JSON form"),
    ],
)
async def test_what_cannot_be_compared_is_not_stored(
    approvals: StoredApprovals,
    tmp_path: Path,
    request_: ApprovalRequest,
    problem: str,
) -> None:
    with pytest.raises(ApprovalUnavailableError, match=problem):
        await approvals.request_approval(request_)

    assert _stored(tmp_path) == []


async def test_what_is_stored_holds_no_secret(
    approvals: StoredApprovals, tmp_path: Path
) -> None:
    key = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    await _ask(approvals, _request(key, prompt=f"send {key}: Shall it?"))
    (question,) = _stored(tmp_path)
    arguments = question.details["arguments"]

    assert isinstance(arguments, Mapping)
    assert key not in repr(question.details)
    assert key not in question.prompt


async def test_a_childs_question_is_the_roots_at_any_depth(
    approvals: StoredApprovals, coordinator: ModuleCoordinator, tmp_path: Path
) -> None:
    coordinator.decisions.provider = approvals
    child, grandchild = ModuleCoordinator(), ModuleCoordinator()
    child.decisions.asker, grandchild.decisions.asker = "planner", "sender"
    child.decisions.ask_with(coordinator.decisions)
    grandchild.decisions.ask_with(child.decisions)
    data = {"tool_name": "send", "tool_input": {"text": "hello"}}
    asking = Decision("rules", HookResult.ask("Shall it?"))

    refused = await grandchild.decisions.process(
        Emission(dict(data), (asking,)), TOOL_PRE
    )
    _answer(tmp_path, "allow")
    allowed = await grandchild.decisions.process(
        Emission(dict(data), (asking,)), TOOL_PRE
    )

    assert refused.denied
    assert not allowed.denied
    (question,) = _stored(tmp_path)
    assert question.session_id == "s1"
    assert question.details["agents"] == ["planner", "sender"]


async def test_an_answer_covers_no_other_path_to_the_same_agent(
    approvals: StoredApprovals, tmp_path: Path
) -> None:
    await _ask(approvals, _request(agents=["planner", "sender"]))
    _answer(tmp_path, "allow")

    await _ask(approvals, _request(agents=["writer", "sender"]))
