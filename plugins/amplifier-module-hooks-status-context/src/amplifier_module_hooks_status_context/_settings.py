"""What can be set."""

from __future__ import annotations

import attrs

from amplifier_sdk.bounds import amount, seconds
from amplifier_sdk.results import InjectionRole

__all__ = ["StatusContextConfig"]


@attrs.frozen(kw_only=True)
class StatusContextConfig:
    """The configuration; the module's README describes each key."""

    working_dir: str | None = None
    include_git: bool = True
    git_include_branch: bool = True
    git_include_main_branch: bool = True
    git_include_status: bool = True
    git_status_include_untracked: bool = True
    git_status_max_lines: int = attrs.field(default=50, validator=amount)
    git_include_commits: int = attrs.field(default=5, validator=amount)
    git_timeout: float = attrs.field(default=5.0, validator=seconds)
    include_datetime: bool = True
    datetime_include_timezone: bool = False
    include_session: bool = True
    inject_role: InjectionRole = "user"
    priority: int = 0
