"""A conversation becomes items that the API takes, whatever stands in its messages."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseInputParam
from pydantic import TypeAdapter

from amplifier_kit.vendors.responses.items import (
    instructions_of,
    items_of,
    without_instructions,
)
from amplifier_sdk.content import (
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    VendorBlock,
)
from amplifier_sdk.errors import InvalidRequestError
from amplifier_sdk.history import sendable
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.messages import Message
from tests.kit.vendors.responses.acme import GOOD, read
from tests.sdk.values import messages

OPENAI = TypeAdapter(ResponseInputParam)
"""What OpenAI's own library takes for the input of a request."""

PNG = "iVBORw0KGgo="


def items(
    *conversation: Message, is_stored: bool = False, with_reasoning: bool = True
) -> list[JSONObject]:
    return list(
        items_of(conversation, is_stored=is_stored, with_reasoning=with_reasoning)
    )


def user(text: str) -> JSONObject:
    return {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": text}],
    }


def test_leading_system_messages_are_the_instructions() -> None:
    system = Message(role="system", content="Be brief.")
    further = Message(role="system", content=[TextBlock(text="Be kind.")])
    question = Message(role="user", content="Hello.")

    assert (
        instructions_of([system, Message(role="system"), further, question])
        == "Be brief.\n\nBe kind."
    )
    assert list(without_instructions([system, further, question])) == [question]
    assert instructions_of([question, system]) is None


def test_later_system_messages_stay_where_they_are() -> None:
    conversation = (
        Message(role="user", content="Hello."),
        Message(role="system", content="It is late."),
    )

    assert [item["role"] for item in items(*conversation)] == ["user", "system"]


def test_developer_texts_are_users_before_what_user_says() -> None:
    context = Message(role="developer", content="<context_file>…</context_file>")

    assert items(context, Message(role="user", content="Explain it.")) == [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "<context_file>…</context_file>"}
            ],
        },
        user("Explain it."),
    ]


@pytest.mark.parametrize(
    ("source", "image"),
    [
        (
            {"type": "base64", "media_type": "image/png", "data": PNG},
            {"image_url": f"data:image/png;base64,{PNG}"},
        ),
        (
            {"type": "url", "url": "https://a.example/b.png"},
            {"image_url": "https://a.example/b.png"},
        ),
        (
            {"type": "file", "file_id": "file_1", "detail": "low"},
            {"file_id": "file_1", "detail": "low"},
        ),
    ],
    ids=["data", "address", "file"],
)
def test_images_go_where_they_stand(source: JSONObject, image: JSONObject) -> None:
    blocks: list[ContentBlock] = [
        TextBlock(text="What is this?"),
        ImageBlock(source=source),
    ]

    (item,) = items(Message(role="user", content=blocks))

    assert item["content"] == [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "detail": "auto", **image},
    ]


@pytest.mark.parametrize(
    ("source", "file"),
    [
        (
            {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
            {
                "filename": "document.pdf",
                "file_data": "data:application/pdf;base64,JVBERi0=",
            },
        ),
        (
            {"type": "url", "url": "https://a.example/b.pdf"},
            {"file_url": "https://a.example/b.pdf"},
        ),
        ({"type": "file", "file_id": "file_1"}, {"file_id": "file_1"}),
    ],
    ids=["data", "address", "file"],
)
def test_documents_go_where_they_stand(source: JSONObject, file: JSONObject) -> None:
    (item,) = items(Message(role="user", content=[DocumentBlock(source=source)]))

    assert item["content"] == [{"type": "input_file", **file}]


def test_a_document_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="the type 'tape' with reel, type"):
        items(
            Message(
                role="user", content=[DocumentBlock(source={"type": "tape", "reel": 1})]
            )
        )


def test_an_image_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="the type 'tape' with reel, type"):
        items(
            Message(
                role="user", content=[ImageBlock(source={"type": "tape", "reel": 1})]
            )
        )


def test_a_message_without_content_is_no_item() -> None:
    assert (
        items(
            Message(role="user"),
            Message(role="assistant"),
            Message(role="user", content=[]),
        )
        == []
    )


def test_an_answer_goes_back_as_it_came() -> None:
    _, answer = read(GOOD["thinking"])
    message = Message.from_dict(json.loads(json.dumps(answer.to_message())))

    assert items(message) == [
        {
            "type": "reasoning",
            "id": "rs_01",
            "summary": [
                {"type": "summary_text", "text": "First I look."},
                {"type": "summary_text", "text": "Then I weigh it."},
            ],
            "encrypted_content": "gAAAAABo7wp-3Nf0mGx==",
        },
        {
            "type": "message",
            "role": "assistant",
            "content": "Water is wet: 水は濡れている 💧.",
            "phase": "final_answer",
        },
    ]


def test_calls_stand_behind_reasoning_and_before_results() -> None:
    _, answer = read(GOOD["tool"])
    results = [
        Message(role="tool", tool_call_id="call_7Yb", content="three lines"),
        Message(
            role="tool",
            content=[ToolResultBlock(tool_call_id="call_8Zc", output={"größe": 3})],
        ),
    ]

    written = items(Message.from_dict(answer.to_message()), *results)

    assert [item["type"] for item in written] == [
        "reasoning",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]
    assert written[2] == {
        "type": "function_call",
        "call_id": "call_8Zc",
        "name": "work",
        "arguments": '{"path":"größer.txt"}',
    }
    assert written[3:] == [
        {
            "type": "function_call_output",
            "call_id": "call_7Yb",
            "output": "three lines",
        },
        {
            "type": "function_call_output",
            "call_id": "call_8Zc",
            "output": '{"größe":3}',
        },
    ]


