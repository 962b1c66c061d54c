"""What a tool may ask a person, and what counts as an answer."""

from __future__ import annotations

import pytest

from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.person_questions import (
    answer_of,
    answer_text,
    misfit_of,
)


def test_a_schema_may_refer_to_its_own_definitions() -> None:
    schema: JSONObject = {
        "$ref": "#/$defs/color",
        "$defs": {"color": {"enum": ["red", "blue"]}},
    }

    assert misfit_of(schema, "red") is None
    assert misfit_of(schema, "green") == (
        'answer: expected "red" or "blue", got a string ("green")'
    )


@pytest.mark.parametrize(
    "answer", [None, "gr\u00fcn", ["\ud800"], {"b": 1, "a": [True]}]
)
def test_an_answer_is_stored_as_utf8_and_comes_back(answer: JSONValue) -> None:
    text = answer_text(answer)

    assert text.encode()
    assert answer_of(text) == answer


def test_an_answer_longer_than_a_persons_is_none() -> None:
    longest = answer_text("a" * 99_998)

    assert answer_of(longest) == "a" * 99_998
    with pytest.raises(ValueError, match="longer than 100000 characters"):
        answer_of(longest + " ")
