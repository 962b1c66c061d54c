"""What a provider of the API does beyond one request: it continues, chains, and falls back."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.testing import EventRecorder, TestCoordinator
from amplifier.testing.transport import HttpAnswer, sse
from amplifier_kit.vendors.responses import (
    INCOMPLETE_CONTINUATION,
    ReasoningRefusedError,
)
from amplifier_kit.vendors.responses.items import items_of
from amplifier_kit.vendors.responses.names import wire_name
from amplifier_sdk.chat import ChatResponse, ToolSpec
from amplifier_sdk.content import ContentBlock, ToolCallBlock
from amplifier_sdk.errors import (
    ContextLengthError,
    InvalidRequestError,
    NotFoundError,
    ProviderUnavailableError,
    StreamError,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message
from amplifier_sdk.streaming import TextDelta, ToolCallDelta
from tests.kit.vendors.responses.acme import (
    GOOD,
    WORK,
    AcmeProvider,
    Fields,
    acme,
    ask,
    ending,
    read,
    refusing,
    said,
    streaming,
)

CUT: JSONObject = {"incomplete_details": {"reason": "max_output_tokens"}}


def cut(text: str, *more: JSONObject) -> HttpAnswer:
    """Make the end of a response that the model's limit cut."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    return ending(
        "incomplete", *([said(text)] if text else ()), *more, usage=usage, **CUT
    )


def whole(text: str, *more: JSONObject) -> HttpAnswer:
    return ending(
        "completed", said(text), *more, usage={"input_tokens": 20, "output_tokens": 7}
    )


def sent(body: JSONValue) -> list[Mapping[str, JSONValue]]:
    """Return the items that a request sent."""
    assert isinstance(body, dict)
    items = body["input"]
    assert isinstance(items, list)
    return items


# -- continuing


async def test_a_cut_answer_is_continued() -> None:
    coordinator = TestCoordinator()
    recorder = EventRecorder.of(coordinator.hooks, INCOMPLETE_CONTINUATION)
    provider, script = acme(cut("One, two,"), whole(" three."), coordinator=coordinator)

    async with provider.stream(ask(stop=["END"])) as items:
        seen = [item async for item in items]

    answer = seen[-1]
    assert isinstance(answer, ChatResponse)
    assert (answer.text, answer.finish_reason) == ("One, two, three.", "stop")
    assert [
        (item.text, item.index)
        for item in seen
        if isinstance(item, TextDelta) and item.text
    ] == [
        ("One, two,", 0),
        (" three.", 1),
    ]
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (30, 12)
    assert answer.metadata == {
        "openai:response_id": "resp_1",
        "openai:status": "completed",
        "openai:continuation_count": 1,
    }
    assert answer.degradation is not None
    further = sent(script.bodies[1])
    assert further[:2] == [
        *sent(script.bodies[0]),
        {"type": "message", "role": "assistant", "content": "One, two,"},
    ]
    assert (further[2]["role"], len(further)) == ("user", 3)
    reported = recorder.one(INCOMPLETE_CONTINUATION)
    assert {
        key: reported[key] for key in ("provider", "model", "response_id", "reason")
    } == {
        "provider": "acme",
        "model": "gpt-5",
        "response_id": "resp_1",
        "reason": "max_output_tokens",
    }
    assert (reported["continuation_number"], reported["max_continuations"]) == (1, 5)


async def test_an_answer_is_continued_five_times_at_most() -> None:
    provider, script = acme(*(cut(f"{number} ") for number in range(6)))

    answer = await provider.complete(ask())

    assert (answer.text, answer.finish_reason, len(script.requests)) == (
        "0 1 2 3 4 5 ",
        "length",
        6,
    )
    assert (answer.metadata or {})["openai:continuation_count"] == 5
    assert (answer.metadata or {})["openai:incomplete_reason"] == "max_output_tokens"


async def test_no_call_of_a_cut_answer_is_in_the_joined_one() -> None:
    call: JSONObject = {
        "type": "function_call",
        "call_id": "c",
        "name": "work",
        "arguments": "{}",
    }
    provider, script = acme(
        cut("First ", call), whole("then.", {**call, "call_id": "d"})
    )

    answer = await provider.complete(ask(tools=[WORK]))

    assert [call.id for call in answer.tool_calls or ()] == ["d"]
    assert answer.finish_reason == "tool_calls"
    assert "function_call" not in {item["type"] for item in sent(script.bodies[1])}


