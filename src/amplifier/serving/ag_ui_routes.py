"""The address for front ends of the Agent User Interaction Protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs
from starlette.requests import Request
from starlette.responses import Response

from amplifier.serving.ag_ui import AgUiEncoder
from amplifier.serving.bodies import read_body
from amplifier.serving.errors import RequestError
from amplifier.serving.event_stream import EventStreamResponse, require_room
from amplifier.serving.operations import Operation
from amplifier.serving.prompts import media_of_url
from amplifier.serving.sessions import SessionTable
from amplifier.serving.single_turns import Conversation, begin_single_turn
from amplifier.serving.tokens import Client
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import MediaBlock, Prompt
from amplifier_sdk.output_schema import OutputSchema
from amplifier_sdk.values import NO_EXTRAS

__all__ = ["AgUiMessage", "AgUiRoutes", "ContextEntry", "RunInput"]

_MAX_ID: Final = 256
_OBJECT: Final[JSONObject] = {"type": "object"}
_SPOKEN: Final = ("user", "assistant", "system", "developer")


@attrs.frozen(kw_only=True)
class AgUiMessage:
    """A message; those of tools, thinking and activities are what the front end shows, and no part of what is asked."""

    role: str
    content: JSONValue = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS

    def said(self) -> Prompt:
        """Return what was said.

        Raises:
            RequestError: a part of it is neither a text nor media with their data.
        """
        if isinstance(self.content, str):
            return self.content
        parts = self.content if isinstance(self.content, list) else []
        read = [_part(part) for part in parts]
        texts = [part for part in read if isinstance(part, str)]
        # the parts of a text are one text
        if len(texts) == len(read):
            return "".join(texts)
        return read


@attrs.frozen(kw_only=True)
class ContextEntry:
    """What the front end knows that may matter."""

    description: str
    value: str
    extras: Mapping[str, JSONValue] = NO_EXTRAS


@attrs.frozen(kw_only=True)
class RunInput:
    """The protocol's `RunAgentInput`, under its own names; other keys have no effect."""

    threadId: str  # noqa: N815  # the protocol's name
    runId: str  # noqa: N815  # likewise
    messages: list[AgUiMessage]
    tools: list[JSONValue] | None = None
    context: list[ContextEntry] | None = None
    resume: list[JSONValue] | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS

    def __attrs_post_init__(self) -> None:
        for key, given in (("threadId", self.threadId), ("runId", self.runId)):
            # they stand in every event
            if len(given) > _MAX_ID:
                raise ValueError(f"{key}: expected at most {_MAX_ID} characters")

    def conversation(self) -> Conversation:
        """Return the messages.

        Raises:
            RequestError: it wants what an agent cannot do.
        """
        for key, given in (("tools", self.tools), ("resume", self.resume)):
            if given:
                raise RequestError(
                    422, "invalid_request", f"{key}: an agent takes none from a caller"
                )
        spoken = [
            (message.role, message.said())
            for message in self.messages
            if message.role in _SPOKEN
        ]
        entries = [f"{one.description}: {one.value}" for one in self.context or ()]
        known = [("user", "\n".join(entries))] if entries else []
        # one that only called tools said nothing
        return Conversation.of(
            [*known, *((role, text) for role, text in spoken if text)]
        )


@attrs.frozen(eq=False)
class AgUiRoutes:
    """The endpoint of the protocol.

    Args:
        sessions: those of the server.
    """

    sessions: SessionTable

    def operations(self) -> Iterator[Operation]:
        """Describe it."""
        yield Operation(
            "POST",
            "/ag-ui",
            self.run_agent,
            {},
            body=OutputSchema.of(RunInput).schema,
            streamed=_OBJECT,
            errors=(409, 503),
        )

    async def run_agent(self, request: Request, client: Client) -> Response:
        """Run the agent for a front end of the Agent User Interaction Protocol."""
        body = await read_body(request, RunInput, self.sessions.limits)
        conversation = body.conversation()
        require_room(self.sessions, client)
        encode = AgUiEncoder(body.threadId, body.runId)
        turn = await begin_single_turn(self.sessions, client, conversation, encode)
        return EventStreamResponse(self.sessions, client, turn)


def _part(part: JSONValue) -> str | MediaBlock:
    match part:
        case {"text": str(text)}:
            return text
        case {
            "type": "image" | "audio" | "document" | "video" as kind,
            "source": {"type": "data", "value": str(data)},
        }:
            return media_of_url(kind, f"data:;base64,{data}")
        case _:
            problem = "content: only texts and media with their data are read"
            raise RequestError(422, "invalid_request", problem)
