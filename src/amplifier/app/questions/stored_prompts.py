"""A prompt as JSON data, for whoever continues its turn."""

from __future__ import annotations

from amplifier_kit.redaction import SinkRedactor, StrictRedactor
from amplifier_sdk.content import block_to_dict
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.media import Prompt
from amplifier_sdk.messages import Message

__all__ = ["prompt_from_json", "prompt_to_json"]


def prompt_to_json(prompt: Prompt) -> JSONValue:
    """Write a prompt without secrets."""
    content: JSONValue = prompt if isinstance(prompt, str) else _blocks(prompt)
    return SinkRedactor(StrictRedactor()).redact(content)


def prompt_from_json(content: JSONValue) -> Prompt:
    """Read a prompt that was written so."""
    message = Message.from_dict({"role": "user", "content": content})
    return message.content  # type: ignore[return-value]  # as it was stored


def _blocks(prompt: Prompt) -> list[JSONValue]:
    return [
        {"type": "text", "text": part}
        if isinstance(part, str)
        else dict(block_to_dict(part))
        for part in prompt
    ]
