"""The samples of the context contract: the same calls and names, in a real session.

The contract asks for a view that leaves the history whole, and shows a `_compact_internal` beside it that
overwrites the history. What is required wins: `MyContextManager` compacts the copy, with the sample's steps.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from amplifier import ModuleCoordinator
from amplifier.testing import (
    EventRecorder,
    MockContextManager,
    MockTool,
    ScriptedProvider,
    answer,
    call,
)
from amplifier.testing.sessions import create_test_session, mounting
from amplifier_sdk import ContextManager, Message, MessageDict, Provider
from amplifier_sdk.contracts import Hooks
from amplifier_sdk.hookspecs import Config

logger = logging.getLogger(__name__)


class MyContextManager:
    """The contract's context manager, its methods from the sections that show them."""

    def __init__(
        self, max_tokens: int, compaction_threshold: float, hooks: Hooks
    ) -> None:
        self._max_tokens = max_tokens
        self._compaction_threshold = compaction_threshold
        self._hooks = hooks
        self._keep_recent = 4
        self._messages: list[MessageDict] = []
        self._token_count = 0

    async def add_message(self, message: MessageDict) -> None:
        """Add a message to the context."""
        # Validate required fields
        if "role" not in message:
            raise ValueError("Message must have 'role' field")

        # Store message
        self._messages.append(message)

        # Track token count (approximate)
        self._token_count += self._estimate_tokens(message)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        """Return compacted VIEW without modifying internal state."""
        budget = self._calculate_budget(token_budget, provider)

        # Read current messages (don't modify)
        messages = list(self._messages)  # Copy!

        # Check if compaction needed
        if self._token_count <= budget * self._compaction_threshold:
            return messages

        # Compact EPHEMERALLY - return compacted copy
        return await self._compact_messages(messages)  # Returns NEW list

    def _calculate_budget(
        self, token_budget: int | None, provider: Provider | None
    ) -> int:
        """Calculate effective token budget from provider or fallback to config."""
        # Explicit budget takes precedence (for backward compatibility)
        if token_budget is not None:
            return token_budget

        # Try provider-based dynamic budget
        if provider is not None:
            try:
                info = provider.get_info()
                defaults = info.defaults or {}
                context_window = defaults.get("context_window")
                max_output_tokens = defaults.get("max_output_tokens")

                if context_window and max_output_tokens:
                    assert isinstance(context_window, int)
                    assert isinstance(max_output_tokens, int)
                    safety_margin = 1000  # Buffer to avoid hitting hard limits
                    return context_window - max_output_tokens - safety_margin
            except Exception:
                logger.debug("Fall back to configured max_tokens")

        return self._max_tokens

    async def get_messages(self) -> list[MessageDict]:
        """Return FULL history (never compacted)."""
        return list(self._messages)  # Always complete

    async def set_messages(self, messages: Sequence[MessageDict]) -> None:
        """Set messages directly (for session resume)."""
        self._messages = list(messages)
        self._token_count = sum(self._estimate_tokens(m) for m in self._messages)

    async def clear(self) -> None:
        """Clear all messages."""
        self._messages = []
        self._token_count = 0

    def _estimate_tokens(self, message: MessageDict) -> int:
        return len(str(message.get("content"))) // 4

    async def _compact_messages(self, messages: list[MessageDict]) -> list[MessageDict]:
        # Emit pre-compaction event
        await self._hooks.emit(
            "context:pre_compact",
            {"message_count": len(messages), "token_count": self._token_count},
        )

        # Strategy: Keep system messages + recent messages
        # But ensure we don't split tool pairs
        system_messages = [m for m in messages if m["role"] == "system"]

        # Find safe truncation point (not in middle of tool sequence)
        recent_start = max(0, len(messages) - self._keep_recent)

        # Adjust start to not split tool sequences
        while recent_start > 0:
            msg = messages[recent_start]
            if msg.get("role") == "tool":
                # This is a tool result - need to include the tool_use before it
                recent_start -= 1
            else:
                break

        compacted = system_messages + messages[recent_start:]

        # Emit post-compaction event
        await self._hooks.emit(
            "context:post_compact",
            {
                "message_count": len(compacted),
                "token_count": sum(self._estimate_tokens(m) for m in compacted),
            },
        )
        return compacted


class PersistentContextManager(MyContextManager):
    """The contract's file-based one: its own file wins over what a resumed session brings."""

    def __init__(self, path: Path, hooks: Hooks) -> None:
        super().__init__(1000, 0.8, hooks)
        self._path = path
        self._loaded_from_file = path.exists()
        if self._loaded_from_file:
            self._messages = [
                {"role": "system", "content": line}
                for line in path.read_text().splitlines()
            ]

    async def set_messages(self, messages: Sequence[MessageDict]) -> None:
        if self._loaded_from_file:
            # Already have complete history - ignore CLI's filtered transcript
            logger.info("Ignoring set_messages - loaded from persistent file")
            return

        # Fresh session: accept messages
        self._messages = list(messages)
        self._write_to_file()

    def _write_to_file(self) -> None:
        self._path.write_text(
            "\n".join(str(message["content"]) for message in self._messages)
        )


def _number(config: Config, key: str, default: float) -> float:
    value = config.get(key, default)
    assert isinstance(value, (int, float))
    return value


