"""The test samples of the module contracts, with the calls and names they have there.

What the samples leave to the reader (`MyTool`, `mount`, …) is written here in as few lines as the contracts allow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from amplifier import HookRegistry
from amplifier.testing import (
    EventRecorder,
    MockContextManager,
    MockTool,
    ScriptedOrchestrator,
    ScriptedProvider,
    TestCoordinator,
    create_test_coordinator,
)
from amplifier_sdk import (
    ChatRequest,
    Coordinator,
    HookResult,
    JSONValue,
    Message,
    ToolResult,
)
from amplifier_sdk.contracts import ContextManager, Hooks, Provider, Tool
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.messages import MessageDict

pytestmark = pytest.mark.anyio


# -- the tool contract


class MyTool:
    def __init__(self, config: Mapping[str, JSONValue]) -> None:
        self.config = config

    @property
    def name(self) -> str:
        return "my_tool"

    @property
    def description(self) -> str:
        return "Performs specific action with given parameters."

    async def execute(self, input: JSONObject, /) -> ToolResult:
        required_param = input.get("required_param")
        if not required_param:
            return ToolResult(
                success=False, error={"message": "required_param is required"}
            )
        return ToolResult(success=True, output=required_param)


async def test_tool_execution() -> None:
    tool = MyTool(config={})

    result = await tool.execute({"required_param": "value"})

    assert result.success
    assert result.error is None


async def test_mock_tool() -> None:
    mock_tool = MockTool(
        name="test_tool", description="Test tool", return_value="mock result"
    )

    result = await mock_tool.execute({"required_param": "value"})

    assert result.output == "mock result"
    assert mock_tool.call_count == 1
    assert mock_tool.last_input == {"required_param": "value"}


# -- the provider contract


class MyProvider(ScriptedProvider):
    def __init__(self, api_key: str) -> None:
        super().__init__("Hello", name="my-provider")
        self.api_key: str | None = api_key


async def mount_provider(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> Callable[[], Awaitable[None]] | None:
    api_key = config.get("api_key")
    if not isinstance(api_key, str):
        return None
    provider = MyProvider(api_key)
    await coordinator.mount("providers", provider, name="my-provider")

    async def cleanup() -> None:
        provider.api_key = None

    return cleanup


async def test_provider_mount() -> None:
    coordinator = create_test_coordinator()
    cleanup = await mount_provider(coordinator, {"api_key": "test-key"})

    assert "my-provider" in coordinator.get_mounted("providers")

    if cleanup:
        await cleanup()


async def test_provider_that_stays_away() -> None:
    coordinator = create_test_coordinator()

    assert await mount_provider(coordinator, {}) is None
    assert coordinator.get_mounted("providers") == {}


# -- the hook contract


async def my_validation_hook(event: str, data: Mapping[str, object]) -> HookResult:
    tool_input = data["tool_input"]
    if isinstance(tool_input, Mapping) and str(tool_input.get("file_path")).startswith(
        "/etc/"
    ):
        return HookResult(action="deny", reason="Access denied")
    return HookResult(action="continue")


async def mount_hook(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> Callable[[], None]:
    return coordinator.hooks.register(
        "tool:pre", my_validation_hook, priority=10, name="my-validation"
    )


async def test_hook_handler() -> None:
    result = await my_validation_hook(
        "tool:pre", {"tool_name": "Write", "tool_input": {"file_path": "/etc/passwd"}}
    )

    assert result.action == "deny"
    assert "denied" in (result.reason or "").lower()


async def test_hook_registration() -> None:
    coordinator = TestCoordinator()
    cleanup = await mount_hook(coordinator, {})

    assert coordinator.hooks.list_handlers("tool:pre") == {
        "tool:pre": ["my-validation"]
    }
    emission = await coordinator.hooks.emit(
        "tool:pre", {"tool_name": "Write", "tool_input": {"file_path": "/etc/x"}}
    )
    assert emission.denied

    cleanup()
    assert not coordinator.hooks.has_handlers("tool:pre")


async def test_event_recorder() -> None:
    recorder = EventRecorder()

    await recorder.record("tool:pre", {"tool_name": "Write"})

    events = recorder.get_events()
    assert len(events) == 1
    assert events[0][0] == "tool:pre"


# -- the orchestrator contract


class MyOrchestrator:
    def __init__(self, config: Mapping[str, JSONValue]) -> None:
        self.config = config

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        await hooks.emit("prompt:submit", {"prompt": prompt})
        await context.add_message({"role": "user", "content": prompt})
        provider = next(iter(providers.values()))
        stored = await context.get_messages_for_request(provider=provider)
        request = ChatRequest(
            messages=[
                Message(role="user", content=str(message["content"]))
                for message in stored
            ]
        )
        response = await provider.complete(request)
        await context.add_message(response.to_message())
        return response.text


class MockProvider(ScriptedProvider):
    def __init__(self) -> None:
        super().__init__("Test answer")


async def test_orchestrator_basic() -> None:
    orchestrator = MyOrchestrator(config={})
    context = MockContextManager()
    providers: dict[str, Provider] = {"test": MockProvider()}
    tools: dict[str, Tool] = {"test_tool": MockTool()}
    hooks = HookRegistry()

    result = await orchestrator.execute(
        prompt="Test prompt",
        context=context,
        providers=providers,
        tools=tools,
        hooks=hooks,
    )

    assert isinstance(result, str)
    assert len(context.messages) > 0


async def test_scripted_orchestrator() -> None:
    orchestrator = ScriptedOrchestrator(responses=["Response 1", "Response 2"])

    result = await orchestrator.execute(
        prompt="Test prompt",
        context=MockContextManager(),
        providers={},
        tools={},
        hooks=HookRegistry(),
    )
    assert result == "Response 1"


# -- the context contract


class MyContextManager:
    """Keeps everything, and shows as many of the last messages as fit, never half of a tool call."""

    def __init__(self, max_tokens: int, compaction_threshold: float = 0.8) -> None:
        self._messages: list[MessageDict] = []
        self._budget = max_tokens * compaction_threshold

    async def add_message(self, message: MessageDict, /) -> None:
        self._messages.append(message)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        start, spent = len(self._messages), 0
        while start and spent + len(str(self._messages[start - 1])) // 4 <= (
            token_budget or self._budget
        ):
            start -= 1
            spent += len(str(self._messages[start])) // 4
        while start < len(self._messages) and self._messages[start]["role"] == "tool":
            start += 1
        return self._messages[start:]

    async def get_messages(self) -> list[MessageDict]:
        return list(self._messages)

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        self._messages = list(messages)

    async def clear(self) -> None:
        self._messages = []


async def test_context_manager() -> None:
    context = MyContextManager(max_tokens=1000)

    await context.add_message({"role": "user", "content": "Hello"})
    await context.add_message({"role": "assistant", "content": "Hi there!"})

    messages = await context.get_messages_for_request()
    assert len(messages) == 2
    assert messages[0]["role"] == "user"

    raw_messages = await context.get_messages()
    assert len(raw_messages) == 2

    await context.clear()
    assert len(await context.get_messages()) == 0


async def test_compaction_preserves_tool_pairs() -> None:
    context = MyContextManager(max_tokens=100, compaction_threshold=0.5)

    await context.add_message({"role": "user", "content": "Read file.txt"})
    await context.add_message(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_123",
                    "type": "function",
                    "function": {"name": "read_file", "arguments": "{}"},
                }
            ],
        }
    )
    await context.add_message(
        {"role": "tool", "tool_call_id": "call_123", "content": "File contents..."}
    )
    seen = [await context.get_messages_for_request()]
    for number in range(50):
        await context.add_message({"role": "user", "content": f"Message {number}"})
        seen.append(await context.get_messages_for_request())

    for messages in seen:
        tool_use_ids: set[object] = set()
        tool_result_ids: set[object] = set()
        for message in messages:
            calls = message.get("tool_calls")
            if isinstance(calls, list):
                tool_use_ids |= {
                    tool_call.get("id")
                    for tool_call in calls
                    if isinstance(tool_call, dict)
                }
            if message.get("role") == "tool":
                tool_result_ids.add(message.get("tool_call_id"))
        assert tool_result_ids.issubset(tool_use_ids), "Orphaned tool results found!"
    assert len(seen[-1]) < 53


async def test_session_resume() -> None:
    context = MyContextManager(max_tokens=1000)
    saved_messages: list[MessageDict] = [
        {"role": "user", "content": "Previous conversation"},
        {"role": "assistant", "content": "Previous response"},
    ]

    await context.set_messages(saved_messages)

    messages = await context.get_messages()
    assert len(messages) == 2
    assert messages[0]["content"] == "Previous conversation"


async def test_mock_context_manager() -> None:
    context = MockContextManager()

    await context.add_message({"role": "user", "content": "Test"})
    messages = await context.get_messages_for_request()

    assert list(messages) == [{"role": "user", "content": "Test"}]
    assert len(context.messages) == 1
