"""Turns whose answer has to fit a JSON Schema."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

from amplifier.kernel.sessions.answers import AnswerCheck
from amplifier_kit.event_json import with_value
from amplifier_sdk.output_schema import OutputSchema
from amplifier_sdk.streaming import TurnFinished

if TYPE_CHECKING:
    from amplifier.app.sessions.opened import TurnEvents
    from amplifier.kernel.sessions.session import AmplifierSession
    from amplifier_sdk.journal import RecordedTurn
    from amplifier_sdk.jsontypes import JSONValue
    from amplifier_sdk.media import Prompt
    from amplifier_sdk.streaming import StreamEvent

__all__ = ["stream_formed"]


@asynccontextmanager
async def stream_formed(
    session: AmplifierSession,
    prompt: Prompt,
    schema: Mapping[str, JSONValue],
    *,
    metadata: Mapping[str, JSONValue] | None,
    recorded: RecordedTurn | None,
) -> AsyncIterator[TurnEvents]:
    """Run one turn as `AmplifierSession.stream` does; the text of its end is the answer that fits, as JSON.

    Raises:
        OutputError: no answer fits.
        ValueError: the schema is none.
    """
    check = AnswerCheck(OutputSchema.of(schema))
    asked = {**(metadata or {}), **check.metadata}
    with check.registered(session.coordinator):
        async with (
            session.stream(prompt, metadata=asked, recorded=recorded) as events,
            aclosing(_checked(session, check, events)) as checked,
        ):
            yield checked


async def _checked(
    session: AmplifierSession, check: AnswerCheck, events: TurnEvents
) -> AsyncGenerator[StreamEvent]:
    async for event in events:
        if isinstance(event, TurnFinished):
            text, usage = event.text, event.usage
            value = await check.take(session.coordinator, text, usage)
            yield with_value(event, value)
        else:
            yield event
