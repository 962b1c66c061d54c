"""What a session was made of, for whoever wonders later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from amplifier_sdk.kit.redaction import SinkRedactor, StrictRedactor
from amplifier_sdk.secret import withhold

if TYPE_CHECKING:
    from amplifier.app.composition import Composition
    from amplifier_sdk.jsontypes import JSONValue

__all__ = ["describe", "provider_and_model"]


def describe(composition: Composition) -> str:
    """Write down a session's profile and mount plan as Markdown, without secrets."""
    parts = ["# What this session is made of"]
    if composition.profile is not None:
        parts.append("Profile: " + " -> ".join(file.name for file in composition.profile.chain))
    plan = SinkRedactor(StrictRedactor()).redact(_data(withhold(composition.plan)))
    parts.append(f"```json\n{json.dumps(plan, indent=1)}\n```")
    return "\n\n".join(parts) + "\n"


def provider_and_model(plan: Mapping[str, JSONValue]) -> tuple[str | None, str | None]:
    """Return the provider and the model that a plan's loop asks first; `None` where the plan leaves it open."""
    loop = {**_config(plan.get("orchestrator")), **_config(_mapping(plan.get("session")).get("orchestrator"))}
    provider, model = loop.get("default_provider"), loop.get("model")
    providers = plan.get("providers")
    if provider is None and isinstance(providers, (list, tuple)) and len(providers) == 1:
        (only,) = providers
        provider = only.get("module") if isinstance(only, Mapping) else only
    return (provider if isinstance(provider, str) else None, model if isinstance(model, str) else None)


def _config(module: JSONValue) -> Mapping[str, JSONValue]:
    return _mapping(_mapping(module).get("config"))


def _mapping(value: JSONValue) -> Mapping[str, JSONValue]:
    return value if isinstance(value, Mapping) else {}


def _data(plan: Mapping[str, object]) -> JSONValue:
    """Write what is no JSON data as text: a plan file may hold nothing else, and a program's own plan may."""
    data: JSONValue = json.loads(json.dumps(plan, default=str))
    return data
