"""A provider's connection to its vendor: opened by the first request, with credentials for each."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING

import anyio
import attrs
from anyio import to_thread

from amplifier_kit.http.sse import Comment, ServerEvent
from amplifier_kit.vendors.addresses import address_secrets
from amplifier_kit.vendors.redaction import is_withheld
from amplifier_kit.vendors.request import Outgoing
from amplifier_sdk.errors import LLMError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

if TYPE_CHECKING:
    from amplifier_kit.vendors.client import Exchange, VendorClient
    from amplifier_kit.vendors.provider import VendorProvider

__all__ = ["VendorConnection"]


@attrs.define(eq=False, repr=False)
class VendorConnection:
    """What one provider sends goes through here."""

    provider: VendorProvider
    _client: VendorClient | None = attrs.field(default=None, init=False)
    _opening: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)

    async def events(
        self,
        outgoing: Outgoing,
        timeout: float | None,
        heard: Callable[[Mapping[str, str]], None] | None,
        is_over: Callable[[], bool] | None,
    ) -> AsyncGenerator[ServerEvent | Comment, None]:
        """Post a request once and yield the events of the answer; see `VendorProvider.events`."""
        client = await self._opened()
        call = await self._call(outgoing.path, outgoing.body, outgoing.headers)
        call = attrs.evolve(
            call, timeout=timeout or call.timeout, heard=heard, is_over=is_over
        )
        async with aclosing(
            client.events(call, framing=self.provider.framing)
        ) as events:
            async for event in events:
                yield event

    async def json(self, path: str, body: JSONObject | None) -> JSONValue:
        """Get a path, or post to it, and return the JSON of the answer; transient failures are retried.

        Raises:
            LLMError: it cannot be had; it names the provider.
        """
        # Both import tenacity, which a mounted provider that is never asked does not need.
        from amplifier_kit.vendors.reports import report_retry
        from amplifier_kit.vendors.retries import tries

        attempts = tries(self.provider.config)
        while True:
            attempt = next(attempts)
            if attempt.error is not None:
                await report_retry(self.provider, attempt, attempt.error, None)
                await anyio.sleep(attempt.delay)
            try:
                client = await self._opened()
                return await client.json(await self._call(path, body, {}))
            except LLMError as error:
                self.provider.name_error(error, None)
                attempt.fail(error)

    async def aclose(self) -> None:
        """Close the pooled connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _opened(self) -> VendorClient:
        # two first requests at once would otherwise make two clients, and leak
        # one
        async with self._opening:
            if self._client is None:
                # Importing HTTP and loading certificates take a fifth of a second.
                is_scripted = self.provider.transport is not None
                if is_scripted:
                    self._client = self._open()
                else:
                    self._client = await to_thread.run_sync(self._open)
            return self._client

    def _open(self) -> VendorClient:
        # a mounted provider may never be asked
        from amplifier_kit.vendors.client import VendorClient

        provider, config = self.provider, self.provider.config
        return VendorClient.open(
            provider.base_url,
            idle_timeout=config.idle_timeout,
            proxy=config.proxy,
            transport=provider.transport,
        )

    async def _call(
        self, path: str, body: JSONObject | None, headers: Mapping[str, str]
    ) -> Exchange:
        # a mounted provider may never be asked
        from amplifier_kit.vendors.client import Exchange

        provider, config = self.provider, self.provider.config
        given, extra = await provider.credentials(), config.extra_headers
        # before anything is sent, so that no report of the exchange can show them
        provider.withholder.learn(
            *address_secrets(provider.base_url),
            *address_secrets(config.proxy or ""),
            *(value for name, value in extra.items() if is_withheld(name)),
            *given.values(),
        )
        parts = (provider.headers(), headers, given, extra)
        return Exchange(
            path=path,
            body=body,
            headers={
                name.lower(): value for part in parts for name, value in part.items()
            },
            refuse=provider.refusal,
            timeout=config.timeout,
        )
