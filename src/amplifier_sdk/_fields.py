"""Converters of attrs fields that freeze what they are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from amplifier_sdk.jsontypes import JSONValue

if TYPE_CHECKING:
    from amplifier_sdk.content import ContentBlock

__all__ = ["blocks", "strings", "strings_or_none", "values"]


def strings(items: Iterable[str]) -> tuple[str, ...]:
    """Freeze strings."""
    return tuple(items)


def strings_or_none(items: Iterable[str] | None) -> tuple[str, ...] | None:
    """Freeze strings, if there are any."""
    # None leaves the choice to others, and an empty tuple offers none
    if items is None:
        return None
    return tuple(items)


def values(items: Iterable[JSONValue]) -> tuple[JSONValue, ...]:
    """Freeze JSON values."""
    return tuple(items)


def blocks(items: Iterable[ContentBlock]) -> tuple[ContentBlock, ...]:
    """Freeze content blocks."""
    return tuple(items)
