"""The one place that names a callable of any signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["AnyCallable"]

AnyCallable: TypeAlias = Callable[..., object]  # type: ignore[explicit-any]  # what authors write has any signature
