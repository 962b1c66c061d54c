"""Searches: who is asked, and what of the answer a model gets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import attrs

from amplifier_kit.http.netguard import NetPolicy, WebError, read_url
from amplifier_kit.http.web_search import SEARCH_BACKEND, SearchBackend, SearchHit
from amplifier_kit.trust.untrusted import UNTRUSTED, mark_untrusted
from amplifier_module_tool_web.config import WebConfig
from amplifier_module_tool_web.engines import ENGINES, SearchEngine
from amplifier_module_tool_web.search_client import EngineBackend
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.secret import Secret

__all__ = ["Searcher"]

_TITLE: Final = 300
_SNIPPET: Final = 2000


@attrs.define(eq=False)
class Searcher:
    """Searches for one session."""

    config: WebConfig
    coordinator: Coordinator
    policy: NetPolicy

    async def search(self, query: str, limit: int | None) -> JSONObject:
        """Return the results of a search.

        Raises:
            ToolError: nobody can be asked, or the search failed; results are never made up.
        """
        if not query.strip():
            raise ToolError("the query is empty; write what to search for")
        maximum = min(
            self.config.max_results if limit is None else limit, self.config.max_results
        )
        if maximum < 1:
            raise ToolError(f"max_results is 1 or more; got {limit}")
        backend = self._backend()
        hits = [
            hit
            for hit in await backend.search(query, maximum)
            # a model would try an address that `web_fetch` refuses
            if self._may_be_fetched(hit)
        ][:maximum]
        return {
            "query": query,
            "engine": backend.name,
            "trust": UNTRUSTED,
            "count": len(hits),
            "results": [_shown(hit, backend.name) for hit in hits],
        }

    def _may_be_fetched(self, hit: SearchHit) -> bool:
        try:
            self.policy.check_url(read_url(hit.url))
        except WebError:
            return False
        return True

    def _backend(self) -> SearchBackend:
        # what is configured takes precedence over what happens to be registered
        if self.config.search_engine is not None:
            return self._engine(ENGINES[self.config.search_engine])
        registered = self.coordinator.get_capability(SEARCH_BACKEND)
        if isinstance(registered, SearchBackend):
            return registered
        # another service must not get the query of one that was chosen by registering
        if registered is not None:
            raise ToolError(
                f"the capability {SEARCH_BACKEND!r} holds a {type(registered).__name__}, which cannot search;"
                " register an object with a name and an async search(query, limit)"
            )
        for engine in ENGINES.values():
            if _from_environment([*engine.key_variables, engine.address_variable]):
                return self._engine(engine)
        raise ToolError(
            "no search engine is configured, so nothing was searched; set search_engine and its key in the"
            " configuration of tool-web, or one of the variables BRAVE_SEARCH_API_KEY, TAVILY_API_KEY, SEARXNG_URL"
        )

    def _engine(self, engine: SearchEngine) -> EngineBackend:
        address = (
            self.config.search_url
            or _from_environment([engine.address_variable])
            or engine.address
        )
        if address is None:
            raise ToolError(
                f"{engine.name} has no address; set search_url or {engine.address_variable}"
            )
        found = _from_environment(engine.key_variables)
        key = self.config.api_key or (Secret(found) if found else None)
        if engine.key_variables and key is None:
            raise ToolError(
                f"{engine.name} needs a key; set api_key or {engine.key_variables[0]}"
            )
        return EngineBackend(
            engine=engine,
            address=address,
            key=key,
            idle_timeout=self.config.idle_timeout,
            user_agent=self.config.user_agent,
        )


def _from_environment(names: Sequence[str | None]) -> str:
    return next(
        (
            value
            for name in names
            if name and (value := os.environ.get(name, "").strip())
        ),
        "",
    )


def _shown(hit: SearchHit, source: str) -> JSONObject:
    text = "\n".join(filter(None, (hit.title[:_TITLE], hit.snippet[:_SNIPPET])))
    return {
        "url": str(read_url(hit.url)),
        "content": mark_untrusted(text, f"search:{source}"),
    }
