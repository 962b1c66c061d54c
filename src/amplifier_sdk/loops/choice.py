"""Who is asked: the candidates of a request in their order, and what happens when one of them fails.

The first of these that says something counts: what `Turn.complete` is given, what the turn's metadata say, the
loop's `role`, its `default_provider`, the providers' priorities. Handlers of `provider:resolve` have the last
word. The next candidate is asked only when trying again may help and nobody has seen a part of the answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import attrs

from amplifier_sdk.chat import ChatResponse
from amplifier_sdk.contracts import Provider
from amplifier_sdk.errors import (
    ConfigError,
    LLMError,
    ProviderUnavailableError,
    did_you_mean,
)
from amplifier_sdk.events import PROVIDER_RESOLVE, ProviderResolve
from amplifier_sdk.loops.breaker import CircuitBreaker
from amplifier_sdk.loops.config import LoopConfig
from amplifier_sdk.loops.priorities import by_priority, not_mounted
from amplifier_sdk.values import Value

if TYPE_CHECKING:
    from amplifier_sdk.loops.turn import Turn

__all__ = [
    "Attempt",
    "ProviderCandidate",
    "ProviderChoice",
    "Wish",
    "matching_providers",
    "missing_provider",
]

PREFIX: Final = "provider-"


@attrs.frozen(eq=False, repr=False)
class ProviderCandidate(Value):
    """A mounted provider that a request may go to, and the model asked of it; `None` means its own default."""

    provider: str
    model: str | None = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Wish(Value):
    """What one request asks for: a provider, a role, a model; `None` leaves it to the turn."""

    provider: str | None = None
    role: str | None = None
    model: str | None = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _Field(Value):
    """The candidates of one request, and why it is they."""

    candidates: Sequence[ProviderCandidate]
    reason: str
    role: str | None = None


Attempt: TypeAlias = Callable[[ProviderCandidate], Awaitable[ChatResponse]]
"""Asks one candidate."""


@attrs.define(eq=False)
class ProviderChoice:
    """Chooses for one loop's requests, and remembers which providers failed."""

    config: LoopConfig
    breakers: dict[str, CircuitBreaker] = attrs.field(factory=dict)

    async def ask(self, turn: Turn, wish: Wish, attempt: Attempt) -> ChatResponse:
        """Ask the candidates of a request, one after the other, until one answers.

        Raises:
            ConfigError: a provider is not mounted, or a role has no candidate that is.
            LLMError: what the last candidate raised, unchanged; or a handler denied the request.
            ProviderUnavailableError: every candidate failed too often and cools down.
        """
        field = self._field(turn, wish)
        left, tried = list(field.candidates), set[str]()
        failure: LLMError | None = None
        while True:
            asked = await self._resolve(
                turn, field, self._ready(left, failure), tried, failure
            )
            try:
                return await self._attempt(asked, attempt)
            except LLMError as error:
                left = [candidate for candidate in left if candidate != asked]
                if not error.retryable or turn.host.was_shown or not left:
                    raise
                tried.add(asked.provider)
                failure = error

    def failed(self, name: str, error: BaseException) -> None:
        """Note that a provider failed; only what may pass by itself counts against it."""
        config, breaker = self.config, self.breakers.get(name)
        if not isinstance(error, LLMError) or not error.retryable:
            if breaker is not None:
                breaker.abandon()
            return
        if config.breaker_failures is None:
            return
        if breaker is None:
            breaker = self.breakers[name] = CircuitBreaker(
                config.breaker_failures, config.breaker_window, config.breaker_cooldown
            )
        breaker.fail()

    async def _attempt(
        self, candidate: ProviderCandidate, attempt: Attempt
    ) -> ChatResponse:
        breaker = self.breakers.get(candidate.provider)
        if breaker is not None:
            breaker.begin()
        try:
            response = await attempt(candidate)
        except BaseException as error:
            # a cancelled request ends its probe, too, and says nothing of the provider
            self.failed(candidate.provider, error)
            raise
        # failures count in a row: an answer makes all earlier ones void
        self.breakers.pop(candidate.provider, None)
        return response

    def _ready(
        self, left: Sequence[ProviderCandidate], failure: LLMError | None
    ) -> list[ProviderCandidate]:
        """Return the candidates that do not cool down."""
        waits = {
            name: breaker.wait
            for name, breaker in self.breakers.items()
            if breaker.is_open
        }
        ready = [candidate for candidate in left if candidate.provider not in waits]
        if ready:
            return ready
        # what the last one said helps more than that the others cool down
        if failure is not None:
            raise failure
        names = ", ".join(repr(candidate.provider) for candidate in left)
        soonest = min(waits[candidate.provider] for candidate in left)
        raise ProviderUnavailableError(
            f"Not asked: {names} failed {self.config.breaker_failures} times in a row within"
            f" {self.config.breaker_window:g} s; the next request may go there in {soonest:.1f} s"
            " (settings 'breaker_failures', 'breaker_window', 'breaker_cooldown' of the loop)",
            provider=left[0].provider,
            retry_after=soonest,
        )

    async def _resolve(
        self,
        turn: Turn,
        field: _Field,
        ready: Sequence[ProviderCandidate],
        tried: set[str],
        failure: LLMError | None,
    ) -> ProviderCandidate:
        """Let handlers of `provider:resolve` change whom the request goes to."""
        first = ready[0]
        if not turn.hooks.has_handlers(PROVIDER_RESOLVE):
            return first
        payload = ProviderResolve(
            provider=first.provider,
            model=first.model,
            candidates=[candidate.provider for candidate in ready],
            reason=field.reason if failure is None else f"fallback: {failure}",
        )
        if field.role is not None:
            payload["role"] = field.role
        return await _decided(turn, payload, ready, tried)

    def _field(self, turn: Turn, wish: Wish) -> _Field:
        """Work out who may be asked."""
        metadata, config = turn.metadata, self.config
        model = wish.model or _text(metadata, "model")
        if wish.provider is not None:
            return self._named(turn, wish.provider, model, "requested")
        if wish.role is not None:
            return self._of_role(turn, wish.role, model, "requested role")
        if (name := _text(metadata, "provider")) is not None:
            return self._named(turn, name, model, "metadata")
        if (role := _text(metadata, "role")) is not None:
            return self._of_role(turn, role, model, "role of the metadata")
        if config.role is not None:
            return self._of_role(turn, config.role, model, "role of the loop")
        reason = "default_provider"
        if config.default_provider is None:
            reason = "priority"
        return self._named(turn, turn.provider_name, model or config.model, reason)

    def _named(self, turn: Turn, name: str, model: str | None, reason: str) -> _Field:
        if name not in turn.providers:
            raise missing_provider(name, turn.providers)
        candidates = [ProviderCandidate(name, model)]
        if self.config.fallback:
            candidates += [
                ProviderCandidate(other)
                for other in by_priority(turn.providers)
                if other != name
            ]
        return _Field(candidates=candidates, reason=reason)

    def _of_role(self, turn: Turn, role: str, model: str | None, reason: str) -> _Field:
        roles = self.config.roles or {}
        if role not in roles:
            known = (
                f"known: {', '.join(roles) or 'none'}{did_you_mean(role, list(roles))}"
            )
            problem = f"no role {role!r} in the loop's 'roles'; {known}"
            raise ConfigError.of("role", problem)
        candidates = [
            ProviderCandidate(name, model or wanted.model)
            for wanted in roles[role]
            for name in matching_providers(wanted.provider, turn.providers)
        ]
        if candidates:
            return _Field(candidates=candidates, reason=reason, role=role)
        wanted_names = ", ".join(repr(wanted.provider) for wanted in roles[role])
        mounted = ", ".join(turn.providers) or "none"
        problem = f"candidates: {wanted_names or 'none'}; mounted: {mounted}"
        raise ConfigError.of(f"roles.{role}", f"no candidate is mounted; {problem}")


