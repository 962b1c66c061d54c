"""Streams of events from a server: the messages in them, and where one goes on that broke off."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

import anyio
import attrs
import httpx2
from mcp_types import JSONRPCMessage

from amplifier_kit.http.answers import ending
from amplifier_kit.http.sse import EventDecoder, EventTooLongError, ServerEvent
from amplifier_kit.vendors.headers import is_header_value
from amplifier_module_tool_mcp.wire import MessageTooLargeError, read_message

__all__ = ["EventStream"]

_USUAL_WAIT: Final = 1.0
_SHORTEST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 60.0
_MOMENT: Final = 5.0


@attrs.define(eq=False)
class EventStream:
    """One stream, over as many connections as it takes.

    Args:
        max_bytes: the longest message.
        last_id: the last event that came, after which a new connection goes on; `None` where none had an id.
        wait: seconds to wait before that, as the server wants it, but no more than a minute.
        was_of_use: whether the last connection brought something, or held for more than a moment.
    """

    max_bytes: int
    last_id: str | None = None
    wait: float = _USUAL_WAIT
    was_of_use: bool = False

    async def messages(
        self, response: httpx2.Response
    ) -> AsyncGenerator[JSONRPCMessage, None]:
        """Yield the messages of one connection until it ends or breaks off; what is none is passed over.

        Raises:
            TooLargeError: one is larger than is taken.
        """
        events = EventDecoder(max_bytes=self.max_bytes)
        began, before = anyio.current_time(), self.last_id
        self.was_of_use = False
        try:
            async with ending(response.aiter_raw()) as pieces:
                async for piece in pieces:
                    for event in events.feed(piece):
                        if (
                            isinstance(event, ServerEvent)
                            and (found := _message(event)) is not None
                        ):
                            self.was_of_use = True
                            yield found
                    # After the messages: an id is valid only once what it stands for
                    # was passed on.
                    self._note(events)
        except EventTooLongError as error:
            raise MessageTooLargeError(
                f"the {self.max_bytes} bytes of max_message_bytes"
            ) from error
        except httpx2.TransportError:  # it broke off: what is missing can be asked for
            pass
        if self.last_id != before or anyio.current_time() - began >= _MOMENT:
            self.was_of_use = True

    def _note(self, events: EventDecoder) -> None:
        if events.last_id and is_header_value(events.last_id):  # it becomes a header
            self.last_id = events.last_id
        if events.retry is not None:
            # A server may ask for any wait, also for none at all.
            self.wait = min(max(events.retry / 1000, _SHORTEST_WAIT), _LONGEST_WAIT)


def _message(event: ServerEvent) -> JSONRPCMessage | None:
    if event.event != "message":
        return None
    try:
        return read_message(event.data)
    except ValueError:
        return None
