"""What tenants may use together, over all processes of a server: turns, budgets, and where they stand."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import cast

import anyio
import pytest

from amplifier.app.settings.layers import Layer
from amplifier.app.settings.settings import Settings
from amplifier.app.settings.shared_limits import (
    BudgetLimits,
    ProviderLimits,
    SharedLimits,
    TenantLimits,
)
from amplifier.server import quotas
from amplifier.server.leases import release_lease
from amplifier.server.stores import ServerStores
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.stores import SessionStore
from tests.server.serving import Site, ended
from tests.server.test_sessions import begun, costed
from tests.server.test_workers import delegating, fleet
from tests.serving.client import Caller

pytestmark = pytest.mark.timeout(60)


def limit(site: Site, **tenants: JSONObject) -> None:
    """Write the limits of tenants in the settings of who runs the server."""
    limits = {
        "tenants": {name.replace("each", "*"): of for name, of in tenants.items()}
    }
    text = json.dumps({"server": {"limits": limits}})
    (site.home / "settings.yaml").write_text(text)


def paid(cost: str) -> JSONValue:
    usage: JSONObject = {"input_tokens": 10, "output_tokens": 5, "cost_usd": cost}
    return {"text": "Fine.", "usage": usage}


async def test_budget_is_one_of_all_processes_and_says_when_it_renews(
    site: Site,
) -> None:
    limit(site, each={"cost_usd": {"day": 1, "month": 10}})
    secret, other = await site.token(), await site.token("ann", "owner", "acme")
    async with site.serving(paid("0.6")) as one, site.serving(paid("0.6")) as two:
        for server in (one, two):
            session, turn = await begun(Caller(server, secret))
            await ended(Caller(server, secret), session, turn)
        caller = Caller(two, secret)
        session = await caller.begin()
        refused = await caller.post(f"/sessions/{session}/turns", {"prompt": "x"})
        await begun(Caller(one, other))
        await costed(one, "acme")
        seen = {
            name: (await Caller(one, who).get("/limits")).json
            for name, who in (("default", secret), ("acme", other))
        }
        metrics = (await caller.get("/metrics")).body.decode()

    assert refused.status == 429
    assert refused.json["error"]["code"] == "budget_exceeded"
    reported = refused.json["error"]["message"]
    assert "tenant 'default' is 1 US dollars a day, of which 0 are left" in reported
    assert "renews at 20" in reported
    assert 0 < int(refused.headers["retry-after"]) <= 86_400
    accounts = seen["default"]["accounts"]
    assert [(each["tenant"], each["window"]) for each in accounts] == [
        ("acme", "day"),
        ("acme", "month"),
        ("default", "day"),
        ("default", "month"),
    ]
    assert (accounts[2]["spent"], accounts[2]["limit"]) == ("1.2", "1")
    assert {each["tenant"] for each in seen["acme"]["accounts"]} == {"acme"}
    labels = 'tenant="default",unit="cost_usd",window="day"'
    assert f"amplifier_server_quota_used{{{labels}}} 1.2" in metrics
    assert f"amplifier_server_quota_limit{{{labels}}} 1\n" in metrics


async def test_turn_whose_request_does_not_fit_says_why(site: Site) -> None:
    limit(site, default={"tokens": {"day": 500}})
    secret = await site.token()
    async with site.serving("Fine.") as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        done = await ended(caller, session, turn)

    error = done["error"]
    assert isinstance(error, dict)
    assert error["code"] == "budget_exceeded"
    assert "500 tokens a day, of which 500 are left" in error["message"]
    assert "renews at" in error["message"]


SLOW: JSONValue = {"deltas": ["a"], "delay": 30}


async def cancelled(caller: Caller, session: str, turn: str) -> None:
    """Cancel a turn, and wait for its end."""
    one = f"/sessions/{session}/turns/{turn}"
    await caller.post(f"{one}/cancel", {"immediate": True})
    with anyio.fail_after(20):
        while True:
            if (await caller.get(one)).json["state"] != "running":
                return
            await anyio.sleep(0.02)


async def test_turns_of_a_tenant_at_once_are_limited_over_all_processes(
    site: Site,
) -> None:
    limit(site, each={"turns": 1})
    secret, other = await site.token(), await site.token("ann", "owner", "acme")
    async with site.serving(SLOW) as one, site.serving(SLOW) as two:
        first, second, third = (
            Caller(one, secret),
            Caller(two, secret),
            Caller(two, other),
        )
        running = await begun(first)
        session = await second.begin()
        path = f"/sessions/{session}/turns"
        refused = await second.post(path, {"prompt": "x"})
        await cancelled(third, *await begun(third))
        await cancelled(first, *running)
        with anyio.fail_after(10):
            taken = refused
            while taken.status == 429:
                taken = await second.post(path, {"prompt": "x"})
        await cancelled(second, session, taken.json["turn_id"])

    assert refused.status == 429
    assert refused.json["error"]["code"] == "too_many_turns"


async def test_refused_turn_leaves_no_room_behind(site: Site) -> None:
    limit(site, each={"turns": 2})
    secret = await site.token()
    async with site.serving(SLOW) as server:
        caller = Caller(server, secret)
        session, turn = await begun(caller)
        busy = await caller.post(f"/sessions/{session}/turns", {"prompt": "x"})
        reserved = (await caller.get("/limits")).json["accounts"][0]["reserved"]
        await cancelled(caller, session, turn)

    assert busy.status == 409
    assert reserved == "1"


async def test_workers_take_no_more_turns_of_a_tenant_than_it_may_have(
    site: Site,
) -> None:
    limit(site, default={"turns": 1})
    slow: JSONValue = {"deltas": ["a"], "delay": 0.5}
    async with fleet(site, slow) as all_, AsyncExitStack() as stack:
        turns = [await begun(all_.caller) for _ in range(3)]
        for name in ("w1", "w2"):
            await stack.enter_async_context(all_.worker(name, period=0.3))
        most = 0
        with anyio.fail_after(30):
            while len(await all_.engine.runs("finished", limit=9)) < 3:
                records = [
                    (await all_.caller.get("/limits")).json["accounts"][0]["reserved"]
                ]
                most = max(most, *map(int, records))
                await anyio.sleep(0.05)
        done = [await ended(all_.caller, *turn) for turn in turns]

    assert most == 1
    assert {each["state"] for each in done} == {"finished"}


async def test_turns_of_high_priority_begin_first(site: Site) -> None:
    async with fleet(site, "Fine.") as all_:
        turns, path = dict[str, tuple[str, str]](), ""
        for priority in ("low", "normal", "high"):
            session = await all_.caller.begin()
            path = f"/sessions/{session}/turns"
            body = {"prompt": "x", "priority": priority}
            answer = await all_.caller.post(path, body)
            turns[priority] = session, answer.json["turn_id"]
        wrong = await all_.caller.post(path, {"prompt": "x", "priority": "urgent"})
        # whoever queues it again does so with the same priority
        all_.engine.shared.entries.pop(turns["low"][1])  # type: ignore[attr-defined]  # the double's
        async with all_.worker("w1", max_runs=1):
            ends = {
                priority: await when_ended(all_.caller, *turn)
                for priority, turn in turns.items()
            }
        run = await all_.engine.find(turns["low"][1])

    assert wrong.status == 422
    assert ends["high"] < ends["normal"] < ends["low"]
    assert run is not None
    assert run.request.priority == 20


async def when_ended(caller: Caller, session: str, turn: str) -> float:
    await ended(caller, session, turn)
    shown = (await caller.get(f"/sessions/{session}")).json
    updated: float = shown["updated"]
    return updated


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ({"tenant": {}}, "server.limits.tenant: unknown; did you mean 'tenants'"),
        ({"tenants": {"a": {"turn": 1}}}, "did you mean 'turns'"),
        ({"tenants": {"a": {"turns": 0}}}, "turns"),
        ({"tenants": {"a": {"cost_usd": {"day": "much"}}}}, "a decimal number"),
        ({"tenants": {"a": {"cost_usd": {"day": -1}}}}, "above 0"),
        ({"tenants": {"Acme": {"turns": 1}}}, "lower-case letters"),
        ({"providers": {"x": {"request": 1}}}, "did you mean 'requests'"),
    ],
)
async def test_wrong_limits_are_refused_before_anything_is_served(
    site: Site, limits: JSONValue, problem: str
) -> None:
    text = json.dumps({"server": {"limits": limits}})
    (site.home / "settings.yaml").write_text(text)

    with pytest.raises(ConfigError, match=problem):
        async with site.serving():
            pass


def test_limits_of_the_served_folder_are_refused(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions write in it, and a person may have trusted what stands there."""
    path = site.folder / ".amplifier" / "settings.yaml"
    layer = Layer(scope="project", path=path, values={"server": {"limits": {}}})
    monkeypatch.setattr(quotas, "load_settings", lambda dirs: Settings(layers=(layer,)))

    with pytest.raises(ConfigError, match="counts in your own settings alone"):
        quotas.read_limits(site.dirs)