def test_texts_of_other_phases_are_messages_of_their_own() -> None:
    _, answer = read(GOOD["web_search"])

    search, comment, final = items(Message.from_dict(answer.to_message()))

    assert (search["type"], search["id"]) == ("web_search_call", "ws_01")
    assert (comment["phase"], final["phase"], final["content"]) == (
        "commentary",
        "final_answer",
        "So yes.",
    )


def test_texts_that_follow_each_other_are_one_message() -> None:
    (item,) = items(
        Message(role="assistant", content=[TextBlock(text="a"), TextBlock(text="b")])
    )

    assert item == {"type": "message", "role": "assistant", "content": "ab"}


def test_other_vendors_blocks_stay_out() -> None:
    foreign: list[ContentBlock] = [
        ThinkingBlock(thinking="Hm.", signature="EqQ="),
        RedactedThinkingBlock(data="Emw=="),
        ReasoningBlock(summary=[{"type": "summary_text", "text": "Hm."}]),
        VendorBlock(type="server_tool_use", extras={"id": "x"}),
    ]

    assert (
        items(
            Message(role="assistant", content=foreign),
            Message(role="user", content=foreign),
        )
        == []
    )


def test_reasoning_returns_encrypted_or_by_stored_id() -> None:
    thought = ReasoningBlock(
        content=[{"type": "reasoning_text", "text": "Hm."}], extras={"id": "rs_1"}
    )
    stored = Message(role="assistant", content=[thought, TextBlock(text="Yes.")])

    assert [item["type"] for item in items(stored)] == ["message"]
    assert [
        item["type"] for item in items(stored, is_stored=True, with_reasoning=False)
    ] == ["message"]
    assert items(stored, is_stored=True)[0] == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
    }


def test_reasoning_that_led_to_nothing_stays_out() -> None:
    thought = ReasoningBlock(extras={"id": "rs_1", "encrypted_content": "x"})
    content: list[ContentBlock] = [thought, TextBlock(text="Yes."), thought, thought]

    assert [
        item["type"] for item in items(Message(role="assistant", content=content))
    ] == ["reasoning", "message"]
    assert items(Message(role="assistant", content=[thought])) == []


def test_a_result_with_an_image_is_a_list() -> None:
    source = {"type": "url", "url": "https://a.example/b.png"}
    blocks: list[ContentBlock] = [
        TextBlock(text="Here:"),
        ImageBlock(source=source),
        VendorBlock(type="x"),
    ]

    (item,) = items(Message(role="tool", tool_call_id="c", content=blocks))

    assert item["output"] == [
        {"type": "input_text", "text": "Here:"},
        {
            "type": "input_image",
            "detail": "auto",
            "image_url": "https://a.example/b.png",
        },
    ]


@pytest.mark.parametrize("call_id", ["c", None])
def test_what_stands_beside_a_result_is_said_by_the_user(call_id: str | None) -> None:
    blocks: list[ContentBlock] = [
        ToolResultBlock(tool_call_id="c", output="done"),
        TextBlock(text="See above."),
    ]

    assert items(Message(role="tool", tool_call_id=call_id, content=blocks)) == [
        {"type": "function_call_output", "call_id": "c", "output": "done"},
        user("See above."),
    ]


def test_an_empty_result_is_an_empty_text() -> None:
    assert items(Message(role="tool", tool_call_id="c")) == [
        {"type": "function_call_output", "call_id": "c", "output": ""}
    ]


def test_a_result_of_no_call_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="tool_call_id"):
        items(Message(role="tool", content="lost"))


def test_results_within_what_a_person_says_are_items() -> None:
    blocks: list[ContentBlock] = [
        ToolResultBlock(tool_call_id="c", output="done"),
        TextBlock(text="And now?"),
    ]

    assert items(Message(role="user", content=blocks)) == [
        {"type": "function_call_output", "call_id": "c", "output": "done"},
        user("And now?"),
    ]


@given(st.lists(messages(), max_size=5), st.booleans())
def test_any_history_becomes_what_the_vendors_own_library_takes(
    history: list[Message], is_stored: bool
) -> None:
    sound = sendable(history).messages
    try:
        written = list(items_of(sound, is_stored=is_stored))
    except InvalidRequestError:
        return
    OPENAI.validate_python(json.loads(json.dumps(written)))
    open_calls: list[object] = []
    for item in written:
        if item["type"] == "function_call":
            open_calls.append(item["call_id"])
        elif item["type"] == "function_call_output":
            open_calls.remove(item["call_id"])
    assert open_calls == []


@given(st.lists(st.tuples(st.text(max_size=5), st.booleans()), max_size=6))
def test_the_same_beginning_becomes_the_same_items(
    turns: list[tuple[str, bool]],
) -> None:
    history = [
        Message(role="assistant" if answers else "user", content=text)
        for text, answers in turns
    ]
    calls: list[ContentBlock] = [
        ToolCallBlock(id="c", name="work"),
        ToolResultBlock(tool_call_id="c", output="done"),
    ]
    longer = [
        *history,
        Message(role="assistant", content=calls[:1]),
        Message(role="tool", content=calls[1:]),
    ]

    before = items(*history)

    assert items(*longer)[: len(before)] == before
