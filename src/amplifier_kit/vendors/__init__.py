"""What providers of vendors' APIs share: HTTP, retries, deadlines, costs, `llm:*` events.

A vendor's provider writes requests (`VendorProvider.write`) and reads answers (`VendorProvider.reader`); the rest is
here, once. Names load when they are first used, and the HTTP client with the first request: the extra
`amplifier[http]` brings it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_kit.vendors.client import Exchange, VendorClient
    from amplifier_kit.vendors.config import VendorConfig
    from amplifier_kit.vendors.payloads import (
        read_object,
        read_tokens,
        storable,
        write_json,
    )
    from amplifier_kit.vendors.provider import VendorProvider
    from amplifier_kit.vendors.refusals import read_problem, refusal
    from amplifier_kit.vendors.request import AnswerReader, Outgoing, cache_key_of

__all__ = [
    "AnswerReader",
    "Exchange",
    "Outgoing",
    "VendorClient",
    "VendorConfig",
    "VendorProvider",
    "cache_key_of",
    "read_object",
    "read_problem",
    "read_tokens",
    "refusal",
    "storable",
    "write_json",
]

_HOME = {
    "client": ("Exchange", "VendorClient"),
    "config": ("VendorConfig",),
    "payloads": ("read_object", "read_tokens", "storable", "write_json"),
    "provider": ("VendorProvider",),
    "refusals": ("read_problem", "refusal"),
    "request": ("AnswerReader", "Outgoing", "cache_key_of"),
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
