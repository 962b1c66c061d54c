"""What the other side of a connection may send, and the error for what it may not."""

from __future__ import annotations

import attrs

from amplifier_kit.rpc.frames import INVALID_REQUEST, RpcError, read_frame
from amplifier_kit.rpc.lines import RequestId, TooLong, asked_id
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["RefusedFrame", "RpcLimits", "error_frame", "read_line"]


@attrs.frozen(kw_only=True)
class RpcLimits:
    """What the other side may do.

    Args:
        max_bytes: of one message; of a longer one only its ends are stored.
        max_values: in one message.
        max_requests: that run at once.
    """

    max_bytes: int = 16_777_216
    max_values: int = 100_000
    max_requests: int = 256


@attrs.frozen
class RefusedFrame:
    """A line that is no message: the id of the request that it was, where that is known, and the error."""

    id: RequestId | None
    error: RpcError


def read_line(line: bytes | TooLong, limits: RpcLimits) -> JSONObject | RefusedFrame:
    """Read the message of a line."""
    if isinstance(line, TooLong):
        problem = (
            f"the message has {line.size} bytes, at most {limits.max_bytes} are taken"
        )
        return RefusedFrame(asked_id(line), RpcError(INVALID_REQUEST, problem))
    try:
        return read_frame(line, max_values=limits.max_values)
    except RpcError as error:
        # Where it holds too many values its id can be known all the same.
        return RefusedFrame(asked_id(TooLong.of(line)), error)


def error_frame(number: RequestId | None, error: RpcError) -> JSONObject:
    """Return the message that answers a request with an error."""
    data: JSONObject = {"code": error.code, "message": str(error)}
    return {"id": number, "error": data}
