"""What a model sees of a conversation that is compacted, and what is said of it."""

from __future__ import annotations

import anyio
import pytest

from amplifier import ModuleCoordinator
from amplifier_kit.compaction import CompactingContext, CompactionOptions
from amplifier_kit.compaction.left_out import LeftOut
from amplifier_kit.compaction.media import IMAGE
from amplifier_kit.scripted import ScriptedProvider
from amplifier_sdk import (
    ChatRequest,
    CompactionResult,
    ContextManager,
    JSONValue,
    LLMError,
    MessageDict,
    tool,
)
from amplifier_sdk.checks import check_instance
from tests.kit.compaction.conversations import (
    TURN_TOKENS,
    Memory,
    Window,
    call_block,
    made,
    step,
    turn,
    turns,
)

GO: MessageDict = {"role": "user", "content": "go"}
IMAGE_BLOCK: JSONValue = {
    "type": "image",
    "source": {"type": "base64", "data": "x" * 9_000},
}


def texts(view: list[MessageDict], kind: str) -> list[str]:
    """Return the texts of what was inserted of a kind."""
    return [
        str(m["content"])
        for m in view
        if isinstance(data := m.get("metadata"), dict) and data.get("kind") == kind
    ]


def test_it_is_a_context_manager() -> None:
    context = made().context

    assert isinstance(context, ContextManager)
    assert check_instance("context", context) == []


async def test_a_history_that_fits_is_shown_whole_and_nothing_is_said() -> None:
    memory = made(turns(3))

    assert await memory.view(4 * TURN_TOKENS) == turns(3)
    assert memory.recorder.events == []


async def test_compaction_is_announced_and_reported_with_figures() -> None:
    memory = made(turns(8))

    await memory.view(8 * TURN_TOKENS)

    names = [name for name, _ in memory.recorder.events]
    before, after, figures = ({**data} for _, data in memory.recorder.events)
    assert names == [
        "context:pre_compact",
        "context:post_compact",
        "context:compaction",
    ]
    sizes = {"message_count": 16, "token_count": 8 * TURN_TOKENS}
    assert (
        before.items()
        >= {**sizes, "before_messages": 16, "before_tokens": 8 * TURN_TOKENS}.items()
    )
    sizes = {
        "message_count": 7,
        "token_count": 7 * 104,
        "after_messages": 7,
        "after_tokens": 7 * 104,
    }
    assert (
        after.items()
        >= {**sizes, "removed_messages": 9, "removed_tokens": 9 * 104}.items()
    )
    assert (before["strategy"], after["strategy"]) == ("progressive", "progressive")
    assert (
        figures.items()
        >= {
            "before_tokens": 8 * TURN_TOKENS,
            "after_tokens": 7 * 104,
            "before_messages": 16,
            "after_messages": 7,
            "messages_removed": 9,
            "messages_truncated": 0,
            "user_messages_stubbed": 0,
            "strategy_level": 7,
            "budget": 8 * TURN_TOKENS,
            "target_tokens": 4 * TURN_TOKENS,
            "protected_recent": 0.3,
            "protected_tool_results": 5,
            "system_messages_preserved": 0,
            "left_out": [(1, 9)],
        }.items()
    )


async def test_first_prompt_outlives_its_turn_and_is_then_shown_short() -> None:
    history: list[MessageDict] = [
        {"role": "user", "content": "The task. " * 100},
        *turns(8),
    ]

    saved = await made(history).view(1_900)
    memory = made(history)
    short = await memory.view(1_600)

    assert saved[0] == history[0]
    assert "[750 characters of message 0 are not shown]" in str(short[0]["content"])
    assert memory.figures()["user_messages_stubbed"] == 1
    assert await memory.context.get_messages() == history


async def test_steps_of_running_turn_go_before_prompt_and_last_step() -> None:
    history = [GO, *(message for number in range(6) for message in step(number))]

    view = await made(history, protected_tool_results=0, truncate_chars=2_000).view(450)

    assert view == [GO, *step(5)]


async def test_person_who_speaks_between_call_and_its_result_is_heard() -> None:
    call, result = step(1)
    word: MessageDict = {"role": "user", "content": "a person interrupts"}
    history: list[MessageDict] = [
        GO,
        call,
        word,
        result,
        {"role": "assistant", "content": "done " * 200},
    ]

    assert await made(history).view(1) == [word, history[4]]
    assert await made(history).view(5_000) == history


