"""The module: it hears what begins and ends, and has the spans ended beside the turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Final, TypeAlias

import attrs
from opentelemetry import metrics, trace

from amplifier_module_hooks_otel._calls import CallListener
from amplifier_module_hooks_otel._export import (
    Export,
    MissingExporterError,
    find_export,
)
from amplifier_module_hooks_otel._metrics import Instruments
from amplifier_module_hooks_otel._requests import RequestListener
from amplifier_module_hooks_otel._steps import Steps
from amplifier_module_hooks_otel._trace import SpanTrace, TelemetryConfig
from amplifier_module_hooks_otel._turns import TurnListener
from amplifier_module_hooks_otel._worker import JobWorker
from amplifier_sdk import Coordinator, JSONValue
from amplifier_sdk.configuration import read_config
from amplifier_sdk.events import (
    APPROVAL_DENIED,
    APPROVAL_GRANTED,
    APPROVAL_REQUIRED,
    CONTENT_BLOCK_START,
    EXECUTION_END,
    EXECUTION_START,
    LLM_REQUEST,
    ORCHESTRATOR_COMPLETE,
    PROMPT_SUBMIT,
    PROVIDER_ERROR,
    PROVIDER_REQUEST,
    PROVIDER_RESPONSE,
    PROVIDER_RETRY,
    SESSION_END,
    SESSION_FORK,
    SESSION_RESUME,
    SESSION_START,
    TOOL_ERROR,
    TOOL_POST,
    TOOL_PRE,
    USER_NOTIFICATION,
    UserNotification,
)

__all__ = ["mount", "on_session_ready"]

_NAME: Final = "hooks-otel"
_SCOPE: Final = "amplifier_module_hooks_otel"
_FIRST: Final = -1_000
"""Before the others: what one of them denies has a span nevertheless, and its end is heard."""
_LAST: Final = 1_000
"""Behind the others: the content is what they leave of it."""

_Handler: TypeAlias = Callable[[str, Mapping[str, object]], Awaitable[None] | None]


async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
    """Trace and measure the session with the OpenTelemetry SDK that the application has set up.

    Where it has set up none and the environment names an OTLP endpoint, the module exports to it;
    `on_session_ready` warns of what is missing for that.

    Raises:
        ConfigError: the configuration does not fit.
    """
    settings = read_config(TelemetryConfig, config, subject=f"configuration of {_NAME}")
    try:
        export = find_export()
    except MissingExporterError:  # `on_session_ready` says so
        export = None
    worker = JobWorker(settings.queue_size, settings.flush_timeout)
    if export is None:
        tracer, meter = trace.get_tracer(_SCOPE), metrics.get_meter(_SCOPE)
    else:
        tracer = export.tracers.get_tracer(_SCOPE)
        meter = export.meters.get_meter(_SCOPE)
    spans = SpanTrace(
        coordinator,
        settings,
        Steps(tracer, worker),
        Instruments.of(meter) if settings.metrics else None,
    )
    end = _End(coordinator, spans, worker, export)
    coordinator.register_cleanup(end.aclose)
    hooks = coordinator.hooks
    for event, handler, priority in _handlers(spans, end):
        coordinator.register_cleanup(
            hooks.register(event, handler, priority, _NAME, decides=False)
        )


async def on_session_ready(coordinator: Coordinator) -> None:
    """Say what keeps telemetry from being exported, once: in the session that is no child."""
    if coordinator.parent_id is not None:
        return
    try:
        find_export()
    except MissingExporterError as error:
        await coordinator.hooks.emit(
            USER_NOTIFICATION,
            UserNotification(
                message=f"No telemetry is exported: {error}",
                level="warning",
                source=_NAME,
            ),
        )


def _handlers(spans: SpanTrace, end: _End) -> Iterator[tuple[str, _Handler, int]]:
    """Yield what is heard by whom, and whether before the others or behind them."""
    turns = TurnListener(spans)
    requests = RequestListener(spans)
    calls = CallListener(spans)
    first: dict[str, _Handler] = {
        **dict.fromkeys(
            (SESSION_START, SESSION_RESUME, SESSION_FORK), turns.session_began
        ),
        **dict.fromkeys((EXECUTION_START, PROMPT_SUBMIT), turns.turn_began),
        PROVIDER_REQUEST: requests.request_began,
        LLM_REQUEST: requests.model_named,
        CONTENT_BLOCK_START: requests.block_began,
        PROVIDER_RESPONSE: requests.request_answered,
        PROVIDER_ERROR: requests.request_failed,
        TOOL_PRE: calls.tool_began,
        TOOL_POST: calls.tool_returned,
        TOOL_ERROR: calls.tool_failed,
        **dict.fromkeys(
            (PROVIDER_RETRY, APPROVAL_REQUIRED, APPROVAL_GRANTED, APPROVAL_DENIED),
            turns.happened,
        ),
        ORCHESTRATOR_COMPLETE: turns.loop_completed,
        EXECUTION_END: turns.turn_ended,
    }
    for event, handler in first.items():
        yield event, handler, _FIRST
    if spans.config.capture_content:
        yield TOOL_POST, calls.tool_reported, _LAST
    yield SESSION_END, end.hear, _LAST


@attrs.define(eq=False)
class _End:
    """Ends what is open when the session does, and notifies the person of what is missing."""

    coordinator: Coordinator
    spans: SpanTrace
    worker: JobWorker
    export: Export | None
    _reported: int = 0
    _lost_before: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._lost_before = self._lost_by_export

    async def hear(self, _: str, __: Mapping[str, object]) -> None:
        """End what is open and tell once what was lost."""
        self.spans.abandon()
        # the program may end before the SDK's own time to export has come
        if self.export is not None:
            self.worker.put(partial(self.export.flush, self.worker.timeout))
        await self.worker.flush()
        lost = self.worker.dropped + self.worker.failed
        lost += self._lost_by_export - self._lost_before
        if lost <= self._reported:
            return
        self._reported = lost
        why = ""
        if self.worker.problem:
            why = f" ({self.worker.problem})"
        message = f"Spans missing in the session's telemetry: {lost}{why}"
        await self.coordinator.hooks.emit(
            USER_NOTIFICATION,
            UserNotification(message=message, level="warning", source=_NAME),
        )

    async def aclose(self) -> None:
        """End what is open, and the worker."""
        self.spans.abandon()
        await self.worker.aclose()

    @property
    def _lost_by_export(self) -> int:
        if self.export is None:
            return 0
        return self.export.lost
