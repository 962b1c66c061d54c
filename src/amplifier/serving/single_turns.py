"""One turn in a session of its own, for protocols whose callers send the whole conversation each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
from starlette.requests import ClientDisconnect, Request

from amplifier.kernel.groups import open_group
from amplifier.serving.errors import RequestError
from amplifier.serving.event_log import Encode
from amplifier.serving.event_stream import until_disconnected
from amplifier.serving.sessions import SessionTable
from amplifier.serving.tokens import Client
from amplifier.serving.turns import RequestedTurn
from amplifier_sdk.content import block_to_dict
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import Prompt
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.streaming import TurnFinished

__all__ = ["Conversation", "begin_single_turn", "finished_turn"]

_STATUSES: Final = {"budget_exceeded": 429, "provider_failed": 502}


@attrs.frozen
class Conversation:
    """What a caller sends: the messages so far, and the last one, which is the prompt."""

    history: tuple[MessageDict, ...]
    prompt: Prompt

    @classmethod
    def of(cls, messages: Sequence[tuple[str, Prompt]]) -> Conversation:
        """Take the roles and contents of a conversation.

        A caller has no word above the person's: what it calls a system message is one of the person's.

        Raises:
            RequestError: the last message is none of the person's.
        """
        if not messages or messages[-1][0] == "assistant":
            raise RequestError(
                422, "invalid_request", "The last message has to be the user's"
            )
        history: list[MessageDict] = [
            {
                "role": "assistant" if role == "assistant" else "user",
                "content": _stored(said),
            }
            for role, said in messages[:-1]
        ]
        return cls(tuple(history), messages[-1][1])


async def begin_single_turn(
    sessions: SessionTable,
    client: Client,
    conversation: Conversation,
    encode: Encode | None = None,
) -> RequestedTurn:
    """Begin a turn in a session of its own, which ends with it, or when nobody reads it any more.

    Raises:
        RequestError: the token, or the server, has no room for it.
    """
    session = await sessions.begin(client, conversation.history, is_single=True)
    try:
        return session.add_turn(
            conversation.prompt,
            on_disconnect="cancel",
            may_wait=False,
            encode=encode,
        )
    except RequestError:
        session.close()
        raise


async def finished_turn(request: Request, turn: RequestedTurn) -> TurnFinished:
    """Wait for a turn's end.

    Raises:
        RequestError: it failed or was cancelled.
        ClientDisconnect: the caller has gone, and with it the turn.
    """
    with turn.reader():
        async with open_group() as group:
            group.start_soon(until_disconnected, request.receive, group.cancel_scope)
            await turn.log.wait_for_end()
            group.cancel_scope.cancel()
    if turn.finished is not None and turn.state == "finished":
        return turn.finished
    if not turn.is_ended:
        raise ClientDisconnect
    error = _error(turn)
    code = str(error["code"])
    raise RequestError(_STATUSES.get(code, 500), code, str(error["message"]))


def _error(turn: RequestedTurn) -> JSONObject:
    error = (turn.end_event or {}).get("error")
    if isinstance(error, dict):
        return error
    return {"code": "cancelled", "message": "The turn was cancelled"}


def _stored(said: Prompt) -> JSONValue:
    if isinstance(said, str):
        return said
    return [
        {"type": "text", "text": part} if isinstance(part, str) else block_to_dict(part)
        for part in said
    ]
