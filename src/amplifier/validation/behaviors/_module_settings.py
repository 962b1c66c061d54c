"""What is true of every module's configuration: it is checked whole, left alone, and kept secret."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping
from typing import Final

import attrs

from amplifier.validation.behaviors._stage import EAR, Setting, Stage, open_stage, skip_unless
from amplifier.validation.behaviors._use import use
from amplifier.validation.behaviors.behavior import BehaviorFailed, NotApplicable, Suite, require
from amplifier.validation.behaviors.subject import Samples, Subject
from amplifier_sdk.errors import AmplifierError, ConfigError, Problem
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.secret import is_secret_name

MODULE: Final = Suite("module")

STRAY_KEY: Final = "no_such_setting"


@MODULE.behavior(fix="Describe the configuration by an attrs class or dataclass and let the SDK read it.")
async def refuses_unknown_settings(subject: Subject) -> None:
    """A key of the configuration that the module does not know is an error that names the key."""
    await _refuses(subject, {**subject.config, STRAY_KEY: True}, STRAY_KEY)


async def _refuses(subject: Subject, config: Mapping[str, JSONValue], *words: str) -> str:
    try:
        async with open_stage(subject, Setting(config=config)):
            pass
    except AmplifierError as error:
        missing = [word for word in words if word not in str(error)]
        require(not missing, f"The error does not name {missing}: {error}")
        return str(error)
    raise BehaviorFailed(f"The configuration {dict(config)!r:.300} was accepted")


@MODULE.behavior(fix="Check every value when the module is mounted and raise ConfigError with its path.")
async def refuses_a_bad_configuration(subject: Subject) -> None:
    """The configuration that the author names as bad is refused when the module is mounted."""
    bad = subject.told(Samples).bad_config
    if bad is None:
        raise NotApplicable("no sample 'bad_config' is given")
    await _refuses(subject, bad)


@MODULE.behavior(fix="Read the whole configuration before anything is mounted or registered.")
async def leaves_nothing_when_its_configuration_is_refused(subject: Subject) -> None:
    """When the configuration is refused no handler, mounted instance or capability of the module is left."""
    kept: list[Stage] = []
    setting = Setting(config={**subject.config, STRAY_KEY: True}, handlers={"session:none": _ignore})
    with contextlib.suppress(AmplifierError):
        async with open_stage(subject, setting, kept=kept):
            raise NotApplicable("it accepts unknown settings; see module.refuses-unknown-settings")
    with contextlib.suppress(AmplifierError):
        async with open_stage(attrs.evolve(subject, module=_refuse), setting, kept=kept):
            pass
    stage, empty = kept
    require(not own_handlers(stage), f"Handlers are left: {own_handlers(stage)}")
    for what in ("tools", "providers", "capabilities"):
        left = sorted(_names(stage, what) - _names(empty, what))
        require(not left, f"Of the {what} there are left: {left}")


async def _refuse(coordinator: object, config: object) -> None:
    """Mount nothing, as a module that reads its configuration first."""
    raise ConfigError([Problem(STRAY_KEY, "unknown")])


def _names(stage: Stage, what: str) -> set[str]:
    names = stage.coordinator.to_dict()[what]
    assert isinstance(names, list)
    return set(names)


def _ignore(event: str, data: dict[str, object]) -> None:
    """Hear nothing."""


def own_handlers(stage: Stage) -> list[str]:
    """Return the names of the handlers that are registered and not those of the checks."""
    listing = stage.coordinator.hooks.list_handlers()
    return sorted({name for names in listing.values() for name in names if not name.startswith(EAR)})


@MODULE.behavior(fix="Copy the configuration before changing it.")
async def leaves_its_configuration_alone(subject: Subject) -> None:
    """Mounting and using the module changes nothing in the mapping that it was configured with."""
    config = copy.deepcopy(dict(subject.config))
    async with open_stage(subject, Setting(config=config)) as stage:
        await use(subject, stage)
    require(config == subject.config, f"The configuration was {dict(subject.config)!r} and became {config!r}")


@MODULE.behavior(fix="Keep secrets out of repr: leave their fields out of it, or use the SDK's secret type.")
async def hides_secrets_from_repr(subject: Subject) -> None:
    """No secret of the configuration stands in the text form of what is mounted."""
    secrets = _secrets(subject.config)
    skip_unless(secrets, "its configuration holds no key, token or password")
    async with open_stage(subject) as stage:
        for instance in stage.instances:
            shown = f"{instance!r} {instance}"
            require(not any(secret in shown for secret in secrets), f"{type(instance).__name__} shows a secret")


@MODULE.behavior(fix="Name the key, not the value, in errors about settings that may hold a secret.")
async def hides_secrets_from_errors(subject: Subject) -> None:
    """An error about the configuration does not repeat the secrets in it."""
    secrets = _secrets(subject.config)
    skip_unless(secrets, "its configuration holds no key, token or password")
    text = await _refuses(subject, {**subject.config, STRAY_KEY: True})
    require(not any(secret in text for secret in secrets), "The error repeats a secret")


def _secrets(config: Mapping[str, JSONValue]) -> list[str]:
    return [v for k, v in config.items() if isinstance(v, str) and len(v) > 3 and is_secret_name(k)]
