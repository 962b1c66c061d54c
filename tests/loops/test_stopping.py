"""Handlers of `orchestrator:stopping` keep the agent at work, and not for ever."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amplifier.testing import EventRecorder, ScriptedProvider
from amplifier_sdk import AmplifierError, HookResult, hook, on
from amplifier_sdk.loops.events import STOPPING, Stopping
from amplifier_sdk.loops.loop import MAX_CONTINUED
from tests.loops.parts import LOOPS, open_loop

Answer = Callable[[Stopping], HookResult | None]


def judging(evaluate: Answer) -> object:
    """Make a hook module of a function that judges whether the agent may stop."""

    @hook
    class Judge:
        @on(STOPPING)
        def look(self, event: str, data: Stopping) -> HookResult | None:
            return evaluate(data)

    return Judge


@pytest.mark.parametrize("loop", LOOPS)
async def test_agent_that_is_denied_its_end_goes_on_with_reason(
    loop: str,
) -> None:
    seen: list[tuple[str, int]] = []

    def evaluate(data: Stopping) -> HookResult | None:
        seen.append((data["response"], data["continued"]))
        return HookResult.deny("run the tests") if data["response"] == "Done." else None

    provider = ScriptedProvider("Done.", "Done.", "Tests ran.")
    session = open_loop(loop, provider, hooks=[judging(evaluate)])
    recorder = EventRecorder.of(session.coordinator.hooks, "prompt:complete")
    async with session:
        assert await session.execute("Go") == "Tests ran."

    assert seen == [("Done.", 0), ("Done.", 1), ("Tests ran.", 2)]
    assert [request.messages[-1].text for request in provider.requests] == [
        "Go", *["Do not stop yet: run the tests"] * 2
    ]  # fmt: skip
    assert recorder.one("prompt:complete")["response"] == "Tests ran."


async def test_a_reason_that_is_missing_is_given() -> None:
    provider = ScriptedProvider("Done.", "More.")
    answers = iter([HookResult(action="deny"), None])
    async with open_loop(
        "basic", provider, hooks=[judging(lambda _: next(answers))]
    ) as session:
        await session.execute("Go")

    assert provider.requests[-1].messages[-1].text == "Do not stop yet: go on."


async def test_an_agent_is_not_kept_at_work_for_ever() -> None:
    provider = ScriptedProvider("Done.", repeat=True)
    async with open_loop(
        "basic", provider, hooks=[judging(lambda _: HookResult.deny("more"))]
    ) as session:
        assert await session.execute("Go") == "Done."

    assert len(provider.requests) == MAX_CONTINUED + 1


async def test_a_turn_that_reached_its_limit_is_not_kept_at_work() -> None:
    provider = ScriptedProvider("Done.", repeat=True)
    evaluate = judging(lambda _: HookResult.deny("more"))
    async with open_loop(
        "basic", provider, limits={"iterations": 3}, hooks=[evaluate]
    ) as session:
        assert (await session.execute("Go")).startswith("Done.")

    assert len(provider.requests) == 3


async def test_a_handler_that_fails_lets_the_agent_stop() -> None:
    def fail(data: Stopping) -> HookResult | None:
        raise AmplifierError("broken")

    async with open_loop(
        "basic", ScriptedProvider("Done."), hooks=[judging(fail)]
    ) as session:
        assert await session.execute("Go") == "Done."


async def test_a_prompt_that_was_refused_is_not_kept_at_work() -> None:
    @hook
    class Refuses:
        @on("prompt:submit")
        def refuse(self, event: str, data: dict[str, object]) -> HookResult:
            return HookResult.deny("no")

    evaluate = judging(lambda _: HookResult.deny("more"))
    async with open_loop(
        "basic", ScriptedProvider(), hooks=[evaluate, Refuses]
    ) as session:
        assert await session.execute("Go") == "Operation denied: no"
