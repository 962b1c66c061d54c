"""What providers of vendors' APIs share: HTTP, retries, deadlines, costs, `llm:*` events.

A vendor's provider writes requests (`VendorProvider.write`) and reads answers (`VendorProvider.reader`); the rest is
here, once. Names load when they are first used, and the HTTP client with the first request: the extra
`amplifier[http]` brings it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_kit.vendors.answers import AnswerReader as AnswerReader
    from amplifier_kit.vendors.client import Exchange as Exchange
    from amplifier_kit.vendors.client import VendorClient as VendorClient
    from amplifier_kit.vendors.config import VendorConfig as VendorConfig
    from amplifier_kit.vendors.payloads import read_object as read_object
    from amplifier_kit.vendors.payloads import read_tokens as read_tokens
    from amplifier_kit.vendors.payloads import storable as storable
    from amplifier_kit.vendors.payloads import write_json as write_json
    from amplifier_kit.vendors.provider import VendorProvider as VendorProvider
    from amplifier_kit.vendors.refusals import read_problem as read_problem
    from amplifier_kit.vendors.refusals import refusal as refusal
    from amplifier_kit.vendors.request import Outgoing as Outgoing
    from amplifier_kit.vendors.request import cache_key_of as cache_key_of

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
    "AnswerReader": "answers",
    "Exchange": "client",
    "Outgoing": "request",
    "VendorClient": "client",
    "VendorConfig": "config",
    "VendorProvider": "provider",
    "cache_key_of": "request",
    "read_object": "payloads",
    "read_problem": "refusals",
    "read_tokens": "payloads",
    "refusal": "refusals",
    "storable": "payloads",
    "write_json": "payloads",
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
