"""A vendor that speaks the Responses API and has nothing of its own, and the streams it answers with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final, TypedDict, Unpack

from amplifier.testing import TestCoordinator
from amplifier.testing.transport import HttpAnswer, HttpStep, ScriptedTransport, sse
from amplifier_kit.http.sse import EventDecoder, ServerEvent
from amplifier_kit.vendors.responses import (
    ResponsesConfig,
    ResponsesProvider,
    ResponsesReader,
)
from amplifier_sdk.chat import (
    ChatRequest,
    ChatResponse,
    ResponseFormat,
    ToolChoice,
    ToolSpec,
)
from amplifier_sdk.configuration import read_config
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message
from amplifier_sdk.streaming import Delta

STREAMS: Final = Path(__file__).parent / "streams"
GOOD: Final = {
    file.stem: file.read_bytes() for file in sorted((STREAMS / "good").iterdir())
}
BAD: Final = {
    file.stem: file.read_bytes() for file in sorted((STREAMS / "bad").iterdir())
}
BECOMES: Final[Mapping[str, str]] = json.loads((STREAMS / "becomes.json").read_text())
WORK: Final = ToolSpec(name="work", description="Do it.", parameters={"type": "object"})


class AcmeProvider(ResponsesProvider):
    """Speaks the API."""

    name = "acme"
    title = "Acme"
    key_variable: ClassVar[str | None] = "ACME_KEY"
    public_url: ClassVar[str | None] = "https://acme.example/v1"
    standard_model: ClassVar[str | None] = "gpt-5"


def acme(
    *steps: HttpStep, coordinator: Coordinator | None = None, **options: JSONValue
) -> tuple[AcmeProvider, ScriptedTransport]:
    """Make a provider with a script, and the script; nothing is tried again."""
    values: JSONObject = {"api_key": "acme-0123456789", "max_retries": 0, **options}
    config = read_config(ResponsesConfig, values, subject="configuration")
    provider = AcmeProvider(config, coordinator or TestCoordinator())
    provider.transport = script = ScriptedTransport(*steps)
    return provider, script


def streaming(name: str) -> HttpAnswer:
    """Make an answer of a good stream."""
    return HttpAnswer(parts=(GOOD[name],))


def refusing(status: int, **error: JSONValue) -> HttpAnswer:
    """Make an answer that is a refusal."""
    return HttpAnswer(
        status=status,
        parts=(json.dumps({"error": {"message": "No.", **error}}).encode(),),
    )


def ending(
    kind: str = "completed", *output: JSONObject, **more: JSONValue
) -> HttpAnswer:
    """Make an answer of one event: the end of a response, with its items."""
    response: JSONObject = {
        "id": "resp_1",
        "status": kind,
        "output": list(output),
        **more,
    }
    return HttpAnswer(parts=(sse({"type": f"response.{kind}", "response": response}),))


def said(text: str) -> JSONObject:
    """Make an item that says something."""
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }


class Fields(TypedDict, total=False):
    """What a request may have beside its messages."""

    tools: Sequence[ToolSpec]
    tool_choice: ToolChoice | None
    response_format: ResponseFormat
    temperature: float
    top_p: float
    max_output_tokens: int
    conversation_id: str
    model: str
    stop: Sequence[str]
    reasoning_effort: str
    extras: Mapping[str, JSONValue]


def ask(*messages: Message, **fields: Unpack[Fields]) -> ChatRequest:
    """Make a request."""
    return ChatRequest(
        messages=messages or (Message(role="user", content="Hello."),), **fields
    )


def events(data: bytes) -> Iterator[ServerEvent]:
    """Yield the events of a stream."""
    return (item for item in EventDecoder().feed(data) if isinstance(item, ServerEvent))


def read(data: bytes | Sequence[ServerEvent]) -> tuple[list[Delta], ChatResponse]:
    """Read a stream as a provider does; return its deltas and the answer."""
    reader = ResponsesReader()
    deltas: list[Delta] = []
    for event in events(data) if isinstance(data, bytes) else data:
        deltas += reader.feed(event)
        if reader.is_ended:
            break
    return deltas, reader.finish()
