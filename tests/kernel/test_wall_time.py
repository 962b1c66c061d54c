"""A turn's wall time, in virtual time: hours pass at once, and only where somebody waits."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
import pytest

from amplifier import ModuleCoordinator
from amplifier.testing import VirtualClock
from amplifier_sdk import ChatRequest, ChatResponse
from amplifier_sdk.errors import BudgetExceededError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import HookResult
from amplifier_sdk.streaming import Delta, TextDelta
from tests.doubles import (
    Generated,
    Person,
    ScriptedProvider,
    Worker,
    answer,
    build_session,
    call,
    calling,
    ended_early,
    mounted_context,
)
from tests.kernel.families import family, fresh


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return VirtualClock().backend(request.param)


class Slow(Person):
    """A person who answers after half an hour."""

    async def request_approval(self, *question: object) -> str:
        await anyio.sleep(1800)
        return "Allow"


def asking(question: float = 3600) -> HookResult:
    """A question that waits long enough for a slow person."""
    return HookResult(
        action="ask_user", approval_prompt="May it?", approval_timeout=question
    )


async def test_a_turn_is_stopped_when_its_wall_time_is_over() -> None:
    async def generate(
        request: ChatRequest,
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        yield TextDelta(text="Half ")
        await anyio.sleep_forever()

    session = build_session(provider=Generated(generate), limits={"wall_time": 50})
    async with session:
        with pytest.raises(
            BudgetExceededError, match=r"The limit 'wall_time' of 50 s is reached"
        ) as caught:
            await session.execute("go")

        assert anyio.current_time() == pytest.approx(50, abs=1)
        assert caught.value.partial_text == "Half "
        assert mounted_context(session.coordinator).messages[-1]["metadata"] == {
            "incomplete": True
        }
    assert session.status.status == "failed"


async def test_a_call_that_the_wall_time_stopped_says_so() -> None:
    async def hang(input: JSONObject) -> object:
        await anyio.sleep_forever()
        raise AssertionError

    session = build_session(
        calling(call("work")), tools=[Worker(function=hang)], limits={"wall_time": 50}
    )
    async with session:
        with pytest.raises(BudgetExceededError):
            await session.execute("go")

        (text,) = mounted_context(session.coordinator).results.values()
    assert (
        text
        == "Error: the call did not finish: the turn's limit 'wall_time' of 50 s was reached"
    )


@pytest.mark.parametrize(("seconds", "limit"), [(89, None), (91, "wall_time")])
async def test_the_last_tenth_of_the_wall_time_is_kept_for_an_answer(
    seconds: float, limit: str | None
) -> None:
    async def work(input: JSONObject) -> object:
        await anyio.sleep(seconds)
        return "worked"

    provider = ScriptedProvider(calling(call("work")), answer("in time"))
    session = build_session(provider=provider, tools=[Worker(function=work)])
    async with session:
        said = await session.execute("go", {"wall_time": 100})

        assert said == (
            "in time" if limit is None else ended_early("in time", limit, "100 s")
        )

        assert session.last_turn is not None
        assert session.last_turn.limit == limit
    assert (provider.requests[-1].tools is None) is (limit is not None)


async def test_waiting_for_a_person_takes_no_wall_time() -> None:
    async def work(input: JSONObject) -> object:
        await anyio.sleep(80)
        return "worked"

    session = build_session(
        calling(call("work")),
        "end",
        tools=[Worker(function=work)],
        approval=Slow(),
        limits={"wall_time": 100},
    )
    session.coordinator.hooks.register("tool:pre", lambda event, data: asking())
    async with session:
        assert await session.execute("go") == "end"

        assert anyio.current_time() == pytest.approx(1880, abs=1)
        assert session.last_turn is not None
        assert session.last_turn.limit is None


async def test_the_time_before_and_after_a_question_counts() -> None:
    async def work(input: JSONObject) -> object:
        await anyio.sleep(60)
        return "worked"

    steps = [calling(call("work")), calling(call("work"))]
    session = build_session(
        *steps,
        tools=[Worker(function=work)],
        approval=Slow(),
        limits={"wall_time": 100},
    )
    session.coordinator.hooks.register("tool:pre", lambda event, data: asking())
    async with session:
        with pytest.raises(BudgetExceededError):
            await session.execute("go")

    assert anyio.current_time() == pytest.approx(3700, abs=1)


async def test_question_costs_concurrent_calls_no_time() -> None:
    """The deadline of a call beside a question stands for itself; the turn's waits for both."""

    async def hang(input: JSONObject) -> object:
        await anyio.sleep_forever()
        raise AssertionError

    asked = calling(call("quiet"), call("asked"))
    session = build_session(
        asked,
        "end",
        tools=[Worker("quiet", hang), Worker("asked")],
        approval=Slow(),
        limits={"tool_timeout": 120},
    )
    session.coordinator.hooks.register(
        "tool:pre",
        lambda event, data: asking() if data["tool_name"] == "asked" else None,
    )
    async with session:
        assert await session.execute("go", {"wall_time": 200}) == "end"

        assert mounted_context(session.coordinator).results == {
            "id-quiet": "Error: Tool 'quiet' did not finish within 120 s",
            "id-asked": "done",
        }
    assert anyio.current_time() == pytest.approx(1800, abs=1)


async def test_two_questions_at_once_stop_time_until_both_answered() -> None:
    session = build_session(
        calling(call("one"), call("two")),
        "end",
        tools=[Worker("one"), Worker("two")],
        approval=Slow(),
        limits={"wall_time": 100},
    )
    session.coordinator.hooks.register("tool:pre", lambda event, data: asking())
    async with session:
        assert await session.execute("go") == "end"

    assert anyio.current_time() == pytest.approx(3600, abs=1)


async def test_waiting_for_a_person_in_a_child_takes_nobodys_time() -> None:
    def ask(coordinator: ModuleCoordinator) -> None:
        if coordinator.parent_id is not None:
            coordinator.hooks.register("tool:pre", lambda event, data: asking())

    made = family(
        calling(call("delegate")),
        calling(call("work")),
        "child",
        "end",
        watch=ask,
        approval=Slow(),
        tools={"tool-work": fresh(Worker)},
        limits={"wall_time": 100, "tool_timeout": 50},
    )
    async with made.session as session:
        assert await session.execute("go") == "end"

    assert [result.output for result in made.results] == ["child"]
    assert anyio.current_time() == pytest.approx(1800, abs=1)


async def test_child_work_does_not_count_against_delegating_tool() -> None:
    async def slow(request: ChatRequest) -> ChatResponse:
        await anyio.sleep(50)
        return answer("child")

    made = family(calling(call("delegate")), slow, "end", limits={"tool_timeout": 10})
    async with made.session as session:
        assert await session.execute("go") == "end"

    assert [result.output for result in made.results] == ["child"]


async def test_a_child_is_stopped_by_the_wall_time_of_its_parent() -> None:
    async def hang(request: ChatRequest) -> ChatResponse:
        await anyio.sleep_forever()
        raise AssertionError

    made = family(
        calling(call("delegate")),
        hang,
        limits={"wall_time": 30},
        agents={"helper": {"session": {"limits": {"wall_time": 1000}}}},
    )
    async with made.session as session:
        with pytest.raises(BudgetExceededError, match="wall_time"):
            await session.execute("go")

    assert anyio.current_time() == pytest.approx(30, abs=1)
    assert made.names("session:", made.child.session_id)[-1] == "session:end"
