"""What libraries log is one record each of the server's log, whoever had them log it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from amplifier.cli._structured_logs import library_logs, send_logs


@pytest.fixture(autouse=True)
def configured() -> Iterator[None]:
    """Leave the log as it was."""
    yield
    structlog.reset_defaults()


def test_a_library_s_traceback_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    send_logs(debug=False, as_json=True)
    with library_logs():
        try:
            raise OSError("closed\nby the other side")
        except OSError:
            logging.getLogger("asyncio").exception("Unhandled exception")
        logging.getLogger("asyncio").debug("of no interest")

    (line,) = capsys.readouterr().err.splitlines()
    reported = json.loads(line)
    assert (reported["event"], reported["library"]) == ("library.logged", "asyncio")
    assert reported["message"] == "Unhandled exception"
    assert reported["error"] == "OSError: closed\nby the other side"


def test_nothing_is_left_of_it_after_the_block() -> None:
    before = [*logging.getLogger().handlers]
    with library_logs():
        pass
    assert logging.getLogger().handlers == before
