"""What holds for every history: nothing is lost, and no call is parted from its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from amplifier import ModuleCoordinator
from amplifier_module_context_simple import ContextConfig, SimpleContext
from amplifier_sdk import JSONValue, MessageDict

EXAMPLES: Final = settings(max_examples=80, deadline=None)

json_values: st.SearchStrategy[JSONValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def foreign_messages(draw: st.DrawFn) -> MessageDict:
    """Messages of any vendor: known and unknown fields, content in any shape."""
    message: MessageDict = dict(draw(st.dictionaries(st.text(), json_values, max_size=3)))
    message["role"] = draw(st.sampled_from(["system", "developer", "user", "assistant", "tool", "function"]))
    message["content"] = draw(json_values)
    return message


@st.composite
def steps(draw: st.DrawFn, number: int) -> list[MessageDict]:
    """An assistant's message, its parallel calls' results, and what handlers put between and behind."""
    calls = [f"{number}-{index}" for index in range(draw(st.integers(0, 3)))]
    blocks: list[JSONValue] = [{"type": "text", "text": draw(texts)}]
    blocks += [{"type": "tool_call", "id": call, "name": "t", "input": {}} for call in calls]
    results: list[MessageDict] = [
        {"role": "tool", "tool_call_id": call, "name": "t", "content": draw(texts)}
        for call in draw(st.permutations(calls))
    ]
    messages: list[MessageDict] = [{"role": "assistant", "content": blocks}, *results]
    for _ in range(draw(st.integers(0, 2))):
        messages.insert(draw(st.integers(1, len(messages))), dict(draw(injections)))
    return messages


@st.composite
def histories(draw: st.DrawFn) -> list[MessageDict]:
    """Turns as sessions leave them, the last one perhaps still running."""
    history: list[MessageDict] = [{"role": "system", "content": "Be brief."} for _ in range(draw(st.integers(0, 2)))]
    number = 0
    for _ in range(draw(st.integers(0, 5))):
        history.append({"role": draw(st.sampled_from(["user", "user", "developer"])), "content": draw(texts)})
        for _ in range(draw(st.integers(0, 4))):
            number += 1
            history += draw(steps(number))
    return history


texts = st.integers(0, 120).map("x".__mul__)
injections = st.builds(
    lambda role, text, metadata: {"role": role, "content": text, **metadata},
    st.sampled_from(["system", "user", "assistant"]),
    texts,
    st.sampled_from([{"metadata": {"source": "hook"}}, {}]),
)
budgets = st.integers(0, 400)


def fresh(**settings: float) -> SimpleContext:
    return SimpleContext(ContextConfig(**settings), ModuleCoordinator())  # type: ignore[arg-type]  # numbers all


def calls_of(messages: Sequence[MessageDict]) -> set[str]:
    return {
        str(block["id"])
        for message in messages
        if isinstance(content := message["content"], list)
        for block in content
        if isinstance(block, dict) and block["type"] == "tool_call"
    }


def results_of(messages: Sequence[MessageDict]) -> set[str]:
    return {str(message["tool_call_id"]) for message in messages if message["role"] == "tool"}


def is_part(view: Sequence[MessageDict], history: Sequence[MessageDict]) -> bool:
    """Whether a view holds messages of the history by identity, in its order."""
    positions = {id(message): index for index, message in enumerate(history)}
    found = [positions.get(id(message), -1) for message in view]
    return -1 not in found and found == sorted(set(found))


@EXAMPLES
@given(st.lists(foreign_messages()), budgets)
def test_what_goes_in_comes_out_equal(history: list[MessageDict], budget: int) -> None:
    async def main() -> None:
        context = fresh()
        for message in history:
            await context.add_message(message)

        await context.get_messages_for_request(budget)

        assert await context.get_messages() == history

    anyio.run(main)


@EXAMPLES
@given(histories(), st.lists(budgets, min_size=1, max_size=3))
def test_a_view_holds_every_call_with_its_result_or_neither(history: list[MessageDict], given: list[int]) -> None:
    async def main() -> None:
        context = fresh(compact_threshold=0.9)
        await context.set_messages(history)
        for budget in given:
            view = list(await context.get_messages_for_request(budget))

            assert calls_of(view) == results_of(view)
            assert is_part(view, history)
            assert [m for m in view if m["role"] == "system"] == [m for m in history if m["role"] == "system"]
        assert await context.get_messages() == history

    anyio.run(main)


@EXAMPLES
@given(histories(), budgets)
def test_what_is_left_out_stays_out_while_a_history_grows(history: list[MessageDict], budget: int) -> None:
    async def main() -> None:
        context = fresh()
        left_out: set[int] = set()
        for message in history:
            await context.add_message(message)
            shown = {id(shown) for shown in await context.get_messages_for_request(budget)}

            assert not shown & left_out
            left_out |= {id(known) for known in await context.get_messages()} - shown

    anyio.run(main)


@EXAMPLES
@given(histories(), budgets)
def test_the_latest_prompt_is_always_shown(history: list[MessageDict], budget: int) -> None:
    async def main() -> None:
        context = fresh()
        await context.set_messages(history)

        await context.add_message({"role": "user", "content": "the latest"})
        view = await context.get_messages_for_request(budget)

        assert view[-1] == {"role": "user", "content": "the latest"}

    anyio.run(main)
