"""A type with the name of another one."""

from __future__ import annotations

import attrs

__all__ = ["Linked"]


@attrs.frozen
class Linked:
    up: Linked | None = None
