"""A model that the server fetches: the lines of `/api/pull` until the one that says `success`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from typing import Final

import anyio

from amplifier_kit.http.sse import Comment, ServerEvent
from amplifier_kit.vendors import read_object
from amplifier_module_provider_ollama.faults import unpulled
from amplifier_sdk.errors import StreamError
from amplifier_sdk.streaming import TextDelta

__all__ = ["pull"]

# seconds between two signs of life; the server reports many times a second
_BEAT: Final = 5.0


async def pull(
    events: AsyncIterable[ServerEvent | Comment], model: str
) -> AsyncGenerator[TextDelta, None]:
    """Read a fetch to its end; empty deltas are signs of life.

    Args:
        events: the lines; whoever gives them closes them.
        model: what is fetched, for messages.

    Raises:
        LLMError: the model cannot be fetched, or the report broke off.
    """
    shown = -_BEAT
    async for event in events:
        if isinstance(event, Comment):
            continue
        line = read_object(event.data)
        if (problem := line.get("error")) is not None:
            raise unpulled(problem, model)
        if line.get("status") == "success":
            return
        if anyio.current_time() - shown >= _BEAT:
            shown = anyio.current_time()
            yield TextDelta(text="")
    raise StreamError(
        f"Ollama stopped to fetch the model {model!r} before it was there; ask again to go on"
    )
