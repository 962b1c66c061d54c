"""Which provider answers: from the name of a model, the id of a provider module, or a provider itself."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeAlias

import attrs

from amplifier_sdk.contracts import Provider
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["DEFAULT_PROVIDER", "Model", "ModelChoice", "choose_model"]

Model: TypeAlias = str | Provider
"""`vendor:model`, the id of a provider module with or without its `provider-`, or a provider."""

DEFAULT_PROVIDER: Final = "provider-local"
"""The model that needs no key."""

_PREFIX: Final = "provider-"


@attrs.frozen(kw_only=True)
class ModelChoice:
    """A provider of the plan.

    Args:
        module: the id of its module.
        model: the model that is asked; `None` leaves it to the provider.
        provider: the application's own, where it gave one.
    """

    module: str
    model: str | None = None
    provider: Provider | None = None


def choose_model(model: Model | None, installed: Collection[str]) -> ModelChoice:
    """Find the provider that a model is asked of.

    Args:
        model: what the application named; `None` is the embedded model.
        installed: the ids of the modules that can be mounted: the vendors are those that have one.

    Raises:
        ConfigError: nothing that is installed is meant; names the nearest, or what is there.
    """
    if model is None:
        return _installed(DEFAULT_PROVIDER, None, installed)
    if not isinstance(model, str):
        return ModelChoice(module="agent-provider", provider=model)
    vendor, colon, name = model.partition(":")
    if colon and not (vendor and name):
        raise _problem(model, "expected vendor:model, for example 'anthropic:MODEL'")
    return _installed(vendor, name or None, installed)


def _installed(
    vendor: str, model: str | None, installed: Collection[str]
) -> ModelChoice:
    for module in (vendor, f"{_PREFIX}{vendor}"):
        if module in installed:
            return ModelChoice(module=module, model=model)
    known = sorted(
        module.removeprefix(_PREFIX)
        for module in installed
        if module.startswith(_PREFIX)
    )
    near = did_you_mean(vendor.removeprefix(_PREFIX), known)
    if near:
        raise _problem(vendor, f"no such provider is installed{near}")
    raise _problem(
        vendor,
        f"no such provider is installed; there are {', '.join(known) or 'none'}. A vendor's is installed with "
        f"`pip install 'amplifier[VENDOR]'`, if it is one of ours",
    )


def _problem(name: JSONValue, says: str) -> ConfigError:
    return ConfigError([Problem("model", f"{name!r}: {says}")], subject="agent")
