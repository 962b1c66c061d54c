"""What sessions spent, as their files hold it: added, subtracted, never less than before."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TypeAlias

from amplifier.kernel.budgets.expenses import Spending
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["Amounts", "added", "highest", "subtracted"]

Amounts: TypeAlias = Mapping[str, JSONValue]
"""What `Spending.to_dict` writes."""


def added(*amounts: Amounts) -> Amounts:
    """Return the sum of what was spent.

    Raises:
        ConfigError: one of them is nothing that a session writes.
    """
    total = Spending()
    for each in amounts:
        total.add(Spending.from_dict(each))
    return total.to_dict()


def subtracted(total: Amounts, before: Amounts) -> Amounts:
    """Return what was spent since; nothing is left of an equal cost."""
    return {name: _less(value, before.get(name)) for name, value in total.items()}


def highest(one: Amounts, other: Amounts) -> Amounts:
    """Return the higher one of each amount: of two accounts of a session one may be older."""
    return {name: _higher(one.get(name), other.get(name)) for name in {**one, **other}}


def _less(total: JSONValue, before: JSONValue) -> JSONValue:
    if isinstance(total, int) and isinstance(before, int):
        return total - before
    if isinstance(total, str) and isinstance(before, str):
        if Decimal(total) == Decimal(before):
            return None
        return str(Decimal(total) - Decimal(before))
    return total


def _higher(one: JSONValue, other: JSONValue) -> JSONValue:
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other)
    if isinstance(one, str) and isinstance(other, str):
        return max(one, other, key=Decimal)
    return other if one is None else one
