"""The samples of the hook contract: the same calls and names, in a real session."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

from amplifier import HookRegistry, ModuleCoordinator
from amplifier.testing import (
    EventRecorder,
    MockApprovalSystem,
    MockDisplaySystem,
    MockTool,
    answer,
    call,
    create_test_session,
)
from amplifier.testing.sessions import mounting
from amplifier_sdk import HookResult
from amplifier_sdk.contracts import HookHandler
from amplifier_sdk.hookspecs import Config


async def my_validation_hook(event: str, data: dict[str, object]) -> HookResult:
    match data["tool_name"]:
        case "delete":
            return HookResult(action="deny", reason="Access denied")
        case "write":
            return HookResult(
                action="ask_user",
                approval_prompt="Allow write to production file?",
                approval_default="deny",
            )
        case _:
            return HookResult(action="continue")


async def my_feedback_hook(event: str, data: dict[str, object]) -> HookResult:
    return HookResult(
        action="inject_context",
        context_injection="Found 3 linting errors...",
        user_message="Linting issues detected",
    )


async def mount(
    coordinator: ModuleCoordinator, config: Config
) -> Callable[[], None] | None:
    handlers = []

    handlers.append(
        coordinator.hooks.register("tool:pre", my_validation_hook, priority=10)
    )
    handlers.append(
        coordinator.hooks.register("tool:post", my_feedback_hook, priority=20)
    )
    coordinator.register_contributor(
        "observability.events",
        "my-hook",
        lambda: ["my-hook:validation_failed", "my-hook:approved"],
    )

    def cleanup() -> None:
        for unregister in handlers:
            unregister()

    return cleanup


async def results_of(
    tool_name: str, person: MockApprovalSystem | None = None
) -> tuple[str, MockTool]:
    """Return what a model reads of one call of a tool under the hooks, and the tool."""
    tool = MockTool(tool_name, "worked")
    async with create_test_session(
        answer(call(tool_name)),
        "Done.",
        tools=[mounting(tool)],
        hooks=[mount],
        approval_system=person,
    ) as session:
        await session.execute("go")
        messages = await session.coordinator.context.get_messages()
    (text,) = [
        str(message["content"]) for message in messages if message["role"] == "tool"
    ]
    return text, tool


async def test_denied_tool_does_not_run_and_model_reads_reason() -> None:
    text, tool = await results_of("delete")

    assert "Access denied" in text
    assert tool.call_count == 0


async def test_a_tool_that_a_person_allows_runs() -> None:
    person = MockApprovalSystem()

    text, tool = await results_of("write", person)

    assert text == "worked"
    assert tool.call_count == 1
    assert len(person.questions) == 1


async def test_where_nobody_can_be_asked_the_answer_is_no() -> None:
    _, tool = await results_of("write")

    assert tool.call_count == 0


async def test_feedback_reaches_the_model_and_the_person() -> None:
    screen = MockDisplaySystem()
    provider_sees: list[list[str]] = []
    tool = MockTool("read", "text")

    async with create_test_session(
        answer(call("read")),
        "Done.",
        tools=[mounting(tool)],
        hooks=[mount],
        display_system=screen,
    ) as session:
        await session.execute("go")
        provider_sees.append(
            [
                str(m["content"])
                for m in await session.coordinator.context.get_messages()
            ]
        )

    assert "Found 3 linting errors..." in provider_sees[0]
    assert "Linting issues detected" in [message.message for message in screen.messages]


async def test_the_cleanup_of_the_sample_unregisters_its_handlers() -> None:
    coordinator = ModuleCoordinator()

    cleanup = await mount(
        coordinator, {"enabled_events": ["tool:pre", "tool:post"], "log_level": "info"}
    )
    assert cleanup is not None
    assert coordinator.hooks.has_handlers("tool:pre")
    cleanup()

    assert not coordinator.hooks.has_handlers("tool:pre")
    assert not coordinator.hooks.has_handlers("tool:post")


async def test_a_handler_is_registered_by_keywords_as_the_sample_does() -> None:
    coordinator = ModuleCoordinator()
    recorder = EventRecorder()

    registry: HookRegistry = coordinator.hooks
    unregister = registry.register(
        event="tool:post", handler=recorder, priority=10, name="my_handler"
    )

    assert registry.list_handlers("tool:post") == {"tool:post": ["my_handler"]}
    await registry.emit("tool:post", {"tool_name": "Write"})
    unregister()
    await registry.emit("tool:post", {"tool_name": "Read"})
    assert [data["tool_name"] for data in recorder.data("tool:post")] == ["Write"]


async def test_a_handler_may_be_an_object_with_an_async_call() -> None:
    class MyHandler:
        async def __call__(self, event: str, data: dict[str, object]) -> HookResult:
            return HookResult(action="deny", reason=event)

    handler: HookHandler = MyHandler()
    assert isinstance(handler, HookHandler)
    coordinator = ModuleCoordinator()
    coordinator.hooks.register("tool:pre", handler)

    emission = await coordinator.hooks.emit(
        "tool:pre", {"tool_name": "x", "tool_input": {}}
    )

    assert_type(emission.denied, bool)
    assert emission.reason == "tool:pre"


async def test_the_common_events_carry_what_the_table_says() -> None:
    recorder = EventRecorder()
    tool, broken = MockTool("read", "text"), MockTool("broken", OSError("disk"))

    async with create_test_session(
        answer(call("read"), call("broken")),
        "Done.",
        tools=[mounting(tool), mounting(broken)],
        hooks=[recorder],
    ) as session:
        await session.execute("go")

    table = {
        "session:start": ("session_id",),
        "session:end": ("session_id", "stats"),
        "prompt:submit": ("prompt",),
        "tool:pre": ("tool_name", "tool_input"),
        "tool:post": ("tool_name", "tool_result"),
        "tool:error": ("tool_name", "error"),
        "provider:request": ("provider",),
        "provider:response": ("provider", "response", "usage"),
    }
    for event, keys in table.items():
        assert recorder.get_events(event), event
        for data in recorder.data(event):
            assert set(keys) <= data.keys(), event
