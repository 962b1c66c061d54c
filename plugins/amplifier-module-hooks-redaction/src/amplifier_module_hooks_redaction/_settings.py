"""What can be set."""

from __future__ import annotations

from typing import Literal

import attrs

__all__ = ["RedactionConfig"]


@attrs.frozen(kw_only=True)
class RedactionConfig:
    """The configuration; the module's README describes each key."""

    rules: tuple[Literal["secrets", "pii-basic"], ...] = ("secrets",)
    allowlist: tuple[str, ...] = ()
    priority: int = 10
    skip_events: tuple[str, ...] = (
        "tool:pre",
        "tool:post",
        "content_block:delta",
        "thinking:delta",
    )
