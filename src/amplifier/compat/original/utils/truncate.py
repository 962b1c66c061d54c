"""Values made fit for a log: secrets taken out by their keys, long texts shortened."""

from __future__ import annotations

from typing import Final

__all__ = ["redact_secrets", "truncate_values"]

REDACTED: Final = "[REDACTED]"
_SECRET_KEYS: Final = frozenset(
    {
        "access_token",
        "api_key",
        "apikey",
        "authorization",
        "credential",
        "credentials",
        "password",
        "private_key",
        "refresh_token",
        "secret",
        "secret_key",
        "token",
    }
)


def redact_secrets(value: object) -> object:
    """Copy a value without what stands under a key that names a secret."""
    if isinstance(value, dict):
        return {
            key: REDACTED
            if isinstance(key, str) and key.lower() in _SECRET_KEYS
            else redact_secrets(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [redact_secrets(item) for item in value]
    return value


def truncate_values(value: object, max_length: int = 180) -> object:
    """Copy a value with its texts shortened to a number of characters."""
    if isinstance(value, str):
        if len(value) <= max_length:
            return value
        return f"{value[:max_length]}... (truncated {len(value) - max_length} chars)"
    if isinstance(value, dict):
        return {key: truncate_values(item, max_length) for key, item in value.items()}
    if isinstance(value, list):
        return [truncate_values(item, max_length) for item in value]
    return value
