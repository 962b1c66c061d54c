"""What the published contracts say of contexts in more than one way."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from amplifier import ModuleCoordinator
from amplifier_module_context_simple import ContextConfig, SimpleContext
from amplifier_sdk import CompactionResult, ContextManager, JSONValue, MessageDict
from amplifier_sdk.configuration import read_config
from amplifier_sdk.modules import definition_of

TURN_TOKENS = 2 * (4 + 100)  # two messages of a hundred words, each with its frame
PLAIN: Mapping[str, JSONValue] = {"compaction_notice_enabled": False, "token_margin": 0}


async def a_context(
    coordinator: ModuleCoordinator, turns: int, **settings: JSONValue
) -> SimpleContext:
    definition = definition_of(SimpleContext)
    assert definition is not None
    context = await definition.mount(coordinator, {**PLAIN, **settings})
    assert isinstance(context, SimpleContext)
    for number in range(turns):
        await context.add_message(
            {"role": "user", "content": f"{'word ' * 99}{number}"}
        )
        await context.add_message(
            {"role": "assistant", "content": f"{'word ' * 99}{number}"}
        )
    return context


async def test_the_view_is_the_contract_beside_older_members() -> None:
    context = await a_context(ModuleCoordinator(), 4)

    result = await context.compact()

    assert isinstance(context, ContextManager)
    assert await context.get_token_count() == 4 * TURN_TOKENS
    assert result == CompactionResult(
        before_messages=8,
        after_messages=3,
        before_tokens=4 * TURN_TOKENS,
        after_tokens=3 * 104,
        strategy="progressive",
    )
    assert (result.removed_messages, result.removed_tokens) == (5, 5 * 104)


async def test_a_second_compaction_halves_what_is_shown() -> None:
    context = await a_context(ModuleCoordinator(), 8)

    shown = [(await context.compact()).after_messages for _ in range(4)]

    assert shown == [7, 3, 2, 2]


async def test_an_empty_history_cannot_be_compacted() -> None:
    result = await (await a_context(ModuleCoordinator(), 0)).compact()

    assert (result.removed_messages, result.removed_tokens) == (0, 0)


async def test_compaction_moves_the_view_and_deletes_nothing() -> None:
    context = await a_context(ModuleCoordinator(), 4)
    before = json.dumps(list(await context.get_messages()))

    await context.compact()

    assert len(await context.get_messages_for_request()) == 3
    assert json.dumps(list(await context.get_messages())) == before


async def test_compaction_is_announced_with_every_contracts_keys() -> None:
    coordinator = ModuleCoordinator()
    heard: list[tuple[str, dict[str, object]]] = []
    coordinator.hooks.register(
        "context:*", lambda event, data: heard.append((event, data))
    )
    context = await a_context(coordinator, 4, system_prompt="Be brief.")

    await context.compact()

    names = [name for name, _ in heard]
    keys = [set(data) for _, data in heard]
    assert names == [
        "context:pre_compact",
        "context:post_compact",
        "context:compaction",
    ]
    assert {
        "message_count",
        "token_count",
        "before_tokens",
        "before_messages",
        "strategy",
    } <= keys[0]
    assert {"message_count", "token_count", "after_tokens", "after_messages"} <= keys[1]
    assert {"removed_tokens", "removed_messages", "strategy"} <= keys[1]
    assert {
        "messages_removed",
        "messages_truncated",
        "user_messages_stubbed",
        "strategy_level",
    } <= keys[2]
    assert {"budget", "target_tokens", "system_messages_preserved"} <= keys[2]
    assert {"protected_recent", "protected_tool_results"} <= keys[2]
    figures = heard[2][1]
    assert (figures["messages_removed"], figures["system_messages_preserved"]) == (5, 1)


@pytest.mark.parametrize(
    ("config", "max_tokens", "threshold"),
    [
        ({}, 200_000, 0.92),
        ({"max_tokens": 100_000, "compaction_threshold": 0.8}, 100_000, 0.8),
        ({"compact_threshold": 0.85}, 200_000, 0.85),
    ],
)
def test_both_names_of_the_threshold_are_settings(
    config: dict[str, JSONValue], max_tokens: int, threshold: float
) -> None:
    settings = read_config(ContextConfig, config, subject="context")

    assert (settings.max_tokens, settings.threshold) == (max_tokens, threshold)


@pytest.mark.parametrize(
    "message",
    [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "function": {"name": "x", "arguments": "{"}}],
        },
        {
            "role": "function",
            "tool_call_id": "a",
            "content": [{"type": "tool_result", "output": {"deep": [1]}}],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "…", "signature": "s", "vendor": {}}
            ],
        },
        {"role": "user", "content": "hello", "vendor": {"id": 1}},
    ],
)
async def test_messages_are_stored_as_the_json_they_were(message: MessageDict) -> None:
    context = await a_context(ModuleCoordinator(), 0)
    written = json.dumps(message)

    await context.add_message(message)

    assert json.dumps(list(await context.get_messages())) == f"[{written}]"
    assert json.dumps(list(await context.get_messages_for_request())) == f"[{written}]"
