"""What stands before requests to models, in virtual time: pauses, slots, budgets, and what is paid for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Final

import anyio
import attrs
import pytest

from amplifier import AmplifierSession
from amplifier.app.settings.shared_limits import (
    BudgetLimits,
    ProviderLimits,
    SharedLimits,
    TenantLimits,
)
from amplifier.server.budgets import TenantBudgetError
from amplifier.server.model_gate import ModelGate
from amplifier.server.quotas import SharedQuotas
from amplifier.testing.transport import HttpStep, ScriptedTransport, json_answer
from amplifier_sdk.chat import ChatRequest, ChatResponse, Usage
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import (
    LLMError,
    LLMTimeoutError,
    RateLimitError,
    StoreUnavailableError,
)
from amplifier_sdk.events import PROVIDER_RETRY, PROVIDER_THROTTLE
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.streaming import Delta, TextDelta
from tests.doubles import (
    Generated,
    PlainProvider,
    Recorder,
    ScriptedProvider,
    answer,
    build_session,
    call,
    calling,
    forever,
)
from tests.kit.vendors.parrot import ask, parrot, speaking
from tests.server.memory_quotas import MemoryQuotas

pytestmark = pytest.mark.usefixtures("virtual_clock")

LIMITED: Final = RateLimitError(
    "slow down", status_code=429, retry_after=40.0, retryable=True
)
USED: Final = Usage(
    input_tokens=60, output_tokens=40, total_tokens=100, cost_usd=Decimal("0.25")
)


def limits(max_wait: float = 300.0, **tenant: object) -> SharedLimits:
    """Return limits of each tenant, and of its requests to providers where `provider` says so."""
    requests = tenant.pop("provider", None)
    providers = {}
    if requests is not None:
        providers["scripted"] = ProviderLimits(requests=requests)  # type: ignore[arg-type]  # the test says which
    return SharedLimits(
        tenants={"*": TenantLimits(**tenant)},  # type: ignore[arg-type]  # likewise
        providers=providers,
        max_wait=max_wait,
    )


def day(amount: object) -> BudgetLimits:
    return BudgetLimits(day=amount)


@attrs.frozen(eq=False)
class Processes:
    """Processes that share accounts; each runs sessions of its own."""

    store: MemoryQuotas
    shared: SharedLimits

    def gated(
        self, session: AmplifierSession, tenant: str = "acme"
    ) -> AmplifierSession:
        """Put a session behind the gate of a process of its own."""
        quotas = SharedQuotas(self.store, self.shared)
        ModelGate(quotas, tenant, session.coordinator).register()
        return session

    async def spent(self, unit: str = "cost_usd") -> list[float]:
        """Return what is spent and reserved of a tenant's budget."""
        for each in await self.store.balances():
            if each.account == f"tenant/acme/{unit}":
                return [float(each.spent), float(each.reserved)]
        return [0.0, 0.0]


def processes(shared: SharedLimits | None = None) -> Processes:
    return Processes(MemoryQuotas(), shared or SharedLimits())


async def failing(session: AmplifierSession) -> Exception:
    async with session:
        with pytest.raises(Exception) as raised:  # noqa: PT011  # the test looks at it
            await session.execute("go")
    return raised.value


# -- what a vendor asks to wait


