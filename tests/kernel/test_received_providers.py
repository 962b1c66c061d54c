"""Providers that a loop written by hand received: whatever it asks of them owes what any provider call owes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Final, TypeAlias, cast

import anyio
import attrs
import pytest

from amplifier import AmplifierSession
from amplifier.kernel.turn.stream import CAPACITY
from amplifier_sdk.chat import (
    ChatRequest,
    ChatResponse,
    ProviderInfo,
    ToolCall,
    ToolSpec,
    Usage,
)
from amplifier_sdk.contracts import (
    ContextManager,
    Hooks,
    Provider,
    StreamingProvider,
    Tool,
)
from amplifier_sdk.errors import (
    BudgetExceededError,
    LLMError,
    LLMTimeoutError,
    TurnCancelled,
)
from amplifier_sdk.events import (
    PROVIDER_ERROR,
    PROVIDER_REQUEST,
    PROVIDER_RESPONSE,
    TOOL_PRE,
)
from amplifier_sdk.journal import CallFinished, CallStarted, MessageWritten
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message
from amplifier_sdk.middleware import ModelCall, Proceed, event_of
from amplifier_sdk.results import Emission, HookResult
from amplifier_sdk.streaming import Delta, TextDelta, UsageReported
from tests.doubles import (
    MemoryContext,
    MemoryJournal,
    PlainLoop,
    PlainProvider,
    Recorder,
    ScriptedProvider,
    Sentry,
    Worker,
    answer,
    build_loader,
    build_plan,
    build_session,
    call,
    calling,
    forever,
)

USAGE: Final = Usage(
    input_tokens=10, output_tokens=5, total_tokens=15, cost_usd=Decimal("0.5")
)
ASKED: Final = ChatRequest(
    messages=[Message(role="user", content="go")],
    tools=[ToolSpec(name="work", description="Works.", parameters={})],
)


@attrs.frozen(eq=False)
class Given:
    """What a loop received."""

    provider: Provider
    tools: Mapping[str, Tool]
    hooks: Hooks
    context: ContextManager

    async def complete(self, request: ChatRequest = ASKED) -> ChatResponse:
        """Ask the provider, as the contract shows it."""
        return await self.provider.complete(request)

    async def stream(self) -> ChatResponse | None:
        """Ask the provider and read the answer as it forms."""
        last: Delta | ChatResponse | None = None
        async with cast("StreamingProvider", self.provider).stream(ASKED) as items:
            async for item in items:
                last = item
        return last if isinstance(last, ChatResponse) else None

    async def announce(self) -> bool:
        """Emit `provider:request`; return whether it was denied."""
        emission = await self.hooks.emit(
            "provider:request", {"provider": "scripted", "messages": []}
        )
        return emission.denied

    async def report(self, response: object) -> None:
        """Emit `provider:response`."""
        await self.hooks.emit(
            "provider:response", {"provider": "scripted", "response": response}
        )


Steps: TypeAlias = Callable[[Given], Awaitable[str]]
Ask: TypeAlias = Callable[[Given], Awaitable[ChatResponse | None]]
WAYS: Final = pytest.mark.parametrize(
    "ask", [Given.complete, Given.stream], ids=["complete", "stream"]
)


def looping(steps: Steps) -> PlainLoop:
    """Make a loop of what it does with what it received."""

    async def run(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        (provider,) = providers.values()
        return await steps(Given(provider, tools, hooks, context))

    return PlainLoop(run)


def asking(ask: Ask, times: int = 1) -> Steps:
    """Return steps that ask so often and answer with the last text."""

    async def steps(given: Given) -> str:
        text = ""
        for _ in range(times):
            response = await ask(given)
            text = response.text if response is not None else text
        return text

    return steps


# -- what is spent


@WAYS
async def test_what_a_call_took_is_counted_and_reported(ask: Ask) -> None:
    said = answer("hi", usage=USAGE)
    async with build_session(said, said, loop=looping(asking(ask, 2))) as session:
        async with session.stream("go") as events:
            seen = [event async for event in events]

        assert session.spending.provider_calls == 2
        assert session.spending.usage == USAGE + USAGE
    reported = [event for event in seen if isinstance(event, UsageReported)]
    assert [event.total for event in reported] == [USAGE, USAGE + USAGE]


@WAYS
async def test_the_last_call_of_a_limit_has_no_tools_and_ends_the_turn(
    ask: Ask,
) -> None:
    requests: list[ChatRequest] = []

    async def steps(given: Given) -> str:
        provider = given.provider.provider  # type: ignore[attr-defined]
        first, last = await ask(given), await ask(given)
        assert first is not None
        assert last is not None
        requests.extend(provider.requests)
        with pytest.raises(BudgetExceededError):
            await ask(given)
        assert [bool(response.tool_calls) for response in (first, last)] == [
            True,
            False,
        ]
        return "end"

    session = build_session(
        *[calling(call("work"))] * 3,
        loop=looping(steps),
        tools=[Worker()],
        limits={"iterations": 2},
    )
    async with session:
        await session.execute("go")

        assert session.spending.provider_calls == 2
    assert [bool(request.tools) for request in requests] == [True, False]
    assert "limit of this turn" in str(requests[1].messages[-1].to_dict())


@WAYS
@pytest.mark.parametrize("limit", ["cost_usd", "tokens"])
async def test_a_budget_ends_a_loop_that_asks_for_ever(ask: Ask, limit: str) -> None:
    async def steps(given: Given) -> str:
        while True:
            await ask(given)

    amount: JSONValue = "1.0" if limit == "cost_usd" else 30
    said = answer("hi", usage=USAGE)
    async with build_session(
        *[said] * 9, loop=looping(steps), limits={limit: amount}
    ) as session:
        with pytest.raises(BudgetExceededError):
            await session.execute("go")

        assert session.spending.provider_calls in (2, 3)


# -- deadlines and cancellation


@pytest.mark.parametrize(
    "limits",
    [{"provider_timeout": 0.02}, {"provider_idle_timeout": 0.02}],
    ids=["in all", "silent"],
)
async def test_a_stream_that_gets_stuck_ends_at_its_deadline(
    limits: dict[str, JSONValue],
) -> None:
    async def generate(
        request: ChatRequest,
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        yield TextDelta(text="a")
        await forever()

    session = build_session(
        provider=ScriptedProvider(generate),
        loop=looping(asking(Given.stream)),
        limits=limits,
    )
    with anyio.fail_after(5):
        async with session:
            with pytest.raises(LLMTimeoutError):
                await session.execute("go")


async def test_an_answer_that_takes_too_long_ends_at_its_deadline() -> None:
    async def ask(request: ChatRequest) -> ChatResponse:
        await forever()
        raise AssertionError

    session = build_session(
        provider=PlainProvider(ask),
        loop=looping(asking(Given.complete)),
        limits={"provider_timeout": 0.02},
    )
    with anyio.fail_after(5):
        async with session:
            with pytest.raises(LLMTimeoutError, match=r"longer than 0\.02 s"):
                await session.execute("go")


async def test_what_the_loop_takes_for_a_delta_is_not_the_providers_time() -> None:
    async def steps(given: Given) -> str:
        text = ""
        async with cast("StreamingProvider", given.provider).stream(ASKED) as items:
            async for item in items:
                if isinstance(item, TextDelta):
                    # longer than the provider may be silent
                    await anyio.sleep(0.05)
                    text += item.text
        return text

    async with build_session(
        "hi there", loop=looping(steps), limits={"provider_idle_timeout": 0.04}
    ) as session:
        assert await session.execute("go") == "hi there"


@WAYS
async def test_after_a_cancellation_nobody_is_asked(ask: Ask) -> None:
    async def steps(given: Given) -> str:
        await sessions[0].cancel()
        await ask(given)
        return "never"

    sessions: list[AmplifierSession] = []
    async with build_session("hi", loop=looping(steps)) as session:
        sessions.append(session)
        with pytest.raises(TurnCancelled):
            await session.execute("go")

        assert session.spending.provider_calls == 0


async def test_a_loop_that_leaves_a_stream_gives_back_what_was_reserved() -> None:
    requests: list[ChatRequest] = []

    async def steps(given: Given) -> str:
        await given.complete()
        async with cast("StreamingProvider", given.provider).stream(ASKED):
            pass
        await given.complete()
        requests.extend(given.provider.provider.requests)  # type: ignore[attr-defined]
        return "end"

    said = answer("hi", usage=USAGE)
    async with build_session(
        said, said, loop=looping(steps), limits={"cost_usd": "1.0"}
    ) as session:
        await session.execute("go")

    # what was still reserved would have made the last one the turn's last answer
    assert [bool(request.tools) for request in requests] == [True, True]


# -- what handlers decide


@WAYS
@pytest.mark.parametrize("is_announced", [True, False], ids=["announced", "silent"])
async def test_each_call_is_heard_once(ask: Ask, is_announced: bool) -> None:
    async def steps(given: Given) -> str:
        if is_announced:
            await given.announce()
        response = await ask(given)
        if is_announced:
            await given.report(response)
        return "end"

    session = build_session("hi", loop=looping(steps))
    recorder = Recorder.of(session.coordinator.hooks, "provider:*")
    async with session:
        await session.execute("go")

    assert recorder.names == [PROVIDER_REQUEST, PROVIDER_RESPONSE]


async def emit_under_another_name(given: Given) -> Emission:
    """Emit `provider:request` as a loop does that has its own names for providers."""
    return await given.hooks.emit(
        "provider:request", {"provider": "mine", "messages": []}
    )


async def test_loop_may_call_its_provider_by_a_name_of_its_own() -> None:
    async def steps(given: Given) -> str:
        await emit_under_another_name(given)
        response = await given.complete()
        await given.hooks.emit(
            "provider:response", {"provider": "mine", "response": response}
        )
        return "end"

    session = build_session("hi", loop=looping(steps))
    recorder = Recorder.of(session.coordinator.hooks, "provider:*")
    async with session:
        await session.execute("go")

    assert recorder.names == [PROVIDER_REQUEST, PROVIDER_RESPONSE]


async def test_a_denial_under_another_name_holds() -> None:
    provider = ScriptedProvider("hi")

    async def steps(given: Given) -> str:
        assert (await emit_under_another_name(given)).denied
        with pytest.raises(LLMError, match="denied by guard: no"):
            await given.complete()
        return "end"

    session = build_session(provider=provider, loop=looping(steps))
    session.coordinator.hooks.register(
        PROVIDER_REQUEST, Sentry([HookResult.deny("no")]), name="guard"
    )
    async with session:
        await session.execute("go")

    assert provider.requests == []


async def test_answers_may_be_reported_in_any_order() -> None:
    async def steps(given: Given) -> str:
        first, second = await given.complete(), await given.complete()
        await given.report(second)
        await given.report(first)
        return "end"

    session = build_session("one", "two", loop=looping(steps))
    recorder = Recorder.of(session.coordinator.hooks, "provider:*")
    async with session:
        await session.execute("go")

    assert recorder.names == [PROVIDER_REQUEST, PROVIDER_RESPONSE] * 2


async def test_a_failure_of_the_loops_own_is_heard() -> None:
    async def steps(given: Given) -> str:
        await given.complete()
        await given.hooks.emit(
            "provider:error", {"provider": "scripted", "error": {"message": "nonsense"}}
        )
        return "end"

    session = build_session("hi", loop=looping(steps))
    recorder = Recorder.of(session.coordinator.hooks, "provider:*")
    async with session:
        await session.execute("go")

    assert recorder.names == [PROVIDER_REQUEST, PROVIDER_RESPONSE, PROVIDER_ERROR]


@WAYS
@pytest.mark.parametrize("is_announced", [True, False], ids=["announced", "silent"])
async def test_a_failure_is_heard_once(ask: Ask, is_announced: bool) -> None:
    async def steps(given: Given) -> str:
        try:
            await ask(given)
        except LLMError as error:
            if is_announced:
                data = {"provider": "scripted", "error": {"message": str(error)}}
                await given.hooks.emit("provider:error", data)
        return "end"

    session = build_session(LLMError("down"), loop=looping(steps))
    recorder = Recorder.of(session.coordinator.hooks, PROVIDER_ERROR)
    async with session:
        await session.execute("go")

    assert recorder.names == [PROVIDER_ERROR]


@WAYS
@pytest.mark.parametrize("is_announced", [True, False], ids=["announced", "silent"])
@pytest.mark.parametrize("way", ["deny", "ask"])
async def test_a_denied_request_reaches_no_provider(
    ask: Ask, is_announced: bool, way: str
) -> None:
    result = HookResult.deny("policy") if way == "deny" else HookResult.ask("sure?")

    async def steps(given: Given) -> str:
        if is_announced:
            assert await given.announce()
        with pytest.raises(LLMError, match="denied by"):
            await ask(given)
        return "end"

    session = build_session("hi", loop=looping(steps))
    session.coordinator.hooks.register(PROVIDER_REQUEST, Sentry([result]))
    async with session:
        await session.execute("go")

        assert session.spending.usage is None


async def test_what_handlers_add_and_change_is_what_is_asked() -> None:
    requests: list[ChatRequest] = []

    async def steps(given: Given) -> str:
        await given.complete()
        requests.extend(given.provider.provider.requests)  # type: ignore[attr-defined]
        return "end"

    session = build_session("hi", loop=looping(steps))
    hooks = session.coordinator.hooks
    hooks.register(
        PROVIDER_REQUEST,
        Sentry([HookResult.modify({"messages": [{"role": "user", "content": "no"}]})]),
    )
    hooks.register(
        PROVIDER_REQUEST,
        Sentry([HookResult.inject("be brief", role="user", ephemeral=True)]),
    )
    async with session:
        await session.execute("go")

    (request,) = requests
    texts = [message.text for message in request.messages]
    assert texts[0] == "no"
    assert "be brief" in texts[-1]
    assert request.tools == ASKED.tools


# -- what the journal says


@pytest.mark.parametrize("is_announced", [True, False], ids=["announced", "silent"])
async def test_the_journal_pairs_a_call_with_the_answer_that_asked_for_it(
    is_announced: bool,
) -> None:
    async def steps(given: Given) -> str:
        response = await given.complete()
        # in an order of the loop's own
        for made in reversed(given.provider.parse_tool_calls(response)):
            arguments = dict(made.arguments)
            if is_announced:
                await given.hooks.emit(
                    TOOL_PRE, {"tool_name": made.name, "tool_input": arguments}
                )
            await given.tools[made.name].execute(arguments)
        return "end"

    journal = MemoryJournal()
    async with build_session(
        calling(
            call("work", {"path": "a"}, id="c-1"), call("work", {"path": "b"}, id="c-2")
        ),
        loop=looping(steps),
        tools=[Worker()],
        journal=journal,
    ) as session:
        await session.execute("go")

    (message,) = [r for r in journal.records if isinstance(r, MessageWritten)]
    assert message.spending is not None
    assert "c-1" in str(message.message)
    assert [
        record.call_id
        for record in journal.records
        if isinstance(record, (CallStarted, CallFinished))
    ] == ["c-2", "c-2", "c-1", "c-1"]


# -- what a provider is


async def test_a_proxy_is_all_that_its_provider_is() -> None:
    async def steps(given: Given) -> str:
        provider = given.provider
        inner = provider.provider  # type: ignore[attr-defined]
        assert isinstance(provider, StreamingProvider)
        assert provider.name == inner.name
        assert provider.get_info() == inner.get_info()
        assert isinstance(provider.get_info(), ProviderInfo)
        assert await provider.list_models() == await inner.list_models()
        assert provider.requests is inner.requests  # type: ignore[attr-defined]
        return "end"

    async with build_session(loop=looping(steps)) as session:
        assert await session.execute("go") == "end"


async def test_provider_that_cannot_stream_has_no_stream_for_its_loop() -> None:
    async def steps(given: Given) -> str:
        assert isinstance(given.provider, Provider)
        assert not hasattr(given.provider, "stream")
        return (await given.complete()).text

    async with build_session(
        provider=PlainProvider("whole"), loop=looping(steps)
    ) as session:
        assert await session.execute("go") == "whole"


class Own:
    """A provider that takes and returns what only its loop knows."""

    name = "own"

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id="own", display_name="Own")

    async def list_models(self) -> list[object]:
        return []

    async def complete(self, messages: list[str], *, loud: bool = False) -> str:
        return " ".join(messages).upper() if loud else " ".join(messages)

    def parse_tool_calls(self, response: object) -> list[ToolCall]:
        return []


async def test_limits_hold_for_answers_that_are_none_of_ours() -> None:
    async def steps(given: Given) -> str:
        ask = cast("Own", given.provider).complete
        assert [await ask(["a"]), await ask(["b"])] == ["a", "b"]
        with pytest.raises(BudgetExceededError, match="iterations"):
            await ask(["c"])
        return "end"

    limits: dict[str, JSONValue] = {"iterations": 2, "tokens": 9000}
    async with build_session(
        provider=Own(), loop=looping(steps), limits=limits
    ) as session:
        assert "its limit 'iterations' of 2 is reached" in await session.execute("go")

        assert session.spending.provider_calls == 2


async def test_what_is_no_request_and_no_answer_of_ours_passes_through() -> None:
    heard: list[object] = []

    async def steps(given: Given) -> str:
        ask = cast("Own", given.provider).complete
        return await ask(["a", "b"], loud=True)

    session = build_session(provider=Own(), loop=looping(steps))
    session.coordinator.hooks.register(
        PROVIDER_REQUEST, lambda event, data: heard.append(data["messages"])
    )
    async with session:
        assert await session.execute("go") == "A B"

        assert session.spending.provider_calls == 1
    assert heard == [[]]


async def test_a_loop_may_pass_what_it_received_to_the_host() -> None:
    async def steps(given: Given) -> str:
        response = await given.hooks.host.complete(
            given.provider, ChatRequest, context=given.context
        )
        return response.text

    async with build_session(answer("hi", usage=USAGE), loop=looping(steps)) as session:
        assert await session.execute("go") == "hi"

        assert session.spending.provider_calls == 1


async def test_a_loop_may_ask_a_provider_of_its_own_by_the_host() -> None:
    async def steps(given: Given) -> str:
        response = await given.hooks.host.complete(
            ScriptedProvider("its own"), ChatRequest, context=given.context
        )
        return response.text

    async with build_session(loop=looping(steps)) as session:
        assert await session.execute("go") == "its own"

        assert session.spending.provider_calls == 1


async def test_a_loop_may_hold_on_to_what_it_received() -> None:
    held: list[Given] = []

    async def steps(given: Given) -> str:
        held.append(given)
        return (await held[0].complete()).text

    async with build_session("one", "two", loop=looping(steps)) as session:
        assert await session.execute("go") == "one"
        assert await session.execute("go") == "two"

        assert session.spending.provider_calls == 2


async def test_a_child_asks_whom_its_parent_chose() -> None:
    async def run(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        return (await providers["scripted"].complete(ASKED)).text

    modules = {
        "loop": PlainLoop(run),
        "context": MemoryContext(),
        "first": ScriptedProvider("from the first"),
        "second": ScriptedProvider("from the second", name="other"),
    }
    plan = build_plan(providers=["first", "second"])
    async with AmplifierSession(plan, build_loader(modules)) as session:
        result = await session.spawn(
            agent_name="self",
            instruction="go",
            provider_preferences=[{"provider": "other"}],
        )

    assert result.output == "from the second"


# -- what surrounds it


async def test_middleware_may_change_what_the_loop_asks() -> None:
    async def shorten(
        made: ModelCall, proceed: Proceed[ModelCall, ChatResponse]
    ) -> ChatResponse:
        return await proceed(
            attrs.evolve(made, request=attrs.evolve(made.request, messages=()))
        )

    provider = ScriptedProvider("hi")
    session = build_session(provider=provider, loop=looping(asking(Given.complete)))
    session.coordinator.hooks.register(event_of("model"), shorten)  # type: ignore[arg-type]  # it is middleware
    async with session:
        await session.execute("go")

    (request,) = provider.requests
    assert list(request.messages) == []
    assert request.tools == ASKED.tools


async def test_a_stream_waits_for_a_reader_that_is_behind() -> None:
    count = 3 * CAPACITY

    async def generate(
        request: ChatRequest,
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        for number in range(count):
            # of different blocks, so that none joins the one before it
            yield TextDelta(text=f"{number} ", index=number)
        yield answer("end")

    session = build_session(
        provider=ScriptedProvider(generate), loop=looping(asking(Given.stream))
    )
    async with session, session.stream("go") as events:
        texts = [event.text async for event in events if isinstance(event, TextDelta)]

    assert texts == [f"{number} " for number in range(count)]


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ([{"role": "user", "content": "go"}], ["go"]),
        ([Message(role="user", content="go")], ["go"]),
        ("go", []),
        ([5], []),
    ],
    ids=["messages", "our messages", "a text of its own", "what is no message"],
)
async def test_middleware_sees_what_is_no_request(
    asked: object, shown: list[str]
) -> None:
    seen: list[ModelCall] = []

    async def note(
        made: ModelCall, proceed: Proceed[ModelCall, ChatResponse]
    ) -> ChatResponse:
        seen.append(made)
        return await proceed(made)

    async def steps(given: Given) -> str:
        complete = cast(
            "Callable[[object], Awaitable[object]]", given.provider.complete
        )
        await complete(asked)
        return "end"

    received: list[object] = []

    class Foreign(PlainProvider):
        async def complete(self, request: object, /) -> ChatResponse:
            received.append(request)
            return answer("hi")

    async def never(request: ChatRequest) -> ChatResponse:
        raise AssertionError

    session = build_session(provider=Foreign(never), loop=looping(steps))
    session.coordinator.hooks.register(event_of("model"), note)  # type: ignore[arg-type]  # it is middleware
    async with session:
        await session.execute("go")

    assert [[m.content for m in made.request.messages] for made in seen] == [shown]
    assert received == [asked]
