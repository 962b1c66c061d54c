"""Reports of failures that do not stop anything: one place that knows how the kernel logs.

structlog is imported when the first report is made: it costs more than the rest of the kernel. An
application that configured it gets the reports where it wants them; otherwise they go to standard error without
secrets, since standard output is the application's.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger

__all__ = ["name_of", "report"]


def report(event: str, error: BaseException | None = None, /, **fields: object) -> None:
    """Log a warning with keys, and the traceback of what caused it."""
    import structlog

    if structlog.is_configured():
        logger = structlog.get_logger("amplifier")
    else:
        # Rich's tracebacks hold the event loop for a tenth of a second, and show local variables, secrets among them.
        renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        processors = [*structlog.get_config()["processors"][:-1], renderer, _without_secrets]
        logger = structlog.wrap_logger(structlog.PrintLogger(sys.stderr), processors)
    logger.warning(event, exc_info=error, **fields)


def name_of(function: object) -> str:
    """Name what was called, without its arguments: they may be secrets, and to write them is foreign code."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _without_secrets(_: WrappedLogger, __: str, line: EventDict | str) -> str:
    """Redact a line and its traceback: an error's text often holds what it refused."""
    from amplifier_kit.redaction import StrictRedactor

    return StrictRedactor().redact_text(str(line))
