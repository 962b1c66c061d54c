"""Every asynchronous test runs on asyncio, in debug mode, and on trio."""

from __future__ import annotations

from typing import Final

import pytest

BACKENDS: Final = [
    pytest.param(("asyncio", {"debug": True}), id="asyncio"),
    pytest.param(
        ("trio", {"restrict_keyboard_interrupt_to_checkpoints": True}), id="trio"
    ),
]


@pytest.fixture(scope="session", params=BACKENDS)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    backend: tuple[str, dict[str, bool]] = request.param
    return backend


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what the providers did with the real server, if they met it."""
    from tests.integration.table import write_table  # nothing else needs it

    write_table(terminalreporter)