async def test_reasoning_of_all_parts_is_kept() -> None:
    first: JSONObject = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "x",
    }
    second: JSONObject = {**first, "id": "rs_2"}
    provider, script = acme(
        ending("incomplete", first, said("One,"), **CUT),
        ending("completed", second, said("two.")),
    )

    answer = await provider.complete(ask())

    assert (answer.metadata or {})["openai:reasoning_items"] == ["rs_1", "rs_2"]
    assert sent(script.bodies[1])[1]["type"] == "reasoning"
    assert answer.usage is None


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"max_output_tokens": 5}, {}),
        ({"response_format": {"type": "json"}}, {}),
        ({}, {"max_continuations": 0}),
    ],
    ids=["limit-of-the-request", "format", "switched-off"],
)
async def test_some_answers_stay_cut(fields: Fields, options: JSONObject) -> None:
    provider, script = acme(cut("One,"), coordinator=TestCoordinator(), **options)

    answer = await provider.complete(ask(**fields))

    assert (answer.text, answer.finish_reason, len(script.requests)) == (
        "One,",
        "length",
        1,
    )


async def test_the_providers_own_limit_is_no_reason_to_stay_cut() -> None:
    provider, script = acme(cut("One,"), whole(" two."), max_tokens=5)

    answer = await provider.complete(ask(response_format={"type": "text"}))

    assert answer.text == "One, two."
    assert [
        body["max_output_tokens"] for body in script.bodies if isinstance(body, dict)
    ] == [5, 5]


async def test_an_answer_with_nothing_to_go_on_from_stays_cut() -> None:
    provider, script = acme(
        cut("", {"type": "reasoning", "id": "rs_1", "encrypted_content": "x"})
    )

    assert (await provider.complete(ask())).finish_reason == "length"
    assert len(script.requests) == 1


async def test_an_answer_whose_continuation_fails_stays_cut() -> None:
    provider, _ = acme(cut("One,"), refusing(400))

    answer = await provider.complete(ask())

    assert (answer.text, answer.finish_reason) == ("One,", "length")
    assert "openai:continuation_count" not in (answer.metadata or {})


# -- names


@pytest.mark.parametrize(
    "name",
    ["files.read", "x" * 80, "größe", ""],
    ids=["dots", "long", "letters", "empty"],
)
async def test_tool_with_unsupported_name_is_still_callable(
    name: str,
) -> None:
    tool = ToolSpec(name=name, parameters={"type": "object"})
    wire = wire_name(name)
    call: JSONObject = {
        "type": "function_call",
        "call_id": "c",
        "name": wire,
        "arguments": "{}",
    }
    provider, script = acme(ending("completed", call))

    async with provider.stream(
        ask(tools=[tool], tool_choice={"type": "tool", "name": name})
    ) as items:
        seen = [item async for item in items]

    answer = seen[-1]
    assert isinstance(answer, ChatResponse)
    assert [call.name for call in answer.tool_calls or ()] == [name]
    assert {item.name for item in seen if isinstance(item, ToolCallDelta)} <= {name}
    body = script.bodies[0]
    assert isinstance(body, dict)
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", wire)
    assert body["tool_choice"] == {"type": "function", "name": wire}
    assert [
        item.get("name")
        for item in items_of([Message.from_dict(answer.to_message())], is_stored=False)
    ] == [wire]


@given(st.lists(st.text(max_size=70), unique=True, max_size=5))
def test_no_two_tools_have_one_name(names: list[str]) -> None:
    assert len({wire_name(name) for name in names}) == len(names)


def test_long_foreign_call_ids_are_shortened_and_still_pair() -> None:
    content: list[ContentBlock] = [ToolCallBlock(id="i" * 100, name="work")]
    history = [
        Message(role="assistant", content=content),
        Message(role="tool", tool_call_id="i" * 100, content="x"),
    ]

    call, result = items_of(history, is_stored=False)

    assert call["call_id"] == result["call_id"]
    assert len(str(call["call_id"])) <= 64


# -- chains


def _answered() -> Message:
    facts: JSONObject = {"openai:response_id": "resp_0", "openai:status": "completed"}
    return Message(role="assistant", content="Hi.", metadata=facts)


HISTORY = (
    Message(role="user", content="Who?"),
    _answered(),
    Message(role="user", content="Hello."),
)


@pytest.mark.parametrize(
    "failure",
    [
        refusing(404, code="previous_response_not_found"),
        refusing(400),
        refusing(400, code="context_length_exceeded"),
    ],
    ids=["gone", "refused", "too-long"],
)
async def test_a_broken_chain_falls_back_to_the_history_once(
    failure: HttpAnswer,
) -> None:
    provider, script = acme(failure, whole("Hello."), enable_response_chaining=True)

    answer = await provider.complete(ask(*HISTORY))

    assert answer.text == "Hello."
    assert [
        ("previous_response_id" in str(body), len(sent(body))) for body in script.bodies
    ] == [(True, 1), (False, 3)]


