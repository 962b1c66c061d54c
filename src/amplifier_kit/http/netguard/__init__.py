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
    from amplifier_kit.http.netguard.addresses import refusal_of as refusal_of
    from amplifier_kit.http.netguard.bodies import Body as Body
    from amplifier_kit.http.netguard.connector import Connector as Connector
    from amplifier_kit.http.netguard.errors import BodyError as BodyError
    from amplifier_kit.http.netguard.errors import WebError as WebError
    from amplifier_kit.http.netguard.fetcher import FetchedResponse as FetchedResponse
    from amplifier_kit.http.netguard.fetcher import Fetcher as Fetcher
    from amplifier_kit.http.netguard.policies import AddressRange as AddressRange
    from amplifier_kit.http.netguard.policies import DomainPattern as DomainPattern
    from amplifier_kit.http.netguard.policies import NetPolicy as NetPolicy
    from amplifier_kit.http.netguard.urls import WebUrl as WebUrl
    from amplifier_kit.http.netguard.urls import read_url as read_url

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
    "AddressRange": "policies",
    "FetchedResponse": "fetcher",
    "Body": "bodies",
    "BodyError": "errors",
    "Connector": "connector",
    "DomainPattern": "policies",
    "Fetcher": "fetcher",
    "NetPolicy": "policies",
    "WebError": "errors",
    "WebUrl": "urls",
    "read_url": "urls",
    "refusal_of": "addresses",
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