@pytest.mark.parametrize(
    "beside", [[], [{"type": "text", "text": "so far"}]], ids=["alone", "with words"]
)
async def test_result_that_is_said_to_be_persons_stays_with_its_call(
    beside: list[JSONValue],
) -> None:
    call: MessageDict = {"role": "assistant", "content": [call_block(1)]}
    result: JSONValue = {
        "type": "tool_result",
        "tool_call_id": "call_1",
        "output": "word " * 400,
    }
    answer: MessageDict = {"role": "user", "content": [result, *beside]}

    assert await made([GO, call, answer]).view(100) == [GO, call, answer]
    assert await made([GO, call, answer, *turn(1)]).view(250) == turn(1)


async def test_the_applications_words_go_with_the_prompt_behind_them() -> None:
    file: MessageDict = {
        "role": "developer",
        "content": "<context_file>" + "word " * 90,
    }
    history = [GO, *turn(1), file, *turn(2), *turns(8)]

    view = await made(history).view(5 * TURN_TOKENS)

    assert file not in view
    assert turn(2)[0] not in view
    assert [file, *turn(2)] == (await made([GO, *turn(1), file, *turn(2)]).view(500))[
        -3:
    ]


async def test_list_results_are_shortened_like_texts() -> None:
    blocks: JSONValue = [
        {"type": "text", "text": "word " * 400},
        IMAGE_BLOCK,
        "word " * 400,
        7,
    ]
    result: MessageDict = {"role": "tool", "tool_call_id": "call_1", "content": blocks}
    whole: MessageDict = {
        "role": "tool",
        "content": [{"type": "tool_result", "tool_call_id": "call_2", "output": {}}],
    }
    history = [GO, step(1)[0], result, step(2)[0], whole]

    view = await made(history, protected_tool_results=1, target_usage=0.9).view(2_400)

    shown = view[2]["content"]
    assert isinstance(shown, list)
    assert [len(str(block)) < 400 for block in shown] == [True] * 4
    assert shown[1] == {"type": "text", "text": "[an image is not shown]"}
    assert view[4] is whole


async def test_long_documents_are_shortened_and_media_named() -> None:
    def document(text: str) -> dict[str, JSONValue]:
        return {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": text},
        }

    blocks: list[JSONValue] = [
        document("word " * 400),
        document("short"),
        {"type": "audio", "source": {"type": "base64", "data": "x" * 9_000}},
        {"type": "video", "source": {"type": "base64", "data": "x" * 9_000}},
    ]
    listed: list[JSONValue] = [*blocks, {"n": "word " * 400}]
    result: MessageDict = {"role": "tool", "tool_call_id": "call_1", "content": blocks}
    written: MessageDict = {
        "role": "tool",
        "content": [
            {"type": "tool_result", "tool_call_id": "call_2", "output": listed}
        ],
    }
    history = [GO, step(1)[0], result, step(2)[0], written, *step(3)]

    view = await made(history, protected_tool_results=1, target_usage=0.9).view(2_400)

    shown = view[2]["content"]
    assert isinstance(shown, list)
    assert len(str(shown[0])) < 400
    assert shown[1:] == [
        document("short"),
        {"type": "text", "text": "[an audio is not shown]"},
        {"type": "text", "text": "[a video is not shown]"},
    ]
    assert len(str(view[4])) < 600


@pytest.mark.parametrize(
    "output",
    [
        "word " * 400,
        {"all": ["word " * 400]},
        [{"type": "text", "text": "word " * 400}, {"type": "image", "source": {}}],
        [{"type": "image", "source": {}}, {"type": "other", "value": "word " * 400}],
    ],
    ids=["text", "object", "blocks", "image first"],
)
async def test_result_blocks_are_shortened_whatever_they_hold(
    output: JSONValue,
) -> None:
    block: MessageDict = {
        "type": "tool_result",
        "tool_call_id": "call_1",
        "output": output,
        "vendor": {"cache": 1},
    }
    history: list[MessageDict] = [
        GO,
        step(1)[0],
        {"role": "tool", "content": [block]},
        *step(2, "short"),
    ]
    memory = made(history, protected_tool_results=1)

    await memory.view(await memory.context.get_token_count())

    content = (await memory.view(5_000))[2]["content"]
    assert isinstance(content, list)
    (shown,) = content
    assert isinstance(shown, dict)
    assert "are not shown" in str(shown["output"])
    assert {**shown, "output": None} == {**block, "output": None}


