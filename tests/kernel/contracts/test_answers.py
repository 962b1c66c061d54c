"""What becomes of the answers of hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping

import anyio
import pytest

from amplifier import (
    HookRegistry,
    ModuleCoordinator,
)
from amplifier_sdk.events import (
    TOOL_PRE,
)
from amplifier_sdk.results import HookResult
from tests.doubles import (
    Listener,
    Person,
    Screen,
)

Reports = list[MutableMapping[str, object]]
Handler = Callable[[str, dict[str, object]], HookResult | None]


def answering(result: object) -> Handler:
    """A handler that answers one thing, whatever it is."""
    return lambda event, data: result  # type: ignore[return-value]  # also what no handler should answer


@pytest.mark.parametrize(
    ("reply", "options", "allowing", "allowed"),
    [
        ("Allow", None, (), True),
        ("allow ONCE", None, (), True),
        ("Allow always", None, (), True),
        ("Deny", None, (), False),
        ("no", None, (), False),
        ("Ship it", ("Ship it", "Allow", "Wait"), (), False),
        ("Ship it", ("Ship it", "Wait"), ("Ship it",), True),
        ("Wait", ("Ship it", "Wait"), ("Ship it",), False),
    ],
)
async def test_an_answer_allows_by_its_word_or_a_named_option(
    reply: str,
    options: tuple[str, ...] | None,
    allowing: tuple[str, ...],
    allowed: bool,
) -> None:
    coordinator = ModuleCoordinator(approval_system=Person(reply))
    question = HookResult.ask("Ship?", options=options, allowing=allowing)

    decided = await coordinator.process_hook_result(question, "app:ship", "me")

    assert decided.denied is not allowed


async def test_every_message_for_the_person_is_shown() -> None:
    screen = Screen()
    coordinator = ModuleCoordinator(approval_system=Person(), display_system=screen)
    coordinator.hooks.register(
        "x", answering(HookResult(action="ask_user", user_message="asked")), name="a"
    )
    coordinator.hooks.register(
        "x", answering(HookResult.inject("one", user_message="first")), name="b"
    )
    coordinator.hooks.register(
        "x", answering(HookResult.inject("two", user_message="second")), name="c"
    )

    emission = await coordinator.hooks.emit("x", {})
    await coordinator.process_hook_result(emission, "x")

    assert emission.user_message == "asked\nfirst\nsecond"
    assert [(text, source) for text, _, source in screen.shown] == [
        ("asked", "hook:a"),
        ("first", "hook:b"),
        ("second", "hook:c"),
    ]


@pytest.mark.parametrize(
    "later", [HookResult.inject("note"), HookResult.ask("sure?"), HookResult.deny("no")]
)
async def test_a_change_stands_whatever_a_later_handler_answers(
    later: HookResult,
) -> None:
    hooks = HookRegistry()
    hooks.register("x", answering(HookResult.modify({"a": 2})))
    hooks.register("x", answering(later))

    emission = await hooks.emit("x", {"a": 1})

    assert (emission.action, emission.data["a"]) == (later.action, 2)


async def test_injections_stand_beside_a_question() -> None:
    hooks = HookRegistry()
    hooks.register("x", answering(HookResult.inject("one")))
    hooks.register("x", answering(HookResult.ask("sure?", options=["Allow", "No"])))
    hooks.register("x", answering(HookResult.inject("two", role="user")))

    emission = await hooks.emit("x", {})

    assert (emission.action, emission.approval_prompt, emission.approval_options) == (
        "ask_user",
        "sure?",
        ("Allow", "No"),
    )
    assert [(item.content, item.role) for item in emission.context_injections] == [
        ("one", "system"),
        ("two", "user"),
    ]


async def test_an_emission_without_a_question_has_no_prompt() -> None:
    emission = await HookRegistry().emit("x", {})

    assert (
        emission.approval_prompt,
        emission.approval_options,
        emission.user_message,
    ) == (None, None, None)


@pytest.mark.parametrize(
    "nonsense",
    ["yes", 1, {"action": "explode"}, {"unknown": 1}, [HookResult.deny("no")]],
)
async def test_nonsense_from_a_blocking_hook_denies(nonsense: object) -> None:
    hooks = HookRegistry()
    hooks.register(TOOL_PRE, answering(nonsense), name="odd")

    emission = await hooks.emit("tool:pre", {"tool_name": "x", "tool_input": {}})

    assert (emission.denied, emission.decided_by) == (True, "odd")


@pytest.mark.parametrize("nothing", [None, {}])
async def test_no_answer_lets_the_operation_run(nothing: object) -> None:
    hooks = HookRegistry()
    hooks.register(TOOL_PRE, answering(nothing))

    assert (
        await hooks.emit("tool:pre", {"tool_name": "x", "tool_input": {}})
    ).action == "continue"


async def test_a_failing_observer_is_skipped_and_a_hook_denies(
    reports: Reports,
) -> None:
    def fail(event: str, data: Mapping[str, object]) -> None:
        raise ValueError("no")

    hooks = HookRegistry()
    hooks.register("*", fail, name="broken")

    assert (await hooks.emit("tool:post", {})).action == "continue"
    assert (await hooks.emit("tool:pre", {})).denied
    assert reports[0]["event"] == "hook.failed"


@pytest.mark.parametrize("event", ["tool:pre", "tool:post"])
async def test_a_cancellation_is_never_swallowed(event: str) -> None:
    hooks, listener = HookRegistry(), Listener()
    after: list[str] = []
    hooks.register(event, listener)
    hooks.register(event, lambda event, data: after.append(event))

    async def emit() -> None:
        await hooks.emit(event, {})
        after.append("returned")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(emit)
            await listener.started.wait()
            group.cancel_scope.cancel()

    assert (listener.cancelled, after) == (True, [])
