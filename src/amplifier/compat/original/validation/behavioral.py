"""Base classes of tests: what a mounted module does. A module's tests inherit the one of its type.

The tests are plain functions, so they run the same under any plugin for async tests, or none.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Protocol

import pytest

from amplifier.compat.original.message_models import (
    ChatResponse,
    TextBlock,
)
from amplifier.compat.original.models import ModelInfo, ProviderInfo, ToolResult
from amplifier.compat.original.testing import (
    EventRecorder,
    MockContextManager,
    MockCoordinator,
    MockTool,
)
from amplifier.compat.original.validation.portal import Portal

__all__ = [
    "ContextBehaviorTests",
    "HookBehaviorTests",
    "OrchestratorBehaviorTests",
    "ProviderBehaviorTests",
    "ToolBehaviorTests",
]

_UNUSABLE = (AttributeError, TypeError, KeyError)
"""What a tool raises that does not cope with its input; what else it raises is its own."""


class _Provider(Protocol):
    name: str

    def get_info(self) -> object: ...

    async def list_models(self) -> list[object]: ...

    def parse_tool_calls(self, response: object, /) -> object: ...


class _Tool(Protocol):
    name: str
    description: str

    async def execute(self, input: dict[str, object], /) -> object: ...


class _Context(Protocol):
    async def add_message(self, message: dict[str, object], /) -> None: ...

    async def get_messages(self) -> list[object]: ...

    async def get_messages_for_request(self) -> list[object]: ...

    async def set_messages(self, messages: list[dict[str, object]], /) -> None: ...

    async def clear(self) -> None: ...


class ProviderBehaviorTests:
    """Tests of a provider: `provider_module` is the mounted one."""

    def test_name_is_text(self, provider_module: _Provider) -> None:
        """It has a name."""
        assert isinstance(provider_module.name, str)
        assert provider_module.name

    def test_get_info_returns_provider_info(self, provider_module: _Provider) -> None:
        """It says what it is."""
        info = provider_module.get_info()
        assert isinstance(info, ProviderInfo)
        assert info.id
        assert info.display_name

    def test_list_models_returns_models(
        self, provider_module: _Provider, original_portal: Portal
    ) -> None:
        """It lists its models."""
        models = original_portal.call(provider_module.list_models)
        assert isinstance(models, list)
        assert all(isinstance(model, ModelInfo) for model in models)

    def test_complete_takes_a_request(self, provider_module: _Provider) -> None:
        """Its `complete` is async and takes a request."""
        complete: object = getattr(provider_module, "complete", None)
        assert inspect.iscoroutinefunction(complete)
        assert inspect.signature(complete).parameters

    def test_parse_tool_calls_of_text_is_empty(
        self, provider_module: _Provider
    ) -> None:
        """It reads no call of an answer that has none."""
        response = ChatResponse(content=[TextBlock(text="hello")])
        assert list(provider_module.parse_tool_calls(response) or ()) == []  # type: ignore[call-overload]


class ToolBehaviorTests:
    """Tests of a tool: `tool_module` is the mounted one."""

    def test_name_is_text(self, tool_module: _Tool) -> None:
        """It has a name."""
        assert isinstance(tool_module.name, str)
        assert tool_module.name

    def test_description_is_text(self, tool_module: _Tool) -> None:
        """It says what it does."""
        assert isinstance(tool_module.description, str)
        assert tool_module.description

    def test_execute_is_async(self, tool_module: _Tool) -> None:
        """Its `execute` is async."""
        assert inspect.iscoroutinefunction(tool_module.execute)

    def test_execute_takes_an_input(self, tool_module: _Tool) -> None:
        """Its `execute` takes the arguments."""
        assert len(inspect.signature(tool_module.execute).parameters) >= 1

    def test_input_schema_is_an_object(self, tool_module: _Tool) -> None:
        """Its schema, where it has one, is a dict."""
        assert isinstance(getattr(tool_module, "input_schema", {}), dict)

    def test_execute_copes_with_an_empty_input(
        self, tool_module: _Tool, original_portal: Portal
    ) -> None:
        """It copes with arguments that are missing."""
        _execute(tool_module, {}, original_portal)

    def test_execute_copes_with_an_unknown_argument(
        self, tool_module: _Tool, original_portal: Portal
    ) -> None:
        """It copes with an argument that it does not know."""
        _execute(tool_module, {"no_such_argument": True}, original_portal)


def _execute(tool: _Tool, given: dict[str, object], portal: Portal) -> None:
    try:
        result = portal.call(tool.execute, given)
    except _UNUSABLE:
        raise
    except Exception:  # whatever else it raises says something
        return
    assert isinstance(result, ToolResult)


@pytest.mark.usefixtures("hook_cleanup")
class HookBehaviorTests:
    """Tests of a hook: `hook_cleanup` releases the mounted one, `coordinator` is where it is mounted."""

    def test_mounting_leaves_a_registry(self, coordinator: MockCoordinator) -> None:
        """It is mounted without breaking the registry."""
        assert isinstance(coordinator.hooks.list_handlers(), dict)

    def test_handlers_survive_an_unknown_event(
        self,
        coordinator: MockCoordinator,
        original_portal: Portal,
    ) -> None:
        """Its handlers cope with an event that they do not know."""
        original_portal.call(coordinator.hooks.emit, "test:event", {"a": 1})

    def test_handlers_survive_empty_data(
        self,
        coordinator: MockCoordinator,
        original_portal: Portal,
    ) -> None:
        """Its handlers cope with an event without data."""
        original_portal.call(coordinator.hooks.emit, "test:event", {})

    def test_handlers_survive_no_data(
        self,
        coordinator: MockCoordinator,
        original_portal: Portal,
    ) -> None:
        """Its handlers cope with an event whose data are nothing."""
        original_portal.call(coordinator.hooks.emit, "test:event", None)

    def test_emit_returns_a_result(
        self,
        coordinator: MockCoordinator,
        original_portal: Portal,
    ) -> None:
        """What its handlers decide is a result."""
        result = original_portal.call(coordinator.hooks.emit, "test:event", {})
        assert hasattr(result, "action")

    def test_several_events_in_turn(
        self,
        coordinator: MockCoordinator,
        original_portal: Portal,
    ) -> None:
        """Its handlers cope with several events."""
        for number in range(3):
            original_portal.call(coordinator.hooks.emit, f"test:{number}", {})

    def test_cleanup_may_be_called(
        self, hook_cleanup: Callable[[], object] | None
    ) -> None:
        """Its clean-up runs."""
        if hook_cleanup is not None:
            hook_cleanup()


class OrchestratorBehaviorTests:
    """Tests of an orchestrator: `orchestrator_module` is the mounted one, `mock_deps` what it is called with."""

    def test_execute_is_async(self, orchestrator_module: object) -> None:
        """Its `execute` is async."""
        assert inspect.iscoroutinefunction(_method(orchestrator_module, "execute"))

    def test_execute_takes_the_contracts_arguments(
        self, orchestrator_module: object
    ) -> None:
        """Its `execute` takes what the kernel gives."""
        execute = _method(orchestrator_module, "execute")
        parameters = inspect.signature(execute).parameters
        catches_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        wanted = {"prompt", "context", "providers", "tools", "hooks"}
        assert catches_all or wanted <= set(parameters)

    def test_execute_returns_text(
        self, orchestrator_module: object, mock_deps: _Deps, original_portal: Portal
    ) -> None:
        """It answers with text."""
        assert isinstance(_run(orchestrator_module, mock_deps, original_portal), str)

    def test_execute_adds_to_the_context(
        self, orchestrator_module: object, mock_deps: _Deps, original_portal: Portal
    ) -> None:
        """It stores what was said."""
        _run(orchestrator_module, mock_deps, original_portal)
        assert mock_deps[0].messages

    def test_execute_emits_events(
        self, orchestrator_module: object, mock_deps: _Deps, original_portal: Portal
    ) -> None:
        """It announces its steps."""
        _run(orchestrator_module, mock_deps, original_portal)
        assert mock_deps[3].events

    def test_execute_runs_without_tools(
        self, orchestrator_module: object, mock_deps: _Deps, original_portal: Portal
    ) -> None:
        """It runs where there is no tool."""
        context, providers, _, hooks = mock_deps
        deps = (context, providers, dict[str, MockTool](), hooks)
        assert isinstance(_run(orchestrator_module, deps, original_portal), str)


_Deps = tuple[MockContextManager, dict[str, object], dict[str, MockTool], EventRecorder]


def _method(instance: object, name: str) -> Callable[..., Awaitable[object]]:  # type: ignore[explicit-any]  # any method
    method: Callable[..., Awaitable[object]] = getattr(instance, name)  # type: ignore[explicit-any]  # likewise
    return method


def _run(orchestrator: object, deps: _Deps, portal: Portal) -> object:
    context, providers, tools, hooks = deps

    async def run() -> object:
        return await _method(orchestrator, "execute")(
            prompt="Test prompt",
            context=context,
            providers=providers,
            tools=tools,
            hooks=hooks,
        )

    return portal.call(run)


class ContextBehaviorTests:
    """Tests of a context manager: `context_module` is the mounted one."""

    def test_it_begins_with_a_list(
        self, context_module: _Context, original_portal: Portal
    ) -> None:
        """Its messages are a list."""
        assert isinstance(original_portal.call(context_module.get_messages), list)

    def test_a_message_is_added(
        self, context_module: _Context, original_portal: Portal
    ) -> None:
        """A message that was added is there."""
        before = len(original_portal.call(context_module.get_messages))
        _add(context_module, original_portal, "hello")
        assert len(original_portal.call(context_module.get_messages)) == before + 1

    def test_messages_keep_their_order(
        self, context_module: _Context, original_portal: Portal
    ) -> None:
        """Messages come back in their order."""
        for text in ("first", "second"):
            _add(context_module, original_portal, text)
        messages = original_portal.call(context_module.get_messages)
        assert [message["content"] for message in messages[-2:]] == ["first", "second"]  # type: ignore[index]

    def test_the_view_is_a_list(
        self, context_module: _Context, original_portal: Portal
    ) -> None:
        """What is sent to a model is a list."""
        _add(context_module, original_portal, "hello")
        view = original_portal.call(context_module.get_messages_for_request)
        assert isinstance(view, list)
        assert view

    def test_the_view_changes_nothing(
        self, context_module: _Context, original_portal: Portal
    ) -> None:
        """Asking for the view leaves the history as it is."""
        _add(context_module, original_portal, "hello")
        before = original_portal.call(context_module.get_messages)
        original_portal.call(context_module.get_messages_for_request)
        assert original_portal.call(context_module.get_messages) == before

    def test_messages_are_replaced(
        self, context_module: _Context, original_portal: Portal
    ) -> None:
        """A history that is set can be read."""
        original_portal.call(
            context_module.set_messages, [{"role": "user", "content": "new"}]
        )
        assert isinstance(original_portal.call(context_module.get_messages), list)

    def test_clear_forgets(
        self, context_module: _Context, original_portal: Portal
    ) -> None:
        """Nothing is left after `clear`."""
        _add(context_module, original_portal, "hello")
        original_portal.call(context_module.clear)
        assert original_portal.call(context_module.get_messages) == []

    def test_an_empty_message_is_no_error(
        self, context_module: _Context, original_portal: Portal
    ) -> None:
        """A message without a role or content is stored."""
        original_portal.call(context_module.add_message, {})

    def test_a_tool_call_and_its_result(
        self, context_module: _Context, original_portal: Portal
    ) -> None:
        """A call and its result are stored."""
        calls = [{"id": "c1", "tool": "t", "arguments": {}}]
        for message in (
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        ):
            original_portal.call(context_module.add_message, message)
        assert len(original_portal.call(context_module.get_messages)) >= 2

    def test_many_messages(
        self, context_module: _Context, original_portal: Portal
    ) -> None:
        """Compaction, where there is one, copes with many messages."""
        for number in range(50):
            _add(context_module, original_portal, f"message {number}")
        assert original_portal.call(context_module.get_messages_for_request)


def _add(context: _Context, portal: Portal, text: str) -> None:
    portal.call(context.add_message, {"role": "user", "content": text})
