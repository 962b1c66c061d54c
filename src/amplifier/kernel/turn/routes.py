"""Routes: the provider and model that a child session was given, in place of its loop's choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial

import attrs

from amplifier.kernel.reports import report
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.contracts import Provider, RequestBuilder
from amplifier_sdk.delegation import ProviderPreference
from amplifier_sdk.loops.choice import matching_providers
from amplifier_sdk.messages import Message

__all__ = ["Route", "find_route"]


@attrs.frozen
class Route:
    """Where a session's model calls go: a mounted provider, and the model where a request names none."""

    name: str
    model: str | None
    provider: Provider

    def of(
        self, model: str | None, request: RequestBuilder
    ) -> tuple[str | None, RequestBuilder]:
        """Return the model and the request that go to it instead; a model that the loop named stays."""
        model = model or self.model
        return model, partial(_with_model, request, model)


def _with_model(
    request: RequestBuilder, model: str | None, *, messages: Sequence[Message]
) -> ChatRequest:
    asked = request(messages=messages)
    if asked.model is not None:
        return asked
    return attrs.evolve(asked, model=model)


async def find_route(
    preferences: Sequence[ProviderPreference], providers: Mapping[str, Provider]
) -> Route | None:
    """Return the first preference that can be met, or `None`; that none could be met is reported."""
    for preference in preferences:
        for name in matching_providers(preference.get("provider", "*"), providers):
            wanted = preference.get("model")
            model = wanted
            if wanted is not None:
                model = await _model(wanted, providers[name])
            if model is not None or wanted is None:
                return Route(name, model, providers[name])
    if preferences:
        report(
            "delegation.no_preference_met",
            preferences=list(preferences),
            mounted=list(providers),
        )
    return None


async def _model(pattern: str, provider: Provider) -> str | None:
    """Return the model that a pattern means; what is no pattern needs no look at the provider's list."""
    if not any(character in pattern for character in "*?["):
        return pattern
    try:
        models = await provider.list_models()
    except Exception as error:  # foreign code
        report("delegation.models_unknown", error, provider=provider.name)
        return None
    return next((model.id for model in models if fnmatchcase(model.id, pattern)), None)
