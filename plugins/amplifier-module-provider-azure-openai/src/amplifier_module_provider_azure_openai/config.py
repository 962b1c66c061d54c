"""The module's configuration: the resource, its deployments, and who asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from amplifier_kit.vendors.addresses import valid_address
from amplifier_kit.vendors.responses import ResponsesConfig
from amplifier_sdk.bounds import seconds
from amplifier_sdk.secret import Secret

__all__ = ["AzureConfig"]

_VERSION: Final = re.compile(r"\d{4}-\d{2}-\d{2}(-preview)?|preview|latest|v1")


def _version(
    _: object, attribute: attrs.Attribute[str | None], value: str | None
) -> None:
    if value is not None and not _VERSION.fullmatch(value):
        raise ValueError(
            f"{attribute.name} is a date such as 2025-04-01-preview, or 'preview'; got {value!r}"
        )


def _command(
    _: object,
    attribute: attrs.Attribute[tuple[str, ...] | None],
    value: tuple[str, ...] | None,
) -> None:
    if value is not None and not (value and all(value)):
        raise ValueError(
            f"{attribute.name} is a program and its arguments; got {list(value)!r}"
        )


@attrs.frozen(kw_only=True)
class AzureConfig(ResponsesConfig):
    """What `config` of the plan may hold beside what the API has.

    Args:
        azure_endpoint: the resource's address, such as `https://NAME.openai.azure.com`; default
            `AZURE_OPENAI_ENDPOINT`. Another name of `base_url`.
        api_version: a dated version of the API; default none, which is the address `/openai/v1`.
        deployment_mapping: the deployment of each model.
        default_deployment: the deployment of models that the mapping lacks; default the model's name.
        azure_ad_token: an Entra token in place of a key; default `AZURE_OPENAI_AD_TOKEN`.
        credential: a program and its arguments that prints an Entra token, such as
            `["az", "account", "get-access-token", "--resource", "https://cognitiveservices.azure.com"]`.
        credential_timeout: seconds in which it must have done so.

    Raises:
        ValueError: a value is out of its range, two names of one option differ, or more than one credential is given.
    """

    azure_endpoint: str | None = attrs.field(
        default=None, validator=valid_address, repr=False
    )
    api_version: str | None = attrs.field(default=None, validator=_version)
    deployment_mapping: Mapping[str, str] = attrs.field(factory=dict)
    default_deployment: str | None = None
    azure_ad_token: Secret | None = None
    credential: tuple[str, ...] | None = attrs.field(default=None, validator=_command)
    credential_timeout: float = attrs.field(default=30.0, validator=seconds)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.base_url is not None and self.azure_endpoint not in (
            None,
            self.base_url,
        ):
            raise ValueError(
                "azure_endpoint is another name of base_url, and they differ: give one"
            )
        given = [
            name
            for name in ("api_key", "azure_ad_token", "credential")
            if getattr(self, name)
        ]
        if len(given) > 1:
            raise ValueError(f"one credential is enough; given are {', '.join(given)}")

    @property
    def has_token(self) -> bool:
        """Whether tokens take the place of a key."""
        return bool(self.azure_ad_token or self.credential)
