"""One request in a vendor's words."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from amplifier_sdk.chat import Degradation
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["Outgoing"]


@attrs.frozen(kw_only=True)
class Outgoing:
    """What is sent for one `ChatRequest`.

    Args:
        path: relative to the vendor's address, for example `chat/completions`; may have a query.
        body: the JSON object that is posted; `extra_request_params` of the configuration are added to it.
        headers: further headers; credentials and `extra_headers` of the configuration are added to them.
        degradation: what was asked for and cannot be given; it goes into the answer, unless the reader puts one
            of its own there.
    """

    path: str
    body: JSONObject
    headers: Mapping[str, str] = attrs.field(factory=dict)
    degradation: Degradation | None = None