def matching_providers(pattern: str, providers: Mapping[str, Provider]) -> list[str]:
    """Return the mounted names that a pattern means, which may be a module id, in the order of mounting."""
    pattern = pattern.removeprefix(PREFIX)
    return [
        name for name in providers if fnmatchcase(name.removeprefix(PREFIX), pattern)
    ]


def missing_provider(name: str, providers: Mapping[str, Provider]) -> ConfigError:
    """Make the error of a provider that is not mounted; it names the nearest one."""
    return not_mounted("provider", "provider", name, providers)


async def _decided(
    turn: Turn,
    payload: ProviderResolve,
    ready: Sequence[ProviderCandidate],
    tried: set[str],
) -> ProviderCandidate:
    """Emit `provider:resolve` and return what handlers left; whom they chose before is not asked twice in vain."""
    first = ready[0]
    emission = await turn.hooks.emit(PROVIDER_RESOLVE, payload)
    if not emission.decisions:
        return first
    emission = await turn.host.process_hook_result(emission, PROVIDER_RESOLVE)
    if emission.denied:
        reason = f"The choice of a provider was denied by {emission.decided_by}: {emission.reason}"
        raise LLMError(reason, provider=first.provider)
    # the registry checks what handlers change
    name = cast("str", emission.data["provider"])
    model = cast("str | None", emission.data["model"])
    # a handler that always chooses the same would keep all others from being asked
    if name != first.provider and name in tried:
        return first
    if name not in turn.providers:
        raise missing_provider(name, turn.providers)
    chosen = next(
        (candidate for candidate in ready if candidate.provider == name),
        ProviderCandidate(name),
    )
    # the model that was shown belongs to the provider that was shown
    if model is not None and model != first.model:
        return ProviderCandidate(name, model)
    return chosen


def _text(metadata: Mapping[str, object], key: str) -> str | None:
    value = metadata.get(key)
    if isinstance(value, str) and value:
        return value
    return None
