"""Git without anybody's configuration."""

from __future__ import annotations

from tests.app.repositories import own_git  # noqa: F401  # a fixture of the tests here