async def test_what_fails_without_the_chain_as_well_fails() -> None:
    provider, script = acme(refusing(400), refusing(400), enable_response_chaining=True)

    with pytest.raises(InvalidRequestError):
        await provider.complete(ask(*HISTORY))
    assert len(script.requests) == 2


async def test_failure_that_is_not_chains_does_not_send_history() -> None:
    provider, script = acme(
        refusing(404, code="model_not_found"), enable_response_chaining=True
    )

    with pytest.raises(NotFoundError):
        await provider.complete(ask(*HISTORY))
    assert len(script.requests) == 1


async def test_a_conversation_goes_on_from_its_last_answer() -> None:
    provider, script = acme(
        streaming("text"), whole("Hello."), enable_response_chaining=True
    )
    question = Message(role="user", content="Is water wet?")

    first = await provider.complete(ask(question))
    await provider.complete(
        ask(
            question,
            Message.from_dict(first.to_message()),
            Message(role="user", content="Sure?"),
        )
    )

    body = script.bodies[1]
    assert isinstance(body, dict)
    assert body["previous_response_id"] == "resp_68ef0a7c2b1c8190b5e2"
    assert [item["role"] for item in sent(body)] == ["user"]


# -- reasoning that cannot be read any more


async def test_reasoning_that_is_refused_stays_out_of_a_second_try() -> None:
    _, answer = read(GOOD["thinking"])
    history = [
        Message.from_dict(answer.to_message()),
        Message(role="user", content="Sure?"),
    ]
    refused = refusing(400, code="invalid_encrypted_content")
    provider, script = acme(refused, whole("Yes."), refused, refused)

    assert (await provider.complete(ask(*history))).text == "Yes."
    assert ["encrypted_content" in str(sent(body)) for body in script.bodies] == [
        True,
        False,
    ]
    with pytest.raises(ReasoningRefusedError):
        await provider.complete(ask(*history))


async def test_nothing_is_asked_again_once_something_was_shown() -> None:
    shown = sse(
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Hel"}
    )
    failed = sse(
        {"type": "error", "code": "context_length_exceeded", "message": "Too long."}
    )
    provider, script = acme(
        HttpAnswer(parts=(shown, failed)), enable_response_chaining=True
    )

    with pytest.raises(ContextLengthError):
        await provider.complete(ask(*HISTORY))
    assert len(script.requests) == 1


async def test_a_failure_names_the_provider_and_the_model() -> None:
    provider, _ = acme(refusing(503))

    with pytest.raises(ProviderUnavailableError) as raised:
        await provider.complete(ask(model="gpt-5-mini"))
    assert (raised.value.provider, raised.value.model) == ("acme", "gpt-5-mini")


async def test_a_stream_without_an_end_is_no_answer() -> None:
    provider, script = acme(HttpAnswer(parts=(GOOD["text"][:-200],)))

    with pytest.raises(StreamError):
        await provider.complete(ask())
    assert script.closed == [True]


# -- what is known of models


@pytest.mark.parametrize(
    ("model", "options", "window", "output"),
    [
        ("gpt-5", {}, 400_000, 128_000),
        ("gpt-6.1-sol", {}, 400_000, 128_000),
        ("gpt-6.1-sol", {"enable_long_context": True}, 1_050_000, 128_000),
        ("gpt-4.1-mini", {}, 1_047_576, 32_768),
        ("ft:gpt-4o:acme", {}, 128_000, 16_384),
        ("mystery", {"context_window": 4_096}, 4_096, 4_096),
        ("gpt-5", {"max_tokens": 1_000}, 400_000, 1_000),
    ],
    ids=[
        "plain",
        "long",
        "long-enabled",
        "no-reasoning",
        "fine-tuned",
        "unknown",
        "limited",
    ],
)
def test_the_provider_says_what_fits(
    model: str, options: JSONObject, window: int, output: int
) -> None:
    provider, _ = acme(coordinator=TestCoordinator(), default_model=model, **options)

    info = provider.get_info()

    assert info.defaults == {
        "model": model,
        "context_window": window,
        "max_output_tokens": output,
    }
    assert ("reasoning" in info.capabilities) == model.startswith(("gpt-5", "gpt-6"))


def test_a_provider_without_a_model_says_nothing_of_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(AcmeProvider, "standard_model", None)
    provider, _ = acme()

    assert provider.get_info().defaults == {}


def test_a_person_is_asked_for_the_effort() -> None:
    provider, _ = acme()

    assert {field.id for field in provider.get_info().config_fields} == {
        "api_key",
        "base_url",
        "default_model",
        "reasoning_effort",
    }


async def test_the_provider_contributes_its_event() -> None:
    coordinator = TestCoordinator()
    acme(coordinator=coordinator)

    assert [INCOMPLETE_CONTINUATION] in await coordinator.collect_contributions(
        "observability.events"
    )
