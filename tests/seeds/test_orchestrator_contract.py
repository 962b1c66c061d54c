"""The samples of the orchestrator contract: the same calls and names, in a real session.

The contract shows `execute` in pieces; `MyOrchestrator` puts them together in the order of its flow chart. Where
the pieces contradict the other contracts, the newer ones win: a failed result is `ToolResult(success=False)`,
for which `is_error=True` is another spelling, and `tool_call.input` is `tool_call.arguments`.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from amplifier import ModuleCoordinator
from amplifier.testing import (
    EventRecorder,
    MockApprovalSystem,
    MockTool,
    ScriptedOrchestrator,
    ScriptedProvider,
    answer,
    call,
    create_test_session,
)
from amplifier.testing.sessions import mounting
from amplifier_sdk import (
    ChatRequest,
    ChatResponse,
    ContextManager,
    Emission,
    HookResult,
    Hooks,
    Message,
    Orchestrator,
    Provider,
    Tool,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from amplifier_sdk.hookspecs import Config
from amplifier_sdk.loops import schema_of


class MyOrchestrator:
    """The contract's loop, with nothing of the SDK's base class."""

    def __init__(self, config: Config) -> None:
        self.config = config

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        # Get default or configured provider
        provider_name = str(
            self.config.get("default_provider", list(providers.keys())[0])  # noqa: RUF015  # as it stands there
        )
        provider = providers[provider_name]

        # Add user message
        await context.add_message({"role": "user", "content": prompt})
        while True:
            # Get messages for LLM request (context handles compaction internally)
            messages = await context.get_messages_for_request()

            # Before LLM call
            await hooks.emit(
                "provider:request",
                {"provider": provider_name, "messages": messages, "model": "m"},
            )

            specs = [
                ToolSpec(name=n, description=t.description, parameters=schema_of(t))
                for n, t in tools.items()
            ]
            request = ChatRequest(
                messages=[Message.from_dict(message) for message in messages],
                tools=specs,
            )
            response = await provider.complete(request)

            # After LLM call
            await hooks.emit(
                "provider:response",
                {
                    "provider": provider_name,
                    "response": response,
                    "usage": response.usage,
                },
            )

            # Add assistant response
            await context.add_message(response.to_message())
            if not response.tool_calls:
                return response.text
            for tool_call in response.tool_calls:
                result = await self._run(
                    tool_call, tools[tool_call.name], context, hooks
                )

                # Add tool result
                await context.add_message(
                    {
                        "role": "tool",
                        "tool_call_id": tool_call.id,
                        "content": result.get_serialized_output(),
                    }
                )

    async def _run(
        self, tool_call: ToolCall, tool: Tool, context: ContextManager, hooks: Hooks
    ) -> ToolResult:
        # Before tool execution
        data: Mapping[str, object] = {
            "tool_name": tool_call.name,
            "tool_input": tool_call.input,
        }
        pre_result = await hooks.emit("tool:pre", data)

        if pre_result.action == "deny":
            # Don't execute tool
            return ToolResult(is_error=True, output=pre_result.reason)

        if pre_result.action == "modify":
            # Use modified data
            data = pre_result.data

        if pre_result.action == "inject_context":
            # Add feedback to context
            await context.add_message(
                {
                    "role": pre_result.context_injection_role,
                    "content": pre_result.context_injection,
                }
            )

        if pre_result.action == "ask_user":
            # Request approval (requires approval provider)
            approved = await request_approval(hooks, pre_result)
            if not approved:
                return ToolResult(is_error=True, output="User denied")

        tool_input = data["tool_input"]
        assert isinstance(tool_input, dict)
        result = await tool.execute(tool_input)

        # After tool execution
        await hooks.emit(
            "tool:post",
            {
                "tool_name": tool_call.name,
                "tool_input": tool_call.input,
                "tool_result": result,
            },
        )
        return result


async def request_approval(hooks: Hooks, result: Emission) -> bool:
    """What the sample leaves open: the host asks."""
    return not (await hooks.host.process_hook_result(result, "tool:pre")).denied


async def mount(coordinator: ModuleCoordinator, config: Config) -> Orchestrator:
    orchestrator = MyOrchestrator(config=config)
    await coordinator.mount("session", orchestrator, name="orchestrator")
    coordinator.register_contributor(
        "observability.events",
        "my-orchestrator",
        lambda: [
            "my-orchestrator:loop_started",
            "my-orchestrator:loop_iteration",
            "my-orchestrator:loop_completed",
        ],
    )
    return orchestrator


class Guard:
    """A handler that answers what it was made with."""

    def __init__(self, result: HookResult) -> None:
        self.result = result

    async def mount(self, coordinator: ModuleCoordinator, config: Config) -> None:
        coordinator.hooks.register("tool:pre", self)

    async def __call__(self, event: str, data: dict[str, object]) -> HookResult:
        return self.result


async def results_of(
    tool: MockTool, *hooks: object, person: MockApprovalSystem | None = None
) -> tuple[str, list[str]]:
    """Run a turn of the contract's loop with one call of a tool; return its answer and what the model read."""
    provider = ScriptedProvider(answer(call("work", {"path": "a"})), "Done.")
    async with create_test_session(
        orchestrator=mount,
        provider=mounting(provider),
        tools=[mounting(tool)],
        hooks=hooks,
        approval_system=person,
    ) as session:
        text = await session.execute("go")
    return text, [
        text for role, text in provider.last_messages if role in ("tool", "system")
    ]


