"""Values made fit for a log: secrets taken out by their keys, long texts shortened."""

from __future__ import annotations

from typing import Final

__all__ = ["SENSITIVE_KEYS", "redact_secrets", "truncate_values"]

REDACTED: Final = "[REDACTED]"
SENSITIVE_KEYS: Final = frozenset(
    {
        "api-key",
        "api_key",
        "apikey",
        "auth",
        "authorization",
        "credential",
        "credentials",
        "password",
        "private_key",
        "privatekey",
        "secret",
        "token",
    }
)
"""The keys that name a secret, in small letters."""


def redact_secrets(
    obj: object, sensitive_keys: frozenset[str] = SENSITIVE_KEYS
) -> object:
    """Copy a value without what stands under a key that names a secret."""
    if isinstance(obj, dict):
        return {
            key: REDACTED
            if isinstance(key, str) and key.lower() in sensitive_keys
            else redact_secrets(item, sensitive_keys)
            for key, item in obj.items()
        }
    if isinstance(obj, list):
        return [redact_secrets(item, sensitive_keys) for item in obj]
    return obj


def truncate_values(obj: object, max_length: int = 180) -> object:
    """Copy a value with its texts shortened to a number of characters."""
    if isinstance(obj, str):
        if len(obj) <= max_length:
            return obj
        return f"{obj[:max_length]}... (truncated {len(obj) - max_length} chars)"
    if isinstance(obj, dict):
        return {key: truncate_values(item, max_length) for key, item in obj.items()}
    if isinstance(obj, list):
        return [truncate_values(item, max_length) for item in obj]
    return obj
