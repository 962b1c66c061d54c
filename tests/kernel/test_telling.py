"""What handlers decide is told to those who hear decisions, and to nobody else."""

from __future__ import annotations

from amplifier import HookRegistry
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.decisions import HOOK_DECIDED, SUPPRESSED, HookDecided
from amplifier_sdk.events import TOOL_PRE, EventFields, ToolPre
from amplifier_sdk.results import HookResult
from tests.doubles import Mount, Sentry, Worker, build_session, call, calling


def reported(hooks: HookRegistry) -> list[dict[str, object]]:
    """Hear the decisions of a registry, without the ids and times that differ."""
    heard: list[dict[str, object]] = []
    left_out = {"duration", *EventFields.__annotations__}

    async def hear(event: str, data: HookDecided) -> HookResult | None:
        assert data["duration"] >= 0
        heard.append({key: value for key, value in data.items() if key not in left_out})
        return HookResult.deny("decisions cannot be denied")

    hooks.register(HOOK_DECIDED, hear)
    return heard


async def test_each_decision_is_told_with_what_it_changed() -> None:
    hooks = HookRegistry()
    hooks.register(
        "x:y",
        Sentry([HookResult.modify({"a": 2, "b": 1, "timestamp": "t"})]),
        1,
        "first",
    )
    hooks.register("x:y", Sentry([HookResult.modify({"a": 2, "c": 3})]), 2, "second")
    hooks.register("x:y", Sentry([HookResult.modify({"a": 2})]), 3, "third")
    hooks.register("x:y", Sentry([None]), 4, "silent")
    hooks.register(
        "x:y", Sentry([HookResult(action="continue", user_message="psst")]), 5, "talker"
    )
    heard = reported(hooks)

    emission = await hooks.emit("x:y", {"a": 1, "b": 1})

    assert emission.data == {"a": 2, "b": 1, "c": 3}
    assert heard == [
        {
            "hook_event": "x:y",
            "handler": "first",
            "action": "modify",
            "changed": {"a": 2},
        },
        {
            "hook_event": "x:y",
            "handler": "second",
            "action": "modify",
            "changed": {"c": 3},
        },
        {"hook_event": "x:y", "handler": "third", "action": "modify"},
        {
            "hook_event": "x:y",
            "handler": "talker",
            "action": "continue",
            "message": "psst",
        },
    ]


async def test_of_a_suppressed_answer_the_message_alone_is_told() -> None:
    hooks = HookRegistry()
    answers = (
        HookResult(action="modify", data={"a": "secret"}, suppress_output=True),
        HookResult(
            action="inject_context",
            context_injection="4,000 lines of a linter",
            suppress_output=True,
            user_message="3 findings",
        ),
    )
    for number, answer in enumerate(answers):
        hooks.register("tool:pre", Sentry([answer]), number, "quiet")
    heard = reported(hooks)

    emission = await hooks.emit("tool:pre", {"a": 1})

    assert emission.data == {"a": "secret"}
    assert emission.context_injection == "4,000 lines of a linter"
    assert [data.get("message") for data in heard] == [None, "3 findings"]
    assert heard[0]["changed"] == {"a": SUPPRESSED}
    assert heard[1]["injection"] == {
        "role": "system",
        "content": SUPPRESSED,
        "ephemeral": False,
    }


async def test_questions_injections_and_refusals_are_told() -> None:
    hooks = HookRegistry()
    hooks.register(
        TOOL_PRE, Sentry([HookResult.ask("Shall it?", timeout=1)]), 1, "asks"
    )
    hooks.register(
        TOOL_PRE,
        Sentry(
            [
                HookResult(
                    action="inject_context",
                    context_injection="noon",
                    context_injection_role="user",
                )
            ]
        ),
        2,
        "injects",
    )
    hooks.register(TOOL_PRE, Sentry([HookResult.deny("no")]), 3, "denies")
    heard = reported(hooks)

    await hooks.emit(TOOL_PRE, ToolPre(tool_name="t", tool_input={}))

    assert [data["action"] for data in heard] == ["ask_user", "inject_context", "deny"]
    assert heard[0].get("question") == "Shall it?"
    assert heard[1].get("injection") == {
        "role": "user",
        "content": "noon",
        "ephemeral": False,
    }
    assert heard[2].get("reason") == "no"


async def test_nothing_is_told_where_nobody_listens_or_decides() -> None:
    hooks = HookRegistry()
    hooks.register("x", Sentry([HookResult.deny("no")]))
    assert (await hooks.emit("x", {})).denied
    heard = reported(hooks)
    await hooks.emit("x", {})
    await hooks.emit("y", {})
    assert heard == []


async def test_a_decision_names_its_module_and_belongs_to_the_step() -> None:
    async def guard(coordinator: object, config: object) -> None:
        coordinator.hooks.register(TOOL_PRE, Sentry([HookResult.deny("no")]), name="g")  # type: ignore[attr-defined]

    session = build_session(
        calling(call("work")), "done", tools=[Worker()], hooks=[guard]
    )
    seen: list[dict[str, object]] = []
    async with session:
        session.coordinator.hooks.register(
            HOOK_DECIDED, lambda event, data: seen.append(dict(data))
        )
        calls: list[dict[str, object]] = []
        session.coordinator.hooks.register(
            "tool:error", lambda event, data: calls.append(data)
        )
        await session.execute("go")

    assert [(data.get("module"), data["handler"]) for data in seen] == [("hook-0", "g")]
    assert seen[0]["span_id"] == calls[0]["span_id"]


async def test_decision_names_its_module_among_same_named_handlers() -> None:
    def guarding(answer: HookResult | None) -> Mount:
        async def guard(coordinator: Coordinator, config: object) -> None:
            coordinator.hooks.register(TOOL_PRE, Sentry([answer]), name="policy")

        return guard

    talker = HookResult(action="continue", user_message="psst")
    hooks = [guarding(talker), guarding(HookResult.deny("no")), guarding(None)]
    session = build_session(
        calling(call("work")), "done", tools=[Worker()], hooks=hooks
    )
    seen: list[tuple[object, object]] = []
    async with session:
        session.coordinator.hooks.register(
            HOOK_DECIDED,
            lambda event, data: seen.append((data.get("module"), data["action"])),
        )
        await session.execute("go")

    assert seen == [("hook-0", "continue"), ("hook-1", "deny")]
