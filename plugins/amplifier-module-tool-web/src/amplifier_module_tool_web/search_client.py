"""Asking a search service over HTTP."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs
from anyio import to_thread

from amplifier_kit.http.answers import ending
from amplifier_kit.http.web_search import SearchHit
from amplifier_kit.trust.untrusted import without_marks
from amplifier_module_tool_web.engines import SearchEngine
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.secret import WITHHELD, Secret

if TYPE_CHECKING:
    import httpx2  # nobody may ever search

__all__ = ["EngineBackend"]

_MAX_BYTES: Final = 2 * 1024 * 1024
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
                if len(data) > _MAX_BYTES:
                    raise self._failure(
                        f"answers with more than {_MAX_BYTES} bytes", "ask for less"
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
