"""Base classes of tests: what a mounted module does. A module's tests inherit the one of its type.

The tests are plain functions, so they run the same under any plugin for async tests, or none. Their names and what
they take are the original's, since a module's own class may replace one of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol

import pytest

from amplifier.compat.original.message_models import ChatResponse, TextBlock
from amplifier.compat.original.models import HookResult, ProviderInfo, ToolResult
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
_ACTIONS = ("continue", "deny", "modify", "inject_context", "ask_user")

_Deps = tuple[MockContextManager, dict[str, object], dict[str, MockTool], EventRecorder]


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

    async def get_messages(self) -> list[dict[str, object]]: ...

    async def get_messages_for_request(self) -> list[object]: ...

    async def clear(self) -> None: ...


class _InPortal:
    """Tests that call async functions in the event loop in which the module was mounted."""

    portal: Portal

    @pytest.fixture(autouse=True)
    def _in_portal(self, original_portal: Portal) -> Iterator[None]:
        self.portal = original_portal
        yield
        del self.portal


class ProviderBehaviorTests(_InPortal):
    """Tests of a provider: `provider_module` is the mounted one."""

    def test_mount_succeeds(self, provider_module: _Provider) -> None:
        """It is mounted."""
        assert provider_module is not None

    def test_get_info_returns_valid_provider_info(
        self, provider_module: _Provider
    ) -> None:
        """It says what it is."""
        info = provider_module.get_info()
        assert isinstance(info, ProviderInfo)
        assert info.id
        assert info.display_name

    def test_list_models_returns_list(self, provider_module: _Provider) -> None:
        """It lists its models."""
        assert isinstance(self.portal.call(provider_module.list_models), list)

    def test_provider_has_name_attribute(self, provider_module: _Provider) -> None:
        """It has a name."""
        assert isinstance(provider_module.name, str)
        assert provider_module.name

    def test_parse_tool_calls_returns_list(self, provider_module: _Provider) -> None:
        """It reads an answer without a call as one without."""
        response = ChatResponse(content=[TextBlock(text="hello")])
        assert isinstance(provider_module.parse_tool_calls(response), list)


class ToolBehaviorTests(_InPortal):
    """Tests of a tool: `tool_module` is the mounted one."""

    def test_mount_succeeds(self, tool_module: _Tool) -> None:
        """It is mounted."""
        assert tool_module is not None

    def test_tool_has_name(self, tool_module: _Tool) -> None:
        """It has a name."""
        assert isinstance(tool_module.name, str)
        assert tool_module.name

    def test_tool_has_description(self, tool_module: _Tool) -> None:
        """It says what it does."""
        assert isinstance(tool_module.description, str)
        assert tool_module.description

    def test_tool_has_execute_method(self, tool_module: _Tool) -> None:
        """It can be called."""
        assert callable(tool_module.execute)

    def test_execute_returns_tool_result(self, tool_module: _Tool) -> None:
        """It answers a call without arguments with a result, or says by an error what is missing."""
        result = self._execute(tool_module, {})
        assert result is None or isinstance(result, ToolResult)

    def test_tool_result_has_required_fields(self, tool_module: _Tool) -> None:
        """Its result says whether it succeeded, and holds an output or an error."""
        result = self._execute(tool_module, {})
        if result is not None:
            assert all(hasattr(result, name) for name in ("success", "output", "error"))

    def test_invalid_input_returns_error_result(self, tool_module: _Tool) -> None:
        """It copes with an argument that it does not know."""
        result = self._execute(tool_module, {"no_such_argument": object()})
        assert result is None or isinstance(result, ToolResult)

    def _execute(self, tool: _Tool, given: dict[str, object]) -> object:
        """Return a tool's result; `None` where it refused the input by an error of its own."""
        try:
            return self.portal.call(tool.execute, given)
        except _UNUSABLE:
            raise
        except Exception:  # whatever else it raises says something
            return None


class HookBehaviorTests(_InPortal):
    """Tests of a hook: `hook_cleanup` releases the mounted one, `coordinator` is where it is mounted."""

    def test_mount_succeeds(
        self, hook_cleanup: Callable[[], object] | None, coordinator: MockCoordinator
    ) -> None:
        """It is mounted."""
        assert hook_cleanup is None or callable(hook_cleanup)
        assert isinstance(coordinator.hooks.list_handlers(), dict)

    @pytest.mark.usefixtures("hook_cleanup")
    def test_handler_returns_hook_result(self, coordinator: MockCoordinator) -> None:
        """What its handlers decide is a result."""
        assert isinstance(self._emit(coordinator, {"a": 1}), HookResult)

    @pytest.mark.usefixtures("hook_cleanup")
    def test_handler_does_not_crash_on_empty_data(
        self, coordinator: MockCoordinator
    ) -> None:
        """Its handlers cope with an event without data."""
        self._emit(coordinator, {})

    @pytest.mark.usefixtures("hook_cleanup")
    def test_handler_does_not_crash_on_malformed_data(
        self, coordinator: MockCoordinator
    ) -> None:
        """Its handlers cope with an event whose data are nothing."""
        self._emit(coordinator, None)

    @pytest.mark.usefixtures("hook_cleanup")
    def test_hook_result_has_valid_action(self, coordinator: MockCoordinator) -> None:
        """What its handlers decide is one of the actions."""
        assert self._emit(coordinator, {}).action in _ACTIONS

    def test_cleanup_is_callable_if_present(
        self, hook_cleanup: Callable[[], object] | None
    ) -> None:
        """What releases it can be called."""
        assert hook_cleanup is None or callable(hook_cleanup)

    def test_cleanup_does_not_raise(
        self, hook_cleanup: Callable[[], object] | None
    ) -> None:
        """What releases it runs."""
        if hook_cleanup is not None:
            hook_cleanup()

    def _emit(
        self, coordinator: MockCoordinator, data: dict[str, object] | None
    ) -> HookResult:
        return self.portal.call(coordinator.hooks.emit, "test:event", data)