@pytest.mark.parametrize("is_limited", [False, True])
async def test_store_without_accounts_serves_no_limits(
    site: Site, is_limited: bool
) -> None:
    class Plain(ServerStores):
        async def server(self) -> SessionStore:
            return cast("SessionStore", object())

    if is_limited:
        limit(site, each={"turns": 1})
        with pytest.raises(ConfigError, match="has no accounts"):
            await quotas.open_quotas(Plain("files", site.dirs))
    else:
        assert await quotas.open_quotas(Plain("files", site.dirs)) is None


def test_tenant_has_what_its_name_says_and_else_what_each_has() -> None:
    each = TenantLimits(turns=8, cost_usd=BudgetLimits(day=5, month=100))
    acme = TenantLimits(requests=2, cost_usd=BudgetLimits(day=50))
    shared = SharedLimits(
        tenants={"*": each, "acme": acme},
        providers={
            "anthropic": ProviderLimits(requests=20),
            "*": ProviderLimits(requests=5),
        },
    )
    found = shared.of_tenant("acme")

    assert shared.of_tenant("other") == each
    assert (found.turns, found.requests) == (8, 2)
    assert found.cost_usd == BudgetLimits(day=50, month=100)
    assert shared.of_provider("provider-anthropic").requests == 20
    assert shared.of_provider("local").requests == 5
    assert shared.max_turns == 8
    assert SharedLimits(tenants={"acme": each}).max_turns is None
    assert SharedLimits().of_provider("x").requests is None


