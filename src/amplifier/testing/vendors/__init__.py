"""The suite that the provider of a vendor's API runs on itself, beside the one of all providers.

```python
class TestAcme(VendorBehaviorTests):
    provider = AcmeProvider
    config = {"api_key": "acme-key-0123456789"}
    text = (STREAMS / "text.sse").read_bytes()
    tools = (STREAMS / "tools.sse").read_bytes()
    tool = "add"
    bad = STREAMS / "bad"
    becomes = {"cut-in-the-text": "StreamError", "length-with-a-call": "length"}
```

It needs pytest, the extra `amplifier[http]`, and a fixture `anyio_backend`; the tests run in virtual time, under the
fixture `virtual_clock`.
`without_network`, `answer_by_model` and `cases_by_model` give the suite of all providers a vendor.
"""

from __future__ import annotations

from amplifier.testing.vendors.cases import (
    answer_by_model,
    cases_by_model,
    without_network,
)
from amplifier.testing.vendors.suite import VendorBehaviorTests

__all__ = [
    "VendorBehaviorTests",
    "answer_by_model",
    "cases_by_model",
    "without_network",
]
