"""A provider as it is: whether it can be mounted, what it says of itself, whether its key is there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

import anyio
import attrs

from amplifier.app.plans.base_plans import default_plan, installed_modules
from amplifier.app.providers.entries import KeySource, ProviderEntry
from amplifier.app.sessions.composition import Composition
from amplifier.app.sessions.opened import open_session
from amplifier.app.settings.expansion import expand
from amplifier_kit.open_data import as_object
from amplifier_sdk.chat import ModelInfo, ProviderInfo
from amplifier_sdk.contracts import Provider
from amplifier_sdk.errors import AmplifierError, ConfigError, ModuleError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "Answered",
    "Key",
    "ProviderState",
    "alone",
    "ask_provider",
    "inspect_providers",
    "list_models",
    "mounted",
]

_STAND_IN: Final = "no-key"

_PROMPT: Final = "Answer with the one word OK."
_TOKENS: Final = 64


@attrs.frozen(kw_only=True)
class Key:
    """A variable in which a provider looks for its key, and where that is; `None` where it is not set."""

    variable: str
    source: KeySource | None


@attrs.frozen(kw_only=True)
class ProviderState:
    """A provider as it is.

    Args:
        entry: which one.
        info: what it says of itself; `None` where it could not be mounted.
        keys: the variables that it reads.
        needs_key: whether it cannot be mounted before its key is there.
        problem: why it could not be mounted.
    """

    entry: ProviderEntry
    info: ProviderInfo | None = None
    keys: tuple[Key, ...] = ()
    needs_key: bool = False
    problem: str = ""

    @property
    def model(self) -> str | None:
        """The model of requests that name none."""
        match self.info:
            case ProviderInfo(defaults={"model": str() as model}):
                return model
            case _:
                return None

    def to_dict(self) -> JSONObject:
        """Write it as JSON data; a key itself is in none of it."""
        return {
            "name": self.entry.name,
            "module": self.entry.module,
            "used": self.entry.is_used,
            "asked": self.entry.is_asked,
            "display_name": None if self.info is None else self.info.display_name,
            "model": self.model,
            "keys": [attrs.asdict(key) for key in self.keys],
            "needs_key": self.needs_key,
            "problem": self.problem or None,
        }


async def inspect_providers(
    entries: Sequence[ProviderEntry],
    composition: Composition,
    keys: Mapping[str, KeySource],
    *,
    timeout: float,
) -> list[ProviderState]:
    """Mount each provider by itself and return what it says; nothing is asked of a vendor.

    Args:
        entries: the providers.
        composition: what new sessions are made of.
        keys: where the variables come from that are set; see `load_keys`.
        timeout: seconds that one of them may take.
    """
    states: dict[int, ProviderState] = {}

    async def inspect(number: int, entry: ProviderEntry) -> None:
        states[number] = await _inspect(entry, composition, keys, timeout)

    # At once: each may import a vendor's library, and one that hangs costs its own time
    # alone.
    async with anyio.create_task_group() as group:
        for number, entry in enumerate(entries):
            group.start_soon(inspect, number, entry)
    return [states[number] for number in range(len(entries))]


@asynccontextmanager
async def mounted(
    entry: ProviderEntry, composition: Composition
) -> AsyncIterator[Provider]:
    """Mount a provider in a session that has nothing else."""
    async with open_session(alone(entry, composition, {})) as opened:
        providers = list(opened.session.coordinator.providers.values())
        if not providers:
            raise ConfigError.of(
                entry.name, "it mounted no provider", subject="session"
            )
        yield providers[0]


def alone(
    entry: ProviderEntry, composition: Composition, loop: JSONObject
) -> Composition:
    """Say that a session is made of a provider and of what every session needs."""
    plan = default_plan(installed_modules(), None)
    filled = partial(
        expand, lookup=composition.settings.lookup, path=f"providers[{entry.name}]"
    )
    whole: JSONObject = {
        "session": plan["session"],
        "orchestrator": {"config": loop},
        "providers": [filled(entry.entry, subject="plan")],
    }
    return attrs.evolve(composition, plan=whole, profile=None, is_probe=True)


async def _inspect(
    entry: ProviderEntry,
    composition: Composition,
    keys: Mapping[str, KeySource],
    timeout: float,
) -> ProviderState:
    """Look at a provider; one that lacks its key says what it is with a stand-in, and is asked nothing."""
    # Set first: the deadline leaves the block without a word.
    problem = f"it was not mounted within {timeout:g} s"
    with anyio.move_on_after(timeout):
        try:
            return await _look_at(entry, composition, keys)
        except Exception as error:  # foreign code; the others are listed all the same
            problem = _text(error)
        given = as_object(entry.entry.get("config"))
        # With a key of its own the failure is real; a stand-in would only hide it.
        if not given.get("api_key"):
            config = {**given, "api_key": _STAND_IN}
            stand_in = attrs.evolve(entry, entry={**entry.entry, "config": config})
            # then the key is not all that it lacks, which is reported already
            with suppress(Exception):
                state = await _look_at(stand_in, composition, keys)
                return attrs.evolve(state, entry=entry, needs_key=True)
    return ProviderState(entry=entry, problem=problem)


async def _look_at(
    entry: ProviderEntry, composition: Composition, keys: Mapping[str, KeySource]
) -> ProviderState:
    async with mounted(entry, composition) as provider:
        info = provider.get_info()
        variables = tuple(
            Key(variable=name, source=keys.get(name))
            for name in info.credential_env_vars
        )
        return ProviderState(entry=entry, info=info, keys=variables)


def _text(error: Exception) -> str:
    match error:
        case ConfigError(in_one_line=text) | ModuleError(reason=text):
            return text
        case AmplifierError():
            return str(error)
        case _:
            return f"{type(error).__name__}: {error}"


@attrs.frozen(kw_only=True)
class Answered:
    """What became of a test: the answer, the model, the tokens, the cost in US dollars, the time in seconds."""

    text: str
    seconds: float
    spent: Mapping[str, JSONValue]


async def list_models(
    entry: ProviderEntry, composition: Composition
) -> list[ModelInfo]:
    """Ask a provider for its models.

    Raises:
        ConfigError: its configuration has problems.
        ModuleError: it could not be mounted.
        LLMError: the vendor refused, or could not be reached.
    """
    async with mounted(entry, composition) as provider:
        return sorted(await provider.list_models(), key=lambda model: model.id)


async def ask_provider(
    entry: ProviderEntry, composition: Composition, *, model: str | None = None
) -> Answered:
    """Take one tiny turn with a provider and return what it answered and cost.

    Args:
        entry: the provider.
        composition: what new sessions are made of.
        model: the model; default the provider's.

    Raises:
        ConfigError: its configuration has problems.
        ModuleError: it could not be mounted.
        LLMError: the vendor refused, or could not be reached.
    """
    loop: JSONObject = {
        "max_output_tokens": _TOKENS,
        **({"model": model} if model else {}),
    }
    async with open_session(alone(entry, composition, loop)) as opened:
        started = anyio.current_time()
        text = await opened.session.execute(_PROMPT)
        seconds = anyio.current_time() - started
        return Answered(
            text=text, seconds=seconds, spent=opened.session.spending.to_dict()
        )
