"""Prompts with media, from the files to each vendor's request, and what a model does not take."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import anyio
import pytest

from amplifier import Agent, Audio, Document, Image
from amplifier.testing import ScriptedProvider, answer, call, create_test_session
from amplifier.testing.transport import ScriptedTransport
from amplifier_kit.media.files import media_file
from amplifier_sdk import tool
from amplifier_sdk.chat import Degradation
from amplifier_sdk.content import TextBlock
from amplifier_sdk.errors import ConfigError, InvalidRequestError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import Prompt
from amplifier_sdk.results import ToolResult
from tests.integration.test_images import ADDRESS, DATA, PICTURE, SOURCE, VENDORS

PDF: Final = base64.b64encode(b"%PDF-1.7\n").decode()
WAV: Final = base64.b64encode(b"RIFF\x24\0\0\0WAVEfmt ").decode()
NOTES: Final = "\n[document d.md]\n# Notes\n\n[end of d.md]\n"
DOCUMENT: Final = f"data:application/pdf;base64,{PDF}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write one file of each kind."""
    (tmp_path / "a.png").write_bytes(DATA)
    for name, data in (("b.pdf", PDF), ("c.wav", WAV)):
        (tmp_path / name).write_bytes(base64.b64decode(data))
    (tmp_path / "d.md").write_text("# Notes\n")
    (tmp_path / "e.mp4").write_bytes(b"\0\0\0\x18ftypisom" + bytes(8))
    return tmp_path


class Asked:
    """A prompt that was given to a vendor's provider, in a session of its own."""

    def __init__(self, vendor: str, **config: JSONValue) -> None:
        provider, steps = VENDORS[vendor]
        self.transport = ScriptedTransport(*steps)
        self.played = type("Played", (provider,), {"transport": self.transport})
        self.degradations: tuple[Degradation, ...] = ()
        self.config: JSONObject = {
            "api_key": "sk-test",
            "base_url": "https://vendor.example",
            "default_model": "m",
            **config,
        }

    async def execute(self, prompt: Prompt) -> JSONValue:
        """Return what the request says."""
        with anyio.fail_after(10):
            async with create_test_session(
                provider=self.played, configs={"provider": self.config}
            ) as session:
                await session.execute(prompt)
                assert session.last_turn is not None
                self.degradations = session.last_turn.degradations
        body = self.transport.bodies[-1]
        assert isinstance(body, dict)
        said = body["input" if "input" in body else "messages"]
        assert isinstance(said, list)
        (message,) = said
        assert isinstance(message, dict)
        return message


EXPECTED: Final[dict[str, list[JSONValue]]] = {
    "anthropic": [
        {"type": "text", "text": "Compare"},
        {"type": "image", "source": SOURCE},
        {
            "type": "document",
            "title": "b.pdf",
            "source": {
                "type": "base64",
                "media_type": "application/pdf",
                "data": PDF,
            },
        },
        {
            "type": "document",
            "title": "d.md",
            "source": {
                "type": "text",
                "media_type": "text/plain",
                "data": "# Notes\n",
            },
        },
    ],
    "openai": [
        {"type": "input_text", "text": "Compare"},
        {"type": "input_image", "detail": "auto", "image_url": ADDRESS},
        {"type": "input_file", "filename": "b.pdf", "file_data": DOCUMENT},
        {"type": "input_text", "text": NOTES},
    ],
    "chat-completions": [
        {"type": "text", "text": "Compare"},
        {"type": "image_url", "image_url": {"url": ADDRESS}},
        {"type": "file", "file": {"filename": "b.pdf", "file_data": DOCUMENT}},
        {"type": "text", "text": NOTES},
    ],
}


@pytest.mark.parametrize("vendor", EXPECTED)
async def test_prompt_reaches_the_vendor_in_its_words(
    vendor: str, folder: Path
) -> None:
    prompt: Prompt = [
        "Compare",
        Image.file(folder / "a.png"),
        Document.file(folder / "b.pdf"),
        Document.file(folder / "d.md"),
    ]

    message = await Asked(vendor).execute(prompt)

    assert isinstance(message, dict)
    found = message["content"]
    assert isinstance(found, list)
    if isinstance(last := found[-1], dict):
        last.pop("cache_control", None)
    assert found == EXPECTED[vendor]


async def test_sound_reaches_the_protocol_that_has_it(folder: Path) -> None:
    prompt: Prompt = ["Listen", Audio.file(folder / "c.wav")]

    message = await Asked("chat-completions").execute(prompt)

    assert message == {
        "role": "user",
        "content": [
            {"type": "text", "text": "Listen"},
            {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}},
        ],
    }


async def test_ollama_gets_images_beside_the_text(folder: Path) -> None:
    prompt: Prompt = [
        "Look",
        Image.file(folder / "a.png"),
        Document.file(folder / "d.md"),
    ]

    message = await Asked("ollama").execute(prompt)

    assert message == {"role": "user", "content": f"Look{NOTES}", "images": [PICTURE]}


