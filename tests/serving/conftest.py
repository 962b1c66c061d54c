"""What the server reports is kept instead of printed."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

import pytest
import structlog
from structlog.testing import capture_logs

Reports = list[MutableMapping[str, object]]


@pytest.fixture
def reports() -> Iterator[Reports]:
    """The reports of this test; each has its name under `event`."""
    was_configured = structlog.is_configured()
    with capture_logs() as logs:
        yield logs
    if not was_configured:
        structlog.reset_defaults()
