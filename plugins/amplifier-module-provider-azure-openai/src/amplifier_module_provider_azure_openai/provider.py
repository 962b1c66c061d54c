"""The provider: a resource's address, its deployments, its credentials, and what its content filters say."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final
from urllib.parse import SplitResult, urlencode, urlsplit, urlunsplit

import attrs

from amplifier_kit.open_data import as_object
from amplifier_kit.vendors import AnswerReader, Outgoing, read_problem
from amplifier_kit.vendors.addresses import check_address
from amplifier_kit.vendors.responses import ResponsesProvider, ResponsesReader
from amplifier_kit.vendors.responses.names import original_names
from amplifier_module_provider_azure_openai.config import AzureConfig
from amplifier_module_provider_azure_openai.tokens import CommandTokens
from amplifier_sdk import provider
from amplifier_sdk.chat import (
    ChatRequest,
    ChatResponse,
    ConfigField,
    ModelInfo,
    ProviderInfo,
)
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import AuthenticationError, LLMError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.secret import Secret

__all__ = [
    "CONTENT_FILTERS",
    "AzureOpenAIProvider",
    "FilteredReader",
    "address_of",
    "filtered_categories",
    "path_of",
]

CONTENT_FILTERS: Final = "azure:content_filters"
"""The key of an answer's metadata with what the filters found in the prompt and in the answer."""

_ROOT: Final = "/openai"
_V1: Final = "/openai/v1"

_TOKEN_VARIABLE: Final = "AZURE_OPENAI_AD_TOKEN"  # noqa: S105  # the name of a variable


@provider
class AzureOpenAIProvider(ResponsesProvider):
    """Answers with the deployments of an Azure OpenAI resource."""

    name = "azure-openai"
    title = "Azure OpenAI"
    key_variable: ClassVar[str | None] = "AZURE_OPENAI_API_KEY"
    url_variable: ClassVar[str | None] = "AZURE_OPENAI_ENDPOINT"
    price_vendor: ClassVar[str | None] = "azure"

    def __init__(self, config: AzureConfig, coordinator: Coordinator) -> None:
        self._own: Final = config
        self._tokens: Final = (
            None
            if config.credential is None
            else CommandTokens(config.credential, config.credential_timeout)
        )
        filled = attrs.evolve(
            config,
            base_url=config.base_url or config.azure_endpoint,
            default_model=config.default_model or config.default_deployment,
        )
        super().__init__(filled, coordinator)

    def needs_key(self) -> bool:
        """Tell whether a key must be there: tokens take its place."""
        return not self._own.has_token and not os.environ.get(_TOKEN_VARIABLE)

    def address(self, text: str) -> str:
        """Return the address of the API at an endpoint.

        Raises:
            ValueError: it is none.
        """
        return address_of(text, self._own.api_version)

    async def credentials(self) -> Mapping[str, str]:
        """Return the token or the key; a command for tokens is asked when there is none that holds.

        Raises:
            AuthenticationError: the command gives no token.
        """
        token = await self._token()
        if token is not None:
            return {"Authorization": f"Bearer {token.reveal()}"}
        if self.key is None:
            return {}
        return {"api-key": self.key.reveal()}

    def wire_model(self, model: str) -> str:
        """Return the deployment of a model."""
        return (
            self._own.deployment_mapping.get(model)
            or self._own.default_deployment
            or model
        )

    def write(self, request: ChatRequest, model: str) -> Outgoing:
        """Write one request.

        Raises:
            InvalidRequestError: a part of the request is none that can be written.
        """
        outgoing = super().write(request, model)
        return attrs.evolve(
            outgoing, path=path_of(outgoing.path, self._own.api_version)
        )

    def reader(self, request: ChatRequest, model: str) -> AnswerReader:  # noqa: ARG002  # all models answer alike
        """Return the reader of one answer."""
        return FilteredReader(original_names(request.tools or ()))

    def refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> LLMError:
        """Return the error for an answer that is none; a cached token that is refused is replaced, once."""
        error = super().refusal(status, headers, body)
        if type(error) is AuthenticationError and self._tokens is not None:
            error.retryable = not self._tokens.is_fresh
            self._tokens.forget()
        if categories := filtered_categories(read_problem(body)):
            error.args = (f"{error}; filtered: {categories}",)
        return error

    def get_info(self) -> ProviderInfo:
        """Say what the provider is; a default deployment stands for a model."""
        info = super().get_info()
        return attrs.evolve(
            info, credential_env_vars=(*info.credential_env_vars, _TOKEN_VARIABLE)
        )

    def config_fields(self) -> tuple[ConfigField, ...]:
        """Return what a person is asked for: the endpoint and the deployment in place of an address and a model."""
        endpoint = ConfigField(
            id="azure_endpoint",
            display_name="Endpoint",
            prompt="The address of the resource, such as https://NAME.openai.azure.com",
            env_var=self.url_variable,
        )
        deployment = ConfigField(
            id="default_deployment",
            display_name="Deployment",
            prompt="The deployment of requests that name no model",
        )
        own = {"base_url": endpoint, "default_model": deployment}
        return tuple(own.get(field.id, field) for field in super().config_fields())

    async def list_models(self) -> list[ModelInfo]:
        """List the models of the configuration; Azure reports no deployments to an account with a key."""
        names = [*self._own.deployment_mapping, self.config.default_model]
        return [
            self.described(name) for name in dict.fromkeys(names) if name is not None
        ]

    async def _token(self) -> Secret | None:
        if self._tokens is not None:
            return await self._tokens.get()
        if self._own.azure_ad_token is not None:
            return self._own.azure_ad_token
        given = None
        if not self._own.api_key:
            given = os.environ.get(_TOKEN_VARIABLE)
        if given:
            return Secret(given)
        return None


