"""Whom a loop asks: roles, overrides, fallback, the breaker, and the handlers' last word."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

import anyio
import attrs
import pytest

from amplifier import AmplifierSession, ModuleLoader
from amplifier.testing import (
    EventRecorder,
    MockContextManager,
    ScriptedProvider,
    VirtualClock,
)
from amplifier.testing.sessions import mounting
from amplifier_kit.scripted import Step, answer
from amplifier_sdk import (
    ChatRequest,
    ChatResponse,
    Delta,
    HookResult,
    Loop,
    LoopConfig,
    TextDelta,
    Turn,
)
from amplifier_sdk.configuration import read_config
from amplifier_sdk.errors import (
    AuthenticationError,
    ConfigError,
    LLMError,
    ProviderUnavailableError,
    RateLimitError,
)
from amplifier_sdk.events import PROVIDER_RESOLVE
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.loops import RoleCandidate
from amplifier_sdk.loops.breaker import CircuitBreaker

BUSY = RateLimitError("too many requests")
ROLES: Mapping[str, tuple[RoleCandidate, ...]] = {
    "fast": (
        RoleCandidate(provider="b", model="small"),
        RoleCandidate(provider="a", model="mini"),
    ),
    "any": (RoleCandidate(provider="provider-[ac]"),),
    "nobody": (RoleCandidate(provider="x"), RoleCandidate(provider="y")),
}


class Asks(Loop):
    """Asks once, as it is told."""

    name = "asks"

    def __init__(
        self, config: LoopConfig, provider: str | None = None, role: str | None = None
    ) -> None:
        self.config, self._provider, self._role = config, provider, role

    async def run(self, turn: Turn) -> str:
        return (await turn.complete(provider=self._provider, role=self._role)).text


@attrs.define(eq=False)
class Stage:
    """A session of one loop and the providers a, b and c, of which b has the lowest priority."""

    session: AmplifierSession
    providers: dict[str, ScriptedProvider]

    def asked(self) -> dict[str, list[str | None]]:
        """Return the models that each provider was asked for."""
        return {
            name: [r.model for r in p.requests]
            for name, p in self.providers.items()
            if p.requests
        }


def staged(
    config: LoopConfig | None = None,
    *,
    loop: Loop | None = None,
    **steps: Sequence[Step],
) -> Stage:
    """Build the stage; a provider without steps of its own answers with its name."""
    providers = {
        n: ScriptedProvider(*steps.get(n, [answer(f"From {n}.")] * 9), name=n)
        for n in "abc"
    }
    providers["b"].priority = 1  # type: ignore[attr-defined]  # providers may have one
    modules: dict[str, object] = {
        f"provider-{name}": mounting(made) for name, made in providers.items()
    }
    plan: dict[str, object] = {
        "session": {"orchestrator": "loop", "context": "context"},
        "providers": list(modules),
    }
    modules |= {
        "loop": mounting(loop or Asks(config or LoopConfig())),
        "context": mounting(MockContextManager()),
    }
    return Stage(AmplifierSession(plan, ModuleLoader(modules=modules)), providers)


async def test_without_settings_the_lowest_priority_is_asked() -> None:
    stage = staged()
    async with stage.session as session:
        assert await session.execute("Hello") == "From b."
    assert stage.asked() == {"b": [None]}


@pytest.mark.parametrize(
    ("config", "metadata", "asked"),
    [
        pytest.param(
            LoopConfig(default_provider="c", model="m"),
            None,
            {"c": ["m"]},
            id="default",
        ),
        pytest.param(
            LoopConfig(role="fast", roles=ROLES), None, {"b": ["small"]}, id="role"
        ),
        pytest.param(
            LoopConfig(role="any", roles=ROLES), None, {"a": [None]}, id="pattern"
        ),
        pytest.param(
            LoopConfig(role="fast", roles=ROLES, default_provider="c"),
            None,
            {"b": ["small"]},
            id="both",
        ),
        pytest.param(
            LoopConfig(default_provider="c"),
            {"provider": "a"},
            {"a": [None]},
            id="turn",
        ),
        pytest.param(
            LoopConfig(default_provider="c"),
            {"model": "big"},
            {"c": ["big"]},
            id="turn-model",
        ),
        pytest.param(
            LoopConfig(roles=ROLES), {"role": "fast"}, {"b": ["small"]}, id="turn-role"
        ),
        pytest.param(
            LoopConfig(roles=ROLES),
            {"role": "fast", "model": "big"},
            {"b": ["big"]},
            id="turn-role-model",
        ),
        pytest.param(
            LoopConfig(model="m"),
            {"provider": "a"},
            {"a": [None]},
            id="model-of-another",
        ),
        pytest.param(
            LoopConfig(model="m"),
            {"subject": 7, "provider": ""},
            {"b": ["m"]},
            id="other-metadata",
        ),
    ],
)
async def test_what_is_said_of_the_provider_counts_in_its_order(
    config: LoopConfig, metadata: Mapping[str, JSONValue] | None, asked: object
) -> None:
    stage = staged(config)
    async with stage.session as session:
        await session.execute("Hello", metadata=metadata)
    assert stage.asked() == asked


@pytest.mark.parametrize(
    ("provider", "role", "asked"),
    [("c", None, {"c": [None]}), (None, "fast", {"b": ["small"]})],
)
async def test_what_loop_asks_for_counts_before_turn_s_metadata(
    provider: str | None, role: str | None, asked: object
) -> None:
    stage = staged(loop=Asks(LoopConfig(roles=ROLES), provider, role))
    async with stage.session as session:
        await session.execute("Hello", metadata={"provider": "a"})
    assert stage.asked() == asked


async def test_a_stream_takes_the_metadata_too() -> None:
    stage = staged()
    async with (
        stage.session as session,
        session.stream("Hello", metadata={"provider": "a"}) as events,
    ):
        [event async for event in events]
    assert stage.asked() == {"a": [None]}


async def test_metadata_hold_for_one_turn_and_handler_may_change_them() -> None:
    stage = staged()
    seen: list[object] = []

    def change(event: str, data: dict[str, object]) -> HookResult:
        seen.append(data.get("metadata"))
        return (
            HookResult.modify({"metadata": {"provider": "c"}})
            if data.get("metadata")
            else HookResult()
        )

    async with stage.session as session:
        session.coordinator.hooks.register("prompt:submit", change)
        await session.execute("Hello", metadata={"provider": "a"})
        await session.execute("Hello")
    assert seen == [{"provider": "a"}, None]
    assert stage.asked() == {"c": [None], "b": [None]}


@pytest.mark.parametrize(
    ("config", "metadata", "problem"),
    [
        (
            LoopConfig(default_provider="bb"),
            {},
            "no provider 'bb' is mounted; mounted: a, b, c",
        ),
        (LoopConfig(), {"provider": "d"}, "no provider 'd' is mounted"),
        (
            LoopConfig(role="fats", roles=ROLES),
            {},
            r"no role 'fats' in the loop's 'roles'.*did you mean 'fast'",
        ),
        (
            LoopConfig(role="fast"),
            {},
            "no role 'fast' in the loop's 'roles'; known: none",
        ),
        (
            LoopConfig(role="nobody", roles=ROLES),
            {},
            "no candidate is mounted; candidates: 'x', 'y'; mounted: ",
        ),
    ],
    ids=["default", "metadata", "role", "no-roles", "no-candidate"],
)
async def test_who_cannot_be_asked_is_named(
    config: LoopConfig, metadata: Mapping[str, JSONValue], problem: str
) -> None:
    stage = staged(config)
    with pytest.raises(ConfigError) as caught:
        async with stage.session as session:
            await session.execute("Hello", metadata=metadata)
    for part in problem.split(".*"):
        assert part.replace("mounted: a, b, c", "mounted: a, b, c") in str(caught.value)


@pytest.mark.parametrize(
    ("config", "asked"),
    [
        (LoopConfig(role="fast", roles=ROLES), {"b": ["small"], "a": ["mini"]}),
        (LoopConfig(fallback=True, model="m"), {"b": ["m"], "a": [None]}),
        (
            LoopConfig(fallback=True, default_provider="c"),
            {"c": [None], "b": [None], "a": [None]},
        ),
    ],
    ids=["role", "priority", "default"],
)
async def test_the_next_candidate_is_asked_when_trying_again_may_help(
    config: LoopConfig, asked: object
) -> None:
    stage = staged(config, b=[BUSY], c=[BUSY])
    async with stage.session as session:
        assert await session.execute("Hello") == "From a."
    assert stage.asked() == asked


async def test_without_fallback_another_vendor_is_never_asked() -> None:
    stage = staged(LoopConfig(), b=[BUSY])
    async with stage.session as session:
        with pytest.raises(RateLimitError):
            await session.execute("Hello")
    assert stage.asked() == {"b": [None]}


@pytest.mark.parametrize(
    "error", [AuthenticationError("wrong key"), ValueError("a bug")], ids=["key", "bug"]
)
async def test_a_failure_that_will_not_pass_is_the_turn_s(error: Exception) -> None:
    stage = staged(LoopConfig(fallback=True), b=[error])
    async with stage.session as session:
        with pytest.raises(type(error)):
            await session.execute("Hello")
    assert stage.asked() == {"b": [None]}


async def test_the_last_candidate_s_error_is_raised() -> None:
    stage = staged(
        LoopConfig(fallback=True),
        a=[BUSY],
        b=[BUSY],
        c=[LLMError("last", retryable=True)],
    )
    async with stage.session as session:
        with pytest.raises(LLMError, match="last"):
            await session.execute("Hello")


async def breaks_off(
    request: ChatRequest,
) -> AsyncGenerator[Delta | ChatResponse, None]:
    yield TextDelta(text="I was ab")
    raise ProviderUnavailableError("gone")


async def test_displayed_text_is_not_repeated_by_fallback() -> None:
    stage = staged(LoopConfig(fallback=True), b=[breaks_off])
    async with stage.session as session:
        with pytest.raises(ProviderUnavailableError):
            async with session.stream("Hello") as events:
                [event async for event in events]
    assert stage.asked() == {"b": [None]}


async def test_what_nobody_saw_is_forgotten_and_another_asked() -> None:
    stage = staged(LoopConfig(fallback=True), b=[breaks_off])
    async with stage.session as session:
        assert await session.execute("Hello") == "From a."
        assert session.coordinator.host.text == "From a."


async def test_choice_is_announced_with_its_candidates_and_its_reason() -> None:
    stage = staged(LoopConfig(role="fast", roles=ROLES), b=[BUSY])
    recorder = EventRecorder.of(stage.session.coordinator.hooks, PROVIDER_RESOLVE)
    async with stage.session as session:
        await session.execute("Hello")

    keys = ("provider", "model", "candidates", "reason", "role")
    assert [
        tuple(data[key] for key in keys) for data in recorder.data(PROVIDER_RESOLVE)
    ] == [
        ("b", "small", ["b", "a"], "role of the loop", "fast"),
        ("a", "mini", ["a"], "fallback: too many requests", "fast"),
    ]


async def test_with_one_provider_there_is_no_choice_to_announce() -> None:
    stage = staged()
    recorder = EventRecorder.of(stage.session.coordinator.hooks, PROVIDER_RESOLVE)
    async with stage.session as session:
        await session.execute("Hello")
        assert [data["reason"] for data in recorder.data(PROVIDER_RESOLVE)] == [
            "priority"
        ]
        for name in ("a", "c"):
            await session.coordinator.unmount("providers", name)
        await session.execute("Hello")
    assert len(recorder.events) == 1


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({"provider": "c"}, {"c": [None]}),
        ({"provider": "a"}, {"a": ["mini"]}),
        ({"provider": "c", "model": "big"}, {"c": ["big"]}),
        ({"model": "big"}, {"b": ["big"]}),
        ({"provider": 7}, {"b": ["small"]}),
        ({"reason": "none"}, {"b": ["small"]}),
    ],
    ids=["another", "a-candidate", "model-too", "model", "no-name", "nothing"],
)
async def test_a_handler_may_change_who_is_asked(
    change: Mapping[str, object], asked: object
) -> None:
    stage = staged(LoopConfig(role="fast", roles=ROLES))
    stage.session.coordinator.hooks.register(
        "provider:resolve", lambda event, data: HookResult.modify(change)
    )
    async with stage.session as session:
        await session.execute("Hello")
    assert stage.asked() == asked


async def test_a_handler_s_choice_that_failed_is_not_asked_again() -> None:
    stage = staged(LoopConfig(fallback=True), c=[BUSY])
    stage.session.coordinator.hooks.register(
        "provider:resolve", lambda event, data: HookResult.modify({"provider": "c"})
    )
    async with stage.session as session:
        assert await session.execute("Hello") == "From b."
    assert stage.asked() == {"c": [None], "b": [None]}


async def test_a_handler_that_names_nobody_is_told() -> None:
    stage = staged()
    stage.session.coordinator.hooks.register(
        "provider:resolve", lambda event, data: HookResult.modify({"provider": "d"})
    )
    async with stage.session as session:
        with pytest.raises(ConfigError, match="no provider 'd' is mounted"):
            await session.execute("Hello")


async def test_a_handler_may_deny_the_request() -> None:
    stage = staged()
    stage.session.coordinator.hooks.register(
        "provider:resolve", lambda event, data: HookResult.deny("not today")
    )
    async with stage.session as session:
        with pytest.raises(
            LLMError, match=r"The choice of a provider was denied by .*: not today"
        ):
            await session.execute("Hello")
    assert stage.asked() == {}


async def test_a_handler_that_decides_nothing_changes_nothing() -> None:
    stage = staged()
    stage.session.coordinator.hooks.register(
        "provider:resolve", lambda event, data: HookResult.inject("Be brief.")
    )
    async with stage.session as session:
        assert await session.execute("Hello") == "From b."
    assert stage.providers["b"].last_messages[-1] == ("system", "Be brief.")


async def test_a_child_s_provider_is_not_chosen_again() -> None:
    from amplifier.kernel.turn.routes import Route

    stage = staged(LoopConfig(fallback=True, role="fast", roles=ROLES), c=[BUSY])
    async with stage.session as session:
        session.coordinator.services.route = Route("c", "own", stage.providers["c"])
        with pytest.raises(RateLimitError):
            await session.execute("Hello", metadata={"provider": "a"})
    assert stage.asked() == {"c": ["own"]}


def run_in_virtual_time(main: Callable[[], object], backend: str) -> None:
    VirtualClock().run(main, backend=backend)  # type: ignore[arg-type]  # an async function without arguments


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_repeatedly_failing_provider_is_paused(
    backend: str,
) -> None:
    config = LoopConfig(breaker_failures=2, breaker_window=60, breaker_cooldown=30)

    async def main() -> None:
        stage = staged(
            config, b=[BUSY, BUSY, BUSY, answer("Back."), answer("Still here.")]
        )
        async with stage.session as session:
            for _ in range(2):
                with pytest.raises(RateLimitError):
                    await session.execute("Hello")
            with pytest.raises(
                ProviderUnavailableError,
                match=r"'b' failed 2 times in a row.*in 30\.0 s",
            ) as caught:
                await session.execute("Hello")
            assert (caught.value.retryable, caught.value.retry_after) == (True, 30)
            await anyio.sleep(30)
            with pytest.raises(RateLimitError):
                await session.execute("One try.")
            with pytest.raises(ProviderUnavailableError, match=r"in 30\.0 s"):
                await session.execute("Hello")
            await anyio.sleep(31)
            assert await session.execute("Another try.") == "Back."
            assert await session.execute("Hello") == "Still here."
        assert len(stage.providers["b"].requests) == 5

    run_in_virtual_time(main, backend)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_candidate_that_cools_down_is_passed_over(backend: str) -> None:
    config = LoopConfig(fallback=True, breaker_failures=1)

    async def main() -> None:
        stage = staged(config, b=[BUSY, answer("Back.")])
        async with stage.session as session:
            assert [await session.execute("Hello") for _ in range(3)] == ["From a."] * 3
            await anyio.sleep(30)
            assert await session.execute("Hello") == "Back."
        assert stage.asked() == {"b": [None, None], "a": [None] * 3}

    run_in_virtual_time(main, backend)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_when_all_that_is_left_cools_down_the_failure_is_raised(backend: str) -> None:
    config = LoopConfig(fallback=True, breaker_failures=1)

    async def main() -> None:
        stage = staged(
            config, a=[BUSY], b=[BUSY, LLMError("again", retryable=True)], c=[BUSY]
        )
        async with stage.session as session:
            with pytest.raises(RateLimitError):
                await session.execute("Hello")
            with pytest.raises(
                ProviderUnavailableError, match="'b', 'a', 'c' failed 1 times"
            ):
                await session.execute("Hello")
            await anyio.sleep(29)
            stage.providers["a"].steps.append(answer("From a."))
            await anyio.sleep(1)
            assert await session.execute("Hello") == "From a."

    run_in_virtual_time(main, backend)


async def test_a_failure_is_raised_when_whoever_is_left_cools_down() -> None:
    stage = staged(
        LoopConfig(fallback=True, breaker_failures=1),
        a=[BUSY],
        b=[BUSY],
        c=[answer("From c."), BUSY],
    )
    async with stage.session as session:
        assert await session.execute("Hello") == "From c."
        with pytest.raises(RateLimitError):
            await session.execute("Hello")
    assert {name: len(models) for name, models in stage.asked().items()} == {
        "a": 1,
        "b": 1,
        "c": 2,
    }


async def test_without_breaker_failing_provider_is_asked_each_time() -> None:
    stage = staged(LoopConfig(breaker_failures=None), b=[BUSY] * 9)
    async with stage.session as session:
        for _ in range(9):
            with pytest.raises(RateLimitError):
                await session.execute("Hello")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_failures_that_lie_far_apart_do_not_open_the_breaker(backend: str) -> None:
    async def main() -> None:
        breaker = CircuitBreaker(failures=2, window=10, cooldown=5)
        for _ in range(5):
            breaker.fail()
            await anyio.sleep(11)
        assert (breaker.is_open, breaker.wait) == (False, 0)

    run_in_virtual_time(main, backend)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_while_one_request_tries_the_others_wait(backend: str) -> None:
    async def main() -> None:
        breaker = CircuitBreaker(failures=1, window=10, cooldown=5)
        breaker.fail()
        seen = [breaker.is_open]
        await anyio.sleep(5)
        seen.append(breaker.is_open)
        breaker.begin()
        seen.append(breaker.is_open)
        breaker.abandon()
        seen.append(breaker.is_open)
        assert seen == [True, False, True, False]

    run_in_virtual_time(main, backend)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_attempt_refused_for_other_reason_blames_nobody(
    backend: str,
) -> None:
    async def main() -> None:
        config = LoopConfig(breaker_failures=1, breaker_cooldown=5)
        stage = staged(
            config, b=[BUSY, AuthenticationError("wrong key"), answer("Back.")]
        )
        async with stage.session as session:
            with pytest.raises(RateLimitError):
                await session.execute("Hello")
            await anyio.sleep(5)
            with pytest.raises(AuthenticationError):
                await session.execute("Hello")
            assert await session.execute("Hello") == "Back."

    run_in_virtual_time(main, backend)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"breaker_failures": 0}, "breaker_failures: is a whole number above 0"),
        ({"breaker_window": 0}, "breaker_window: is a number of seconds above 0"),
        ({"breaker_cooldown": -1}, "breaker_cooldown: is a number of seconds above 0"),
        ({"roles": {"fast": [{"provder": "a"}]}}, "did you mean 'provider'"),
    ],
    ids=["failures", "window", "cooldown", "role"],
)
def test_a_setting_that_cannot_be_is_named(
    settings: dict[str, JSONValue], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_config(LoopConfig, settings, subject="loop")


def test_roles_are_read_from_a_plan() -> None:
    roles: JSONValue = {
        "fast": [
            {"provider": "b", "model": "small"},
            {"provider": "a", "model": "mini"},
        ]
    }

    assert read_config(LoopConfig, {"roles": roles}, subject="loop") == LoopConfig(
        roles={"fast": ROLES["fast"]}
    )


async def test_a_loop_that_needs_no_provider_runs_without_one() -> None:
    class Alone(Loop):
        needs_provider = False

        async def run(self, turn: Turn) -> str:
            return f"{turn.provider_name!r} of {len(turn.providers)}"

    modules = {"loop": mounting(Alone()), "context": mounting(MockContextManager())}
    plan: dict[str, object] = {
        "session": {"orchestrator": "loop", "context": "context"}
    }
    async with AmplifierSession(plan, ModuleLoader(modules=modules)) as session:
        assert await session.execute("Hello") == "'' of 0"
