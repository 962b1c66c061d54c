"""How much hooks may inject into the context."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping

import pytest

from amplifier import (
    ModuleCoordinator,
)
from amplifier.kernel.plans.plan import MountPlan
from amplifier_sdk.errors import (
    LLMError,
)
from amplifier_sdk.events import (
    PROMPT_SUBMIT,
)
from amplifier_sdk.results import HookResult
from tests.doubles import (
    MemoryContext,
    build_plan,
    build_session,
    mounted_context,
)

Reports = list[MutableMapping[str, object]]
Handler = Callable[[str, dict[str, object]], HookResult | None]


def answering(result: object) -> Handler:
    """A handler that answers one thing, whatever it is."""
    return lambda event, data: result  # type: ignore[return-value]  # also what no handler should answer


def test_the_size_is_limited_and_a_budget_is_the_plans() -> None:
    default = MountPlan.read(build_plan()).session
    unlimited = MountPlan.read(build_plan(injection_size_limit=None)).session

    assert (default.injection_size_limit, default.injection_budget_per_turn) == (
        10_240,
        None,
    )
    assert unlimited.injection_size_limit is None


@pytest.mark.parametrize(
    ("text", "saved"),
    [("é" * 10, "é" * 10), ("é" * 11, "é" * 10), ("\x00" * 90, None)],
)
async def test_the_size_limit_counts_injected_characters(
    text: str, saved: str | None
) -> None:
    session = build_session("end", settings={"injection_size_limit": 10})
    async with session:
        await session.coordinator.process_hook_result(
            HookResult.inject(text), "app:tick", "me"
        )

        stored = [
            message["content"]
            for message in mounted_context(session.coordinator).messages
        ]
    assert stored == ([] if saved is None else [saved])


async def test_the_budget_is_one_turns_and_only_reported(reports: Reports) -> None:
    session = build_session("one", "two", settings={"injection_budget_per_turn": 3})
    session.coordinator.hooks.register(
        PROMPT_SUBMIT, lambda event, data: HookResult.inject("x" * 12)
    )
    async with session:
        await session.execute("first")
        await session.execute("second")
        assert reports == []
        await session.coordinator.process_hook_result(
            HookResult.inject("x" * 4), "app:tick", "me"
        )

        assert [report["event"] for report in reports] == ["injection.over_budget"]
        assert len(mounted_context(session.coordinator).messages) == 7


async def test_an_empty_injection_is_dropped() -> None:
    coordinator, context = ModuleCoordinator(), MemoryContext()
    await coordinator.mount("context", context)
    hooks = coordinator.hooks
    hooks.register("x", answering(HookResult.inject("")))
    hooks.register("x", answering(HookResult.inject("note")))

    emission = await hooks.emit("x", {})
    await coordinator.process_hook_result(emission, "x")

    assert emission.context_injection == "note"
    assert [message["content"] for message in context.messages] == ["note"]


async def test_the_budget_is_counted_anew_each_turn(
    reports: Reports,
) -> None:
    text = "é" * 40  # ten tokens, eighty bytes
    session = build_session(
        "a", "b", settings={"injection_size_limit": 40, "injection_budget_per_turn": 10}
    )
    session.coordinator.hooks.register(
        "prompt:submit", lambda event, data: HookResult.inject(text), name="one"
    )
    async with session:
        for prompt in "xy":
            await session.execute(prompt)
        assert reports == []
        session.coordinator.hooks.register(
            "prompt:submit", lambda event, data: HookResult.inject(text), name="two"
        )
        with pytest.raises(LLMError, match="script"):
            await session.execute("z")

    assert [(report["event"], report["tokens"]) for report in reports] == [
        ("injection.over_budget", 20)
    ]


async def test_an_injection_over_the_limit_is_truncated(reports: Reports) -> None:
    session = build_session("a", settings={"injection_size_limit": 3})
    session.coordinator.hooks.register(
        "prompt:submit", lambda event, data: HookResult.inject("four"), name="one"
    )
    async with session:
        assert await session.execute("x") == "a"
        stored = [
            text["content"] for text in mounted_context(session.coordinator).messages
        ]
    assert stored[0] == "fou"
    assert [(report["event"], report["characters"]) for report in reports] == [
        ("injection.truncated", 4)
    ]
