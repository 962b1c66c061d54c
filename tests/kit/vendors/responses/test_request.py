"""A request becomes the API's JSON; what the API has not is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from amplifier_kit.vendors.request import Outgoing
from amplifier_kit.vendors.responses import ResponsesConfig, facts_of
from amplifier_kit.vendors.responses.request import (
    FULL_HISTORY,
    WITHOUT_REASONING,
    write_request,
)
from amplifier_sdk.chat import ChatRequest, ToolChoice, ToolSpec
from amplifier_sdk.configuration import read_config
from amplifier_sdk.errors import ConfigError, InvalidRequestError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message
from tests.kit.vendors.responses.acme import GOOD, WORK, ask, read

OPENAI: Final = TypeAdapter(ResponseCreateParamsStreaming)
SCHEMA: Final[JSONObject] = {
    "type": "object",
    "properties": {"wet": {"type": "boolean"}},
}
HELLO: Final[JSONObject] = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Hello."}],
}


def write(
    request: ChatRequest, model: str = "gpt-4.1", **options: JSONValue
) -> Outgoing:
    config = read_config(ResponsesConfig, options, subject="configuration")
    written = write_request(request, model, facts_of(model), config)
    OPENAI.validate_python(written.body)
    return written


def test_a_plain_request_is_short() -> None:
    assert write(ask()).body == {
        "model": "gpt-4.1",
        "stream": True,
        "store": False,
        "input": [HELLO],
    }


def test_instructions_stand_apart_from_the_input() -> None:
    request = ask(
        Message(role="system", content="Be brief."),
        Message(role="user", content="Hello."),
    )

    body = write(request).body

    assert (body["instructions"], body["input"]) == ("Be brief.", [HELLO])


@pytest.mark.parametrize(
    ("option", "value", "place"),
    [
        ("parallel_tool_calls", False, ("parallel_tool_calls",)),
        ("prompt_cache_key", "team", ("prompt_cache_key",)),
        ("prompt_cache_retention", "24h", ("prompt_cache_retention",)),
        ("reasoning_effort", "high", ("reasoning", "effort")),
        ("reasoning_summary", "detailed", ("reasoning", "summary")),
        ("service_tier", "flex", ("service_tier",)),
        ("store", True, ("store",)),
        ("truncation", "auto", ("truncation",)),
        ("verbosity", "low", ("text", "verbosity")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_option_changes_the_request(
    option: str, value: JSONValue, place: tuple[str, ...]
) -> None:
    request = ask(tools=[WORK])

    assert _at(write(request, "gpt-5", **{option: value}).body, place) == value
    assert _at(write(request, "gpt-5").body, place) != value


def _at(body: JSONValue, place: tuple[str, ...]) -> JSONValue:
    for key in place:
        body = body.get(key) if isinstance(body, Mapping) else None
    return body


def test_the_options_of_a_request_are_written() -> None:
    body = write(
        ask(temperature=0.5, top_p=0.9, max_output_tokens=64, conversation_id="talk-7")
    ).body

    assert (body["temperature"], body["top_p"], body["max_output_tokens"]) == (
        0.5,
        0.9,
        64,
    )
    assert body["prompt_cache_key"] == "talk-7"
    named = write(ask(conversation_id="talk-7"), prompt_cache_key="team").body
    assert named["prompt_cache_key"] == "team"


@pytest.mark.parametrize("length", [64, 65, 500])
def test_no_cache_key_is_longer_than_the_api_takes(length: int) -> None:
    keys = {
        write(ask(conversation_id=text)).body["prompt_cache_key"]
        for text in ("a" * length, "b" * length)
    }
    assert {len(str(key)) for key in keys} == {64}
    assert ("a" * length in keys) is (length == 64)
    assert len(keys) == 2


def test_tools_are_written_with_their_schemas_as_they_are() -> None:
    strict = ToolSpec(name="add", parameters=SCHEMA, extras={"strict": True})

    assert write(ask(tools=[WORK, strict])).body["tools"] == [
        {
            "type": "function",
            "name": "work",
            "description": "Do it.",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        },
        {"type": "function", "name": "add", "parameters": SCHEMA, "strict": True},
    ]


def test_the_vendors_own_tools_stand_beside_the_sessions() -> None:
    search: JSONObject = {"type": "web_search"}

    tools = write(ask(tools=[WORK]), server_tools=[search]).body["tools"]

    assert isinstance(tools, list)
    assert ([tool["type"] for tool in tools], tools[1]) == (
        ["function", "web_search"],
        search,
    )
    assert write(ask(), server_tools=[search]).body["tools"] == [search]


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "tool", "name": "work"}, {"type": "function", "name": "work"}),
        (None, None),
    ],
    ids=["auto", "none", "required", "by-name", "absent"],
)
def test_the_choice_of_a_tool_is_written(
    choice: ToolChoice | None, written: JSONValue
) -> None:
    assert (
        write(ask(tools=[WORK], tool_choice=choice)).body.get("tool_choice") == written
    )
    assert "tool_choice" not in write(ask(tools=[], tool_choice=choice)).body


@pytest.mark.parametrize(
    "choice", ["perhaps", {"type": "tool"}], ids=["word", "nameless"]
)
def test_a_choice_that_is_none_is_refused(choice: ToolChoice) -> None:
    with pytest.raises(InvalidRequestError, match="tool_choice is"):
        write(ask(tools=[WORK], tool_choice=choice))


@pytest.mark.parametrize(
    ("wanted", "written"),
    [
        ({"type": "text"}, None),
        ({"type": "json"}, {"type": "json_object"}),
        (
            {"type": "json_schema", "schema": SCHEMA},
            {"type": "json_schema", "name": "answer", "schema": SCHEMA},
        ),
        (
            {
                "type": "json_schema",
                "schema": SCHEMA,
                "name": "water",
                "strict": True,
                "description": "Wet?",
            },
            {
                "type": "json_schema",
                "name": "water",
                "schema": SCHEMA,
                "strict": True,
                "description": "Wet?",
            },
        ),
    ],
    ids=["text", "json", "schema", "strict-schema"],
)
def test_the_form_of_an_answer_is_written(
    wanted: JSONObject, written: JSONValue
) -> None:
    assert _at(write(ask(response_format=wanted)).body, ("text", "format")) == written


def test_a_form_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="json_schema"):
        write(ask(response_format={"type": "json_schema"}))


# -- reasoning


def test_model_that_reasons_gives_its_reasoning_back_encrypted() -> None:
    body = write(ask(reasoning_effort="low"), "gpt-5", reasoning_effort="high").body

    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert body["include"] == ["reasoning.encrypted_content"]


def test_no_summary_is_asked_for_where_there_is_none() -> None:
    assert write(ask(), "gpt-5", reasoning_effort="none").body["reasoning"] == {
        "effort": "none"
    }
    assert "reasoning" not in write(ask(), "gpt-5", reasoning_summary=None).body


def test_a_model_that_does_not_reason_is_not_asked_to() -> None:
    written = write(ask(reasoning_effort="high"), "gpt-4.1")

    assert not {"reasoning", "include"} & set(written.body)
    assert written.degradation is not None
    assert (written.degradation.requested, written.degradation.reason) == (
        "reasoning_effort",
        "this model does not reason",
    )


def test_a_model_that_nobody_knows_reasons_when_it_is_asked_to() -> None:
    assert "reasoning" not in write(ask(), "mystery").body
    assert write(ask(reasoning_effort="high"), "mystery").body["reasoning"] == {
        "effort": "high",
        "summary": "auto",
    }


def test_a_model_that_reasons_takes_no_temperature() -> None:
    written = write(ask(temperature=0.5, top_p=0.9, stop=["END"]), "gpt-5")

    assert not {"temperature", "top_p", "stop"} & set(written.body)
    assert written.degradation is not None
    assert written.degradation.requested == "temperature, top_p, stop"
    assert (
        written.degradation.reason
        == "a model that reasons takes none; the Responses API has no stop sequences"
    )
    assert (
        write(ask(temperature=0.5), "gpt-5", reasoning_effort="none").body[
            "temperature"
        ]
        == 0.5
    )


def test_reasoning_can_stay_out() -> None:
    _, answer = read(GOOD["thinking"])
    request = ask(
        Message.from_dict(answer.to_message()), Message(role="user", content="Go on.")
    )

    assert "encrypted_content" in str(write(request).body["input"])
    assert "encrypted_content" not in str(
        write(ask(*request.messages, extras={WITHOUT_REASONING: True})).body["input"]
    )


# -- chains


def _answered(**metadata: JSONValue) -> Message:
    facts = {"openai:response_id": "resp_1", "openai:status": "completed", **metadata}
    return Message(role="assistant", content="Hi.", metadata=facts)


def test_a_chain_sends_what_is_new_and_the_instructions() -> None:
    request = ask(
        Message(role="system", content="Be brief."),
        Message(role="user", content="Who?"),
        _answered(),
        Message(role="system", content="It is late."),
        Message(role="user", content="Hello."),
    )

    body = write(request, enable_response_chaining=True).body

    late = {
        "type": "message",
        "role": "system",
        "content": [{"type": "input_text", "text": "It is late."}],
    }
    assert (body["previous_response_id"], body["input"]) == ("resp_1", [late, HELLO])
    assert (body["instructions"], body["store"]) == ("Be brief.", True)


@pytest.mark.parametrize(
    "messages",
    [
        [Message(role="user", content="Hello.")],
        [_answered()],
        [
            _answered(**{"openai:status": "incomplete"}),
            Message(role="user", content="Hello."),
        ],
        [
            _answered(**{"openai:continuation_count": 1}),
            Message(role="user", content="Hello."),
        ],
        [
            _answered(**{"openai:response_id": None}),
            Message(role="user", content="Hello."),
        ],
        [
            _answered(),
            Message(role="assistant", content="Of another vendor."),
            Message(role="user", content="Hello."),
        ],
        [],
    ],
    ids=[
        "first",
        "nothing-new",
        "cut",
        "continued",
        "no-id",
        "another-vendor",
        "empty",
    ],
)
def test_there_is_no_chain_from_answer_none_to_go_on_from(
    messages: list[Message],
) -> None:
    body = write(ChatRequest(messages=messages), enable_response_chaining=True).body

    assert "previous_response_id" not in body


def test_history_and_chain_never_go_together() -> None:
    request = ask(_answered(), Message(role="user", content="Hello."))

    assert "previous_response_id" not in write(request).body
    marked = ask(*request.messages, extras={FULL_HISTORY: True})
    assert (
        "previous_response_id" not in write(marked, enable_response_chaining=True).body
    )


# -- the configuration


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_continuations", 6),
        ("max_continuations", True),
        ("context_window", 0),
        ("reasoning_effort", "huge"),
        ("store", False),
    ],
    ids=["continuations", "no-number", "window", "effort", "chain-without-store"],
)
def test_what_no_option_can_be_is_an_error(option: str, value: JSONValue) -> None:
    chained: JSONObject = {"enable_response_chaining": True, option: value}

    with pytest.raises(ConfigError, match=option):
        read_config(ResponsesConfig, chained, subject="configuration")
