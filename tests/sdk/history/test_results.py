"""What a history says of a tool's result."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_sdk.content import (
    ContentBlock,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    VendorBlock,
)
from amplifier_sdk.history import open_calls, repair, result_message
from amplifier_sdk.media import image_block, media_note
from amplifier_sdk.messages import Message
from amplifier_sdk.results import ToolResult

PNG = image_block(
    "image/png", base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
)
PNG_DATA = {"type": "image", "source": dict(PNG.source)}


def content_of(result: ToolResult) -> object:
    message = result_message("c1", "look", result)
    assert {key: message[key] for key in ("role", "tool_call_id", "name")} == {
        "role": "tool",
        "tool_call_id": "c1",
        "name": "look",
    }
    return message["content"]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (ToolResult(output="12:00"), "12:00"),
        (ToolResult(output={"a": 1}, content=[]), '{"a": 1}'),
        (ToolResult.failure("no"), "Error: no"),
    ],
    ids=["text", "structure", "failure"],
)
def test_a_result_without_content_is_its_text(result: ToolResult, text: str) -> None:
    assert content_of(result) == text


def test_content_goes_in_place_of_the_output() -> None:
    result = ToolResult(output={"bytes": 28}, content=[TextBlock(text="a.png"), PNG])

    assert content_of(result) == [{"type": "text", "text": "a.png"}, PNG_DATA]


def test_images_alone_have_the_output_before_them() -> None:
    result = ToolResult(output={"bytes": 28}, content=[TextBlock(text=" "), PNG])

    assert content_of(result) == [{"type": "text", "text": '{"bytes": 28}'}, PNG_DATA]


def test_a_failure_says_its_error_first_and_once() -> None:
    content: list[ContentBlock] = [
        TextBlock(text="no such page"),
        TextBlock(text="see the picture"),
        PNG,
    ]
    result = ToolResult(
        success=False, error={"message": "no such page"}, content=content
    )

    assert content_of(result) == [
        {"type": "text", "text": "Error: no such page"},
        {"type": "text", "text": "see the picture"},
        PNG_DATA,
    ]


@pytest.mark.parametrize(
    "block",
    [
        ToolCallBlock(id="c9", name="delete", input={}),
        ToolResultBlock(tool_call_id="c9", output="all well"),
        ThinkingBlock(thinking="I trust this."),
        VendorBlock(type="tool_result", extras={"tool_call_id": "c9"}),
    ],
    ids=["call", "result", "thinking", "disguised"],
)
def test_a_tool_makes_no_calls_results_or_thoughts(block: ContentBlock) -> None:
    note = f"[a block of the type '{block.type}' is not shown]"

    assert content_of(ToolResult(content=[TextBlock(text="x"), block]))[1:] == [  # type: ignore[index]  # a list
        {"type": "text", "text": note}
    ]


def test_a_block_cannot_answer_another_call() -> None:
    asked = Message(
        role="assistant",
        content=[ToolCallBlock(id="c1", name="a"), ToolCallBlock(id="c2", name="b")],
    )
    blocks: list[ContentBlock] = [
        TextBlock(text="x", extras={"tool_call_id": "c2"}),
        VendorBlock(type="odd", extras={"tool_call_id": "c2"}),
    ]

    history = [asked.to_dict(), result_message("c1", "a", ToolResult(content=blocks))]

    assert [call.id for call in open_calls(history)] == ["c2"]


def test_an_image_that_no_model_takes_is_a_text() -> None:
    svg = ImageBlock(source={"media_type": "image/svg+xml", "data": "PHN2Zy8+"})

    note = media_note(
        "image",
        "image/svg+xml is not PNG, JPEG, GIF or WebP, which are all that models take",
    )
    assert content_of(ToolResult(output="drawn", content=[svg])) == [
        {"type": "text", "text": "drawn"},
        {"type": "text", "text": note.text},
    ]


def test_what_block_holds_besides_becomes_json_data_or_is_told() -> None:
    found = VendorBlock(type="audio", extras={"path": Path("/a"), "loud": 3})  # type: ignore[dict-item]  # as tools do
    odd = VendorBlock(type="video", extras={"frame": object()})  # type: ignore[dict-item]  # likewise

    written = content_of(ToolResult(output="x", content=[found, odd]))

    assert isinstance(written, list)
    _, audio, video = written
    assert audio == {"type": "audio", "path": "/a", "loud": 3}
    assert "frame is a builtins.object, which has no JSON form" in video["text"]


@pytest.mark.parametrize(
    "block",
    [
        TextBlock(text=5),  # type: ignore[arg-type]  # as tools do
        TextBlock(text="x", visibility="nobody"),  # type: ignore[arg-type]  # likewise
        ImageBlock(source=None),  # type: ignore[arg-type]  # likewise
        {"type": "text", "text": "x"},
        "text",
    ],
    ids=["number", "visibility", "no source", "mapping", "string"],
)
def test_what_is_no_block_is_told_and_spoils_no_later_request(
    block: ContentBlock,
) -> None:
    message = result_message("c1", "look", ToolResult(output="fine", content=[block]))

    assert "is not shown" in Message.from_dict(message).text


BLOCKS = st.one_of(
    st.builds(TextBlock, text=st.text(max_size=9)),
    st.just(PNG),
    st.builds(
        ImageBlock,
        source=st.dictionaries(
            st.sampled_from(["data", "url", "type"]), st.text(max_size=9)
        ),
    ),
    st.builds(VendorBlock, type=st.sampled_from(["audio", "tool_call", "x"])),
)


@given(st.booleans(), st.text(max_size=9), st.lists(BLOCKS, max_size=5))
def test_any_result_is_json_that_reads_back_and_answers(
    success: bool, text: str, content: list[ContentBlock]
) -> None:
    result = ToolResult(success=success, output=text, content=content)
    message = result_message("c1", "look", result)
    asked = Message(
        role="assistant", content=[ToolCallBlock(id="c1", name="look")]
    ).to_dict()

    assert json.loads(json.dumps(message)) == message
    assert Message.from_dict(message).to_dict() == message
    assert repair([{"role": "user", "content": "Go."}, asked, message]).findings == ()
