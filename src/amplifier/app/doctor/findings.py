"""What was found of one thing."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from amplifier_sdk.jsontypes import JSONObject

__all__ = ["DoctorFinding", "Status", "broken", "fine", "warning"]

Status: TypeAlias = Literal["ok", "warning", "broken"]
"""`broken` keeps sessions from working, `warning` something that may be missed."""


@attrs.frozen(kw_only=True)
class DoctorFinding:
    """One thing as it is.

    Args:
        area: what it belongs to: one word.
        status: how it is.
        message: what was found, in one line.
        remedy: what helps; empty where nothing is amiss.
    """

    area: str
    status: Status
    message: str
    remedy: str = ""

    def to_dict(self) -> JSONObject:
        """Write it as JSON data."""
        return {**attrs.asdict(self), "remedy": self.remedy or None}


def fine(area: str, message: str) -> DoctorFinding:
    """Say that something is as it should be."""
    return DoctorFinding(area=area, status="ok", message=message)


def warning(area: str, message: str, remedy: str) -> DoctorFinding:
    """Say that something may be missed."""
    return DoctorFinding(area=area, status="warning", message=message, remedy=remedy)


def broken(area: str, message: str, remedy: str) -> DoctorFinding:
    """Say that something keeps sessions from working."""
    return DoctorFinding(area=area, status="broken", message=message, remedy=remedy)
