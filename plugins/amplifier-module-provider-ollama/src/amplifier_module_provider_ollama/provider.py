"""The provider: requests out, answers in, and models that are fetched when they are missing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Collection, Mapping
from contextlib import aclosing
from typing import ClassVar, Final, Literal

import anyio

from amplifier_kit.http.sse import Comment, ServerEvent
from amplifier_kit.media.support import IMAGES, TEXT
from amplifier_kit.vendors import AnswerReader, Outgoing, VendorProvider, read_object
from amplifier_module_provider_ollama.answers import OllamaAnswer
from amplifier_module_provider_ollama.config import PUBLIC_URL, OllamaConfig, server_url
from amplifier_module_provider_ollama.faults import fault, unpulled
from amplifier_module_provider_ollama.models import (
    UNKNOWN,
    Abilities,
    model_info,
    model_names,
    read_abilities,
)
from amplifier_module_provider_ollama.requests import write_request
from amplifier_sdk import provider
from amplifier_sdk.chat import ChatRequest, ChatResponse, ModelInfo, ProviderInfo
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import LLMError, NetworkError, NotFoundError, StreamError
from amplifier_sdk.streaming import Delta, TextDelta

__all__ = ["OllamaProvider", "pull"]

# seconds between two signs of life; the server reports many times a second
_BEAT: Final = 5.0


@provider
class OllamaProvider(VendorProvider):
    """Answers with models that an Ollama server runs, on this machine by default; it needs no key."""

    name = "ollama"
    key_variable: ClassVar[str | None] = "OLLAMA_API_KEY"
    url_variable: ClassVar[str | None] = "OLLAMA_HOST"
    public_url: ClassVar[str | None] = PUBLIC_URL
    standard_model: ClassVar[str | None] = "llama3.2:3b"
    protocol_media: ClassVar[tuple[str, ...]] = (*IMAGES, TEXT)
    fetched_media: ClassVar[frozenset[str]] = frozenset()
    framing: ClassVar[Literal["sse", "lines"]] = "lines"

    def __init__(self, config: OllamaConfig, coordinator: Coordinator) -> None:
        super().__init__(config, coordinator)
        self._settings = config
        self._abilities: dict[str, Abilities] = {}

    def needs_key(self) -> bool:
        """Say no: a server asks for none; a key is sent where there is one, as Ollama's cloud wants."""
        return False

    def address(self, text: str) -> str:
        """Return the URL of the server that `OLLAMA_HOST` or the configuration names; see `server_url`.

        Raises:
            ValueError: it names none.
        """
        return server_url(text)

    def get_info(self) -> ProviderInfo:
        """Say what the provider is, and with which window models are loaded; no network."""
        return ProviderInfo(
            id=self.name,
            display_name="Ollama",
            capabilities=("streaming", "tools", "json_mode"),
            media=self.media,
            defaults={
                "model": self._settings.default_model or self.standard_model,
                "context_window": self._settings.window,
                "max_output_tokens": self._settings.longest_answer,
            },
            config_fields=self.config_fields(),
        )

    async def list_models(self) -> list[ModelInfo]:
        """Ask the server which models it has, and what each can do; those that only embed are left out.

        Raises:
            LLMError: it cannot be asked.
        """
        names = model_names(await self.get("api/tags"))
        known = {name: await self._abilities_of(name) for name in names}
        return [
            model_info(name, known[name], self._settings)
            for name in names
            if known[name].is_chatting
        ]

    async def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Stream one answer; a missing model is fetched first where `auto_pull` is set.

        Raises:
            LLMError: it cannot be had; the error names the provider and the model.
        """
        try:
            async with aclosing(self._answer(request)) as items:
                async for item in items:
                    yield item
                return
        except NotFoundError:
            if not self._settings.auto_pull:
                raise
        async with aclosing(self._fetched(self.model_of(request))) as signs:
            async for sign in signs:
                yield sign
        async with aclosing(self._answer(request)) as items:
            async for item in items:
                yield item

    async def media_of(self, model: str) -> Collection[str]:
        """Return the media types that a model takes: the server is asked once whether it sees.

        Raises:
            LLMError: the server cannot be asked.
        """
        if (await self._abilities_of(model)).can_see:
            return self.media
        return (TEXT,)

    def write(self, request: ChatRequest, model: str) -> Outgoing:
        """Write a request; see `write_request`."""
        return write_request(
            request, model, self._settings, self._abilities.get(model, UNKNOWN)
        )

    def reader(self, request: ChatRequest, model: str) -> AnswerReader:  # noqa: ARG002  # of the base class
        """Make the reader of one answer."""
        return OllamaAnswer(model)

    def refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> LLMError:
        """Return the error for an answer that is none, with what to do about a missing model; see `fault`."""
        return fault(status, headers, body)

    async def _answer(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Stream an answer; what a model can do is asked for once, when a request says how to think."""
        try:
            if request.reasoning_effort is not None:
                await self._abilities_of(self.model_of(request))
            async with aclosing(super().deltas(request)) as items:
                async for item in items:
                    yield item
        except NetworkError as error:
            error.args = (
                f"{error}; start it with `ollama serve`, or say with `OLLAMA_HOST` or `host` where it is",
            )
            raise

    async def _abilities_of(self, model: str) -> Abilities:
        if model not in self._abilities:
            self._abilities[model] = read_abilities(
                await self.post("api/show", {"model": model})
            )
        return self._abilities[model]

    async def _fetched(self, model: str) -> AsyncGenerator[Delta, None]:
        """Let the server fetch a model; empty deltas show that it works."""
        outgoing = Outgoing(path="api/pull", body={"model": model, "stream": True})
        try:
            events = self.events(outgoing, timeout=self._settings.pull_timeout)
            async with aclosing(events), aclosing(pull(events, model)) as signs:
                async for sign in signs:
                    yield sign
        except LLMError as error:
            self.name_error(error, model)
            raise


async def pull(
    events: AsyncIterable[ServerEvent | Comment], model: str
) -> AsyncGenerator[TextDelta, None]:
    """Read a fetch to its end; empty deltas are signs of life.

    Args:
        events: the lines; whoever gives them closes them.
        model: what is fetched, for messages.

    Raises:
        LLMError: the model cannot be fetched, or the report broke off.
    """
    shown = -_BEAT
    async for event in events:
        if isinstance(event, Comment):
            continue
        line = read_object(event.data)
        if (problem := line.get("error")) is not None:
            raise unpulled(problem, model)
        if line.get("status") == "success":
            return
        if anyio.current_time() - shown >= _BEAT:
            shown = anyio.current_time()
            yield TextDelta(text="")
    raise StreamError(
        f"Ollama stopped to fetch the model {model!r} before it was there; ask again to go on"
    )
