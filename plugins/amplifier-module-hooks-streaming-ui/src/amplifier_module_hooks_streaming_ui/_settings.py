"""What can be set."""

from __future__ import annotations

from typing import Literal

import attrs

from amplifier_sdk.bounds import amount, count, seconds

__all__ = ["StreamingUIConfig"]


@attrs.frozen(kw_only=True)
class StreamingUIConfig:
    """The configuration; the module's README describes each key."""

    show_text: bool = True
    show_thinking: bool = True
    show_tools: bool = True
    show_tool_lines: int = attrs.field(default=5, validator=amount)
    max_lines: int = attrs.field(default=20, validator=amount)
    show_children: bool = True
    show_usage: bool = True
    colour: Literal["auto", "always", "never"] = "auto"
    width: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.ge(20))
    )
    max_waiting: int = attrs.field(default=1_000_000, validator=count)
    patience: float = attrs.field(default=2.0, validator=seconds)
    priority: int = 1000