def address_of(endpoint: str, api_version: str | None) -> str:
    """Return the address of the API at an endpoint, which may be the resource's or have the API's path already.

    A dated version has its own path; all others are the address without versions.

    Raises:
        ValueError: the endpoint is no http or https address with a host.
    """
    parts = urlsplit(check_address(endpoint, "azure_endpoint"))
    path = parts.path.rstrip("/")
    if not path.endswith((_ROOT, _V1)):
        path += _ROOT
    if path.endswith(_ROOT) and not _is_dated(api_version):
        path += "/v1"
    return urlunsplit(SplitResult(parts.scheme, parts.netloc, path, parts.query, ""))


def path_of(path: str, api_version: str | None) -> str:
    """Return a path with the version that it is asked in."""
    if api_version is None:
        return path
    return f"{path}?{urlencode({'api-version': api_version})}"


def _is_dated(api_version: str | None) -> bool:
    """Tell whether a version is one of those that are named by their date."""
    return api_version is not None and api_version[0].isdigit()


@attrs.define(eq=False)
class FilteredReader(ResponsesReader):
    """Reads one response with what Azure's filters say of it."""

    def finish(self) -> ChatResponse:
        """Return the whole answer, with the filters' results in its metadata.

        Raises:
            StreamError: the stream ended before the response did.
        """
        answer = super().finish()
        found = self.response.get("content_filters")
        if not isinstance(found, Sequence) or isinstance(found, str) or not found:
            return answer
        return attrs.evolve(
            answer, metadata={**(answer.metadata or {}), CONTENT_FILTERS: found}
        )


def filtered_categories(problem: JSONObject) -> str:
    """Return the categories that a filter refused, such as `hate (medium)`, as one text; empty when it names none."""
    inner = as_object(problem.get("innererror"))
    return ", ".join(_refused(as_object(inner.get("content_filter_result"))))


def _refused(results: Mapping[str, JSONValue]) -> Iterator[str]:
    for category, result in results.items():
        if isinstance(result, Mapping) and result.get("filtered") is True:
            severity = result.get("severity")
            yield f"{category} ({severity})" if isinstance(severity, str) else category
