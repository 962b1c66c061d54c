"""What keeps a source from being fetched, whatever fetches it."""

from __future__ import annotations

from typing import Final

from amplifier_sdk.errors import AmplifierError

__all__ = ["OFFLINE", "SourceFetchError", "offline_error"]

OFFLINE: Final = "AMPLIFIER_OFFLINE"
"""The environment variable that keeps everything from being fetched: set to anything but nothing and 0."""


class SourceFetchError(AmplifierError):
    """A source could not be fetched; the message names the source, what went wrong, and the remedy."""

    def __init__(self, source: object, problem: str) -> None:
        super().__init__(f"{source} cannot be fetched: {problem}")


def offline_error(source: object) -> SourceFetchError:
    """Return the error of who would fetch a source while nothing may be fetched."""
    return SourceFetchError(
        source, f"working offline; leave --offline away or unset {OFFLINE}"
    )