class OrchestratorBehaviorTests(_InPortal):
    """Tests of an orchestrator: `orchestrator_module` is the mounted one, `mock_deps` what it is called with."""

    def test_mount_succeeds(self, orchestrator_module: object) -> None:
        """It is mounted."""
        assert orchestrator_module is not None

    def test_orchestrator_has_execute_method(self, orchestrator_module: object) -> None:
        """Its `execute` is async."""
        assert inspect.iscoroutinefunction(_method(orchestrator_module, "execute"))

    def test_execute_returns_string(
        self, orchestrator_module: object, mock_deps: _Deps
    ) -> None:
        """It answers with text."""
        assert isinstance(self._run(orchestrator_module, mock_deps), str)

    def test_execute_with_empty_prompt(
        self, orchestrator_module: object, mock_deps: _Deps
    ) -> None:
        """It copes with a prompt without text."""
        assert isinstance(self._run(orchestrator_module, mock_deps, ""), str)

    def test_orchestrator_updates_context(
        self, orchestrator_module: object, mock_deps: _Deps
    ) -> None:
        """It stores what was said."""
        self._run(orchestrator_module, mock_deps)
        assert mock_deps[0].messages

    def test_orchestrator_uses_provider(
        self, orchestrator_module: object, mock_deps: _Deps
    ) -> None:
        """It asks the provider."""
        self._run(orchestrator_module, mock_deps)
        assert any(getattr(each, "call_count", 1) for each in mock_deps[1].values())

    def _run(
        self, orchestrator: object, deps: _Deps, prompt: str = "Test prompt"
    ) -> object:
        context, providers, tools, hooks = deps

        async def run() -> object:
            return await _method(orchestrator, "execute")(
                prompt=prompt,
                context=context,
                providers=providers,
                tools=tools,
                hooks=hooks,
            )

        return self.portal.call(run)


def _method(instance: object, name: str) -> Callable[..., Awaitable[object]]:  # type: ignore[explicit-any]  # any method
    method: Callable[..., Awaitable[object]] = getattr(instance, name)  # type: ignore[explicit-any]  # likewise
    return method


class ContextBehaviorTests(_InPortal):
    """Tests of a context manager: `context_module` is the mounted one."""

    def test_mount_succeeds(self, context_module: _Context) -> None:
        """It is mounted."""
        assert context_module is not None

    def test_context_has_required_methods(self, context_module: _Context) -> None:
        """It has the contract's methods."""
        for name in ("add_message", "get_messages", "get_messages_for_request"):
            assert callable(getattr(context_module, name))
        assert callable(context_module.clear)

    def test_message_round_trip(self, context_module: _Context) -> None:
        """A message that was added is there as it was."""
        self._add(context_module, "hello")
        messages = self.portal.call(context_module.get_messages)
        assert messages[-1]["role"] == "user"
        assert messages[-1]["content"] == "hello"

    def test_multiple_messages(self, context_module: _Context) -> None:
        """Messages come back in their order."""
        for text in ("first", "second", "third"):
            self._add(context_module, text)
        messages = self.portal.call(context_module.get_messages)
        texts = [message["content"] for message in messages[-3:]]
        assert texts == ["first", "second", "third"]

    def test_clear_removes_messages(self, context_module: _Context) -> None:
        """Nothing is left after `clear`."""
        self._add(context_module, "hello")
        self.portal.call(context_module.clear)
        assert self.portal.call(context_module.get_messages) == []

    def test_get_messages_never_returns_none(self, context_module: _Context) -> None:
        """Its messages are a list, also where there are none."""
        assert isinstance(self.portal.call(context_module.get_messages), list)

    def test_get_messages_for_request_returns_messages(
        self, context_module: _Context
    ) -> None:
        """What is sent to a model is a list."""
        self._add(context_module, "hello")
        view = self.portal.call(context_module.get_messages_for_request)
        assert isinstance(view, list)
        assert view

    def test_add_invalid_message_does_not_crash(self, context_module: _Context) -> None:
        """A message without a role or content is stored."""
        self.portal.call(context_module.add_message, {})

    def test_internal_should_compact_returns_bool(
        self, context_module: _Context
    ) -> None:
        """Where it says itself whether it compacts, it says so by a truth value."""
        answer = self._internal(context_module, "_should_compact")
        assert answer is None or isinstance(answer, bool)

    def test_internal_compact_does_not_crash(self, context_module: _Context) -> None:
        """Where it compacts itself, it copes with a few messages."""
        for text in ("first", "second"):
            self._add(context_module, text)
        self._internal(context_module, "_compact_internal")

    def _add(self, context: _Context, text: str) -> None:
        message: dict[str, object] = {"role": "user", "content": text}
        self.portal.call(context.add_message, message)

    def _internal(self, context: _Context, name: str) -> object:
        """Call a method of its own that takes nothing; `None` where there is no such method."""
        method: object = getattr(context, name, None)
        if not callable(method) or inspect.signature(method).parameters:
            return None

        async def call() -> object:
            answer: object = method()
            return await answer if inspect.isawaitable(answer) else answer

        return self.portal.call(call)