async def test_a_result_without_content_is_left_alone() -> None:
    empty: MessageDict = {"role": "tool", "tool_call_id": "call_1", "content": None}
    history = [GO, step(1)[0], empty, *step(2)]

    assert empty in await made(
        history, protected_tool_results=0, target_usage=0.9
    ).view(420)


@pytest.mark.parametrize("text", ["ж" * 4_000, "x" * 4_000], ids=["cyrillic", "ascii"])
async def test_huge_result_is_limited_at_once_and_later_ones_follow(
    text: str,
) -> None:
    memory = made([GO, *step(1, text)], max_tool_result_bytes=3_000)
    for message in step(2):
        await memory.context.add_message(message)

    view = await memory.view()

    assert "are not shown]" in str(view[2]["content"])
    assert len(str(view[2]["content"]).encode()) < 3_100
    assert view[3:] == step(2)
    assert memory.context.log.stored(2)["content"] == text


async def test_shortened_result_says_how_much_is_missing() -> None:
    history = [GO, *step(1, "word " * 10_000), *step(2, "ok")]
    memory = made(history, max_tool_result_bytes=2_000, protected_tool_results=1)

    view = await memory.view(450)

    assert "[49,750 characters of message 2 are not shown]" in str(view[2]["content"])


async def test_limit_of_result_is_shared_by_texts_and_spares_images() -> None:
    content: JSONValue = [
        {"type": "text", "text": "x" * 2_000},
        IMAGE_BLOCK,
        {"type": "text", "text": "y" * 2_000},
    ]

    view = await made([GO, *step(1, content)], max_tool_result_bytes=2_000).view()

    shown = view[2]["content"]
    assert isinstance(shown, list)
    assert shown[1] == IMAGE_BLOCK
    assert all(
        "1,000 characters of message 2 are not shown" in str(shown[place])
        for place in (0, 2)
    )


async def test_images_count_as_images_and_not_as_texts() -> None:
    memory = made(
        [{"role": "user", "content": [{"type": "text", "text": "look"}, IMAGE_BLOCK]}]
    )

    assert await memory.context.get_token_count() == 4 + 4 + 1 + IMAGE


async def test_calls_beside_content_are_counted_once() -> None:
    beside: MessageDict = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "a", "arguments": "word " * 100}],
    }
    both: MessageDict = {**step(1)[0], "tool_calls": [{"id": "word " * 9}]}

    assert await made([beside]).context.get_token_count() > 100
    assert (
        await made([both]).context.get_token_count()
        == await made([step(1)[0]]).context.get_token_count()
    )


@tool
def heavy(text: str) -> str:
    """Do something that takes a thousand words to describe."""
    return text


heavy.description = "word " * 500


async def test_the_tools_of_a_request_take_room_too() -> None:
    memory = made([GO, *turns(4)])
    before = len(await memory.view(1_000))

    await memory.coordinator.mount("tools", heavy)

    assert (before, len(await memory.view(1_000))) == (9, 2)


class Letters:
    """A meter to which each letter is a token."""

    def count(self, text: str, /) -> int:
        """Count letters."""
        return len(text)


async def test_an_application_may_offer_its_own_meter() -> None:
    memory = made([GO, *turns(4)])
    memory.coordinator.register_capability("context.token_meter", Letters())

    await memory.view(4_000)

    assert memory.recorder.data("context:pre_compact")[0]["token_count"] == 6 + 8 * (
        4 + 496
    )


async def test_pinned_messages_stay_with_their_turn() -> None:
    pinned: MessageDict = {**turn(1)[1], "metadata": {"pinned": True}}
    history = [GO, turn(1)[0], pinned, *turns(8)]

    view = await made(history).view(3 * TURN_TOKENS)

    assert view[:2] == [turn(1)[0], pinned]


async def test_a_module_pins_a_call_by_its_id() -> None:
    history = [GO, *(message for number in range(6) for message in step(number))]
    memory = made(history, protected_tool_results=0)
    pin = memory.coordinator.get_capability("context.pin")
    assert callable(pin)

    pin("call_2")
    view = await memory.view(1_200)

    assert [message for message in view if message in step(2)] == step(2)
    assert step(1)[1] not in view


async def test_results_of_pinned_tools_known_by_name_in_either_place() -> None:
    named: MessageDict = {
        "role": "tool",
        "tool_call_id": "gone",
        "name": "skill",
        "content": "word " * 100,
    }
    function: MessageDict = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "b",
                "type": "function",
                "function": {"name": "skill", "arguments": "{}"},
            }
        ],
    }
    answer_b: MessageDict = {
        "role": "tool",
        "tool_call_id": "b",
        "content": "word " * 100,
    }
    history = [*turn(1), named, *turn(2), GO, function, answer_b, *turns(6)]

    view = await made(history, pinned_tools=["skill"]).view(700)

    assert [message for message in view if message in (named, function, answer_b)] == [
        named,
        function,
        answer_b,
    ]


async def test_notice_stands_behind_what_is_not_shown_and_stays_same() -> None:
    memory = made([GO, *turns(20)], compaction_notice_enabled=True)

    first = await memory.view(4_400)
    await memory.context.add_message(turn(20)[0])
    second = await memory.view(4_400)

    assert second == [*first, turn(20)[0]]
    assert first[0] is GO
    assert texts(first[1:2], "compaction_notice")[0].startswith(
        "Some of the conversation so far is not shown.\nLeft out"
    )


async def test_a_notice_names_the_tools_and_what_is_shortened() -> None:
    history = [GO, *(message for number in range(20) for message in step(number))]
    memory = made(history, compaction_notice_enabled=True, target_usage=0.8)

    (shortened,) = texts(await memory.view(8_900), "compaction_notice")
    (left_out,) = texts(await memory.view(2_500), "compaction_notice")

    assert "Shortened: messages 2, 4, 6" in shortened
    assert "Left out" not in shortened
    assert "Tools used in them: look." in left_out


async def test_what_saves_less_than_notice_takes_left_out_without_one() -> None:
    history: list[MessageDict] = [*turn(0), {"role": "user", "content": "x"}, *turn(1)]

    view = await made(history[2:], compaction_notice_enabled=True).view(210)

    assert view == turn(1)


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ((LLMError("overloaded"),), "overloaded"),
        ((OSError(),), "OSError"),
        (("  ",), "The answer to a request for a summary has no text"),
    ],
    ids=["refused", "wordless", "empty"],
)
async def test_without_summary_plain_strategy_holds_and_that_is_said(
    steps: tuple[BaseException | str, ...], reason: str
) -> None:
    memory = made(turns(20), strategy="summarize")

    view = await memory.view(4_400, ScriptedProvider(*steps))

    assert texts(view, "compaction_summary") == []
    assert memory.warnings == [
        f"The conversation is compacted without a summary: {reason}"
    ]
    assert memory.recorder.data("context:post_compact")[0]["strategy"] == "progressive"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "nobody is asked here"),
        ({"summary_provider": "gone"}, "no provider 'gone' is mounted"),
    ],
    ids=["none", "unknown"],
)
async def test_without_a_provider_there_is_no_summary(
    settings: dict[str, JSONValue], reason: str
) -> None:
    memory = made(turns(20), strategy="summarize", **settings)

    await memory.view(4_400)

    assert reason in memory.warnings[0]


async def test_summary_takes_in_one_before_it_and_reports_its_usage() -> None:
    memory = made([GO, *turns(20)], strategy="summarize")
    model = ScriptedProvider("The first summary.", "The second summary.")

    first = await memory.view(4_400, model)
    result = step(1, "word " * 600)[1]
    thinking: JSONValue = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    call: MessageDict = {"role": "assistant", "content": [thinking, call_block(1)]}
    done: MessageDict = {"role": "assistant", "content": "done"}
    for message in (*turns(8), call, result, done, *turns(8)):
        await memory.context.add_message(message)
    second = await memory.view(4_400, model)

    assert texts(first, "compaction_summary") == [
        "Summary of what is not shown any more:\nThe first summary."
    ]
    assert texts(second, "compaction_summary") == [
        "Summary of what is not shown any more:\nThe second summary."
    ]
    asked = model.requests[1].messages[1].text
    assert "The first summary." in asked
    assert "[assistant] calls look with {}" in asked
    assert "Hm." not in asked
    assert memory.recorder.data("context:post_compact")[1]["usage"] is not None


async def test_summary_of_more_than_model_can_read_is_one_of_newest() -> None:
    memory = made([GO, *turns(200)], strategy="summarize")
    model = ScriptedProvider("A summary.")

    await memory.view(3_000, model)

    asked = model.requests[0].messages[1].text
    assert 1_800 < asked.count("word") < 3_000 * 0.75
    assert str(turn(0)[0]["content"]) not in asked


async def test_a_runaway_asks_no_model_any_more() -> None:
    rules: MessageDict = {"role": "system", "content": "word " * 1_000}
    memory = made([rules], strategy="summarize", runaway_limit=1)
    model = ScriptedProvider(*["A summary."] * 99)

    for message in turns(30):
        await memory.context.add_message(message)
        await memory.view(2_000, model)

    assert len(model.requests) == 1


async def test_overflow_is_reported_once_until_it_fits_again() -> None:
    memory = made(turn(0))

    for budget in (50, 50, 1_000, 60):
        assert await memory.view(budget) == turn(0)

    assert len(memory.warnings) == 2
    assert memory.warnings[0].startswith(
        "What must be shown takes about 208 tokens of 50 (tools 0, system messages 0,"
    )
    assert "raise 'max_tokens'" in memory.warnings[0]


async def test_compaction_may_be_asked_for() -> None:
    memory = made(turns(4))

    result = await memory.context.compact()
    again = await memory.context.compact()

    assert result == CompactionResult(
        before_messages=8,
        after_messages=3,
        before_tokens=4 * TURN_TOKENS,
        after_tokens=3 * 104,
        strategy="progressive",
    )
    assert (again.before_messages, again.after_messages) == (3, 2)
    assert await memory.view() == turn(3)
    assert await memory.context.get_messages() == turns(4)
    assert await memory.context.get_token_count() == 4 * TURN_TOKENS


async def test_one_may_ask_whether_the_next_view_would_be_compacted() -> None:
    context = made(turns(4)).context

    assert await context.should_compact(4 * TURN_TOKENS)
    assert not await context.should_compact(5 * TURN_TOKENS)
    assert not await context.should_compact(
        provider=Window(context_window=100_000, max_output_tokens=100)
    )


async def test_a_factory_makes_the_instructions_of_each_view() -> None:
    memory = made(turns(2))
    said = ["Be kind.", "Be kind.", "Be brief."]

    await memory.context.set_system_prompt_factory(lambda: said.pop(0))
    first, second, third = [await memory.view() for _ in range(3)]
    await memory.context.set_system_prompt_factory(None)

    assert first == second == [{"role": "system", "content": "Be kind."}, *turns(2)]
    assert third == [{"role": "system", "content": "Be brief."}, *turns(2)]
    assert await memory.view() == turns(2)
    assert await memory.context.get_messages() == turns(2)


async def test_a_factory_may_be_async_and_counts_in_a_compacted_view() -> None:
    async def instructions() -> str:
        return "word " * 200

    memory = made([GO, *turns(8)])
    await memory.context.set_system_prompt_factory(instructions)

    view = await memory.view(1_800)
    await memory.context.add_message(GO)

    assert view[0] == {"role": "system", "content": "word " * 200}
    assert 204 + sum(104 for message in view if message in turns(8)) <= 900
    assert await memory.view(1_800) == [*view, GO]


async def test_messages_during_compaction_are_placed_behind_view() -> None:
    memory = made([GO, *turns(8)])

    async def interrupt(event: str, data: object) -> None:
        await memory.context.add_message({"role": "system", "content": "in between"})

    memory.coordinator.hooks.register("context:pre_compact", interrupt)
    view = await memory.view(8 * TURN_TOKENS)

    assert view[-1] == {"role": "system", "content": "in between"}
    assert len(view) < 10


async def test_instructions_changed_during_compaction_cost_no_message() -> None:
    newest: MessageDict = {"role": "user", "content": "the newest"}
    for before, after in ((None, "Be brief."), ("Be brief.", None)):
        memory = made([GO, *turns(8), newest])
        await instruct(memory, before)

        async def change(
            event: str, data: object, memory: Memory = memory, text: str | None = after
        ) -> None:
            await instruct(memory, text)

        memory.coordinator.hooks.register("context:pre_compact", change)
        view = await memory.view(8 * TURN_TOKENS)

        assert [message for message in view if message == newest] == [newest]
        assert (view[0] == {"role": "system", "content": after}) == (after is not None)


async def instruct(memory: Memory, text: str | None) -> None:
    """Let views begin with a text from now on, and see to it that one has been asked for."""
    await memory.context.set_system_prompt_factory(
        None if text is None else lambda: text
    )
    await memory.context.get_messages_for_request(1_000_000)


async def test_views_that_are_asked_for_at_once_are_compacted_once() -> None:
    memory = made([GO, *turns(8)])

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(memory.view, 8 * TURN_TOKENS)

    assert len(memory.recorder.data("context:compaction")) == 1


async def test_a_new_history_forgets_what_was_left_out_of_the_old_one() -> None:
    memory = made([GO, *turns(8)])
    await memory.view(3 * TURN_TOKENS)

    await memory.context.set_messages(turns(2))

    assert await memory.view(5 * TURN_TOKENS) == turns(2)
    await memory.context.clear()
    assert await memory.context.get_messages() == []


async def test_a_history_with_a_message_that_is_none_is_refused_whole() -> None:
    memory = made(turns(1))

    with pytest.raises(ValueError, match="needs a 'role'"):
        await memory.context.set_messages([GO, {"content": "who?"}])

    assert await memory.context.get_messages() == turns(1)


def left_out_of(memory: Memory) -> LeftOut:
    found = memory.coordinator.get_capability("context.left_out")
    assert isinstance(found, LeftOut)
    return found


async def test_what_is_left_out_can_be_read_by_its_numbers() -> None:
    memory = made([GO, *turns(8)])
    reader = left_out_of(memory)
    before = reader.ranges

    await memory.view(4 * TURN_TOKENS)

    ((first, last),) = reader.ranges
    assert before == []
    assert reader.read(first, last) == [GO, *turns(8)][first : last + 1]
    assert reader.read(first) == [[GO, *turns(8)][first]]


async def test_a_model_reads_what_is_left_out_a_page_at_a_time() -> None:
    reader = left_out_of(made([GO, {"role": "user", "content": "x" * 30_000}]))

    whole = await reader.execute({"first": 0})
    page = await reader.execute({"first": 0, "last": 1})
    rest = await reader.execute({"first": 0, "last": 1, "offset": 20_000})
    none = await reader.execute({"first": 2})
    backwards = await reader.execute({"first": 1, "last": 0})

    assert whole.output == '{"number": 0, "role": "user", "content": "go"}'
    assert str(page.output).endswith("more characters: continue with offset 20000]")
    assert str(rest.output).endswith('x"}')
    assert (
        none.get_serialized_output()
        == "Error: No message has the number 2: the numbers go from 0 to 1"
    )
    assert (
        backwards.get_serialized_output()
        == "Error: 'last' is the number 0, which is before 'first', the number 1"
    )
    assert check_instance("tool", reader) == []


async def test_async_answer_of_what_model_takes_is_not_waited_for() -> None:
    class Slow(Window):
        async def get_model_info(self) -> None:
            raise AssertionError("never asked")

    memory = made([GO, *turns(100)])

    await memory.view(provider=Slow(context_window=10_000, max_output_tokens=1_000))

    assert memory.figures()["budget"] == 8_250


async def test_a_summary_is_abandoned_with_the_view_that_asked_for_it() -> None:
    asked = anyio.Event()

    async def never(request: ChatRequest) -> str:
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    memory = made([GO, *turns(20)], strategy="summarize")
    model = ScriptedProvider(never, "A summary.")
    async with anyio.create_task_group() as group:
        group.start_soon(memory.view, 4_400, model)
        with anyio.fail_after(5):
            await asked.wait()
        group.cancel_scope.cancel()

    assert texts(await memory.view(4_400, model), "compaction_summary") != []
    assert memory.warnings == []


async def test_an_empty_history_cannot_be_compacted() -> None:
    result = await made().context.compact()

    assert (result.removed_messages, result.removed_tokens) == (0, 0)


async def test_a_view_is_compacted_though_nobody_listens() -> None:
    context = CompactingContext(
        CompactionOptions(runaway_limit=1), ModuleCoordinator(), turns(4)
    )

    assert len(await context.get_messages_for_request(3 * TURN_TOKENS)) < 8
    assert list(await context.get_messages_for_request(1))[-2:] == turn(3)


async def test_content_neither_text_nor_blocks_is_shown_as_it_is() -> None:
    odd: MessageDict = {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": {"all": "x" * 2_000},
    }
    nested: JSONValue = [
        {
            "type": "tool_result",
            "tool_call_id": "call_2",
            "output": ["x" * 2_000, {"type": "b"}],
        }
    ]
    history = [GO, step(1)[0], odd, step(2)[0], {"role": "tool", "content": nested}]

    view = await made(history, max_tool_result_bytes=1_000).view()

    assert view[2] is odd
    assert "characters of message 4 are not shown" in str(view[4])
