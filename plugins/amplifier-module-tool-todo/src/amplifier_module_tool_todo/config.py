"""The module's configuration."""

from __future__ import annotations

import attrs

from amplifier_sdk.bounds import count

__all__ = ["TodoConfig"]


@attrs.frozen(kw_only=True)
class TodoConfig:
    """What `config` of the plan may hold.

    Args:
        max_items: how many items a plan has at most.
        keep: whether the plan is stored beside the session, where the application has a folder for sessions.
    """

    max_items: int = attrs.field(default=100, validator=count)
    keep: bool = True
