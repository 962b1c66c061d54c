from __future__ import annotations

from amplifier_kit.vendors.redaction import Withholder
from amplifier_sdk.jsontypes import JSONObject


def withholder(*texts: str) -> Withholder:
    made = Withholder()
    made.learn(*texts)
    return made


def test_a_token_is_withheld_with_and_without_its_scheme() -> None:
    redactor = withholder("Bearer tok-1234567")

    assert redactor.text("Bearer tok-1234567!") == "(withheld)!"
    assert redactor.text("it was tok-1234567") == "it was (withheld)"


def test_short_texts_are_words_and_not_secrets() -> None:
    assert withholder("true").text("it is true") == "it is true"


def test_old_token_stays_withheld_and_oldest_are_forgotten() -> None:
    redactor = withholder("tok-1234567")
    redactor.learn("tok-7654321")

    assert redactor.text("tok-1234567 tok-7654321") == "(withheld) (withheld)"

    for number in range(100):
        redactor.learn("tok-7654321", f"tok-number-{number}")

    assert (
        redactor.text("tok-1234567 tok-7654321 tok-number-99")
        == "tok-1234567 (withheld) (withheld)"
    )


def test_payloads_lose_secrets_by_value_and_by_name() -> None:
    payload: JSONObject = {
        "text": ["say tok-1234567", 3, None],
        "api_key": "other",
        "access-key": "other",
        "authorization": "other",
        "x-auth-token": "other",
        "secret_id": "other",
        "max_tokens": 7,
        "prompt_cache_key": "session-1",
        "properties": {"api_key": {"type": "string"}},
    }

    assert withholder("tok-1234567").payload(payload) == {
        "text": ["say (withheld)", 3, None],
        "api_key": "(withheld)",
        "access-key": "(withheld)",
        "authorization": "(withheld)",
        "x-auth-token": "(withheld)",
        "secret_id": "(withheld)",
        "max_tokens": 7,
        "prompt_cache_key": "session-1",
        "properties": {"api_key": {"type": "string"}},
    }
