"""Approval by request and response."""

from __future__ import annotations

from math import nan

import pytest

from amplifier_sdk import (
    ApprovalProvider,
    ApprovalRequest,
    ApprovalResponse,
    HookResult,
)


class Desk:
    async def request_approval(self, request: ApprovalRequest, /) -> ApprovalResponse:
        return ApprovalResponse(approved=False)


def test_whoever_has_the_method_is_a_provider() -> None:
    assert isinstance(Desk(), ApprovalProvider)
    assert not isinstance(object(), ApprovalProvider)


def test_a_request_has_no_details_and_no_deadline_of_its_own() -> None:
    request = ApprovalRequest(tool_name="work", action="sure?", risk_level="low")

    assert (request.details, request.timeout) == ({}, None)


@pytest.mark.parametrize("timeout", [0, -1.0, nan])
def test_a_deadline_that_is_none_is_refused(timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout is a number of seconds above 0; got"):
        ApprovalRequest(
            tool_name="work", action="sure?", risk_level="low", timeout=timeout
        )


def test_a_response_holds_once_unless_it_says_otherwise() -> None:
    assert ApprovalResponse(approved=True) == ApprovalResponse(
        approved=True, reason=None, remember=False
    )


def test_a_question_keeps_its_options_as_they_were() -> None:
    options, allowing = ["Ship it", "Wait"], ["Ship it"]

    question = HookResult.ask(
        "Ship?", options=options, allowing=allowing, scope="all ships", default="allow"
    )
    options.clear()
    allowing.clear()

    assert (question.approval_options, question.approval_allowing) == (
        ("Ship it", "Wait"),
        ("Ship it",),
    )
    assert (question.approval_scope, question.approval_default) == (
        "all ships",
        "allow",
    )
