"""What the entry point names, and where a session's log is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from string import Formatter
from typing import Final

import attrs

from amplifier_kit.files.names import folder_name
from amplifier_kit.files.session_folders import session_folder, working_directory
from amplifier_kit.logs.records import LOG_FILE
from amplifier_kit.redaction import SinkRedactor, redactor_of
from amplifier_module_hooks_logging._entries import EventEntry, level_of, taken
from amplifier_module_hooks_logging._settings import LoggingConfig
from amplifier_module_hooks_logging._writer import SessionLogWriter
from amplifier_sdk import ConfigError, Coordinator, JSONValue
from amplifier_sdk.configuration import read_config
from amplifier_sdk.decisions import HOOK_DECIDED
from amplifier_sdk.events import (
    ALL_EVENTS,
    DEPRECATED_EVENTS,
    SESSION_END,
    SESSION_RESUME,
    SESSION_START,
    USER_NOTIFICATION,
    UserNotification,
)
from amplifier_sdk.loops.events import BASE_EVENTS
from amplifier_sdk.redaction import REDACTOR

__all__ = ["log_path", "mount"]

_FIELDS: Final = ("project", "session_id")

_NAME: Final = "hooks-logging"


async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
    """Log the session's events; the log is complete when the session has ended.

    Raises:
        ConfigError: the configuration does not fit.
    """
    settings = read_config(LoggingConfig, config, subject=f"configuration of {_NAME}")
    writer = SessionLogWriter(
        log_path(settings.session_log_template, coordinator),
        coordinator.session_id,
        settings,
    )
    log = _Log(coordinator, settings, writer)
    coordinator.register_cleanup(writer.aclose)
    raw = () if settings.strip_raw else DEPRECATED_EVENTS
    log.listen(
        chain(ALL_EVENTS, BASE_EVENTS, (HOOK_DECIDED,), raw, settings.additional_events)
    )


@attrs.define(eq=False)
class _Log:
    """Listens to a session's events and hands them to the writer."""

    coordinator: Coordinator
    config: LoggingConfig
    writer: SessionLogWriter
    _heard: set[str] = attrs.field(factory=set)
    _seq: int = 0
    _offered: object = None
    _redactor: SinkRedactor | None = None
    _reported: int = 0

    def listen(self, events: Iterable[str]) -> None:
        """Register for events that are wanted and not heard yet."""
        for event in map(str, events):
            if event in self._heard or not (
                self.config.wants(event)
                # These three are heard whatever is logged: they begin the discovery and
                # end the log.
                or event in (SESSION_START, SESSION_RESUME, SESSION_END)
            ):
                continue
            self._heard.add(event)
            unregister = self.coordinator.hooks.register(
                event, self.hear, self.config.priority, _NAME, decides=False
            )
            self.coordinator.register_cleanup(unregister)

    async def hear(self, event: str, data: dict[str, object]) -> None:
        """Note an event. From its start on the session's own events are heard as well; its end waits for the disk."""
        if event in (SESSION_START, SESSION_RESUME):
            await self._discover()
        self._note(event, data)
        if event == SESSION_END:
            await self.writer.flush()
            await self._report()

    def _note(self, event: str, data: dict[str, object]) -> None:
        config = self.config
        level = level_of(event, data)
        if not config.is_high_enough(level) or not config.wants(event):
            return
        self._seq += 1
        copied = taken(data, strip_raw=config.strip_raw, max_text=config.max_text)
        self.writer.put(
            EventEntry(
                event=event,
                level=level,
                seq=self._seq,
                data=copied,
                redactor=self._current(),
            )
        )

    def _current(self) -> SinkRedactor:
        """Return the session's redactor; modules may offer another one at any time."""
        offered = self.coordinator.get_capability(REDACTOR)
        if self._redactor is None or offered is not self._offered:
            self._redactor, self._offered = redactor_of(self.coordinator), offered
        return self._redactor

    async def _discover(self) -> None:
        """Listen to the events that modules say they send."""
        if not self.config.auto_discover:
            return
        for names in await self.coordinator.collect_contributions(
            "observability.events"
        ):
            if isinstance(names, (list, tuple, set, frozenset)):
                self.listen([name for name in names if isinstance(name, str)])

    async def _report(self) -> None:
        """Tell the person once what is not in the log."""
        missing = self.writer.missing
        # A resumed session ends more than once.
        if missing <= self._reported:
            return
        self._reported = missing
        why = ""
        if self.writer.problem:
            why = f" ({self.writer.problem})"
        message = f"{missing} events are not in the log {self.writer.path}{why}"
        await self.coordinator.hooks.emit(
            USER_NOTIFICATION,
            UserNotification(message=message, level="warning", source=_NAME),
        )


def log_path(template: str | None, coordinator: Coordinator) -> Path:
    """Return the log of a session.

    Without a template it is `events.jsonl` in the session's folder. What a template's `{session_id}` and `{project}`
    stand for is one folder name each, whatever the session is called.

    Raises:
        ConfigError: the template has other fields, or none that distinguishes sessions.
    """
    if template is None:
        return session_folder(coordinator) / LOG_FILE
    _check(template)
    working = working_directory(coordinator)
    filled = template.format(
        session_id=folder_name(coordinator.session_id),
        project=folder_name(working.resolve().name or "root"),
    )
    return working / Path(filled).expanduser()


def _check(template: str) -> None:
    problem = None
    try:
        fields = [
            (name, form, convert)
            for _, name, form, convert in Formatter().parse(template)
            if name is not None
        ]
    except ValueError as error:
        fields, problem = [], str(error)
    # A format or a conversion could reach into attributes of what is filled in.
    if any(name not in _FIELDS or form or convert for name, form, convert in fields):
        problem = "has other fields than {session_id} and {project}"
    elif problem is None and "session_id" not in [name for name, *_ in fields]:
        problem = "needs {session_id}, else all sessions write one file"
    if problem is not None:
        raise ConfigError.of(
            "session_log_template",
            f"{problem}; got {template!r}",
            subject="configuration of hooks-logging",
        )
