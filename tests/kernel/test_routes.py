"""Routes: a child's provider and model, where its loop names one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from amplifier.kernel.turn.routes import Route
from amplifier_sdk import ChatRequest
from amplifier_sdk.messages import Message
from tests.doubles import ScriptedProvider


@pytest.mark.parametrize(
    ("named", "asked"), [(None, "small"), ("large", "large")], ids=["open", "named"]
)
def test_model_of_a_route_counts_where_a_request_names_none(
    named: str | None, asked: str
) -> None:
    def request(*, messages: Sequence[Message]) -> ChatRequest:
        return ChatRequest(messages=messages, model=named)

    route = Route("fast", "small", ScriptedProvider())

    model, build = route.of(None, request)

    assert model == "small"
    assert build(messages=[]).model == asked
