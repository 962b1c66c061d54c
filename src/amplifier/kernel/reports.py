"""Reports of failures that do not stop anything: one place that knows how the kernel logs.

structlog is imported when the first report is made: it costs more than the rest of the kernel.
"""

from __future__ import annotations

__all__ = ["report"]


def report(event: str, error: BaseException | None = None, /, **fields: object) -> None:
    """Log a warning with keys, and the traceback of what caused it."""
    import structlog

    structlog.get_logger("amplifier").warning(event, exc_info=error, **fields)
