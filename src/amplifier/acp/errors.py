"""What an editor learns of a request that failed."""

from __future__ import annotations

from amplifier.kernel.reports import report
from amplifier_kit.files.locks import LockedError
from amplifier_kit.redaction import SinkRedactor, StrictRedactor
from amplifier_kit.rpc.frames import INTERNAL_ERROR, RpcError
from amplifier_sdk.errors import AmplifierError

__all__ = ["explain"]


def explain(error: Exception) -> RpcError:
    """Make the error: what the product says itself is for the person, everything else for the log."""
    if isinstance(error, RpcError):
        return error
    if isinstance(error, AmplifierError):
        text = SinkRedactor(StrictRedactor()).redact_text(str(error))
        return RpcError(INTERNAL_ERROR, text)
    if isinstance(error, LockedError):
        return RpcError(
            INTERNAL_ERROR, f"The session is open already. {error.strerror}"
        )
    report("acp.request_failed", error)
    return RpcError(INTERNAL_ERROR, "It failed; the log on standard error says why")