async def mount(coordinator: ModuleCoordinator, config: Config) -> ContextManager:
    context = MyContextManager(
        max_tokens=int(_number(config, "max_tokens", 100000)),
        compaction_threshold=_number(config, "compaction_threshold", 0.8),
        hooks=coordinator.hooks,
    )
    await coordinator.mount("session", context, name="context")
    coordinator.register_contributor(
        "observability.events",
        "my-context",
        lambda: ["context:pre_compact", "context:post_compact"],
    )
    return context


async def test_a_session_keeps_its_history_in_it() -> None:
    async with create_test_session("Hi.", context=mount) as session:
        await session.execute("Hello")
        assert isinstance(session.coordinator.get("context"), MyContextManager)
        messages = await session.coordinator.context.get_messages()

    assert [
        (message.role, message.text) for message in map(Message.from_dict, messages)
    ] == [*(("user", "Hello"), ("assistant", "Hi."))]


async def test_long_history_is_shown_shortened_and_stays_complete() -> None:
    provider = ScriptedProvider(
        *("x" * 400 for _ in range(5)),
        answer(call("read", {}), call("read", {}), call("read", {})),
        "Done.",
    )
    recorder = EventRecorder()
    async with create_test_session(
        context=mount,
        provider=mounting(provider),
        tools=[mounting(MockTool("read", "text"))],
        hooks=[recorder],
        configs={"context": {"max_tokens": 250, "compaction_threshold": 0.5}},
    ) as session:
        context = session.coordinator.context
        await context.add_message({"role": "system", "content": "Be kind."})
        for number in range(6):
            await session.execute(f"Message {number}")
        shown = await context.get_messages_for_request(token_budget=250)
        stored = await context.get_messages()

    assert len(stored) == 1 + 6 * 2 + 4
    assert len(shown) < len(stored)
    assert shown[0]["role"] == "system"
    assert _orphans(shown) == set()
    assert recorder.data("context:pre_compact")[-1]["message_count"] == len(stored)
    assert recorder.data("context:post_compact")[-1]["message_count"] == len(shown)


def _orphans(messages: Sequence[MessageDict]) -> set[object]:
    tool_use_ids: set[object] = set()
    tool_result_ids: set[object] = set()
    for msg in messages:
        calls = msg.get("tool_calls")
        if isinstance(calls, list):
            tool_use_ids.update(tc.get("id") for tc in calls if isinstance(tc, Mapping))
        if msg.get("role") == "tool":
            tool_result_ids.add(msg.get("tool_call_id"))
    return tool_result_ids - tool_use_ids


async def test_the_providers_window_is_the_budget() -> None:
    recorder = EventRecorder()
    context = MyContextManager(10, 0.8, recorder)
    provider = ScriptedProvider("Hi.", context_window=10_000, max_output_tokens=2_000)
    long, short = "x" * 4 * 5_000, ""
    await context.set_messages(
        [{"role": "user", "content": text} for text in (long, *[short] * 9)]
    )

    assert len(await context.get_messages_for_request(provider=provider)) == 10
    assert len(await context.get_messages_for_request(5, provider)) == 4
    assert len(await context.get_messages_for_request()) == 4


async def test_a_message_without_a_role_is_refused() -> None:
    with pytest.raises(ValueError, match="Message must have 'role' field"):
        await MyContextManager(10, 0.8, EventRecorder()).add_message({"content": "x"})


async def test_what_file_holds_wins_over_what_resumed_session_brings(
    tmp_path: Path,
) -> None:
    path = tmp_path / "history"
    fresh = PersistentContextManager(path, EventRecorder())
    await fresh.set_messages([{"role": "system", "content": "kept"}])

    resumed = PersistentContextManager(path, EventRecorder())
    await resumed.set_messages([{"role": "user", "content": "filtered"}])

    assert await resumed.get_messages() == [{"role": "system", "content": "kept"}]
    async with create_test_session(
        "Hi.", context=mounting(resumed), is_resumed=True
    ) as session:
        await session.execute("Hello")
        assert len(await session.coordinator.context.get_messages()) == 3


MESSAGES: list[MessageDict] = [
    {"role": "user", "content": "User's input text"},
    {"role": "assistant", "content": "Assistant's response"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_123",
                "type": "function",
                "function": {"name": "read_file", "arguments": '{"path": "a"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_123", "content": "Tool output"},
    {"role": "system", "content": "System instructions"},
]


@pytest.mark.parametrize(
    "context", [mount, mounting(MockContextManager())], ids=["sample", "mock"]
)
async def test_messages_of_every_format_reach_provider_unchanged(
    context: object,
) -> None:
    provider = ScriptedProvider("Hi.")
    async with create_test_session(
        context=context, provider=mounting(provider)
    ) as session:
        await session.coordinator.context.set_messages(MESSAGES)
        await session.execute("go")
        stored = await session.coordinator.context.get_messages()

    assert list(stored[: len(MESSAGES)]) == MESSAGES
    (request,) = provider.requests
    assert [message.role for message in request.messages] == [
        "user",
        "assistant",
        "assistant",
        "tool",
        "system",
        "user",
    ]
    assert [block.type for block in request.messages[2].blocks] == ["tool_call"]


async def test_the_mock_context_manager_of_the_contract_is_a_list() -> None:
    context = MockContextManager()

    await context.add_message({"role": "user", "content": "Test"})
    messages = await context.get_messages_for_request()

    assert len(context.messages) == len(messages) == 1
