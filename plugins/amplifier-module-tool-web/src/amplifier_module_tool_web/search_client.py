"""The search services that are known here, and asking one over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs
from anyio import to_thread

from amplifier_kit.http.answers import ending
from amplifier_kit.http.web_search import SearchHit
from amplifier_kit.trust.untrusted import without_marks
from amplifier_module_tool_web.config import EngineName
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.secret import WITHHELD, Secret

if TYPE_CHECKING:
    import httpx2  # nobody may ever search

__all__ = ["ENGINES", "EngineBackend", "SearchEngine"]

_MOST_BYTES: Final = 2 * 1024 * 1024
_SHOWN: Final = 300


@attrs.define(eq=False, kw_only=True)
class EngineBackend:
    """A search service as a backend.

    Args:
        engine: which service.
        address: where it is; the configuration's word, so it may be on a private network.
        key: its key, for a service that needs one.
        idle_timeout: seconds of silence after which it is given up.
        user_agent: who asks.
    """

    engine: SearchEngine
    address: str
    key: Secret | None
    idle_timeout: float
    user_agent: str

    @property
    def name(self) -> str:
        """The service's name."""
        return self.engine.name

    async def search(self, query: str, limit: int, /) -> Sequence[SearchHit]:
        """Ask the service.

        Raises:
            ToolError: it cannot be reached, refuses, or answers with what is no list of results.
        """
        import httpx2  # nobody may ever search

        try:
            status, data = await self._send(query, limit)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._failure(
                f"cannot be asked ({str(error) or type(error).__name__})",
                "try again later",
            ) from error
        if status != 200:
            raise self._failure(
                f"answers with status {status}: {self._shown(data)}", _advice(status)
            )
        try:
            answer: JSONValue = json.loads(data)
            return self.engine.read(answer)[:limit]
        except (ValueError, RecursionError) as error:
            shown = self._shown(data)
            raise self._failure(
                f"answers with what is no result ({error}): {shown}", "try again later"
            ) from error

    async def _send(self, query: str, limit: int) -> tuple[int, bytes]:
        import httpx2  # nobody may ever search

        from amplifier_kit.vendors.transport import network

        # Importing HTTP and reading certificates takes a fifth of a second.
        transport = await to_thread.run_sync(network, self.address)
        async with httpx2.AsyncClient(
            transport=transport, timeout=self.idle_timeout, trust_env=False
        ) as client:
            answer = await client.send(self._request(query, limit), stream=True)
            try:
                return answer.status_code, await self._read(answer)
            finally:
                await answer.aclose()

    def _request(self, query: str, limit: int) -> httpx2.Request:
        import httpx2  # nobody may ever search

        address, sent = httpx2.URL(self.address), self.engine.parameters(query, limit)
        if self.engine.address is None and not address.path.endswith("/search"):
            address = address.copy_with(path=f"{address.path.rstrip('/')}/search")
        if self.engine.posts:
            return httpx2.Request("POST", address, json=sent, headers=self._headers())
        texts = {name: str(value) for name, value in sent.items()}
        return httpx2.Request(
            "GET", address.copy_merge_params(texts), headers=self._headers()
        )

    def _headers(self) -> dict[str, str]:
        headers = {
            "User-Agent": self.user_agent,
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        if self.key is not None:
            name, before = self.engine.key_header
            headers[name] = before + self.key.reveal()
        return headers

    async def _read(self, answer: httpx2.Response) -> bytes:
        data = bytearray()
        async with ending(answer.aiter_raw()) as chunks:
            async for chunk in chunks:
                data += chunk
                if len(data) > _MOST_BYTES:
                    raise self._failure(
                        f"answers with more than {_MOST_BYTES} bytes", "ask for less"
                    )
        return bytes(data)

    def _shown(self, data: bytes) -> str:
        text = without_marks(data.decode("utf-8", "replace"))
        if self.key is not None:
            text = text.replace(self.key.reveal(), WITHHELD)
        return " ".join(text.split())[:_SHOWN]

    def _failure(self, what: str, remedy: str) -> ToolError:
        return ToolError(
            f"The search failed, there are no results: {self.name} {what}; {remedy}"
        )


def _advice(status: int) -> str:
    if status in (401, 403):
        return "its key is missing, wrong or used up: check api_key"
    if status == 429:
        return "it is asked too often: wait, or search less"
    return "try again later, or another engine"


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
        most: the most results that may be asked for.
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
    most: int = 20
    constant: Mapping[str, str] = attrs.field(factory=dict)
    posts: bool = False
    results: Sequence[str] = ("results",)
    snippet: str = "content"

    def parameters(self, query: str, limit: int) -> JSONObject:
        """Return what is sent for a query."""
        sent: JSONObject = {self.query_name: query, **self.constant}
        if self.limit_name is not None:
            sent[self.limit_name] = min(limit, self.most)
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
                title=_text(entry.get("title")),
                snippet=_text(entry.get(self.snippet)),
            )
            for entry in entries
        ]


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return ""


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
