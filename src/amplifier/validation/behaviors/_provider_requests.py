"""What a provider reads of a request, and what it leaves as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, overload

import anyio
import attrs

from amplifier.validation.behaviors._provider_answers import setting_of, talking
from amplifier.validation.behaviors._stage import Stage, open_stage
from amplifier.validation.behaviors.behavior import Suite, expect, require
from amplifier.validation.behaviors.subject import Subject
from amplifier_sdk.chat import ChatRequest, ChatResponse
from amplifier_sdk.content import (
    ContentBlock,
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VendorBlock,
)
from amplifier_sdk.convert import to_json
from amplifier_sdk.errors import LLMError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message

PROVIDER: Final = Suite("provider")

_Slice: TypeAlias = "slice[int | None, int | None, int | None]"


@PROVIDER.behavior(fix="Copy what is to be changed: messages, schemas and metadata belong to the caller.")
async def leaves_the_request_alone(subject: Subject) -> None:
    """A request is the same after it was answered as before."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        request = attrs.evolve(case.build(*_history()), metadata={"tags": ["a"]}, extras={"vendor": {"x": [1]}})
        before = to_json(request)
        await _answer_or_refusal(stage, request)
    require(to_json(request) == before, "The request was changed")


def _history() -> list[Message]:
    """Return a conversation with everything that a history may hold."""
    return [
        Message(role="system", content="Answer briefly."),
        Message(role="user", content="What is in notes.txt?"),
        Message(
            role="assistant",
            content=[
                ThinkingBlock(thinking="I must look.", signature="EqQBCkgI=="),
                ToolCallBlock(id="call_1", name="read", input={"path": "notes.txt"}),
            ],
        ),
        Message(role="tool", name="read", tool_call_id="call_1", content="three lines"),
        Message(role="assistant", content="Three lines."),
    ]


async def _answer_or_refusal(stage: Stage, request: ChatRequest) -> None:
    """Ask; a provider that cannot take the request says so with an LLMError."""
    try:
        expect(await stage.provider.complete(request), ChatResponse, "What complete returns")
    except LLMError:
        return


async def _reads(subject: Subject, *messages: Message) -> None:
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        await _answer_or_refusal(stage, case.build(*messages))


@PROVIDER.behavior(fix="Translate every role: system, developer, user, assistant and tool.")
async def reads_a_history_with_tool_calls(subject: Subject) -> None:
    """A history with instructions, tool calls and results is read."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        expect(await stage.provider.complete(case.build(*_history())), ChatResponse, "What complete returns")


@PROVIDER.behavior(fix="Send developer messages as the user's: others wrote what they hold.")
async def reads_developer_messages(subject: Subject) -> None:
    """A message of the role developer is read."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        request = case.build(Message(role="developer", content="Answer briefly."))
        expect(await stage.provider.complete(request), ChatResponse, "What complete returns")


@PROVIDER.behavior(fix="Leave out blocks of other vendors, or refuse them with an LLMError.")
async def survives_unknown_blocks(subject: Subject) -> None:
    """Blocks of other vendors in the history, encrypted thinking among them, do not break it."""
    encrypted, foreign = RedactedThinkingBlock(data="Emw=="), VendorBlock(type="other_vendor", extras={"x": 1})
    blocks: list[ContentBlock] = [encrypted, foreign]
    await _reads(subject, Message(role="user", content="Hi."), Message(role="assistant", content=blocks))


@PROVIDER.behavior(fix="Refuse images with InvalidRequestError when the model cannot see.")
async def survives_images(subject: Subject) -> None:
    """An image in the history does not break it."""
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    await _reads(subject, Message(role="user", content=[ImageBlock(source=source), TextBlock(text="What is this?")]))


@PROVIDER.behavior(fix="Send a result's images as the vendor has them, or a text that says there were some.")
async def survives_images_in_results(subject: Subject) -> None:
    """An image in a tool's result does not break it."""
    source: Mapping[str, JSONValue] = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    _, asked, called, result, _ = _history()
    shown: list[ContentBlock] = [TextBlock(text="a.png"), ImageBlock(source=source)]
    await _reads(subject, asked, called, attrs.evolve(result, content=shown))


@PROVIDER.behavior(fix="Send a message without content as the vendor allows, or leave it out.")
async def survives_empty_messages(subject: Subject) -> None:
    """Messages without content in the history do not break it."""
    await _reads(subject, Message(role="user", content=""), Message(role="assistant", content=()))


@PROVIDER.behavior(fix="Encode requests so that lone surrogates are replaced, or refuse them with an LLMError.")
async def survives_broken_characters(subject: Subject) -> None:
    """Half of a surrogate pair, NUL and control characters in the history do not break it."""
    await _reads(subject, Message(role="user", content="broken \ud83d text \x00 \x1b[31m"))


@PROVIDER.behavior(fix="Write no-tools and an empty list of tools alike.")
async def reads_a_request_with_an_empty_list_of_tools(subject: Subject) -> None:
    """An empty list of tools is like none."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        response = await stage.provider.complete(attrs.evolve(case.build(), tools=[]))
    require(response.text and not response.tool_calls, f"The answer is {response!r:.300}")


class _View(Sequence[Message]):
    """Messages that are no list: what the kernel hands to providers."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: _Slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | _Slice) -> Message | Sequence[Message]:
        return self._messages[index]


@PROVIDER.behavior(fix="Read request.messages as a sequence: walk it, do not add to it or write it as it is.")
async def reads_messages_from_a_view(subject: Subject) -> None:
    """Messages may be any sequence, not only a list."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        request = case.build()
        response = await stage.provider.complete(attrs.evolve(request, messages=_View(request.messages)))
    require(response.text, f"The answer is {response!r:.300}")


@PROVIDER.behavior(fix="Keep nothing of a request in the provider.")
async def answers_again(subject: Subject) -> None:
    """A second request in the same session is answered like the first."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        for _ in range(2):
            response = await stage.provider.complete(case.build())
            require(response.text, f"The answer is {response!r:.300}")


@PROVIDER.behavior(fix="Keep what belongs to one request in local names; a client may be shared.")
async def answers_several_at_once(subject: Subject) -> None:
    """Three requests at once are each answered."""
    case = talking(subject)
    answers: list[str] = []
    async with open_stage(subject, setting_of(case, subject)) as stage:

        async def run() -> None:
            answers.append((await stage.provider.complete(case.build())).text)

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(run)
    require(len(answers) == 3 and all(answers), f"The answers are {answers!r:.300}")


@PROVIDER.behavior(fix="Answer a session's request with a ChatResponse that the loop can end its turn with.")
async def serves_turns(subject: Subject) -> None:
    """In a session it answers one turn after the other."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        texts = [await stage.turn(case.prompt), await stage.turn(case.prompt)]
        stored = [message["role"] for message in stage.memory.messages]
    require(all(texts), f"The turns answered {texts!r:.300}")
    require(stored == ["user", "assistant"] * 2, f"Stored are the roles {stored}")
