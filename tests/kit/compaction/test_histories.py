"""What holds for every history and budget that a compacting context meets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from amplifier import ModuleCoordinator
from amplifier_kit.compaction import CompactingContext, CompactionOptions
from amplifier_kit.compaction.meters import WordMeter, message_tokens, most_tokens
from amplifier_kit.compaction.options import StrategyName
from amplifier_kit.scripted import ScriptedProvider
from amplifier_sdk import JSONValue, MessageDict

EXAMPLES: Final = settings(max_examples=25)
STRATEGIES: Final[tuple[StrategyName, ...]] = ("progressive", "importance", "summarize")

json_values: st.SearchStrategy[JSONValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)
texts = st.builds(
    str.__mul__,
    st.sampled_from(["word ", "x", "{'a': 1} ", "ж", "error "]),
    st.integers(0, 400),
)
injections = st.builds(
    lambda role, text, metadata: {"role": role, "content": text, **metadata},
    st.sampled_from(["system", "user", "assistant"]),
    texts,
    st.sampled_from(
        [{"metadata": {"source": "hook"}}, {}, {"metadata": {"pinned": True}}]
    ),
)


@st.composite
def foreign_messages(draw: st.DrawFn) -> MessageDict:
    """Messages of any vendor: known and unknown fields, content in any shape."""
    message: MessageDict = dict(
        draw(st.dictionaries(st.text(), json_values, max_size=3))
    )
    message["role"] = draw(
        st.sampled_from(
            ["system", "developer", "user", "assistant", "tool", "function", "?"]
        )
    )
    message["content"] = draw(json_values)
    return message


@st.composite
def steps(draw: st.DrawFn, number: int) -> list[MessageDict]:
    """An assistant's message, its parallel calls' results in any shape, and what handlers put between and behind."""
    ids = [f"{number}-{index}" for index in range(draw(st.integers(0, 3)))]
    text: MessageDict = {"type": "text", "text": draw(texts)}
    if draw(st.booleans()):
        calls: list[JSONValue] = [
            {"type": "tool_call", "id": call, "name": "t", "input": {}} for call in ids
        ]
        made: MessageDict = {"role": "assistant", "content": [text, *calls]}
    else:
        beside: list[JSONValue] = [
            {"id": call, "function": {"name": "t", "arguments": "{}"}} for call in ids
        ]
        made = {"role": "assistant", "content": text["text"], "tool_calls": beside}
    messages = [made, *(draw(results(call)) for call in draw(st.permutations(ids)))]
    for _ in range(draw(st.integers(0, 2))):
        messages.insert(draw(st.integers(1, len(messages))), dict(draw(injections)))
    return messages


@st.composite
def results(draw: st.DrawFn, call: str) -> MessageDict:
    """A tool's result as text, as text blocks with an image, or as result blocks."""
    text = draw(texts)
    return draw(
        st.sampled_from(
            [
                {"role": "tool", "tool_call_id": call, "name": "t", "content": text},
                {
                    "role": "function",
                    "tool_call_id": call,
                    "content": [
                        {"type": "text", "text": text},
                        {"type": "image", "source": {"data": "x" * 50}},
                    ],
                },
                {
                    "role": "tool",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_call_id": call,
                            "output": {"all": [text]},
                        }
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_call_id": call, "output": text}
                    ],
                },
            ]
        )
    )


@st.composite
def histories(draw: st.DrawFn) -> list[MessageDict]:
    """Turns as sessions leave them, the last one perhaps still running."""
    history: list[MessageDict] = [
        {"role": "system", "content": "Be brief."}
        for _ in range(draw(st.integers(0, 2)))
    ]
    number = 0
    for _ in range(draw(st.integers(0, 6))):
        history.append(
            {
                "role": draw(st.sampled_from(["user", "user", "developer"])),
                "content": draw(texts),
            }
        )
        for _ in range(draw(st.integers(0, 4))):
            number += 1
            history += draw(steps(number))
    return [{**message, "number": number} for number, message in enumerate(history)]


budgets = st.integers(0, 3_000)


def opened(
    strategy: StrategyName = "progressive",
) -> tuple[CompactingContext, list[str]]:
    """Make a context; the list grows by the names of the events that it sends."""
    coordinator = ModuleCoordinator()
    heard: list[str] = []
    for event in ("context:post_compact", "user:notification"):
        coordinator.hooks.register(event, lambda name, _: heard.append(name))
    return CompactingContext(CompactionOptions(strategy=strategy), coordinator), heard


def calls_of(messages: Sequence[MessageDict]) -> list[str]:
    found: list[str] = []
    for message in messages:
        for part in (*parts(message["content"]), *parts(message.get("tool_calls"))):
            found += [str(part["id"])] if "id" in part else []
    return sorted(found)


def results_of(messages: Sequence[MessageDict]) -> list[str]:
    found: list[str] = []
    for message in messages:
        for part in (message, *parts(message["content"])):
            found += [str(part["tool_call_id"])] if "tool_call_id" in part else []
    return sorted(found)


