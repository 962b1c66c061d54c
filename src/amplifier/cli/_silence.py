"""A request that nobody answers is reported while it waits: silence looks like a program that hangs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final

import anyio
import attrs
from anyio.abc import TaskGroup

from amplifier.cli._terminal import notice, one_line
from amplifier_sdk.contracts import Hooks
from amplifier_sdk.events import (
    LLM_REQUEST,
    PROVIDER_ERROR,
    PROVIDER_RESPONSE,
    PROVIDER_RETRY,
    EventFields,
    LlmRequest,
)

__all__ = ["SilenceReport"]

_SECONDS: Final = 5.0
_NAME: Final = "silence"


@attrs.define(eq=False)
class SilenceReport:
    """Writes a line when a request has brought nothing for 5 s.

    Args:
        group: where it waits.
        session_id: whose requests to a vendor; those of child sessions are their tool's matter.
    """

    group: TaskGroup
    session_id: str
    _waiting: anyio.CancelScope | None = None

    @contextmanager
    def listening(self, hooks: Hooks) -> Iterator[None]:
        """Listen to a session's requests inside the block."""
        with ExitStack() as stack:
            stack.callback(hooks.register(LLM_REQUEST, self._begin, name=_NAME))
            for event in (PROVIDER_RESPONSE, PROVIDER_ERROR, PROVIDER_RETRY):
                stack.callback(hooks.register(event, self._end, name=_NAME))
            stack.callback(self.break_off)
            yield

    def break_off(self) -> None:
        """Stop waiting: something came."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _begin(self, _: str, data: LlmRequest) -> None:
        if data.get("session_id") == self.session_id:
            self.break_off()
            self._waiting = anyio.CancelScope()
            wait = partial(self._wait, self._waiting, data.get("provider", ""))
            self.group.start_soon(wait)

    def _end(self, _: str, data: EventFields) -> None:
        if data.get("session_id") == self.session_id:
            self.break_off()

    async def _wait(self, scope: anyio.CancelScope, provider: str) -> None:
        with scope:
            await anyio.sleep(_SECONDS)
            named = one_line(provider) or "the provider"
            notice(f"still waiting for {named} after {_SECONDS:.0f} s; Ctrl-C stops")
