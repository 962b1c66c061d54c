"""Which provider answers: from the name of a model, the id of a provider module, or a provider itself."""

from __future__ import annotations

from typing import Final, TypeAlias

import attrs

from amplifier.kernel.modules.loader import ModuleLoader
from amplifier_sdk.contracts import Provider
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "DEFAULT_PROVIDER",
    "Model",
    "ModelChoice",
    "choose_model",
    "model_problem",
    "offline_choice",
]

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


def choose_model(model: Model | None) -> ModelChoice:
    """Find the provider that a model is asked of.

    The vendors are those that have an installed module.

    Args:
        model: what the application named; `None` is the embedded model.

    Raises:
        ConfigError: nothing that is installed is meant; names the nearest and the command that installs it, or what is
            there.
    """
    if model is None:
        return _installed(DEFAULT_PROVIDER, None)
    if not isinstance(model, str):
        return ModelChoice(module="agent-provider", provider=model)
    vendor, _, name = model.partition(":")
    return _installed(vendor, name or None)


def offline_choice(model: Model | None) -> ModelChoice:
    """Return a provider that stands for the agent's, as long as nobody has to have it."""
    if model is None or isinstance(model, str):
        return ModelChoice(module="provider")
    return choose_model(model)


def model_problem(model: object) -> Problem | None:
    """Find what is wrong with a model's name, whatever is installed, or with a provider."""
    if isinstance(model, str):
        vendor, colon, name = model.partition(":")
        if vendor and (name or not colon):
            return None
        expected = "expected vendor:model, for example 'anthropic:MODEL'"
        return Problem("model", f"{model!r:.80}: {expected}")
    if isinstance(model, Provider):
        return None
    return Problem(
        "model",
        f"expected vendor:model, the id of a provider module or a provider; got {model!r:.80}",
    )


def _installed(vendor: str, model: str | None) -> ModelChoice:
    modules = {found.id for found in ModuleLoader().discover()}
    for module in (vendor, f"{_PREFIX}{vendor}"):
        if module in modules:
            return ModelChoice(module=module, model=model)
    short = vendor.removeprefix(_PREFIX)
    # only one of ours: a command for any other name could install a stranger's package
    ours = f"amplifier-module-{_PREFIX}{short};"
    if any(requirement.startswith(ours) for requirement in _requirements()):
        # it reads metadata, whose library takes a third of what importing an agent does
        from amplifier_kit.installation import install_command

        raise _problem(
            vendor,
            f"not installed; install with: {install_command(f'amplifier[{short}]')}",
        )
    known = sorted(
        module.removeprefix(_PREFIX) for module in modules if module.startswith(_PREFIX)
    )
    near = did_you_mean(short, known) or f"; there are {', '.join(known) or 'none'}"
    raise _problem(vendor, f"no such provider is installed{near}")


def _requirements() -> list[str]:
    """Return what the extras of this distribution require, without spaces."""
    from importlib.metadata import requires  # only a mistake needs it

    return [each.replace(" ", "") for each in requires("amplifier") or ()]


def _problem(name: JSONValue, says: str) -> ConfigError:
    return ConfigError.of("model", f"{name!r}: {says}", subject="agent")
