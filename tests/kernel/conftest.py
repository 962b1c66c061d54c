"""What the kernel reports is kept instead of printed; folders and names for modules that tests write."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, MutableMapping
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from tests.kernel.packages import conventional

Reports = list[MutableMapping[str, object]]

_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def reports() -> Iterator[Reports]:
    """The reports of this test; each has its name under `event`."""
    was_configured = structlog.is_configured()
    with capture_logs() as logs:
        yield logs
    if not was_configured:
        structlog.reset_defaults()


@pytest.fixture
def package() -> Iterator[str]:
    """A package name of this test alone: what is imported stays imported."""
    name = f"kernel_test_package_{next(_NUMBERS)}"
    yield name
    for imported in [key for key in sys.modules if key.partition(".")[0] == name]:
        del sys.modules[imported]


@pytest.fixture
def module_id() -> Iterator[str]:
    """A module id of this test alone, whose package is named as the convention has it."""
    name = f"tool-of-test-{next(_NUMBERS)}"
    yield name
    for imported in [key for key in sys.modules if key.startswith(conventional(name))]:
        del sys.modules[imported]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which distributions are found and imported."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder
