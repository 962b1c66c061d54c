"""The base class of context managers: a view is chosen, and what belongs together stays together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.testing import EventRecorder, TestCoordinator
from amplifier_sdk import (
    BaseContext,
    BaseProvider,
    ContextManager,
    MessageDict,
    ProviderInfo,
    context,
)
from amplifier_sdk.contexts import window_of
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.modules import definition_of
from tests.sdk.authoring.doubles import answer


@context
class Everything(BaseContext):
    """Shows all."""


@context
class Latest(BaseContext):
    """Shows the latest messages."""

    def __init__(self) -> None:
        self.count = 2
        self.budgets: list[int | None] = []

    def view(
        self, messages: Sequence[MessageDict], budget: int | None
    ) -> Sequence[MessageDict]:
        self.budgets.append(budget)
        return messages[-self.count :]


@context
class Summary(BaseContext):
    """Puts a message of its own in front."""

    def view(
        self, messages: Sequence[MessageDict], budget: int | None
    ) -> Sequence[MessageDict]:
        return [{"role": "user", "content": "Before: much"}, *messages[-1:]]


def user(text: str) -> MessageDict:
    return {"role": "user", "content": text}


def asking(*ids: str) -> MessageDict:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": i, "name": "t", "arguments": {}} for i in ids],
    }


def result(call_id: str, role: str = "tool") -> MessageDict:
    return {"role": role, "tool_call_id": call_id, "content": "r"}


SYSTEM: Final[MessageDict] = {"role": "system", "content": "Be kind."}


async def filled(memory: BaseContext, *messages: MessageDict) -> BaseContext:
    for message in messages:
        await memory.add_message(message)
    return memory


async def test_it_is_a_context_manager_that_shows_everything() -> None:
    memory = await filled(Everything(), SYSTEM, user("a"))

    assert isinstance(memory, ContextManager)
    assert list(await memory.get_messages_for_request()) == [SYSTEM, user("a")]
    assert list(await memory.get_messages()) == [SYSTEM, user("a")]


async def test_a_history_may_be_replaced_and_forgotten() -> None:
    memory = await filled(Everything(), user("a"))

    await memory.set_messages([user("b"), user("c")])
    assert list(await memory.get_messages()) == [user("b"), user("c")]

    await memory.clear()
    assert list(await memory.get_messages()) == []


async def test_a_message_without_a_role_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"A message needs a 'role'; got \{'content': 'a'\}"
    ):
        await Everything().add_message({"content": "a"})


async def test_view_is_what_subclass_chooses_and_history_stays() -> None:
    memory = await filled(Latest(), user("a"), user("b"), user("c"))

    assert list(await memory.get_messages_for_request()) == [user("b"), user("c")]
    assert len(await memory.get_messages()) == 3


async def mounted(recorded: str) -> tuple[Latest, EventRecorder]:
    """Mount the module and listen to the events that match a pattern."""
    coordinator = TestCoordinator()
    recorder = EventRecorder.of(coordinator.hooks, recorded)
    definition = definition_of(Latest)
    assert definition is not None
    memory = await definition.mount(coordinator, {})
    assert isinstance(memory, Latest)
    return memory, recorder


async def test_a_view_that_leaves_messages_out_is_announced() -> None:
    memory, recorder = await mounted("context:p*")
    await filled(memory, SYSTEM, *(user(f"{n}" * 400) for n in range(5)))

    await memory.get_messages_for_request()

    assert recorder.names == ["context:pre_compact", "context:post_compact"]
    (_, before), (_, after) = recorder.events
    assert (
        before.items()
        >= {
            "message_count": 6,
            "token_count": 526,
            "before_messages": 6,
            "before_tokens": 526,
            "strategy": "view",
        }.items()
    )
    assert (
        after.items()
        >= {
            "message_count": 3,
            "token_count": 214,
            "after_messages": 3,
            "after_tokens": 214,
            "removed_messages": 3,
            "removed_tokens": 312,
            "strategy": "view",
        }.items()
    )


@pytest.mark.parametrize(("recorded", "count"), [("context:p*", 9), ("tool:*", 1)])
async def test_nothing_is_announced_where_nothing_or_nobody_is(
    recorded: str, count: int
) -> None:
    memory, recorder = await mounted(recorded)
    memory.count = count
    await filled(memory, SYSTEM, user("a"), user("b"))

    assert list(await memory.get_messages_for_request())[-1] == user("b")
    assert recorder.events == []


async def test_instructions_stay_in_every_view() -> None:
    memory = await filled(Latest(), SYSTEM, user("a"), user("b"), user("c"))

    assert list(await memory.get_messages_for_request()) == [
        SYSTEM,
        user("b"),
        user("c"),
    ]


async def test_a_message_that_only_the_view_has_is_shown() -> None:
    memory = await filled(Summary(), user("a"), user("b"))

    assert list(await memory.get_messages_for_request()) == [
        user("Before: much"),
        user("b"),
    ]


@pytest.mark.parametrize("role", ["tool", "function"])
async def test_a_result_whose_call_is_not_shown_is_not_shown(role: str) -> None:
    memory = await filled(Latest(), asking("1"), result("1", role), user("b"))

    assert list(await memory.get_messages_for_request()) == [user("b")]


async def test_a_call_that_lost_one_result_goes_with_its_other_ones() -> None:
    class Odd(BaseContext):
        def view(
            self, messages: Sequence[MessageDict], budget: int | None
        ) -> Sequence[MessageDict]:
            return [messages[0], messages[2], messages[3]]

    memory = await filled(Odd(), asking("1", "2"), result("1"), result("2"), user("b"))

    assert list(await memory.get_messages_for_request()) == [user("b")]


async def test_a_result_as_a_block_belongs_to_its_call_too() -> None:
    block: MessageDict = {
        "role": "tool",
        "content": [{"type": "tool_result", "tool_call_id": "1", "output": "r"}],
    }
    memory = await filled(Latest(), asking("1"), block, user("b"))

    assert list(await memory.get_messages_for_request()) == [user("b")]


async def test_calls_that_run_now_are_shown() -> None:
    memory = await filled(Latest(), user("a"), asking("1", "2"))

    assert list(await memory.get_messages_for_request()) == [
        user("a"),
        asking("1", "2"),
    ]


async def test_answers_before_first_prompt_of_view_are_not_shown() -> None:
    memory = Latest()
    memory.count = 4
    hint: MessageDict = {"role": "developer", "content": "<context_file/>"}
    await filled(memory, SYSTEM, user("a"), asking("1"), result("1"), hint, user("b"))

    assert list(await memory.get_messages_for_request()) == [SYSTEM, hint, user("b")]


async def test_the_latest_prompt_is_shown_where_a_view_has_none() -> None:
    memory = await filled(
        Latest(),
        SYSTEM,
        user("a"),
        user("b"),
        asking("1"),
        result("1"),
        asking("2"),
        result("2"),
    )

    assert list(await memory.get_messages_for_request()) == [
        SYSTEM,
        user("b"),
        asking("2"),
        result("2"),
    ]


async def test_a_history_without_any_prompt_is_shown_without_one() -> None:
    memory = await filled(
        Latest(),
        SYSTEM,
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "b"},
    )

    assert len(await memory.get_messages_for_request()) == 3


async def test_without_view_of_own_it_shows_latest_messages_that_fit() -> None:
    memory = await filled(
        Everything(), SYSTEM, *(user(f"{number}" + "x" * 399) for number in range(9))
    )

    assert [
        str(message["content"])[0]
        for message in await memory.get_messages_for_request(330)
    ] == [
        "B",
        "6",
        "7",
        "8",
    ]
    assert len(await memory.get_messages_for_request(5000)) == 10
    assert list(await memory.get_messages_for_request(10)) == [
        SYSTEM,
        (await memory.get_messages())[-1],
    ]
    assert len(await memory.get_messages()) == 10


async def test_provider_that_cannot_say_what_it_is_leaves_budget_open() -> None:
    class Broken(Model):
        def get_info(self) -> ProviderInfo:
            raise OSError("no network")

    memory = await filled(Everything(), user("a"))

    assert len(await memory.get_messages_for_request(provider=Broken({}))) == 1


@given(st.lists(st.sampled_from(["user", "one", "two"]), max_size=8), st.integers(1, 9))
async def test_no_view_holds_half_of_a_step(kinds: list[str], count: int) -> None:
    memory = Latest()
    memory.count = count
    for number, kind in enumerate(kinds):
        ids = [f"{number}-{i}" for i in range({"user": 0, "one": 1, "two": 2}[kind])]
        steps = [asking(*ids), *map(result, ids)] if ids else [user(str(number))]
        await filled(memory, *steps)

    shown = await memory.get_messages_for_request()

    calls = [
        call for message in shown if "tool_calls" in message for call in _ids(message)
    ]
    assert calls == [
        message["tool_call_id"] for message in shown if message["role"] == "tool"
    ]


def _ids(message: MessageDict) -> list[JSONValue]:
    calls = message["tool_calls"]
    assert isinstance(calls, list)
    return [call["id"] for call in calls]


class Model(BaseProvider):
    name = "model"

    def __init__(self, defaults: Mapping[str, JSONValue]) -> None:
        self.defaults = defaults

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id="model", display_name="Model", defaults=self.defaults)

    async def deltas(self, request: object) -> object:  # type: ignore[override]  # never asked
        yield answer("x")


@pytest.mark.parametrize(
    ("defaults", "window"),
    [
        ({"context_window": 9000, "max_output_tokens": 2000}, 6000),
        ({"context_window": 900, "max_output_tokens": 2000}, 0),
        ({"context_window": 9000}, None),
        ({}, None),
    ],
)
def test_providers_window_is_its_own_less_answer_and_margin(
    defaults: Mapping[str, JSONValue], window: int | None
) -> None:
    assert window_of(Model(defaults)) == window
    assert window_of(None) is None


async def test_a_view_is_told_the_budget() -> None:
    memory = Latest()
    model = Model({"context_window": 9000, "max_output_tokens": 2000})

    await memory.get_messages_for_request(100, model)
    await memory.get_messages_for_request(provider=model)
    await memory.get_messages_for_request()

    assert memory.budgets == [100, 6000, None]
