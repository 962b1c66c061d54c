"""Prompts with media over HTTP: in our form, in OpenAI's two, and in AG-UI's."""

from __future__ import annotations

import base64
import json
import struct
from typing import Final

import pytest
from ag_ui.core import (
    ImageInputContent,
    InputContentDataSource,
    RunAgentInput,
    TextInputContent,
    UserMessage,
)
from openai.types.chat import ChatCompletionUserMessageParam
from openai.types.responses import ResponseInputParam
from pydantic import TypeAdapter

from amplifier import Agent
from amplifier_sdk.content import ContentBlock, DocumentBlock, ImageBlock, TextBlock
from amplifier_sdk.jsontypes import JSONValue
from tests.doubles import ScriptedProvider
from tests.serving.client import serving

DATA: Final = base64.b64encode(
    b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 8, 8)
).decode()
ADDRESS: Final = f"data:image/png;base64,{DATA}"
PNG: Final = ImageBlock(
    source={"type": "base64", "media_type": "image/png", "data": DATA}
)
PDF: Final = base64.b64encode(b"%PDF-1.7").decode()
LOOK: Final = TextBlock(text="Look")
_PNG_URL: Final = "data:image/png;base64,"

CHAT: Final[list[JSONValue]] = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Look"},
            {"type": "image_url", "image_url": {"url": ADDRESS}},
        ],
    }
]
RESPONSE: Final[list[JSONValue]] = [
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "Look"},
            {"type": "input_image", "image_url": ADDRESS, "detail": "auto"},
        ],
    }
]


async def seen(path: str, body: JSONValue) -> tuple[int, tuple[ContentBlock, ...]]:
    """Send a request; return its status and what the model sees of the person's last message."""
    provider = ScriptedProvider("A dot.")
    async with serving(Agent(provider, name="clerk")) as alice:
        if path == "turns":
            path = f"/sessions/{await alice.begin()}/turns"
            async with alice.stream(
                "POST", path, body, {"accept": "text/event-stream"}
            ) as stream:
                status = stream.status
                if status == 200:
                    async for _ in stream:
                        pass
        else:
            status = (await alice.post(path, body)).status
    if not provider.requests:
        return status, ()
    return status, provider.requests[0].messages[-1].blocks


async def test_a_turn_takes_texts_and_media() -> None:
    notes: JSONValue = {"type": "text", "data": "# Notes", "name": "n.md"}
    prompt: JSONValue = [
        {"type": "text", "text": "Look"},
        {"type": "image", "source": {"type": "base64", "data": DATA}},
        {"type": "document", "source": notes},
    ]

    status, blocks = await seen("turns", {"prompt": prompt})

    source = {"type": "text", "media_type": "text/plain", "data": "# Notes"}
    shown = DocumentBlock(source={**source, "name": "n.md"})
    assert (status, blocks) == (200, (LOOK, PNG, shown))


async def test_clients_of_openai_show_images() -> None:
    for path, key, messages in (
        ("/v1/chat/completions", "messages", CHAT),
        ("/v1/responses", "input", RESPONSE),
    ):
        assert await seen(path, {"model": "clerk", key: messages}) == (200, (LOOK, PNG))


def test_the_requests_are_those_of_the_client() -> None:
    TypeAdapter(list[ChatCompletionUserMessageParam]).validate_python(CHAT)
    TypeAdapter(ResponseInputParam).validate_python(RESPONSE)


async def test_documents_and_sound_come_in_openais_forms() -> None:
    wav = base64.b64encode(b"RIFF\x24\0\0\0WAVEfmt ").decode()
    data: JSONValue = f"data:application/pdf;base64,{PDF}"
    file: JSONValue = {"filename": "a.pdf", "file_data": data}
    content: JSONValue = [
        {"type": "file", "file": file},
        {"type": "input_audio", "input_audio": {"data": wav, "format": "wav"}},
    ]

    status, blocks = await seen(
        "/v1/chat/completions", {"messages": [{"role": "user", "content": content}]}
    )

    assert status == 200
    assert [block.type for block in blocks] == ["document", "audio"]
    assert blocks[0] == DocumentBlock(
        source={
            "type": "base64",
            "media_type": "application/pdf",
            "data": PDF,
            "name": "a.pdf",
        }
    )


async def test_a_front_end_of_ag_ui_shows_images() -> None:
    source = InputContentDataSource(value=DATA, mime_type="image/png")
    given = RunAgentInput(
        thread_id="t1",
        run_id="r1",
        messages=[
            UserMessage(
                id="m1",
                content=[
                    TextInputContent(text="Look"),
                    ImageInputContent(source=source),
                ],
            )
        ],
        state={},
        tools=[],
        context=[],
        forwarded_props={},
    )

    _, blocks = await seen("/ag-ui", json.loads(given.model_dump_json(by_alias=True)))

    assert blocks == (LOOK, PNG)


@pytest.mark.parametrize(
    ("part", "status"),
    [
        ({"type": "image_url", "image_url": {"url": "http://10.0.0.1/a.png"}}, 422),
        ({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, 422),
        ({"type": "image_url", "image_url": {"url": f"{_PNG_URL}AAAA"}}, 415),
        ({"type": "image_url", "image_url": {"url": f"{_PNG_URL}%%%"}}, 415),
        ({"type": "file", "file": {"file_id": "file-1"}}, 422),
        ({"type": "hologram"}, 422),
    ],
    ids=["inside", "local", "no image", "no base64", "a file's id", "unknown"],
)
async def test_what_is_no_media_is_refused(part: JSONValue, status: int) -> None:
    body: JSONValue = {"messages": [{"role": "user", "content": [part]}]}

    assert await seen("/v1/chat/completions", body) == (status, ())


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text"},
        {"type": "image"},
        {"type": "text", "text": "a", "source": {"type": "base64", "data": DATA}},
        {"type": "image", "source": {"type": "url", "data": "http://10.0.0.1"}},
    ],
    ids=["no text", "no source", "both", "an address"],
)
async def test_a_part_has_what_its_kind_needs(part: JSONValue) -> None:
    assert await seen("turns", {"prompt": [part]}) == (422, ())
    assert await seen("turns", {"prompt": []}) == (422, ())


async def test_media_of_another_kind_are_no_supported_media() -> None:
    part: JSONValue = {"type": "audio", "source": {"type": "base64", "data": DATA}}

    assert await seen("turns", {"prompt": [part]}) == (415, ())
