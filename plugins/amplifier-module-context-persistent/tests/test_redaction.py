"""What the file holds where a module redacts: messages without secrets, which the model goes on with as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from amplifier import ModuleCoordinator
from amplifier_kit.redaction import REDACTION_FAILED, KnownSecrets, StrictRedactor
from amplifier_module_context_persistent import PersistentContext, mount
from amplifier_sdk import JSONValue, MessageDict
from amplifier_sdk.redaction import REDACTOR

pytestmark = pytest.mark.anyio

TOKEN: Final = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
GONE: Final = "[REDACTED:github-token]"


async def opened(folder: Path, redactor: object = None) -> PersistentContext:
    coordinator = ModuleCoordinator(session_id="one")
    coordinator.register_capability("session.dir", str(folder))
    context = await mount(coordinator, {})
    if redactor is not None:
        coordinator.register_capability(REDACTOR, redactor)
    return context


async def stored(folder: Path, message: MessageDict, redactor: object) -> MessageDict:
    """Store a message, which the memory keeps, and return what the next session finds."""
    context = await opened(folder, redactor)
    await context.add_message(message)
    assert list(await context.get_messages()) == [message]
    await context.aclose()

    again = await opened(folder)
    (found,) = await again.get_messages()
    await again.aclose()
    return dict(found)


def strict() -> StrictRedactor:
    return StrictRedactor(known=KnownSecrets())


async def test_a_secret_is_not_in_the_file(tmp_path: Path) -> None:
    message: MessageDict = {
        "role": "tool",
        "tool_call_id": "c1",
        "content": f"key: {TOKEN}",
    }

    assert await stored(tmp_path, message, strict()) == {
        **message,
        "content": f"key: {GONE}",
    }
    assert TOKEN not in next(tmp_path.rglob("context-messages.jsonl")).read_text()


async def test_message_without_secrets_or_redactor_is_unchanged(
    tmp_path: Path,
) -> None:
    plain: MessageDict = {"role": "user", "content": "hello", "extra": [1.5, None]}
    secret: MessageDict = {"role": "user", "content": TOKEN}

    assert await stored(tmp_path / "a", plain, strict()) == plain
    assert await stored(tmp_path / "b", secret, None) == secret


async def test_a_signed_thought_that_held_a_secret_is_left_out(tmp_path: Path) -> None:
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

    assert (await stored(tmp_path, message, strict()))["content"] == [
        good,
        {"type": "text", "text": GONE},
        GONE,
    ]


async def test_unredactable_text_is_withheld_and_history_valid(
    tmp_path: Path,
) -> None:
    message: MessageDict = {
        "role": "tool",
        "tool_call_id": "c1",
        "name": "bash",
        "content": "private",
    }

    expected = {
        "role": "tool",
        "tool_call_id": "c1",
        "name": "bash",
        "content": REDACTION_FAILED,
    }
    assert await stored(tmp_path, message, object()) == expected


async def test_a_new_history_is_written_without_its_secrets(tmp_path: Path) -> None:
    context = await opened(tmp_path, strict())
    await context.set_messages([{"role": "user", "content": TOKEN}])
    await context.aclose()

    *_, last = next(tmp_path.rglob("context-messages.jsonl")).read_text().splitlines()
    assert GONE in json.dumps(json.loads(last))
    assert TOKEN not in last