async def test_what_one_is_told_all_wait_for() -> None:
    all_ = processes()
    begun: list[float] = []

    async def note(request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        begun.append(anyio.current_time())
        yield answer("hi")

    async def run() -> None:
        async with all_.gated(build_session(provider=Generated(note))) as session:
            await session.execute("go")

    await failing(all_.gated(build_session(LIMITED)))
    start = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(run)

    waited = [at - start for at in begun]
    assert len(waited) == 20
    # the pause itself, and a tenth of it within which they come one by one
    assert all(40 <= each <= 44.1 for each in waited)
    assert len({round(each, 3) for each in waited}) > 10


async def test_who_waits_holds_no_deadline_and_says_so() -> None:
    all_ = processes()
    await failing(all_.gated(build_session(LIMITED)))
    session = build_session("hi", limits={"wall_time": 5.0, "provider_timeout": 5.0})
    async with all_.gated(session):
        recorder = Recorder.of(session.coordinator.hooks, PROVIDER_THROTTLE)
        assert await session.execute("go") == "hi"

    (throttled,) = recorder.all(PROVIDER_THROTTLE)
    assert throttled["dimension"] == "retry_after"
    assert "asks to wait for" in str(throttled["reason"])


async def test_retry_of_one_process_holds_the_others_back() -> None:
    """A provider retries by itself, and no error comes out of it."""
    all_ = processes()
    async with all_.gated(build_session("hi")) as session:
        said = {
            "provider": "scripted",
            "model": "m",
            "attempt": 1,
            "max_retries": 5,
            "delay": 8.0,
            "retry_after": 8.0,
            "error_type": "RateLimitError",
            "error_message": "",
            "status_code": 429,
        }
        await session.coordinator.hooks.emit(PROVIDER_RETRY, said)
    other = all_.gated(build_session("hi"))
    start = anyio.current_time()
    async with other:
        await other.execute("go")

    assert 8 <= anyio.current_time() - start < 9


async def test_pause_is_of_one_account() -> None:
    all_ = processes()
    await failing(all_.gated(build_session(LIMITED)))
    start = anyio.current_time()
    other = build_session(provider=ScriptedProvider("hi", name="another"))
    async with all_.gated(other):
        await other.execute("go")

    assert anyio.current_time() - start < 1


@pytest.mark.parametrize(
    "error",
    [
        LLMError("no", status_code=400, retry_after=40.0),
        RateLimitError("slow", status_code=429),
    ],
)
async def test_what_asks_for_no_wait_pauses_nothing(error: LLMError) -> None:
    all_ = processes()
    await failing(all_.gated(build_session(error)))

    assert all_.store.paused == {}


async def test_longer_wait_than_is_allowed_is_an_error_at_once() -> None:
    all_ = processes(limits(max_wait=30.0))
    await failing(all_.gated(build_session(LIMITED)))
    start = anyio.current_time()
    error = await failing(all_.gated(build_session("hi")))

    assert isinstance(error, RateLimitError)
    assert error.retryable
    assert "asks to wait for" in str(error)
    assert "server.limits.max_wait" in str(error)
    assert anyio.current_time() - start < 1


async def test_accounts_that_do_not_answer_hold_nothing_back() -> None:
    all_ = processes()
    all_.store.is_down = True
    async with all_.gated(build_session("hi")) as session:
        assert await session.execute("go") == "hi"


# -- requests at once


@pytest.mark.parametrize("shared", [limits(requests=2), limits(provider=2)])
async def test_requests_at_once_are_limited_over_all_processes(
    shared: SharedLimits,
) -> None:
    all_ = processes(shared)
    running, most = 0, 0

    async def work(request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(1)
        running -= 1
        yield answer("hi")

    async def run() -> None:
        async with all_.gated(build_session(provider=Generated(work))) as session:
            await session.execute("go")

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(run)

    assert most == 2
    assert all_.store.held == {}


async def test_children_are_behind_the_gate_as_well() -> None:
    all_ = processes(limits(tokens=day(1000)))
    async with all_.gated(build_session("hi", limits={})) as session:
        seen = session.coordinator.hooks
        child = build_session("hi").coordinator.hooks
        child.inherit(seen)

        assert child.middleware("around:model") is not None


async def test_request_that_waits_too_long_fails() -> None:
    all_ = processes(limits(max_wait=5.0, requests=1))
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(anyio.create_task_group())
        busy = build_session(provider=PlainProvider(stuck))
        tasks.start_soon(failing, all_.gated(busy))
        await anyio.wait_all_tasks_blocked()
        error = await failing(all_.gated(build_session("hi")))
        tasks.cancel_scope.cancel()

    assert isinstance(error, RateLimitError)
    assert "tenant/acme/requests has 1 requests at once" in str(error)


async def stuck(request: ChatRequest) -> ChatResponse:
    await forever()
    raise AssertionError


# -- budgets


async def test_budget_counts_what_was_used_and_refuses_what_does_not_fit() -> None:
    all_ = processes(limits(tokens=day(8300), cost_usd=day(5)))
    said = answer("hi", usage=USED)
    async with all_.gated(build_session(said, said, said)) as session:
        await session.execute("go")
        first = [*await all_.spent("tokens"), *await all_.spent()]
        await session.execute("go")
        await session.execute("go")
        with pytest.raises(TenantBudgetError) as raised:
            await session.execute("go")

    assert first == [100, 0, 0.25, 0]
    assert await all_.spent("tokens") == [300, 0]
    output = str(raised.value)
    assert "The budget of tenant 'acme' is 8300 tokens a day, of which 8000" in output
    assert "It renews at 1970-01-02T00:00:00Z" in output
    assert raised.value.retry_after > 86_000


@pytest.mark.parametrize(
    ("budget", "answers", "left"), [("0.3", 1, "0.05"), ("0.5", 2, "0")]
)
async def test_unknown_price_counts_once_it_is_known(
    budget: str, answers: int, left: str
) -> None:
    all_ = processes(limits(cost_usd=day(budget)))
    said = [answer("hi", usage=USED)] * 3
    async with all_.gated(build_session(*said)) as session:
        for _ in range(answers):
            await session.execute("go")
        with pytest.raises(TenantBudgetError, match=f"of which {left} are left"):
            await session.execute("go")


async def test_answer_without_usage_costs_what_was_reserved() -> None:
    all_ = processes(limits(tokens=day(100_000)))
    silent = ChatResponse(content=(), usage=None)

    async def complete(request: ChatRequest) -> ChatResponse:
        return silent

    async with all_.gated(build_session(provider=PlainProvider(complete))) as session:
        await session.execute("go")

    spent, reserved = await all_.spent("tokens")
    assert spent >= 8000
    assert reserved == 0


@pytest.mark.parametrize(
    "said",
    [
        attrs.evolve(USED, cost_usd=Decimal(-5)),
        attrs.evolve(USED, cost_usd=Decimal("NaN")),
        attrs.evolve(USED, total_tokens=-1000),
    ],
    ids=["refund", "no number", "negative"],
)
async def test_answer_that_gives_something_back_costs_what_was_reserved(
    said: Usage,
) -> None:
    all_ = processes(limits(tokens=day(100_000), cost_usd=day(5)))
    async with all_.gated(build_session(answer("hi", usage=said))) as session:
        await session.execute("go")

    assert (await all_.spent("tokens"))[0] > 8000
    assert await all_.spent() == [0, 0]


async def test_pause_ends_though_a_vendor_asks_for_a_year() -> None:
    all_ = processes(limits(max_wait=86_400.0))
    error = RateLimitError("slow down", status_code=429, retry_after=3e7)
    await failing(all_.gated(build_session(error)))
    start = anyio.current_time()
    async with all_.gated(build_session("hi")) as session:
        await session.execute("go")

    assert 3600 <= anyio.current_time() - start <= 3611


@attrs.frozen
class Ending:
    """How a request ends before its answer is there, and whether it is paid for."""

    name: str
    session: Callable[[], AmplifierSession]
    is_paid: bool


async def broken(request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
    yield TextDelta(text="h")


ENDINGS: Final = (
    Ending("refused", partial(build_session, LIMITED), is_paid=False),
    Ending("refused", partial(build_session, LLMError("bad")), is_paid=False),
    Ending("broken", lambda: build_session(provider=Generated(broken)), is_paid=True),
    Ending(
        "late",
        lambda: build_session(
            provider=PlainProvider(stuck), limits={"provider_timeout": 3.0}
        ),
        is_paid=True,
    ),
)


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda each: each.name)
async def test_what_a_request_without_an_answer_costs(ending: Ending) -> None:
    all_ = processes(limits(tokens=day(100_000)))
    error = await failing(all_.gated(ending.session()))
    spent, reserved = await all_.spent("tokens")

    assert isinstance(error, LLMError | LLMTimeoutError)
    assert (spent > 0) is ending.is_paid
    assert reserved == 0


async def test_cancelled_request_is_paid_for_and_frees_its_room() -> None:
    all_ = processes(limits(tokens=day(100_000), requests=1))
    session = all_.gated(build_session(provider=PlainProvider(stuck)))
    with anyio.move_on_after(3):
        async with session:
            await session.execute("go")
    spent, reserved = await all_.spent("tokens")

    assert spent > 8000
    assert reserved == 0
    assert all_.store.held == {}


async def test_request_cancelled_while_it_waits_costs_nothing() -> None:
    all_ = processes(limits(tokens=day(100_000)))
    await failing(all_.gated(build_session(LIMITED)))
    with anyio.move_on_after(3):
        async with all_.gated(build_session("hi")) as session:
            await session.execute("go")

    assert await all_.spent("tokens") == [0, 0]


async def test_what_is_reserved_by_others_is_waited_for() -> None:
    all_ = processes(limits(tokens=day(9000)))

    async def work(request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        await anyio.sleep(10)
        yield answer("hi", usage=USED)

    async def run() -> None:
        async with all_.gated(build_session(provider=Generated(work))) as session:
            await session.execute("go")

    start = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        tasks.start_soon(run)

    assert 20 <= anyio.current_time() - start < 23
    assert await all_.spent("tokens") == [200, 0]


async def test_budget_without_its_accounts_lets_nothing_through() -> None:
    all_ = processes(limits(tokens=day(9000)))
    all_.store.is_down = True
    error = await failing(all_.gated(build_session("hi")))

    assert isinstance(error, StoreUnavailableError)


async def test_each_iteration_of_a_turn_is_counted() -> None:
    all_ = processes(limits(tokens=day(100_000)))
    steps = (calling(call("work")), answer("hi", usage=USED))
    async with all_.gated(build_session(*steps)) as session:
        await session.execute("go")

    assert all_.store.calls["reserve"] == 2
    assert all_.store.calls["settle"] == 2


@pytest.mark.parametrize("is_down", [True, False], ids=["down", "slow"])
async def test_what_could_not_be_settled_is_settled_later(is_down: bool) -> None:
    store = MemoryQuotas()
    quotas = SharedQuotas(store, limits(tokens=day(100_000)))
    claims = tuple(quotas.budget_claims("acme", USED))
    made = await quotas.reserve(claims)
    store.is_down = is_down
    with anyio.CancelScope() as scope:
        if not is_down:
            scope.cancel()  # as whoever waits for no more than some seconds
        await quotas.settle(made, {"tenant/acme/tokens": Decimal(100)})  # type: ignore[arg-type]  # it was reserved
    store.is_down = False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(quotas.run)
        await anyio.sleep(60)
        tasks.cancel_scope.cancel()

    assert [each.spent for each in await store.balances()] == [100]
    assert store.held == {}


async def test_what_is_held_for_long_is_renewed() -> None:
    store = MemoryQuotas()
    quotas = SharedQuotas(store, limits(requests=1))
    claims = quotas.request_claims("acme", "scripted", "provider/scripted", USED)
    await quotas.reserve(claims)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(quotas.run)
        await anyio.sleep(600)
        held = [each.reserved for each in await store.balances()]
        tasks.cancel_scope.cancel()
    await anyio.sleep(60)

    assert held == [1]
    assert not await store.balances()


async def test_module_that_asks_a_provider_by_itself_pays_afterwards() -> None:
    all_ = processes(limits(tokens=day(20), cost_usd=day(5)))
    said = {"input": 7, "output": 3}
    price: JSONObject = {"input_per_million": "1", "output_per_million": "1"}
    async with all_.gated(
        asking([], speaking(), speaking(), speaking(), prices={"grey": price})
    ) as session:
        (provider,) = session.coordinator.providers.values()
        for _ in range(3):
            await provider.complete(ask())
        with pytest.raises(TenantBudgetError, match="of which 0 are left"):
            await session.execute("go")

    assert await all_.spent("tokens") == [3 * sum(said.values()), 0]
    assert await all_.spent() == [0.00003, 0]


async def test_request_that_was_let_through_counts_once() -> None:
    all_ = processes(limits(tokens=day(100_000)))
    async with all_.gated(asking([], speaking())) as session:
        await session.execute("go")

    assert await all_.spent("tokens") == [10, 0]


async def test_last_cost_is_reserved_where_the_price_is_unknown() -> None:
    all_ = processes(limits(cost_usd=day(1)))
    seen: list[list[float]] = []

    async def work(request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        seen.append(await all_.spent())
        yield answer("hi", usage=USED)

    async with all_.gated(build_session(provider=Generated(work))) as session:
        await session.execute("go")
        await session.execute("go")

    assert seen == [[0, 0], [0.25, 0.25]]


# -- with a vendor


def asking(
    script: list[ScriptedTransport],
    *steps: HttpStep,
    prices: Mapping[str, JSONValue] = MappingProxyType({}),
) -> AmplifierSession:
    """Return a session whose provider asks a vendor over HTTP, which answers like this."""

    async def mount(coordinator: Coordinator, _config: object) -> None:
        made, transport = parrot(
            *steps, coordinator=coordinator, retry_jitter=True, prices=dict(prices)
        )
        script.append(transport)
        await coordinator.mount("providers", made)

    return build_session(provider=mount)


async def test_vendor_that_asks_one_process_to_wait_hears_of_none_until_then() -> None:
    all_ = processes()
    busy = json_answer({"error": "busy"}, status=429, headers={"retry-after": "20"})
    scripts: list[ScriptedTransport] = []
    ends: list[float] = []

    async def run(*steps: HttpStep) -> None:
        async with all_.gated(asking(scripts, *steps)) as session:
            await session.execute("go")
            ends.append(anyio.current_time())

    start = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, busy, speaking())
        while not all_.store.paused:
            await anyio.lowlevel.checkpoint()
        for _ in range(4):
            tasks.start_soon(run, speaking())

    # the one that was told retried once, and no other was refused
    assert sorted(len(script.requests) for script in scripts) == [1, 1, 1, 1, 2]
    assert all(20 <= end - start < 23 for end in ends)
    assert [*all_.store.paused] == [f"provider/{account_of_parrot()}"]


async def test_retry_waits_for_what_another_process_was_told_meanwhile() -> None:
    all_ = processes()
    scripts: list[ScriptedTransport] = []
    ends: list[float] = []

    async def run(seconds: str) -> None:
        headers = {"retry-after": seconds}
        busy = json_answer({"error": "busy"}, status=429, headers=headers)
        async with all_.gated(asking(scripts, busy, speaking())) as session:
            await session.execute("go")
            ends.append(anyio.current_time())

    start = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, "5")
        tasks.start_soon(run, "50")

    assert [len(script.requests) for script in scripts] == [2, 2]
    assert all(50 <= end - start < 55 for end in ends)


def account_of_parrot() -> str:
    provider, _ = parrot()
    return provider.account
