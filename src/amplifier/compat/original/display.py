"""Showing messages to a person."""

from __future__ import annotations

from amplifier_sdk.contracts import DisplaySystem

__all__ = ["DisplaySystem"]
