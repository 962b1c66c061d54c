"""A person's home, trial modules, and a project."""

from __future__ import annotations

from tests.acp.conftest import project  # noqa: F401  # a fixture of the tests here
from tests.cli.conftest import trials  # noqa: F401  # likewise