async def test_a_loop_written_by_hand_runs_a_turn_with_a_tool() -> None:
    tool, recorder = MockTool("work", "worked"), EventRecorder()

    text, read = await results_of(tool, recorder)

    assert (text, read) == ("Done.", ["worked"])
    assert tool.last_input == {"path": "a"}
    assert [
        n for n in recorder.names if n in ("provider:request", "provider:response")
    ] == [
        *(
            "provider:request",
            "provider:response",
            "provider:request",
            "provider:response",
        )
    ]
    assert recorder.get_events("tool:pre")
    assert recorder.get_events("tool:post")


async def test_what_a_handler_denies_the_loop_does_not_run() -> None:
    tool = MockTool("work", "worked")

    text, read = await results_of(
        tool, Guard(HookResult(action="deny", reason="Access denied"))
    )

    assert text == "Done."
    assert tool.call_count == 0
    assert "Access denied" in read[0]


async def test_what_a_handler_changes_is_what_runs() -> None:
    tool = MockTool("work", "worked")

    await results_of(
        tool, Guard(HookResult(action="modify", data={"tool_input": {"path": "b"}}))
    )

    assert tool.last_input == {"path": "b"}


async def test_what_a_handler_injects_the_model_reads() -> None:
    tool = MockTool("work", "worked")

    _, read = await results_of(
        tool,
        Guard(HookResult(action="inject_context", context_injection="Mind the gap")),
    )

    assert "Mind the gap" in read
    assert "worked" in read


@pytest.mark.parametrize(("option", "runs"), [("Allow", 1), ("Deny", 0)])
async def test_a_person_is_asked_by_the_loop(option: str, runs: int) -> None:
    tool, person = MockTool("work", "worked"), MockApprovalSystem(option)
    question = HookResult(
        action="ask_user", approval_prompt="Allow write to production file?"
    )

    _, read = await results_of(tool, Guard(question), person=person)

    assert tool.call_count == runs
    assert len(read) == 1
    assert person.questions


async def test_mount_of_sample_stands_at_both_spellings_of_its_place() -> None:
    async with create_test_session("Hi.", orchestrator=mount) as session:
        coordinator = session.coordinator
        assert isinstance(coordinator.get("orchestrator"), MyOrchestrator)
        assert coordinator.get("session", "orchestrator") is coordinator.orchestrator
        assert await session.execute("go") == "Hi."
        assert await coordinator.collect_contributions("observability.events") == [
            [
                f"my-orchestrator:loop_{part}"
                for part in ("started", "iteration", "completed")
            ]
        ]


async def test_a_configured_provider_is_chosen_by_the_sample() -> None:
    config = {"orchestrator": {"default_provider": "missing"}}

    async with create_test_session(
        "Hi.", orchestrator=mount, configs=config
    ) as session:
        with pytest.raises(KeyError, match="missing"):
            await session.execute("go")


async def test_scripted_orchestrator_of_contract_runs_in_session() -> None:
    orchestrator = ScriptedOrchestrator(responses=["Response 1", "Response 2"])

    async with create_test_session(orchestrator=mounting(orchestrator)) as session:
        assert await session.execute("one") == "Response 1"
        assert await session.execute("two") == "Response 2"


async def test_an_answer_has_what_the_sample_reads_of_it() -> None:
    response = ChatResponse(
        tool_calls=[ToolCall(id="1", name="work", arguments={"a": 1})]
    )

    assert response.tool_calls is not None
    assert response.tool_calls[0].input == {"a": 1}
    assert ToolResult(is_error=True, output="no").success is False
    assert ToolResult(output="yes").is_error is False
