"""The model made ready when it is first needed: weights in the cache, one server for all requests of a provider.

What may take long yields signs of life while it lasts, so that whoever waits can tell it from a stall.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

import anyio
import attrs

from amplifier_kit.vendors.slots import SIGN_OF_LIFE, Slots
from amplifier_module_provider_local.config import LocalConfig
from amplifier_module_provider_local.server import ModelServer, ServerSettings
from amplifier_module_provider_local.weights import (
    EMBEDDED,
    ModelFile,
    Release,
    cache_directory,
    embedded_file,
    own_file,
)
from amplifier_sdk.errors import LLMTimeoutError, NetworkError, ProviderUnavailableError
from amplifier_sdk.jsontypes import JSONObject

if TYPE_CHECKING:
    from amplifier_module_provider_local.wire import AnswerItem

__all__ = ["ServerProcess", "StillWaiting"]


@attrs.frozen
class StillWaiting:
    """A sign of life: what was asked for is not there yet."""


@attrs.define(eq=False)
class ServerProcess:
    """Starts the server, hands it out, starts it anew when it died, and ends it.

    Args:
        config: the provider's configuration.
        release: the weights to use when the configuration names no file.
    """

    config: LocalConfig
    release: Release = EMBEDDED
    _server: ModelServer | None = attrs.field(default=None, init=False)
    _closed: bool = attrs.field(default=False, init=False)
    _preparing: Slots = attrs.field(factory=lambda: Slots(1), init=False)
    _slots: Slots = attrs.field(
        default=attrs.Factory(
            lambda self: Slots(self.config.n_parallel), takes_self=True
        ),
        init=False,
    )

    async def ready(self) -> AsyncGenerator[StillWaiting | ModelServer, None]:
        """Yield the running server as the last item.

        Raises:
            ConfigurationError: the configuration names a model that cannot be used.
            ProviderUnavailableError: the weights cannot be fetched, the server does not start, or it was closed.
        """
        async with aclosing(self._preparing.take()) as waits:
            async for _ in waits:
                yield StillWaiting()
        try:
            server = await self._running()
            if server is None:
                file: ModelFile | None = None
                async with aclosing(self._model_file()) as steps:
                    async for step in steps:
                        if isinstance(step, ModelFile):
                            file = step
                        else:
                            yield step
                assert file is not None
                server = await self._start(file)
        finally:
            self._preparing.give_back()
        yield server

    async def answer(
        self, body: JSONObject
    ) -> AsyncGenerator[StillWaiting | AnswerItem, None]:
        """Stream the answer to one chat request, with the server that runs or a new one.

        Raises:
            LLMError: the server cannot be had, refused, or broke off.
        """
        async with aclosing(self._slots.take()) as waits:
            async for _ in waits:
                yield StillWaiting()
        try:
            for is_last in (False, True):
                try:
                    async with aclosing(self._answer(body)) as items:
                        async for item in items:
                            yield item
                except NetworkError:
                    # the server died unseen, before it had the request
                    if is_last:
                        raise
                else:
                    return
        finally:
            self._slots.give_back()

    async def aclose(self) -> None:
        """End the server; no request can be made any more."""
        self._closed = True
        if self._server is not None:
            await self._drop(self._server)

    async def _answer(
        self, body: JSONObject
    ) -> AsyncGenerator[StillWaiting | AnswerItem, None]:
        async with aclosing(self.ready()) as steps:
            async for step in steps:
                if isinstance(step, StillWaiting):
                    yield step
                    continue
                try:
                    async with aclosing(step.wire.answer(body)) as items:
                        async for item in items:
                            yield item
                except (NetworkError, LLMTimeoutError):
                    # it is dead, or stuck: one that is at work is never silent
                    await self._drop(step)
                    raise

    async def _running(self) -> ModelServer | None:
        if self._closed:
            raise ProviderUnavailableError("The provider was closed", retryable=False)
        if self._server is not None and not self._server.is_running:
            await self._drop(self._server)
        return self._server

    async def _model_file(self) -> AsyncGenerator[StillWaiting | ModelFile, None]:
        if self.config.model_path is not None:
            yield await own_file(self.config.model_path, self.config.sha256)
            return
        last = anyio.current_time()
        async with aclosing(
            embedded_file(self.release, cache_directory(self.config))
        ) as steps:
            async for step in steps:
                if isinstance(step, ModelFile):
                    yield step
                elif anyio.current_time() - last >= SIGN_OF_LIFE:
                    last = anyio.current_time()
                    yield StillWaiting()

    async def _start(self, file: ModelFile) -> ModelServer:
        config = self.config
        server = await ModelServer.start(
            ServerSettings(
                path=file.path,
                n_ctx=config.n_ctx,
                n_parallel=config.n_parallel,
                threads=config.threads,
                start_timeout=config.start_timeout,
            )
        )
        self._server = server
        if self._closed:
            await self._drop(server)
            raise ProviderUnavailableError("The provider was closed", retryable=False)
        return server

    async def _drop(self, server: ModelServer) -> None:
        """End a server; one that was started in its place stays."""
        if self._server is server:
            self._server = None
        await server.aclose()
