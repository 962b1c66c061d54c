"""The loop itself; the duties of a turn, and the streaming, are those of `amplifier_sdk.Loop` and the host."""

from __future__ import annotations

from math import inf

import anyio
import attrs

from amplifier_sdk import Coordinator, Loop, Turn, orchestrator
from amplifier_sdk.loops import LoopConfig
from amplifier_sdk.loops.events import (
    RATE_LIMIT_DELAY,
    STEERING_INJECTED,
    RateLimitDelay,
)

__all__ = ["StreamingConfig", "StreamingLoop"]


def _is_wait(_: object, attribute: attrs.Attribute[int], value: int) -> None:
    if value < 0:
        raise ValueError(
            f"{attribute.name} is a whole number of milliseconds from 0; got {value!r}"
        )


@attrs.frozen(kw_only=True, eq=False, repr=False)
class StreamingConfig(LoopConfig):
    """The loop's settings.

    Args:
        min_delay_between_calls_ms: milliseconds that lie at least between the end of one request to a model and the
            start of the next, over turns as well; for vendors that count requests.
    """

    min_delay_between_calls_ms: int = attrs.field(default=0, validator=_is_wait)


@orchestrator
class StreamingLoop(Loop):
    """Asks, runs tools, repeats, and reads before each request what was typed meanwhile."""

    name = "loop-streaming"
    takes_steering = True

    def __init__(self, config: StreamingConfig, coordinator: Coordinator) -> None:
        self.config = config
        self._pause = config.min_delay_between_calls_ms / 1000
        self._asked_at = -inf
        coordinator.register_contributor(
            "observability.events",
            self.name,
            lambda: [STEERING_INJECTED, RATE_LIMIT_DELAY],
        )

    async def run(self, turn: Turn) -> str:
        """Alternate between the model and its tools until an answer needs none."""
        choice = self.first_choice(turn.tools)
        while True:
            await turn.take_steering()
            if self._pause:
                delay = self._asked_at + self._pause - anyio.current_time()
                if delay > 0:
                    if turn.hooks.has_handlers(RATE_LIMIT_DELAY):
                        await turn.hooks.emit(
                            RATE_LIMIT_DELAY, RateLimitDelay(delay=delay)
                        )
                    await anyio.sleep(delay)
            try:
                response = await turn.complete(tool_choice=choice)
            finally:
                # the vendor counts what failed or was cancelled as well
                self._asked_at = anyio.current_time()
            if not response.tool_calls:
                return response.text
            await turn.run_tools(response.tool_calls)
            choice = None
