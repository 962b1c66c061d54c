"""Approval by request and response: what a module or an application offers instead of an `ApprovalSystem`.

A provider is registered through the capability `approval.register_provider`. The session's approval system,
where it has one, is asked first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import attrs

from amplifier_sdk.bounds import seconds

__all__ = ["ApprovalProvider", "ApprovalRequest", "ApprovalResponse"]


@attrs.frozen(kw_only=True)
class ApprovalRequest:
    """What a person is asked to allow.

    Args:
        tool_name: the tool, or the event's name where no tool is called.
        action: what will happen, in words.
        risk_level: how much is at stake, in the asker's own words.
        details: what will run, and who asks; JSON data where the asker has it so.
        timeout: seconds to wait for an answer; `None` means as long as it takes.
    """

    tool_name: str
    action: str
    risk_level: str
    details: Mapping[str, object] = attrs.field(factory=dict)
    timeout: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(seconds)
    )


@attrs.frozen(kw_only=True)
class ApprovalResponse:
    """What the person answered; with `remember` the answer holds for the same question in this session."""

    approved: bool
    reason: str | None = None
    remember: bool = False


@runtime_checkable
class ApprovalProvider(Protocol):
    """Asks a person."""

    async def request_approval(self, request: ApprovalRequest, /) -> ApprovalResponse:
        """Return the person's answer.

        Raises:
            ApprovalTimeoutError: nobody answered within the request's `timeout`.
            ApprovalUnavailableError: nobody can be asked; the message says why.
            ApprovalPendingError: the question is stored and its answer comes later; the turn is suspended.
        """
