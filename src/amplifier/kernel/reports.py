"""Reports of failures that do not stop anything: one place that knows how the kernel logs.

structlog is imported when the first report is made: it costs more than the rest of the kernel. An
application that configured it gets the reports where it wants them; otherwise they go to standard error without
secrets, since standard output is the application's. What is not redacted is withheld.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import EventDict, WrappedLogger

    from amplifier_sdk.redaction import Redactor

__all__ = [
    "configure_loaded",
    "configure_reports_by",
    "name_of",
    "redact_reports_by",
    "report",
]

WITHHELD: Final = "(the details are withheld: {})"

_make_redactor: Callable[[], Redactor] | None = None
_configure: Callable[[], None] | None = None


def redact_reports_by(
    make: Callable[[], Redactor] | None, *, default: bool = False
) -> None:
    """Say what makes the redactor of the reports; with `None` nothing but the events' names is reported.

    Args:
        make: is called for each report that is written.
        default: leave it at what was chosen before.
    """
    global _make_redactor  # noqa: PLW0603  # reports are the process's, like the logger that they go to
    if not default or _make_redactor is None:
        _make_redactor = make


def configure_reports_by(configure: Callable[[], None]) -> None:
    """Say what configures structlog; it is called before the first report, or at once where structlog is there already.

    Args:
        configure: imports structlog and configures it.
    """
    global _configure  # noqa: PLW0603  # the configuration is the process's
    _configure = configure
    configure_loaded()


def configure_loaded() -> None:
    """Configure structlog if it is imported by now, as a module may do that logs by itself."""
    if "structlog" in sys.modules:
        _configure_once()


def _configure_once() -> None:
    global _configure
    configure, _configure = _configure, None
    if configure is not None:
        configure()


def report(event: str, error: BaseException | None = None, /, **fields: object) -> None:
    """Log a warning with keys, and the traceback of what caused it."""
    import structlog

    _configure_once()
    if structlog.is_configured():
        logger = structlog.get_logger("amplifier")
    else:
        # Rich's tracebacks hold the event loop for a tenth of a second, and show local variables, secrets among them.
        renderer = structlog.dev.ConsoleRenderer(
            exception_formatter=structlog.dev.plain_traceback
        )
        processors = [
            *structlog.get_config()["processors"][:-1],
            partial(_render, renderer, event),
        ]
        logger = structlog.wrap_logger(structlog.PrintLogger(sys.stderr), processors)
    logger.warning(event, exc_info=error, **fields)


def name_of(function: object) -> str:
    """Name what was called, without its arguments: they may be secrets, and to write them is foreign code."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _render(
    renderer: Callable[[WrappedLogger, str, EventDict], str],
    event: str,
    logger: WrappedLogger,
    name: str,
    fields: EventDict,
) -> str:
    """Write a report without secrets: an error's text often holds what it refused."""
    if _make_redactor is None:
        return f"{event} {WITHHELD.format('nothing redacts reports')}"
    try:
        return _make_redactor().redact_text(renderer(logger, name, fields))
    except Exception as error:  # a redactor that fails withholds
        return (
            f"{event} {WITHHELD.format(f'the redactor failed, {type(error).__name__}')}"
        )