@pytest.mark.parametrize(
    ("vendor", "name", "takes"),
    [
        ("anthropic", "c.wav", "takes no audio; it takes application/pdf, image/gif"),
        ("openai", "e.mp4", "takes no videos; it takes application/pdf, image/gif"),
        ("chat-completions", "e.mp4", "takes no videos; it takes application/pdf, aud"),
        ("ollama", "b.pdf", "takes no application/pdf; it takes image/gif"),
    ],
)
async def test_what_a_vendor_does_not_take_is_not_sent(
    vendor: str, name: str, takes: str, folder: Path
) -> None:
    shown = media_file(folder / name)
    strict, lenient = Asked(vendor), Asked(vendor, degrade=True)

    with pytest.raises(
        InvalidRequestError, match=f"'{name}' of the prompt is not sent: .*{takes}"
    ):
        await strict.execute(["Take", shown])
    message = await lenient.execute(["Take", shown])

    assert "/chat" not in str([r.url.path for r in strict.transport.requests])
    assert f"{takes[:12]}" in str(message)
    (loss,) = lenient.degradations
    assert takes in loss.reason


async def test_configuration_says_what_a_model_takes(folder: Path) -> None:
    blind = Asked("openai", media=["text/plain"])

    with pytest.raises(InvalidRequestError, match="this model cannot see"):
        await blind.execute(["Look", Image.file(folder / "a.png")])
    with pytest.raises(
        ConfigError, match=r"media.*'video/mp4' has no form in this API; it has image/"
    ):
        await Asked("openai", media=["video/mp4"]).execute("Look")


async def test_a_refused_prompt_does_not_end_the_conversation(folder: Path) -> None:
    asked = Asked("openai", media=[])
    with anyio.fail_after(10):
        async with create_test_session(
            provider=asked.played, configs={"provider": asked.config}
        ) as session:
            with pytest.raises(InvalidRequestError):
                await session.execute(["Look", Image.file(folder / "a.png")])
            await session.execute("And without it?")

    assert "[an image is not shown: this model cannot see]" in str(
        asked.transport.bodies
    )


async def test_an_agent_takes_media_in_each_way_to_run(folder: Path) -> None:
    provider = ScriptedProvider("A.", "B.", "C.")
    agent = Agent(provider)
    prompt: Prompt = ["Look", Image.file(folder / "a.png")]

    assert (await agent.run(prompt)).text == "A."
    async with agent.stream(prompt) as events:
        async for _ in events:
            pass
    async with agent.session() as session:
        assert (await session.run(prompt)).text == "C."

    shown = [request.messages[-1].blocks for request in provider.requests]
    assert shown == [shown[0]] * 3
    assert shown[0][1] == prompt[1]


@tool
def scan() -> ToolResult:
    """Scan a page."""
    page = Document.data(base64.b64decode(PDF), name="b.pdf")
    return ToolResult(output="scanned", content=[TextBlock(text="One page"), page])


async def scanned(vendor: str, **config: JSONValue) -> tuple[Asked, str]:
    """Let a model scan a page, and ask a vendor's about it; return what the request says as JSON."""
    first = ScriptedProvider(answer(call("scan", {}, id="c1")), "Done.")
    async with create_test_session(provider=first, tools=[scan]) as session:
        await session.execute("Scan")
        history = await session.coordinator.context.get_messages()
    asked = Asked(vendor, **config)
    with anyio.fail_after(10):
        async with create_test_session(
            provider=asked.played, configs={"provider": asked.config}
        ) as session:
            await session.coordinator.context.set_messages(history)
            await session.execute("What does it say?")
            assert session.last_turn is not None
            asked.degradations = session.last_turn.degradations
    return asked, json.dumps(asked.transport.bodies[-1])


RETURNED: Final[Mapping[str, JSONValue]] = {
    "anthropic": {
        "type": "document",
        "title": "b.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
    },
    "openai": {"type": "input_file", "filename": "b.pdf", "file_data": DOCUMENT},
    "chat-completions": {
        "type": "file",
        "file": {"filename": "b.pdf", "file_data": DOCUMENT},
    },
}


def objects(value: JSONValue) -> Iterator[JSONValue]:
    """Yield every object within JSON data."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from objects(item)


@pytest.mark.parametrize("vendor", RETURNED)
async def test_document_of_a_result_reaches_the_vendor(vendor: str) -> None:
    asked, body = await scanned(vendor)

    assert RETURNED[vendor] in list(objects(json.loads(body)))
    assert asked.degradations == ()


async def test_document_of_a_result_becomes_a_text_where_it_must() -> None:
    asked, body = await scanned("ollama")

    (loss,) = asked.degradations
    assert "takes no application/pdf" in loss.reason
    assert "[a document is not shown: the model 'm' takes no application/pdf" in body
    assert PDF not in body
