"""What a search of the web is to those who offer one.

A module that can search registers itself, and `tool-web` then asks it:

```python
coordinator.register_capability(SEARCH_BACKEND, MySearch())
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

import attrs

__all__ = ["SEARCH_BACKEND", "SearchBackend", "SearchHit"]

SEARCH_BACKEND: Final = "web.search_backend"
"""The capability under which a `SearchBackend` is registered."""


@attrs.frozen(kw_only=True)
class SearchHit:
    """One result of a search: a page's address, its title and some of its text."""

    url: str
    title: str = ""
    snippet: str = ""


@runtime_checkable
class SearchBackend(Protocol):
    """Searches the web."""

    @property
    def name(self) -> str:
        """What it is called, for results and errors."""

    async def search(self, query: str, limit: int, /) -> Sequence[SearchHit]:
        """Return at most `limit` results, the best first; empty when there are none.

        Raises:
            ToolError: the search failed; the message says why and what to do.
        """
