"""A vendor whose API is as small as can be: it says words, then that it is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import attrs

from amplifier.testing import TestCoordinator
from amplifier.testing.transport import (
    HttpAnswer,
    HttpPart,
    HttpStep,
    ScriptedTransport,
    sse,
)
from amplifier_kit.http.sse import ServerEvent
from amplifier_kit.media.support import IMAGES, TEXT
from amplifier_kit.vendors import (
    Outgoing,
    VendorConfig,
    VendorProvider,
    read_object,
    read_tokens,
)
from amplifier_sdk.chat import ChatRequest, ChatResponse, Degradation, Usage
from amplifier_sdk.configuration import read_config
from amplifier_sdk.content import TextBlock
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import StreamError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message
from amplifier_sdk.streaming import TextDelta

KEY = "sk-parrot-0123456789"
WORDS = "polly wants "
DONE: JSONObject = {"done": {"in": 7, "out": 3}}


@attrs.define(eq=False)
class ParrotReader:
    """Reads `{"say": TEXT}`, and `{"done": COUNTS}` as the end."""

    said: list[str] = attrs.field(factory=list)
    counts: JSONValue = None

    @property
    def is_ended(self) -> bool:
        return self.counts is not None

    def feed(self, event: ServerEvent) -> Iterator[TextDelta]:
        data = read_object(event.data)
        self.counts = data.get("done")
        if isinstance(word := data.get("say"), str):
            self.said.append(word)
            yield TextDelta(text=word)

    def finish(self) -> ChatResponse:
        if not self.is_ended:
            raise StreamError("The parrot left in the middle of a word")
        read, written = (
            read_tokens(self.counts, "in"),
            read_tokens(self.counts, "out") or 0,
        )
        usage = (
            None
            if read is None
            else Usage(
                input_tokens=read, output_tokens=written, total_tokens=read + written
            )
        )
        return ChatResponse(
            content=[TextBlock(text="".join(self.said))],
            usage=usage,
            finish_reason="stop",
        )


class ParrotProvider(VendorProvider):
    """Speaks with the parrot."""

    name = "parrot"
    key_variable: ClassVar[str | None] = "PARROT_KEY"
    url_variable: ClassVar[str | None] = "PARROT_URL"
    public_url: ClassVar[str | None] = "https://parrot.example/v1"
    standard_model: ClassVar[str | None] = "grey"
    protocol_media: ClassVar[tuple[str, ...]] = (*IMAGES, TEXT)

    def __init__(self, config: VendorConfig, coordinator: Coordinator) -> None:
        super().__init__(config, coordinator)

    def write(self, request: ChatRequest, model: str) -> Outgoing:
        body: JSONObject = {
            "model": model,
            "words": [message.text for message in request.messages],
        }
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.max_output_tokens is not None:
            body["most"] = request.max_output_tokens
        lost = Degradation(
            requested="stop", actual="none", reason="it stops when it wants"
        )
        return Outgoing(
            path="speak?loud=1",
            body=body,
            headers={"X-Feather": "red"},
            degradation=lost if request.stop else None,
        )

    def reader(self, request: ChatRequest, model: str) -> ParrotReader:
        return ParrotReader()


def speaking(*parts: HttpPart, headers: Mapping[str, str] | None = None) -> HttpAnswer:
    """Make an answer of two words, with other parts before the end."""
    return HttpAnswer(
        parts=(sse({"say": "polly "}, {"say": "wants "}), *parts, sse(DONE)),
        headers=headers or {},
    )


def ask(*words: str) -> ChatRequest:
    """Make a request."""
    return ChatRequest(
        messages=[Message(role="user", content=word) for word in words or ("hello",)]
    )


def parrot(
    *steps: HttpStep,
    coordinator: Coordinator | None = None,
    kind: type[ParrotProvider] = ParrotProvider,
    **options: JSONValue,
) -> tuple[ParrotProvider, ScriptedTransport]:
    """Make a provider with a script, and the script; it waits a second, then two, and so on, without a spread."""
    values: JSONObject = {"api_key": KEY, "retry_jitter": False, **options}
    config = read_config(VendorConfig, values, subject="configuration")
    provider = kind(config, coordinator or TestCoordinator())
    provider.transport = script = ScriptedTransport(*steps)
    return provider, script
