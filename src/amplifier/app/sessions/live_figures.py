"""Figures of an open session as they change: who answers, how full its window is, which retry waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Self

import attrs

from amplifier.kernel.sessions.session import AmplifierSession
from amplifier_sdk.contracts import Provider
from amplifier_sdk.events import (
    LLM_REQUEST,
    PROVIDER_ERROR,
    PROVIDER_RESPONSE,
    PROVIDER_RETRY,
    EventFields,
    ProviderResponse,
    ProviderRetry,
)

__all__ = ["LiveFigures", "Retry", "window_of"]

_LAST: Final = 10**9
_NAME: Final = "live-figures"


@attrs.frozen(kw_only=True)
class Retry:
    """A request that failed and is sent again.

    Args:
        status: the HTTP status; `None` where there was no answer.
        reason: what the error says.
        number: which retry it is, from 1.
        limit: how many there are at most.
        due: when it is sent, on the monotonic clock.
    """

    status: int | None = None
    reason: str
    number: int
    limit: int
    due: float

    def text(self, now: float) -> str:
        """Say what failed and when it is retried, as of a moment on the monotonic clock."""
        left = max(0, round(self.due - now))
        when = f"retrying in {left} s" if left else "retrying"
        of = f"{when}, {self.number} of {self.limit}"
        if self.status is not None:
            return f"{self.status}, {of}"
        return f"{of}: {self.reason}"


@attrs.define(eq=False)
class LiveFigures:
    """What a session's events say of it, for whoever shows it; make it with `LiveFigures.of`.

    Args:
        session_id: the session's own id; its children are heard for their retries alone.
        changed: called when a figure is another one.
        provider: who answered last; empty before the first answer.
        model: the model that answered last; empty where nobody said which.
        context_tokens: how many tokens the last request and its answer took.
        retry: the retry that waits.
    """

    session_id: str
    changed: Callable[[], None]
    provider: str = ""
    model: str = ""
    context_tokens: int | None = None
    retry: Retry | None = None
    _retrying: str = ""

    @classmethod
    def of(cls, session: AmplifierSession, changed: Callable[[], None]) -> Self:
        """Listen to a session for as long as it is open."""
        figures = cls(session.session_id, changed)
        hooks = session.coordinator.hooks
        hooks.register(LLM_REQUEST, figures._settle, _LAST, _NAME, decides=False)
        hooks.register(PROVIDER_ERROR, figures._settle, _LAST, _NAME, decides=False)
        hooks.register(PROVIDER_RETRY, figures._retried, _LAST, _NAME, decides=False)
        hooks.register(
            PROVIDER_RESPONSE, figures._answered, _LAST, _NAME, decides=False
        )
        return figures

    def _answered(self, _: str, data: ProviderResponse) -> None:
        if data.get("session_id") != self.session_id:
            return
        self.provider, self.model = data["provider"], data["model"] or ""
        usage = data["usage"]
        if usage is not None:
            self.context_tokens = usage.input_tokens + usage.output_tokens
        self.changed()

    def _retried(self, _: str, data: ProviderRetry) -> None:
        self._retrying = data.get("session_id", "")
        self.retry = Retry(
            status=data.get("status_code"),
            reason=data["error_message"],
            number=data["attempt"],
            limit=data["max_retries"],
            due=time.monotonic() + data["delay"],
        )
        self.changed()

    def _settle(self, _: str, data: EventFields) -> None:
        """Drop the retry whose request is sent, or given up."""
        if self.retry is not None and data.get("session_id") == self._retrying:
            self.retry = None
            self.changed()


def window_of(provider: Provider) -> int | None:
    """Return how many tokens a provider's model takes; `None` where it does not say."""
    try:
        size: object = provider.get_info().defaults.get("context_window")
    except Exception:  # foreign code: a provider that cannot say what it is may answer
        return None
    if isinstance(size, int) and size > 0:
        return size
    return None
