"""What tools of a served session ask the person at the client, as forms: the only kind that a client takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from mcp_types import ElicitResult

from amplifier.mcp_server.approval import (
    ClientApproval,
    ClientRequest,
    current_request,
)
from amplifier_sdk.errors import ApprovalUnavailableError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.person_questions import PersonQuestion

FORM: JSONObject = {"type": "object", "properties": {"size": {"type": "integer"}}}


async def asked(schema: JSONObject, result: ElicitResult) -> tuple[object, JSONValue]:
    """Return the form that a client is sent, and what is made of its answer."""
    sent: list[object] = []

    async def elicit_form(_: str, form: object, __: object) -> ElicitResult:
        sent.append(form)
        return result

    session = SimpleNamespace(
        client_capabilities=SimpleNamespace(elicitation=object()),
        can_send_request=True,
        elicit_form=elicit_form,
    )
    request = cast("ClientRequest", SimpleNamespace(session=session, request_id=1))
    token = current_request.set(request)
    try:
        question = PersonQuestion(tool_name="t", prompt="Which?", schema=schema)
        answer = await ClientApproval().ask_person(question)
    finally:
        current_request.reset(token)
    return sent[0], answer


async def test_form_is_sent_as_it_is_and_a_text_as_a_form_of_one() -> None:
    whole = ElicitResult(action="accept", content={"size": 7})
    one = ElicitResult(action="accept", content={"answer": "red"})
    form, answer = await asked(FORM, whole)
    text, word = await asked({"type": "string"}, one)

    assert form == FORM
    assert answer == {"size": 7}
    assert isinstance(text, dict)
    assert text["properties"] == {"answer": {"type": "string"}}
    assert word == "red"


async def test_person_who_declines_answers_nothing() -> None:
    assert (await asked(FORM, ElicitResult(action="decline")))[1] is None


async def test_client_that_cannot_ask_is_an_error() -> None:
    with pytest.raises(ApprovalUnavailableError, match="cannot ask"):
        await ClientApproval().ask_person(
            PersonQuestion(tool_name="t", prompt="Which?")
        )
