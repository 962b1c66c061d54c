"""The search services that are known here: how each is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from amplifier_kit.http.web_search import SearchHit
from amplifier_kit.open_data import as_text
from amplifier_module_tool_web.config import EngineName
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["ENGINES", "SearchEngine"]

_MAX_RESULTS: Final = 20
"""How many results both services with a limit give at most."""


@attrs.frozen(kw_only=True)
class SearchEngine:
    """A search service over HTTP with JSON.

    Args:
        name: what it is called in configurations.
        address: where it is; `None` when each user has one of their own.
        address_variable: the environment variable that may say where it is.
        key_variables: the environment variables that may hold its key; empty when it needs none.
        key_header: the header that carries the key, with what stands before it.
        query_name: the parameter that holds the query.
        limit_name: the parameter that says how many results are wanted; `None` when there is none.
        constant: what else is always sent.
        posts: whether the parameters go in a JSON body.
        results: the keys that lead to the list of results.
        snippet: the key of a result's text.
    """

    name: EngineName
    address: str | None
    address_variable: str | None = None
    key_variables: Sequence[str] = ()
    key_header: tuple[str, str] = ("Authorization", "Bearer ")
    query_name: str = "q"
    limit_name: str | None = None
    constant: Mapping[str, str] = attrs.field(factory=dict)
    posts: bool = False
    results: Sequence[str] = ("results",)
    snippet: str = "content"

    def parameters(self, query: str, limit: int) -> JSONObject:
        """Return what is sent for a query."""
        sent: JSONObject = {self.query_name: query, **self.constant}
        if self.limit_name is not None:
            sent[self.limit_name] = min(limit, _MAX_RESULTS)
        return sent

    def read(self, answer: JSONValue) -> list[SearchHit]:
        """Return the results that an answer holds; those without an address are left out.

        Raises:
            ValueError: the answer has no list of results.
        """
        found = answer
        for key in self.results:
            if not isinstance(found, Mapping):
                break
            # an engine may leave the list out where it found nothing
            found = found.get(key, [])
        if (
            not isinstance(answer, Mapping)
            or not isinstance(found, Sequence)
            or isinstance(found, str)
        ):
            raise ValueError(f"there is no list at {'.'.join(self.results)}")
        entries = [
            entry
            for entry in found
            if isinstance(entry, Mapping) and isinstance(entry.get("url"), str)
        ]
        return [
            SearchHit(
                url=str(entry["url"]),
                title=as_text(entry.get("title")),
                snippet=as_text(entry.get(self.snippet)),
            )
            for entry in entries
        ]


ENGINES: Final[Mapping[EngineName, SearchEngine]] = {
    engine.name: engine
    for engine in (
        SearchEngine(
            name="brave",
            address="https://api.search.brave.com/res/v1/web/search",
            key_variables=("BRAVE_SEARCH_API_KEY", "BRAVE_API_KEY"),
            key_header=("X-Subscription-Token", ""),
            limit_name="count",
            constant={"text_decorations": "false"},
            results=("web", "results"),
            snippet="description",
        ),
        SearchEngine(
            name="tavily",
            address="https://api.tavily.com/search",
            key_variables=("TAVILY_API_KEY",),
            query_name="query",
            limit_name="max_results",
            posts=True,
        ),
        SearchEngine(
            name="searxng",
            address=None,
            address_variable="SEARXNG_URL",
            constant={"format": "json"},
        ),
    )
}
"""The services, in the order in which the environment is asked for their keys."""
