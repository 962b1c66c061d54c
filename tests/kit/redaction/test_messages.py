"""Messages as they are written where a module redacts."""

from __future__ import annotations

from typing import Final

import pytest

from amplifier.testing import TestCoordinator
from amplifier_kit.redaction import (
    REDACTION_FAILED,
    KnownSecrets,
    SinkRedactor,
    StrictRedactor,
    clean_message,
    clean_messages,
)
from amplifier_sdk import JSONValue, MessageDict
from amplifier_sdk.redaction import REDACTOR

TOKEN: Final = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
GONE: Final = "[REDACTED:github-token]"


def strict() -> SinkRedactor:
    return SinkRedactor(StrictRedactor(known=KnownSecrets()))


def test_a_message_keeps_all_but_its_secrets() -> None:
    message: MessageDict = {
        "role": "tool",
        "tool_call_id": "c1",
        "content": f"key: {TOKEN}",
        "extra": [1.5, None],
    }

    assert clean_message(message, strict()) == {**message, "content": f"key: {GONE}"}


def test_a_signed_thought_that_held_a_secret_is_left_out() -> None:
    good: JSONValue = {
        "type": "thinking",
        "thinking": "Look first.",
        "signature": "ErUB4f9Kx2LmQ8rT7vB1",
    }
    bad: JSONValue = {
        "type": "thinking",
        "thinking": f"It is {TOKEN}.",
        "signature": "ErUB4f9Kx2LmQ8rT7vB2",
    }
    message: MessageDict = {
        "role": "assistant",
        "content": [good, bad, {"type": "text", "text": TOKEN}, TOKEN],
    }

    assert clean_message(message, strict())["content"] == [
        good,
        {"type": "text", "text": GONE},
        GONE,
    ]


def test_what_cannot_be_redacted_is_withheld_and_keeps_place() -> None:
    message: MessageDict = {
        "role": "tool",
        "tool_call_id": "c1",
        "name": "bash",
        "content": "private",
    }
    broken = SinkRedactor(object())  # type: ignore[arg-type]  # no redactor at all

    assert clean_message(message, broken) == {**message, "content": REDACTION_FAILED}
    assert broken.redact_text("private") == REDACTION_FAILED
    assert strict().redact_text("private") == "private"


@pytest.mark.parametrize("is_offered", [True, False])
async def test_messages_change_only_where_a_module_redacts(is_offered: bool) -> None:
    coordinator = TestCoordinator()
    if is_offered:
        coordinator.register_capability(REDACTOR, strict())
    plain: list[MessageDict] = [{"role": "user", "content": "hello"}]

    assert await clean_messages(plain, coordinator) is None
    clean = await clean_messages(
        [*plain, {"role": "user", "content": TOKEN}], coordinator
    )
    assert clean == (
        [*plain, {"role": "user", "content": GONE}] if is_offered else None
    )
