"""Media from a file to each vendor's request: what a tool reads, and what a prompt shows."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio
import pytest

import amplifier_module_context_persistent as context_persistent
from amplifier.testing import ScriptedProvider, answer, call, create_test_session
from amplifier.testing.transport import (
    HttpAnswer,
    HttpStep,
    ScriptedTransport,
    json_answer,
)
from amplifier_kit.vendors import VendorProvider
from amplifier_module_provider_anthropic import AnthropicProvider
from amplifier_module_provider_chat_completions import ChatCompletionsProvider
from amplifier_module_provider_ollama import OllamaProvider
from amplifier_module_provider_openai import OpenAIProvider
from amplifier_module_tool_filesystem import Filesystem
from amplifier_sdk.content import ImageBlock
from amplifier_sdk.jsontypes import JSONObject, JSONValue

PLUGINS: Final = Path(__file__).parents[2] / "plugins"
DATA: Final = (
    b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + bytes(20)
)
PICTURE: Final = base64.b64encode(DATA).decode()
SOURCE: Final[JSONObject] = {
    "type": "base64",
    "media_type": "image/png",
    "data": PICTURE,
}
ADDRESS: Final = f"data:image/png;base64,{PICTURE}"


def stream(vendor: str, name: str) -> HttpAnswer:
    return HttpAnswer(
        parts=(
            (
                PLUGINS / f"amplifier-module-provider-{vendor}" / "tests" / name
            ).read_bytes(),
        )
    )


VENDORS: Final[Mapping[str, tuple[type[VendorProvider], tuple[HttpStep, ...]]]] = {
    "anthropic": (AnthropicProvider, (stream("anthropic", "streams/good/text.sse"),)),
    "chat-completions": (
        ChatCompletionsProvider,
        (
            json_answer({"data": [{"id": "m"}]}),
            stream("chat-completions", "streams/good/text.sse"),
        ),
    ),
    "ollama": (
        OllamaProvider,
        (
            json_answer({"capabilities": ["completion", "vision"]}),
            stream("ollama", "streams/good/text.ndjson"),
        ),
    ),
    "openai": (OpenAIProvider, (stream("openai", "responses/good/text.sse"),)),
}


async def read_picture(folder: Path) -> None:
    """Let a model read `picture.png`, in a session whose history is kept."""
    (folder / "picture.png").write_bytes(DATA)
    provider = ScriptedProvider(
        answer(call("read_file", {"file_path": "picture.png"}, id="c1")),
        "A red square.",
    )
    session = create_test_session(
        provider=provider,
        tools=[Filesystem],
        context=context_persistent,
        configs={"context": {"transcript_path": str(folder / "history.jsonl")}},
    )
    session.coordinator.register_capability("session.working_dir", str(folder))
    async with session:
        await session.execute("What is in picture.png?")
    (image,) = (
        block
        for message in provider.requests[1].messages
        for block in message.blocks
        if is_image(block)
    )
    assert isinstance(image, ImageBlock)
    assert image.source == SOURCE


def is_image(block: object) -> bool:
    return isinstance(block, ImageBlock)


async def sent(vendor: str, folder: Path, **config: JSONValue) -> JSONObject:
    """Resume the session with a vendor's provider; return the body of its request."""
    provider, steps = VENDORS[vendor]
    script = ScriptedTransport(*steps)
    session = create_test_session(
        provider=type("Played", (provider,), {"transport": script}),
        context=context_persistent,
        configs={
            "provider": {
                "api_key": "sk-test",
                "base_url": "https://vendor.example",
                "default_model": "m",
                **config,
            },
            "context": {"transcript_path": str(folder / "history.jsonl")},
        },
        is_resumed=True,
    )
    async with session:
        await session.execute("And its colour?")
    body = script.bodies[-1]
    assert isinstance(body, dict)
    return body


def results(vendor: str, body: JSONObject, caption: str) -> tuple[object, object]:
    """Return what the request says of the tool's result, and what it must say."""
    said = body["input" if vendor == "openai" else "messages"]
    assert isinstance(said, list)
    text = {"type": "text", "text": caption}
    match vendor:
        case "anthropic":
            return said[2]["content"][0]["content"], [
                text,
                {"type": "image", "source": SOURCE},
            ]
        case "chat-completions":
            return said[2:4], [
                {
                    "role": "tool",
                    "tool_call_id": "c1",
                    "content": f"{caption}\n[Its images are in the next message of the user.]",
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "text",
                            "text": "[The images that the tool call c1 returned:]",
                        },
                        {"type": "image_url", "image_url": {"url": ADDRESS}},
                    ],
                },
            ]
        case "ollama":
            return said[2], {
                "role": "tool",
                "tool_name": "read_file",
                "tool_call_id": "c1",
                "content": caption,
                "images": [PICTURE],
            }
        case _:
            (output,) = (
                item["output"]
                for item in said
                if item["type"] == "function_call_output"
            )
            image = {"type": "input_image", "detail": "auto", "image_url": ADDRESS}
            return output, [{"type": "input_text", "text": caption}, image]


@pytest.mark.parametrize("vendor", VENDORS)
async def test_image_that_tool_read_reaches_model_in_vendors_words(
    vendor: str, tmp_path: Path
) -> None:
    with anyio.fail_after(10):
        await read_picture(tmp_path)
        body = await sent(vendor, tmp_path)

    found, wanted = results(
        vendor, body, f"{tmp_path / 'picture.png'} (image/png, {len(DATA)} bytes)"
    )
    assert found == wanted


@pytest.mark.parametrize("vendor", VENDORS)
async def test_model_said_not_to_see_reads_that_there_was_image(
    vendor: str, tmp_path: Path
) -> None:
    with anyio.fail_after(10):
        await read_picture(tmp_path)
        body = await sent(vendor, tmp_path, max_images=0)

    assert "[an image is not shown: this model cannot see]" in repr(body)
    assert PICTURE not in repr(body)