async def test_requests_of_agents_are_the_tenants(site: Site) -> None:
    limit(site, default={"tokens": {"day": 1_000_000}})
    usage: JSONObject = {"input_tokens": 70, "output_tokens": 30}
    async with fleet(site) as all_:
        delegating(site)
        for name in ("root", "agent"):
            file = site.home / f"{name}.json"
            steps = json.loads(file.read_text())
            steps = [
                {"text": each} if isinstance(each, str) else each for each in steps
            ]
            file.write_text(json.dumps([{**each, "usage": usage} for each in steps]))
        session, turn = await begun(all_.caller)
        async with all_.worker("w1"):
            await all_.until(turn, "waiting")
        await all_.answer(session, "Allow once")
        async with all_.worker("w2"):
            await ended(all_.caller, session, turn)
        (account,) = (await all_.caller.get("/limits")).json["accounts"]

    # two requests of the session and two of its agent, over two workers
    assert (account["spent"], account["reserved"]) == ("400", "0")


async def test_lease_is_released_though_its_holder_is_cancelled(site: Site) -> None:
    async with site.serving() as server:
        store = (await server.stores.tenant("default")).store
        lease = await store.acquire("s1", owner="x", period=60)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await release_lease(store, lease)

        assert await store.holder("s1") is None


async def test_turn_that_waits_for_a_vendor_is_shown_and_can_be_cancelled(
    site: Site,
) -> None:
    """The one that is told to wait fails, and the next one of another session waits."""
    error: JSONObject = {
        "type": "RateLimitError",
        "status_code": 429,
        "retry_after": 60.0,
    }
    secret = await site.token()
    async with site.serving({"error": error}) as server:
        caller = Caller(server, secret)
        failed = await ended(caller, *await begun(caller))
        paused = (await caller.get("/limits")).json["paused"]
        session, turn = await begun(caller)
        with anyio.fail_after(20):
            seen = set[str]()
            while "provider:throttle" not in seen:
                await anyio.sleep(0.1)
                logs = (await caller.get(f"/sessions/{session}/logs")).json
                seen = {each["event"] for each in logs["records"]}
        metrics = (await caller.get("/metrics")).body.decode()
        await cancelled(caller, session, turn)
        done = await ended(caller, session, turn)

    assert (failed["state"], done["state"]) == ("failed", "cancelled")
    assert [each["account"] for each in paused] == ["provider/scripted"]
    assert 'provider_paused_seconds{account="provider/scripted"}' in metrics
