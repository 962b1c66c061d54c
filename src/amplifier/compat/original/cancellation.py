"""The cancellation token and its states: the kernel's own."""

from __future__ import annotations

from amplifier.kernel.cancellation import CancellationState, CancellationToken

__all__ = ["CancellationState", "CancellationToken"]