def parts(value: JSONValue) -> list[Mapping[str, JSONValue]]:
    return (
        [part for part in value if isinstance(part, dict)]
        if isinstance(value, list)
        else []
    )


def is_inserted(message: MessageDict) -> bool:
    metadata = message.get("metadata")
    return isinstance(metadata, dict) and metadata.get("source") == "context"


def is_pinned(message: MessageDict) -> bool:
    return message.get("metadata") == {"pinned": True}


def numbers_of(view: Sequence[MessageDict]) -> list[int]:
    """Return the numbers of what a view shows of the history."""
    return [int(str(message["number"])) for message in view if not is_inserted(message)]


def is_shown_right(message: MessageDict, original: MessageDict) -> bool:
    """Whether a message is the stored one, or differs in a shorter content that says so."""
    if message is original:
        return True
    is_short = "not shown]" in str(message["content"]) and original["role"] not in (
        "system",
        "assistant",
    )
    return is_short and {**message, "content": None} == {**original, "content": None}


@EXAMPLES
@given(st.lists(foreign_messages(), max_size=8), budgets)
def test_what_goes_in_comes_out_byte_for_byte(
    history: list[MessageDict], budget: int
) -> None:
    async def main() -> None:
        context, _ = opened()
        written = json.dumps(history)
        for message in history:
            await context.add_message(message)
            await context.get_messages_for_request(budget)

        assert json.dumps(list(await context.get_messages())) == written

    anyio.run(main)


@pytest.mark.parametrize("strategy", STRATEGIES)
@EXAMPLES
@given(histories(), st.lists(budgets, min_size=1, max_size=3))
def test_a_view_fits_or_it_is_said_why(
    strategy: StrategyName, history: list[MessageDict], given: list[int]
) -> None:
    async def main() -> None:
        context, heard = opened(strategy)
        written = json.dumps(history)
        await context.set_messages(history)
        for budget in given:
            view = list(
                await context.get_messages_for_request(
                    budget, ScriptedProvider(*["A summary."] * 9)
                )
            )

            tokens = sum(message_tokens(message, WordMeter().count) for message in view)
            assert tokens <= max(budget, 0) or "user:notification" in heard
            assert calls_of(view) == results_of(view)
            assert numbers_of(view) == sorted(set(numbers_of(view)))
            assert all(
                is_inserted(m) or is_shown_right(m, history[int(str(m["number"]))])
                for m in view
            )
            assert [
                m for m in view if m["role"] == "system" and not is_inserted(m)
            ] == [m for m in history if m["role"] == "system"]
            pinned = [m for m in history if is_pinned(m)]
            assert [m for m in view if is_pinned(m)] == pinned
        assert json.dumps(list(await context.get_messages())) == written

    anyio.run(main)


@pytest.mark.parametrize("strategy", STRATEGIES)
@EXAMPLES
@given(histories(), budgets)
def test_views_grow_at_their_end_until_the_next_compaction(
    strategy: StrategyName, history: list[MessageDict], budget: int
) -> None:
    async def main() -> None:
        context, heard = opened(strategy)
        model = ScriptedProvider(*["A summary."] * 99)
        before: list[str] = []
        left_out: set[int] = set()
        for count, message in enumerate(history, start=1):
            await context.add_message(message)
            compactions = heard.count("context:post_compact")
            view = list(await context.get_messages_for_request(budget, model))
            written = [json.dumps(message) for message in view]

            if heard.count("context:post_compact") == compactions:
                assert written[: len(before)] == before
            shown = set(numbers_of(view))
            assert not shown & left_out
            left_out = set(range(count)) - shown
            before = written

    anyio.run(main)


@EXAMPLES
@given(
    histories(),
    st.lists(budgets, min_size=1, max_size=3),
    st.sampled_from(STRATEGIES[:2]),
)
def test_the_same_history_is_compacted_in_the_same_way(
    history: list[MessageDict], given: list[int], strategy: StrategyName
) -> None:
    async def main() -> None:
        (one, _), (other, _) = opened(strategy), opened(strategy)
        await one.set_messages(history)
        await other.set_messages(history)

        for budget in given:
            assert await one.get_messages_for_request(
                budget
            ) == await other.get_messages_for_request(budget)

    anyio.run(main)


@EXAMPLES
@given(histories(), budgets)
def test_the_latest_prompt_is_always_shown_whole(
    history: list[MessageDict], budget: int
) -> None:
    async def main() -> None:
        context, _ = opened()
        await context.set_messages(history)

        await context.add_message({"role": "user", "content": "the latest " * 100})
        view = await context.get_messages_for_request(budget)

        assert view[-1] == {"role": "user", "content": "the latest " * 100}

    anyio.run(main)


@EXAMPLES
@given(foreign_messages() | steps(1).map(lambda messages: messages[0]))
@example(
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "a block of the type 'tool_call'"}],
        "tool_calls": [
            {"id": "call_1", "name": "look", "arguments": {"at": "word " * 100}}
        ],
    }
)
def test_the_bound_of_a_messages_tokens_is_one(message: MessageDict) -> None:
    assert message_tokens(message, WordMeter().count) <= most_tokens(message)
