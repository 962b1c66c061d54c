"""Small helpers that modules import."""

from __future__ import annotations

from amplifier.compat.original.utils.retry import (
    RetryConfig,
    classify_error_message,
    retry_with_backoff,
)
from amplifier.compat.original.utils.truncate import redact_secrets, truncate_values

__all__ = [
    "RetryConfig",
    "classify_error_message",
    "redact_secrets",
    "retry_with_backoff",
    "truncate_values",
]
