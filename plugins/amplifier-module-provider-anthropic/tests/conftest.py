"""Both backends, and the streams that the tests read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

_STREAMS: Final = Path(__file__).parent / "streams"


@pytest.fixture(scope="session", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Name the backend of the test."""
    return str(request.param)


@pytest.fixture
def stream() -> Callable[[str], bytes]:
    """Read a good stream by its name."""

    def read(name: str) -> bytes:
        return (_STREAMS / "good" / f"{name}.sse").read_bytes()

    return read


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the keys and addresses of whoever runs the tests."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
