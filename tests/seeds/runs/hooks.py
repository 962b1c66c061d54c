"""How the samples of the hook contract are run."""

from __future__ import annotations

from amplifier import ModuleCoordinator
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
from amplifier_sdk import HookHandler, HookResult
from tests.seeds.preamble import names
from tests.seeds.runs.tools import parameters_of
from tests.seeds.samples import Sample, samples


async def my_validation_hook(event: str, data: dict[str, object]) -> HookResult:
    if data["tool_name"] == "Write":
        return HookResult(action="deny", reason="Writing is denied")
    return HookResult()


async def my_feedback_hook(event: str, data: dict[str, object]) -> HookResult:
    return HookResult(action="inject_context", context_injection="Mind the gap")


HOOKS = {
    "my_validation_hook": my_validation_hook,
    "my_feedback_hook": my_feedback_hook,
}


async def protocol(sample: Sample) -> None:
    ran = await sample.run(names())
    ours, theirs = HookHandler.__call__, ran.HookHandler.__call__
    assert parameters_of(ours) == parameters_of(theirs) == ["self", "event", "data"]
    assert isinstance(EventRecorder(), ran.HookHandler)


async def actions(sample: Sample) -> None:
    """Each result is what a handler of `tool:pre` answers in a session of its own."""
    ran = await sample.run(names())
    seen: dict[str, tuple[int, str]] = {}
    person, screen = MockApprovalSystem("Deny"), MockDisplaySystem()
    for result in ran.shown:
        assert isinstance(result, HookResult)
        tool = MockTool("work", "worked")

        async def handle(
            event: str, data: dict[str, object], result: HookResult = result
        ) -> HookResult:
            return result

        async with create_test_session(
            answer(call("work")),
            "Done.",
            tools=[mounting(tool)],
            approval_system=person,
            display_system=screen,
        ) as session:
            session.coordinator.hooks.register("tool:pre", handle)
            await session.execute("go")
            read = str(await session.coordinator.context.get_messages())
        seen[result.action] = (tool.call_count, read)
    counts = {action: count for action, (count, _) in seen.items()}
    assert counts == {"continue": 1, "deny": 0, "inject_context": 1, "ask_user": 0}
    assert "Access denied" in seen["deny"][1]
    assert "Found 3 linting errors..." in seen["inject_context"][1]
    assert "Linting issues detected" in [shown.message for shown in screen.messages]
    (question,) = person.questions
    assert "Allow write to production file?" in question.prompt


async def mounted(sample: Sample) -> None:
    """Its handlers decide in a session, and its cleanup takes them back."""
    ran = await sample.run(names(**HOOKS))
    tools = [mounting(MockTool(name, "worked")) for name in ("Write", "Read")]
    async with create_test_session(
        answer(call("Write"), call("Read")), "Done.", tools=tools, hooks=[ran.mount]
    ) as session:
        await session.execute("go")
        read = str(await session.coordinator.context.get_messages())
    assert "Writing is denied" in read
    assert "Mind the gap" in read

    coordinator = ModuleCoordinator()
    cleanup = await ran.mount(coordinator, {})
    assert coordinator.hooks.has_handlers("tool:pre")
    cleanup()
    assert not coordinator.hooks.has_handlers("tool:pre")
    assert not coordinator.hooks.has_handlers("tool:post")


async def registered(sample: Sample) -> None:
    recorder = EventRecorder()
    async with create_test_session(
        answer(call("work")), "Done.", tools=[mounting(MockTool("work"))]
    ) as session:
        coordinator = session.coordinator
        ran = await sample.run(names(coordinator=coordinator, my_handler=recorder))
        listed = ran.registry.list_handlers("tool:post")
        assert listed == {"tool:post": ["my_handler"]}
        await session.execute("go")
        ran.unregister()
        assert not coordinator.hooks.has_handlers("tool:post")
    assert recorder.names == ["tool:post"]


async def testing(sample: Sample) -> None:
    mount = await samples()["Hook Contract / mount() Function"].run(names(**HOOKS))
    tests = await sample.run(names(**HOOKS, mount=mount.mount))
    await tests.test_hook_handler()
    await tests.test_hook_registration()


async def recorder(sample: Sample) -> None:
    ran = await sample.run(names())
    assert ran.events == [("tool:pre", {"tool_name": "Write"})]
