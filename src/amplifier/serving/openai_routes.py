"""OpenAI's protocols, so that what speaks them can have an agent as its model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from uuid import uuid4

import attrs
from starlette.requests import Request
from starlette.responses import Response

from amplifier.serving.bodies import read_body
from amplifier.serving.chat_completions import ChatEncoder, chat_completion
from amplifier.serving.event_stream import EventStreamResponse, require_room
from amplifier.serving.json_answers import JSONAnswer
from amplifier.serving.openai_requests import ChatRequestBody, ResponseRequestBody
from amplifier.serving.operations import Operation
from amplifier.serving.responses import ResponseEncoder, status_of
from amplifier.serving.sessions import SessionTable
from amplifier.serving.single_turns import begin_single_turn, finished_turn
from amplifier.serving.tokens import Client
from amplifier_kit.event_json import json_or_text
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.output_schema import OutputSchema

__all__ = ["OpenAIRoutes"]

_OBJECT: Final[JSONObject] = {"type": "object"}


@attrs.frozen(eq=False)
class OpenAIRoutes:
    """The endpoints of OpenAI's protocols.

    Args:
        sessions: those of the server.
    """

    sessions: SessionTable

    @property
    def model(self) -> str:
        """What the agent is called there."""
        return self.sessions.agent.name

    def operations(self) -> Iterator[Operation]:
        """Describe them all."""
        yield Operation("GET", "/v1/models", self.list_models, {200: _OBJECT})
        yield Operation(
            "POST",
            "/v1/chat/completions",
            self.complete_chat,
            {200: _OBJECT},
            body=OutputSchema.of(ChatRequestBody).schema,
            streamed=_OBJECT,
            errors=(409, 502, 503),
        )
        yield Operation(
            "POST",
            "/v1/responses",
            self.create_response,
            {200: _OBJECT},
            body=OutputSchema.of(ResponseRequestBody).schema,
            streamed=_OBJECT,
            errors=(409, 502, 503),
        )

    async def list_models(self, _request: Request, _client: Client) -> Response:
        """List the agent as OpenAI lists its models."""
        model = {"id": self.model, "object": "model", "created": 0}
        model["owned_by"] = "amplifier"
        return JSONAnswer({"object": "list", "data": [model]})

    async def complete_chat(self, request: Request, client: Client) -> Response:
        """Answer a chat as OpenAI's chat completions do."""
        body = await read_body(request, ChatRequestBody, self.sessions.limits)
        conversation = body.conversation()
        if not body.stream:
            turn = await begin_single_turn(self.sessions, client, conversation)
            finished = await finished_turn(request, turn)
            return JSONAnswer(chat_completion(self.model, turn.id, finished))
        options = body.stream_options
        has_usage = options is not None and bool(options.include_usage)
        encode = ChatEncoder(self.model, uuid4().hex, has_usage)
        require_room(self.sessions, client)
        turn = await begin_single_turn(self.sessions, client, conversation, encode)
        return EventStreamResponse(self.sessions, client, turn)

    async def create_response(self, request: Request, client: Client) -> Response:
        """Answer as OpenAI's responses do."""
        body = await read_body(request, ResponseRequestBody, self.sessions.limits)
        conversation = body.conversation()
        encode = ResponseEncoder(self.model, uuid4().hex)
        if body.stream:
            require_room(self.sessions, client)
            turn = await begin_single_turn(self.sessions, client, conversation, encode)
            return EventStreamResponse(self.sessions, client, turn)
        turn = await begin_single_turn(self.sessions, client, conversation)
        finished = await finished_turn(request, turn)
        status = status_of(finished.finish_reason)
        usage = None if finished.usage is None else json_or_text(finished.usage)
        return JSONAnswer(encode.response(status, finished.text, usage))
