"""The base class of vendors' providers: write requests, read answers, get the rest."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import attrs

from amplifier_kit.http.sse import Comment, ServerEvent
from amplifier_kit.media.support import IMAGES, TEXT
from amplifier_kit.vendors.addresses import check_address
from amplifier_kit.vendors.config import VendorConfig
from amplifier_kit.vendors.connection import VendorConnection
from amplifier_kit.vendors.costs import Costs
from amplifier_kit.vendors.headers import is_header_value
from amplifier_kit.vendors.payloads import storable
from amplifier_kit.vendors.redaction import Withholder
from amplifier_kit.vendors.refusals import refusal
from amplifier_kit.vendors.request import AnswerReader, Outgoing
from amplifier_kit.vendors.slots import Slots
from amplifier_sdk.chat import (
    ChatRequest,
    ChatResponse,
    ConfigField,
    ProviderInfo,
    Usage,
)
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import ConfigError, ConfigurationError, LLMError, Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.providers import BaseProvider
from amplifier_sdk.secret import Secret
from amplifier_sdk.streaming import Delta

if TYPE_CHECKING:
    import httpx2

__all__ = ["VendorProvider"]

_MAX_ANSWER: Final = 32_000
"""The tokens of an answer that nothing limits."""

_NO_MODEL: Final = "No model is named: give the request one, or set `default_model`"


class VendorProvider(BaseProvider):
    """A provider that speaks a vendor's API over HTTP.

    Write `write` and `reader`, and an `__init__` whose `config` has the vendor's own class. The request that both are
    given has its blanks filled in from the configuration (`temperature`, `max_output_tokens`), and its messages are
    sound: every call is answered directly behind it.

    Attributes:
        key_variable: the environment variable of the key; `None` when the vendor has none.
        url_variable: the environment variable of the address.
        public_url: the vendor's public address.
        standard_model: the model of requests that name none, when the configuration names none either.
        price_vendor: how the price table calls the vendor; default it is found by the address.
        protocol_media: the media types that the vendor's API has a form for.
        has_text_documents: whether documents of text are one of them; else they go as text.
        fetched_media: the kinds, such as `image`, of which the vendor takes an address or a file that it keeps.
        framing: how the events of an answer follow each other.
        transport: what carries requests, replaced in tests; default the network.
        media: the media types that requests may show, by the configuration or else the API.
        mounted_name: how the session calls the provider; its own name outside one.
        slots: what `max_concurrent_requests` leaves free.
        costs: what the answers cost.
        withholder: takes secrets out of texts.

    Raises:
        ConfigError: the key is missing, or the address is none.
    """

    key_variable: ClassVar[str | None] = None
    url_variable: ClassVar[str | None] = None
    public_url: ClassVar[str | None] = None
    standard_model: ClassVar[str | None] = None
    price_vendor: ClassVar[str | None] = None
    protocol_media: ClassVar[tuple[str, ...]] = (TEXT,)
    has_text_documents: ClassVar[bool] = False
    fetched_media: ClassVar[frozenset[str]] = frozenset({"image", "document"})
    framing: ClassVar[Literal["sse", "lines"]] = "sse"
    transport: httpx2.AsyncBaseTransport | None = None

    def __init__(self, config: VendorConfig, coordinator: Coordinator) -> None:
        self.config: VendorConfig = config
        self.coordinator: Coordinator = coordinator
        self.media: tuple[str, ...] = self._taken_media()
        self.priority: float = config.priority
        self.base_url: str = self._base_url()
        self.key: Secret | None = self._key()
        self.slots: Slots = Slots(config.max_concurrent_requests)
        self.costs: Costs = Costs(
            self.name, config.prices, self.price_vendor, self.base_url
        )
        self.withholder: Withholder = Withholder()
        self._connection = VendorConnection(self)
        coordinator.register_contributor(
            "session.cost", self.name, self.costs.contribution
        )

    @abstractmethod
    def write(self, request: ChatRequest, model: str) -> Outgoing:
        """Write a request in the vendor's words.

        Raises:
            LLMError: the vendor could not be asked this.
        """

    @abstractmethod
    def reader(self, request: ChatRequest, model: str) -> AnswerReader:
        """Make the reader of one answer to this request."""

    async def media_of(self, model: str) -> Collection[str]:  # noqa: ARG002  # of vendors that know
        """Return the media types that one model takes; asked only for requests that show media, unless configured."""
        return self.media

    async def credentials(self) -> Mapping[str, str]:
        """Return the headers that say who asks; called for each try. By default the key as a bearer's."""
        if self.key is None:
            return {}
        return {"Authorization": f"Bearer {self.key.reveal()}"}

    def headers(self) -> Mapping[str, str]:
        """Return what every request's headers say that is no secret, such as the API's version."""
        return {}

    def refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> LLMError:
        """Return the error for an answer that is none; a vendor refines it by codes of its own, never by text alone.

        Args:
            status: the HTTP status, or the one that an error inside the answer names.
            headers: of the answer, names in lower case.
            body: the beginning of it.
        """
        return refusal(status, headers, body)

    def key_source(self) -> str | None:
        """Return the environment variable that holds the key for this address; `None` when there is none."""
        return self.key_variable

    def needs_key(self) -> bool:
        """Tell whether the provider cannot be mounted without a key; by default when there is a variable for it."""
        return self.key_source() is not None

    def address(self, text: str) -> str:
        """Return the address that a configured text means.

        Raises:
            ValueError: it means none.
        """
        return check_address(text, "base_url")

    def get_info(self) -> ProviderInfo:
        """Say what the provider is, with the model of its configuration."""
        model = self.config.default_model or self.standard_model
        variable = self.key_source()
        return ProviderInfo(
            id=self.name,
            display_name=self.name,
            credential_env_vars=() if variable is None else (variable,),
            capabilities=("streaming", "tools"),
            media=self.media,
            defaults={} if model is None else {"model": model},
            config_fields=self.config_fields(),
        )

    def config_fields(self) -> tuple[ConfigField, ...]:
        """Return what a person is asked for: the key, the address, the model."""
        fields = [
            ConfigField(
                id="base_url",
                display_name="Address",
                prompt="The address of the API",
                env_var=self.url_variable,
                default=self.public_url,
                required=self.public_url is None,
            ),
            ConfigField(
                id="default_model",
                display_name="Model",
                prompt="The model of requests that name none",
                default=self.standard_model,
                required=self.standard_model is None,
                requires_model=True,
            ),
        ]
        variable = self.key_source()
        if variable is not None:
            key = ConfigField(
                id="api_key",
                display_name="API key",
                prompt="The key of your account",
                field_type="secret",
                env_var=variable,
                required=self.needs_key(),
            )
            fields.insert(0, key)
        return tuple(fields)

    def model_of(self, request: ChatRequest) -> str:
        """Return the model that answers a request.

        Raises:
            ConfigurationError: nobody names one.
        """
        model = request.model or self.config.default_model or self.standard_model
        if model is None:
            raise ConfigurationError(_NO_MODEL)
        return model

    def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Stream one answer; while it waits, and when the vendor shows that it lives, empty deltas do the same here.

        Raises:
            LLMError: it cannot be had; the error names the provider and the model.
        """
        # imports tenacity, which only requests need
        from amplifier_kit.vendors.exchange import Answering

        return Answering(self, request).deltas()

    async def get(self, path: str) -> JSONValue:
        """Return the JSON at a path, with the credentials, errors and tries that requests have.

        Raises:
            LLMError: it cannot be had.
        """
        return await self._connection.json(path, None)

    async def post(self, path: str, body: JSONObject) -> JSONValue:
        """Post an object and return the JSON of the answer, as `get` does.

        Raises:
            LLMError: it cannot be had.
        """
        return await self._connection.json(path, body)

    def events(
        self,
        outgoing: Outgoing,
        *,
        timeout: float | None = None,
        heard: Callable[[Mapping[str, str]], None] | None = None,
        is_over: Callable[[], bool] | None = None,
    ) -> AsyncGenerator[ServerEvent | Comment, None]:
        """Post a request and yield the events of the answer, once, as they arrive.

        Args:
            outgoing: what is posted, as it is.
            timeout: seconds for all of it; default the configuration's.
            heard: gets the headers of an answer that is no refusal.
            is_over: asked after each event; true ends the reading.

        Raises:
            LLMError: the vendor refused, was silent, or broke off; it names no provider yet.
        """
        return self._connection.events(outgoing, timeout, heard, is_over)

    @property
    def account(self) -> str:
        """What the vendor limits together, by key and address; see `amplifier_sdk.contracts.MeteredProvider`."""
        key = "" if self.key is None else self.key.reveal()
        # too short to find a key by it, and long enough to tell an operator's keys apart
        mark = sha256(f"{self.base_url}\0{key}".encode()).hexdigest()[:8]
        return f"{self.name}-{mark}"

    async def max_usage(self, request: ChatRequest) -> Usage:
        """Return what a request uses at most, by its own limit or the configuration's, and costs where that is known.

        Raises:
            ConfigurationError: nobody names a model.
        """
        # few limit requests
        from amplifier_kit.compaction.meters import most_of_text, most_tokens

        sent = sum(most_tokens(message.to_dict()) for message in request.messages)
        for tool in request.tools or ():
            sent += most_of_text(f"{tool.name}{tool.description}{tool.parameters}")
        limits = (
            request.max_output_tokens,
            self.config.max_tokens,
            self.get_info().defaults.get("max_output_tokens"),
        )
        answer = next((each for each in limits if isinstance(each, int)), _MAX_ANSWER)
        usage = Usage(
            input_tokens=sent, output_tokens=answer, total_tokens=sent + answer
        )
        # a vendor may write all of it to its cache, which costs more
        cached = attrs.evolve(usage, cache_write_tokens=sent)
        model = self.model_of(request)
        costs = [await self.costs.price(model, each) for each in (usage, cached)]
        known = [cost for cost in costs if cost is not None]
        return attrs.evolve(usage, cost_usd=max(known, default=None))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    def complete_outgoing(self, outgoing: Outgoing) -> Outgoing:
        """Add the configuration's `extra_request_params` to what is sent."""
        extra = self.config.extra_request_params
        if extra:
            return attrs.evolve(outgoing, body={**outgoing.body, **extra})
        return outgoing

    def name_error(self, error: LLMError, model: str | None) -> None:
        """Let an error say whose it is, no secret, and nothing that cannot be written."""
        error.provider = error.provider or self.mounted_name
        error.model = error.model or model
        for named in filter(None, (error, error.__cause__)):
            named.args = tuple(
                storable(self.withholder.text(part)) if isinstance(part, str) else part
                for part in named.args
            )

    @property
    def mounted_name(self) -> str:
        """How the session calls the provider; its own name outside one."""
        providers = self.coordinator.get("providers")
        mounted = providers.items() if isinstance(providers, Mapping) else ()
        return next((name for name, provider in mounted if provider is self), self.name)

    def _taken_media(self) -> tuple[str, ...]:
        wanted = self.config.media
        if wanted is None:
            wanted = self.protocol_media
        known = ", ".join(self.protocol_media)
        problems = [
            Problem("media", f"{name!r} has no form in this API; it has {known}")
            for name in wanted
            if name not in self.protocol_media
        ]
        if problems:
            raise ConfigError(
                problems, subject=f"configuration of provider {self.name!r}"
            )
        # the older word for models that cannot see
        if self.config.max_images == 0:
            wanted = tuple(name for name in wanted if name not in IMAGES)
        return tuple(wanted)

    def _base_url(self) -> str:
        text = self.config.base_url or _variable(self.url_variable) or self.public_url
        if text is None:
            raise ConfigError.of(
                "base_url",
                f"missing; the address of the API{_or_set(self.url_variable)}",
            )
        try:
            return self.address(text)
        except ValueError as error:
            raise ConfigError.of("base_url", str(error)) from None

    def _key(self) -> Secret | None:
        given = (
            self.config.api_key.reveal()
            if self.config.api_key
            else _variable(self.key_source())
        )
        key = (given or "").strip()
        if not key:
            if self.needs_key():
                raise ConfigError.of(
                    "api_key",
                    f"missing; the key of your account{_or_set(self.key_source())}",
                    subject=f"configuration of provider {self.name!r}",
                )
            return None
        if not is_header_value(key):
            raise ConfigError.of(
                "api_key", "holds characters that no key can have (not shown)"
            )
        return Secret(key)


def _variable(name: str | None) -> str | None:
    if name is not None:
        return os.environ.get(name) or None
    return None


def _or_set(variable: str | None) -> str:
    if variable is None:
        return ""
    return f", or the environment variable {variable}"
