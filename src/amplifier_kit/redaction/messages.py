"""Messages as they are written where a module redacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from anyio import to_thread

from amplifier_kit.redaction.sinks import REDACTION_FAILED, SinkRedactor, redactor_of
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.redaction import REDACTOR

__all__ = ["clean_message", "clean_messages"]

_KEPT: Final = ("role", "tool_call_id", "name")


async def clean_messages(
    messages: Sequence[MessageDict], coordinator: Coordinator
) -> list[MessageDict] | None:
    """Return what a file gets in the place of messages that hold secrets; `None` when they are written as they are.

    Without a module that redacts they always are. A thread does the work.
    """
    if coordinator.get_capability(REDACTOR) is None:
        return None
    redactor = redactor_of(coordinator)
    # a long history takes seconds, in which the loop would stand still
    clean = await to_thread.run_sync(
        lambda: [clean_message(message, redactor) for message in messages]
    )
    if clean == list(messages):
        return None
    return clean


def clean_message(message: MessageDict, redactor: SinkRedactor) -> MessageDict:
    """Redact a message; of one that cannot be redacted stays who said it and to which call it belongs.

    A vendor refuses a thought that no longer fits its signature, so one that held a secret is left out.
    """
    redacted = redactor.redact(message)
    if not isinstance(redacted, dict):
        return {
            **{key: message[key] for key in _KEPT if key in message},
            "content": REDACTION_FAILED,
        }
    blocks, clean = message.get("content"), redacted.get("content")
    if isinstance(blocks, list) and isinstance(clean, list):
        return {
            **redacted,
            "content": [
                new
                for old, new in zip(blocks, clean, strict=True)
                if new == old or not isinstance(old, dict) or "signature" not in old
            ],
        }
    return redacted
