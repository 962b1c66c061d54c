"""The log of a command: what writes it is imported when something is logged, since most commands log nothing."""

from __future__ import annotations

from functools import partial

__all__ = ["configure_logs"]


def configure_logs(*, debug: bool) -> None:
    """Send the log to standard error.

    Args:
        debug: everything with tracebacks, instead of one line for each warning.
    """
    # wrong usage needs no kernel
    from amplifier.kernel.reports import configure_reports_by

    configure_reports_by(partial(_send, debug=debug))


def _send(*, debug: bool) -> None:
    from amplifier.cli._structured_logs import send_logs

    send_logs(debug=debug)
