"""Fetching from the public internet, and from nowhere else, whatever an address, a name server or a redirect says.

```python
fetcher = Fetcher(connector=Connector(policy=NetPolicy()))
async with fetcher.get(read_url("https://example.com/")) as answer:
    body = await answer.read(max_bytes=1_000_000)
```

Names load when they are first used. `Connector` and `Fetcher` need the extra `amplifier[http]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_kit.http.netguard.addresses import refusal_of
    from amplifier_kit.http.netguard.bodies import Body
    from amplifier_kit.http.netguard.connector import Connector
    from amplifier_kit.http.netguard.errors import BodyError, WebError
    from amplifier_kit.http.netguard.fetcher import FetchedResponse, Fetcher
    from amplifier_kit.http.netguard.policies import (
        AddressRange,
        DomainPattern,
        NetPolicy,
    )
    from amplifier_kit.http.netguard.urls import WebUrl, read_url

__all__ = [
    "AddressRange",
    "Body",
    "BodyError",
    "Connector",
    "DomainPattern",
    "FetchedResponse",
    "Fetcher",
    "NetPolicy",
    "WebError",
    "WebUrl",
    "read_url",
    "refusal_of",
]

_HOME = {
    "addresses": ("refusal_of",),
    "bodies": ("Body",),
    "connector": ("Connector",),
    "errors": ("BodyError", "WebError"),
    "fetcher": ("FetchedResponse", "Fetcher"),
    "policies": ("AddressRange", "DomainPattern", "NetPolicy"),
    "urls": ("WebUrl", "read_url"),
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
