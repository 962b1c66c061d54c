"""The log of a command: warnings, one line each, on standard error."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Final

import structlog

from amplifier.cli._terminal import one_line, visible
from amplifier_kit.redaction import StrictRedactor

__all__ = ["library_logs", "send_logs"]

_LEVEL: Final = logging.WARNING
_SHOWN_ELSEWHERE: Final = frozenset({"module.load_failed", "tool.failed"})
"""What the commands tell in words of their own."""


def send_logs(*, debug: bool, as_json: bool = False) -> None:
    """Send the log to standard error.

    Args:
        debug: everything with tracebacks, instead of one line for each warning.
        as_json: a JSON object for each record, those of requests among them.
    """
    if debug:
        level = logging.DEBUG
    else:
        level = logging.INFO if as_json else logging.WARNING
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            *(
                [structlog.processors.format_exc_info]
                if debug
                else [_without_repetition]
            ),
            *([_timed, _json_line] if as_json else [_line]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        # A chat configures it again once standard error leads above the prompt.
        cache_logger_on_first_use=False,
    )


@contextmanager
def library_logs() -> Iterator[None]:
    """Have what libraries log be records of this log in a block: one line each, and JSON where the log is.

    A caller without a token can have the event loop report a connection; tracebacks of that would fill the log.
    """
    handler, root = _Records(_LEVEL), logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


class _Records(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Write one."""
        error = record.exc_info[1] if record.exc_info else None
        structlog.get_logger("amplifier").log(
            record.levelno,
            "library.logged",
            library=record.name,
            message=record.getMessage(),
            exc_info=error,
        )


def _without_repetition(
    _: object, __: str, event: MutableMapping[str, object]
) -> MutableMapping[str, object]:
    if event.get("event") in _SHOWN_ELSEWHERE:
        raise structlog.DropEvent
    error = event.pop("exc_info", None)
    if isinstance(error, BaseException):
        event["error"] = f"{type(error).__name__}: {error}"
    return event


_timed: Final = structlog.processors.TimeStamper(fmt="iso", utc=True, key="at")


def _json_line(_: object, __: str, event: MutableMapping[str, object]) -> str:
    """Write the record without secrets; what has no form in JSON is written as text."""
    known = {
        key: value if isinstance(value, (str, int, float, bool)) else str(value)
        for key, value in event.items()
    }
    return json.dumps(StrictRedactor().redact(dict(known)))


def _line(_: object, __: str, event: MutableMapping[str, object]) -> str:
    """Write the event and its keys; a traceback follows on lines of its own.

    Secrets are taken out first: what is cut, or has control characters written as escapes, hides a part of one.
    """
    redactor = StrictRedactor()
    traceback = event.pop("exception", None)
    head = f"{event.pop('level')}: {one_line(redactor.redact_text(str(event.pop('event'))))}"
    redacted = redactor.redact({key: str(value) for key, value in event.items()})
    assert isinstance(redacted, dict)
    fields = "".join(
        f" {key}={one_line(str(value))}" for key, value in redacted.items()
    )
    return (
        head
        + fields
        + (f"\n{visible(redactor.redact_text(str(traceback)))}" if traceback else "")
    )
