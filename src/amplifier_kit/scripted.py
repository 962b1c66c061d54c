"""A provider that answers from a script: what tests and demonstrations ask instead of a model.

```python
provider = ScriptedProvider(
    "Hello.",
    answer("Let me see.", call("read_file", {"path": "notes.txt"})),
    answer("Half of it", NetworkError("the line went dead")),
)
```
"""

from __future__ import annotations

import json
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from typing import Final, TypeAlias

import anyio
import attrs

from amplifier_kit.media.support import EVERY
from amplifier_sdk.arguments import read_arguments
from amplifier_sdk.chat import ChatRequest, ChatResponse, ProviderInfo, ToolCall, Usage
from amplifier_sdk.content import (
    ContentBlock,
    ReasoningBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from amplifier_sdk.errors import LLMError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message
from amplifier_sdk.providers import BaseProvider
from amplifier_sdk.streaming import Delta, TextDelta, ThinkingDelta, ToolCallDelta
from amplifier_sdk.values import Value

__all__ = [
    "Part",
    "Reply",
    "ScriptedAnswer",
    "ScriptedProvider",
    "Step",
    "answer",
    "call",
]

Part: TypeAlias = str | ContentBlock | ToolCall | anyio.Event | float | BaseException
"""One thing that happens while an answer forms.

A text streams as one piece and joins the texts right before it in one block; a content block and a call
stream whole. An event is waited for, a number is a wait in seconds, an exception is raised.
"""

Step: TypeAlias = "str | ChatResponse | ScriptedAnswer | BaseException | Reply"
"""What a provider does with one request: gives an answer, raises, or asks a function of the request."""

Reply: TypeAlias = Callable[
    [ChatRequest], Awaitable[Step] | AsyncGenerator[Delta | ChatResponse, None]
]
"""An async function that returns a step, or an async generator of the very items of a stream."""

MODEL: Final = "scripted"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ScriptedAnswer(Value):
    """An answer in the parts in which it forms.

    Args:
        parts: what happens, in order.
        usage: default counts the request's messages and the answer's words and calls.
        finish_reason: default `tool_calls` with calls, else `stop`.
    """

    parts: tuple[Part, ...] = ()
    usage: Usage | None = None
    finish_reason: str | None = None


def answer(
    *parts: Part, usage: Usage | None = None, finish_reason: str | None = None
) -> ScriptedAnswer:
    """Make an answer of its parts; see `ScriptedAnswer`."""
    return ScriptedAnswer(parts=parts, usage=usage, finish_reason=finish_reason)


def call(name: str, arguments: JSONValue = None, *, id: str = "") -> ToolCall:
    """Make a tool call.

    Args:
        name: the tool.
        arguments: an object, or text as a model may garble it; `None` is an empty object.
        id: default one that is unique among the provider's answers.
    """
    if isinstance(arguments, (str, Mapping)):
        raw = arguments
    else:
        raw = json.dumps(arguments)
    read = read_arguments({} if arguments is None else raw)
    return ToolCall(
        id=id,
        name=name,
        arguments=read.values,
        raw_arguments=raw if isinstance(raw, str) and arguments is not None else None,
        problem=read.problem,
    )


class ScriptedProvider(BaseProvider):
    """Does one step of its script for each request, and keeps the requests.

    `steps` holds what is still to come and may be added to; `requests` what was asked. Nothing is shared
    between two providers, and one may be asked from several tasks at once.

    Args:
        steps: what it does, one step a request.
        name: its name, to distinguish several.
        repeat: start the script again at its end, instead of failing.
        by_history: choose the step by how many answers the request shows, so that another process which continues a
            turn continues the script; nothing of it is used up.
        context_window: tokens it claims to take.
        max_output_tokens: tokens it claims to write.
    """

    name: str = "scripted"

    def __init__(
        self,
        *steps: Step,
        name: str = "scripted",
        repeat: bool = False,
        by_history: bool = False,
        context_window: int = 200_000,
        max_output_tokens: int = 8_000,
    ) -> None:
        self.name = name  # it distinguishes several in one session
        self.steps: list[Step] = list(steps)
        self.requests: list[ChatRequest] = []
        self._repeat = repeat
        self._by_history = by_history
        self._counted: tuple[int, Message | None, int] = 0, None, 0
        self._asked: anyio.Event | None = None
        self._info = ProviderInfo(
            id=name,
            display_name="Scripted answers (no model)",
            capabilities=("tools", "streaming"),
            media=EVERY,
            defaults={
                "model": MODEL,
                "context_window": context_window,
                "max_output_tokens": max_output_tokens,
            },
        )

    @property
    def last_messages(self) -> list[tuple[str, str]]:
        """The roles and texts of the last request's messages."""
        return [(message.role, message.text) for message in self.requests[-1].messages]

    def get_info(self) -> ProviderInfo:
        """Say that this is a script."""
        return self._info

    async def wait_for_request(self, number: int = 1) -> ChatRequest:
        """Wait until the provider was asked `number` times, and return that request."""
        while len(self.requests) < number:
            if self._asked is None:
                self._asked = anyio.Event()
            await self._asked.wait()
        return self.requests[number - 1]

    async def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        """Do the next step.

        Raises:
            LLMError: the script is at its end.
            BaseException: the step is an exception, or a part of its answer is.
        """
        number = self._number(request)
        step = self._take(request, number)
        while callable(step):
            reply = step(request)
            if isinstance(reply, AsyncGenerator):
                async with aclosing(reply):
                    async for item in reply:
                        yield item
                return
            step = await reply
        if isinstance(step, ChatResponse):
            for piece in _deltas(step):
                yield piece
            yield step
            return
        if not isinstance(step, ScriptedAnswer):
            step = ScriptedAnswer(parts=(step,))
        draft = _Draft(number)
        for part in step.parts:
            if isinstance(part, (anyio.Event, float, int, BaseException)):
                await self._pass(part)
            elif (delta := draft.add(part)) is not None:
                yield delta
        yield draft.finish(request, step)

    def _number(self, request: ChatRequest) -> int:
        """Return how many answers came before."""
        if not self._by_history:
            return len(self.requests)
        messages = request.messages
        known, last, count = self._counted
        # a turn may have thousands, of which a request shows two more than the one before
        if not 0 < known <= len(messages) or messages[known - 1] is not last:
            known, count = 0, 0
        count += sum(each.role == "assistant" for each in messages[known:])
        self._counted = len(messages), messages[-1] if messages else None, count
        return count

    def _take(self, request: ChatRequest, number: int) -> Step:
        """Note the request and return what to do with it."""
        self.requests.append(request)
        # a new event for whoever waits for the next request: one that is set
        # stays set
        if self._asked is not None:
            self._asked.set()
            self._asked = None
        if self._by_history and self.steps:
            if self._repeat:
                number %= len(self.steps)
            if number < len(self.steps):
                return self.steps[number]
        if not self.steps or self._by_history:
            played = number if self._by_history else len(self.requests) - 1
            raise LLMError(
                f"The script has {played} answers and this is request {played + 1}; add an answer, or set 'repeat'",
                provider=self.name,
            )
        step = self.steps.pop(0)
        if self._repeat:
            self.steps.append(step)
        return step

    async def _pass(self, part: anyio.Event | float | BaseException) -> None:
        """Wait as a part says, or raise it; an error of the family that names no provider names this one."""
        if isinstance(part, anyio.Event):
            await part.wait()
        elif isinstance(part, BaseException):
            if isinstance(part, LLMError) and part.provider is None:
                part.provider = self.name
            # each raise would add its frames to the one traceback
            raise part.with_traceback(None)  # a repeated script raises it again
        else:
            await anyio.sleep(part)


class _Draft:
    """An answer as it forms: its blocks and calls so far."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._content: list[ContentBlock] = []
        self._calls: list[ToolCall] = []
        self._is_text_open = False

    def add(self, part: str | ContentBlock | ToolCall) -> Delta | None:
        """Add a part and return what streams of it."""
        if isinstance(part, str):
            return self._add_text(part)
        self._is_text_open = False
        if isinstance(part, ToolCallBlock):
            part = ToolCall(id=part.id, name=part.name, arguments=dict(part.input))
        if isinstance(part, ToolCall):
            if not part.id:
                part = attrs.evolve(part, id=f"call_{self._number}_{len(self._calls)}")
            self._calls.append(part)
            part = ToolCallBlock(id=part.id, name=part.name, input=part.arguments)
        self._content.append(part)
        return _delta(part, len(self._content) - 1, self._calls)

    def _add_text(self, text: str) -> Delta | None:
        if not text:
            return None
        last = None
        if self._is_text_open:
            last = self._content[-1]
        if isinstance(last, TextBlock):
            self._content[-1] = TextBlock(text=last.text + text)
        else:
            self._content.append(TextBlock(text=text))
            self._is_text_open = True
        return TextDelta(text=text, index=len(self._content) - 1)

    def finish(self, request: ChatRequest, answer: ScriptedAnswer) -> ChatResponse:
        """Make the whole answer."""
        return ChatResponse(
            content=self._content,
            tool_calls=tuple(self._calls) or None,
            usage=answer.usage or self._count(len(request.messages)),
            finish_reason=answer.finish_reason
            or ("tool_calls" if self._calls else "stop"),
        )

    def _count(self, messages: int) -> Usage:
        words = sum(
            len(block.text.split())
            for block in self._content
            if isinstance(block, TextBlock)
        )
        written = words + len(self._calls)
        return Usage(
            input_tokens=messages,
            output_tokens=written,
            total_tokens=messages + written,
        )


def _deltas(response: ChatResponse) -> Iterator[Delta]:
    """Yield what streams of a whole answer, each block in one piece."""
    for index, block in enumerate(response.content):
        delta = _delta(block, index, response.tool_calls or ())
        if delta is not None:
            yield delta


def _delta(block: ContentBlock, index: int, calls: Sequence[ToolCall]) -> Delta | None:
    """Return what streams of a whole block; of a vendor's own kinds nothing does."""
    if isinstance(block, TextBlock):
        return TextDelta(text=block.text, index=index)
    if isinstance(block, ThinkingBlock):
        return ThinkingDelta(text=block.thinking, index=index)
    if isinstance(block, ReasoningBlock) and block.text:
        return ThinkingDelta(text=block.text, index=index)
    if isinstance(block, ToolCallBlock):
        raw = next((call.raw_arguments for call in calls if call.id == block.id), None)
        if raw is None:
            raw = json.dumps(block.input, ensure_ascii=False)
        return ToolCallDelta(id=block.id, name=block.name, arguments=raw, index=index)
    return None
