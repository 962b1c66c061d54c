"""What the entry point names."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final, TypeAlias, cast

import attrs

from amplifier_kit.redaction import SinkRedactor, redactor_of
from amplifier_kit.terminal import TextStream
from amplifier_kit.todos import TODO_UPDATED
from amplifier_module_hooks_streaming_ui._pen import Pen
from amplifier_module_hooks_streaming_ui._screen import StreamScreen
from amplifier_module_hooks_streaming_ui._watch import SessionDisplay, StreamingUIConfig
from amplifier_sdk import Coordinator, JSONValue
from amplifier_sdk.capabilities import SHOWN
from amplifier_sdk.configuration import read_config
from amplifier_sdk.events import (
    APPROVAL_REQUIRED,
    CANCEL_REQUESTED,
    CONTENT_BLOCK_DELTA,
    CONTENT_BLOCK_END,
    CONTEXT_COMPACTION,
    EXECUTION_END,
    EXECUTION_START,
    PROVIDER_ERROR,
    PROVIDER_RESPONSE,
    PROVIDER_RETRY,
    PROVIDER_THROTTLE,
    TOOL_ERROR,
    TOOL_POST,
    TOOL_PRE,
    USER_NOTIFICATION,
)
from amplifier_sdk.progress import TOOL_OUTPUT, TOOL_PROGRESS
from amplifier_sdk.redaction import REDACTOR

__all__ = ["mount"]

_NAME: Final = "hooks-streaming-ui"
STREAM: Final = "ui.stream"
"""The capability under which an application gives another stream than standard error."""

_Handler: TypeAlias = Callable[[str, dict[str, object]], Awaitable[None] | None]


async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
    """Show the session's turns on standard error, or on the stream in the capability `ui.stream`.

    What the application shows itself (the capability `ui.shown`) is left to it.

    Raises:
        ConfigError: the configuration does not fit.
    """
    settings = read_config(
        StreamingUIConfig, config, subject=f"configuration of {_NAME}"
    )
    shown = coordinator.get_capability(SHOWN)
    if not isinstance(shown, frozenset):
        shown = frozenset()
    # what the application shows itself is left to it
    settings = attrs.evolve(
        settings,
        show_text=settings.show_text and "answers" not in shown,
        show_thinking=settings.show_thinking and "thinking" not in shown,
        show_tools=settings.show_tools and "tools" not in shown,
        show_children=settings.show_children and "children" not in shown,
    )
    watch = _open(coordinator, settings)
    if watch is None:
        return
    coordinator.register_cleanup(watch.close)
    for event, handler in _handlers(watch, shown):
        unregister = coordinator.hooks.register(
            event, handler, settings.priority, _NAME, decides=False
        )
        coordinator.register_cleanup(unregister)


def _open(coordinator: Coordinator, config: StreamingUIConfig) -> SessionDisplay | None:
    """Open the watch of a session; a child's is on its parent's screen, one level further in."""
    parent = SessionDisplay.OPEN.get(coordinator.parent_id or "")
    is_child = coordinator.parent_id is not None
    shows_children = config.show_children
    if parent is not None:
        shows_children = parent.config.show_children
    if is_child and not (config.show_children and shows_children):
        return None
    if parent is None:
        given = coordinator.get_capability(STREAM)
        # an application's own; it is used as one
        stream = sys.stderr if given is None else cast("TextStream", given)
    else:
        stream = parent.screen.stream
    pen = Pen.of(stream, config.colour, config.width)
    screen = StreamScreen.of(
        stream, pen, max_waiting=config.max_waiting, write_timeout=config.write_timeout
    )
    if parent is not None:
        level = parent.level + 1
    else:
        level = int(is_child)
    watch = SessionDisplay(
        screen, config, coordinator.session_id, level, _Redactor(coordinator), parent
    )
    SessionDisplay.OPEN[coordinator.session_id] = watch
    return watch


def _handlers(
    watch: SessionDisplay, shown: frozenset[object]
) -> Iterator[tuple[str, _Handler]]:
    """Yield what is heard, and by whom; each handler knows its event's payload."""
    config = watch.config
    handlers: dict[str, object] = {
        CONTENT_BLOCK_DELTA: watch.delta,
        CONTENT_BLOCK_END: watch.block_end,
        PROVIDER_RESPONSE: watch.answered,
        PROVIDER_ERROR: watch.failed,
        PROVIDER_RETRY: watch.retrying,
        PROVIDER_THROTTLE: watch.throttled,
        TOOL_PRE: watch.calling,
        TOOL_PROGRESS: watch.progressed,
        TOOL_OUTPUT: watch.put_out,
        TOOL_POST: watch.returned,
        TOOL_ERROR: watch.refused,
        EXECUTION_START: watch.began,
        EXECUTION_END: watch.ended,
        APPROVAL_REQUIRED: watch.asks,
        CONTEXT_COMPACTION: watch.shortened,
        CANCEL_REQUESTED: watch.cancelling,
        USER_NOTIFICATION: watch.notified,
        TODO_UPDATED: watch.todos,
    }
    # then answers need not be announced piece by piece
    if not (config.show_text or config.show_thinking):
        del handlers[CONTENT_BLOCK_DELTA], handlers[CONTENT_BLOCK_END]
    if not config.show_tools:
        del handlers[TOOL_PRE], handlers[TOOL_PROGRESS], handlers[TOOL_OUTPUT]
    if "messages" in shown:
        del handlers[USER_NOTIFICATION]
    for event, handler in handlers.items():
        yield str(event), cast("_Handler", handler)


@attrs.define(eq=False)
class _Redactor:
    """Returns the session's redactor of now; modules may offer another one at any time."""

    coordinator: Coordinator
    _offered: object = None
    _current: SinkRedactor | None = None

    def __call__(self) -> SinkRedactor:
        offered = self.coordinator.get_capability(REDACTOR)
        if self._current is None or offered is not self._offered:
            self._current, self._offered = redactor_of(self.coordinator), offered
        return self._current
