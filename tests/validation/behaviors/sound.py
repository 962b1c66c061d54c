"""The smallest modules that have every behaviour of their types."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Final

import anyio
import anyio.lowlevel
import attrs

from amplifier.validation.behaviors import (
    Case,
    HookSamples,
    ProviderSamples,
    Subject,
    ToolSamples,
)
from amplifier_sdk import (
    BaseProvider,
    ChatRequest,
    ChatResponse,
    Coordinator,
    HookResult,
    Loop,
    ProviderInfo,
    ToolResult,
    Turn,
    context,
    hook,
    on,
    orchestrator,
    provider,
)
from amplifier_sdk.arguments import read_arguments
from amplifier_sdk.chat import ToolCall, Usage
from amplifier_sdk.content import ContentBlock, TextBlock, ThinkingBlock, ToolCallBlock
from amplifier_sdk.contracts import Provider
from amplifier_sdk.errors import RateLimitError
from amplifier_sdk.events import (
    CONTEXT_POST_COMPACT,
    CONTEXT_PRE_COMPACT,
    TOOL_PRE,
    ToolPre,
)
from amplifier_sdk.history import Repair
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.streaming import Delta, TextDelta, ThinkingDelta, ToolCallDelta

# -- tool

TEXT_SCHEMA: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "what to repeat"},
        "times": {
            "type": "integer",
            "description": "how often",
            "default": 1,
            "minimum": 1,
            "maximum": 9,
        },
    },
    "required": ["text"],
    "additionalProperties": False,
}
SAMPLE: Final[JSONObject] = {"text": "again"}


@attrs.define(eq=False, slots=False)
class Echo:
    """A tool that repeats a text; `wait` lasts for ever, and an empty text is refused."""

    name: str = "echo"
    description: str = "Repeat a text some times."
    input_schema: Mapping[str, JSONValue] = attrs.field(factory=lambda: TEXT_SCHEMA)

    async def execute(self, input: JSONObject, /) -> ToolResult:
        await anyio.lowlevel.checkpoint()
        text, times = input["text"], input.get("times", 1)
        if text == "wait":
            await anyio.sleep_forever()
        if not isinstance(text, str) or not isinstance(times, int) or not text:
            return ToolResult.failure("Give a text to repeat")
        return ToolResult(
            output={"text": text[:1000].encode("utf-8", "replace").decode() * times}
        )


def mounting(build: Callable[[], object], *, checked: bool = True) -> object:
    """Make a `mount` function that returns what is built, and takes no configuration."""

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        if config and checked:
            raise ValueError(f"unknown settings: {', '.join(config)}")
        return build()

    return mount


TOOL_SAMPLES: Final = ToolSamples(
    arguments={"echo": (SAMPLE, {"text": "x", "times": 3})},
    failing={"echo": ({"text": ""},)},
    slow={"echo": {"text": "wait"}},
    bad_config={"anything": 1},
)

# -- provider

OFFER: Final[JSONObject] = {
    "tools": [{"name": "work", "parameters": {"type": "object"}}]
}


@provider
class Parrot(BaseProvider):
    """A provider that does what the last message says."""

    name = "parrot"

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(
            id="parrot",
            display_name="Parrot",
            capabilities=("streaming",),
            defaults={
                "model": "parrot-1",
                "context_window": 9_000,
                "max_output_tokens": 1_000,
            },
        )

    def calls(self, wanted: str) -> list[ToolCall]:
        """Return the calls of an answer."""
        text = '{"text": ' if wanted == "garble" else '{"text": "a"}'
        read = read_arguments(text)
        return [
            ToolCall(
                id="call_1",
                name="work",
                arguments=read.values,
                raw_arguments=text,
                problem=read.problem,
            ),
        ]

    async def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        wanted = request.messages[-1].text
        content: list[ContentBlock] = []
        calls: list[ToolCall] = []
        await anyio.lowlevel.checkpoint()
        if wanted == "fail":
            raise RateLimitError("Slow down", provider=self.name)
        if wanted == "wait":
            await anyio.sleep_forever()
        if wanted == "think":
            yield ThinkingDelta(text="Hm.")
            content.append(ThinkingBlock(thinking="Hm."))
        if wanted in ("call", "garble", "cut"):
            calls = self.calls(wanted)
            for index, call in enumerate(calls):
                text = call.raw_arguments or json.dumps(call.arguments)
                yield ToolCallDelta(
                    id=call.id, name=call.name, arguments=text, index=index
                )
                content.append(
                    ToolCallBlock(id=call.id, name=call.name, input=call.arguments)
                )
        else:
            for piece in ("Hello ", "there."):
                yield TextDelta(text=piece, index=len(content))
            content.append(TextBlock(text="Hello there."))
        yield ChatResponse(
            content=content,
            tool_calls=calls or None,
            usage=Usage(input_tokens=3, output_tokens=2, total_tokens=5),
            finish_reason="length"
            if wanted == "cut"
            else "tool_calls"
            if calls
            else "stop",
        )


PROVIDER_SAMPLES: Final = ProviderSamples(
    talks=Case(prompt="talk"),
    calls=Case(prompt="call", request=OFFER),
    thinks=Case(prompt="think"),
    garbles=Case(prompt="garble", request=OFFER),
    is_cut=Case(prompt="cut", request=OFFER),
    fails=Case(prompt="fail"),
    waits=Case(prompt="wait"),
)

# -- hook


@hook
class Guard:
    """A hook that refuses one tool and asks about another, and counts what it hears."""

    def __init__(self) -> None:
        self.heard = 0

    @on(TOOL_PRE)
    async def check(self, event: str, data: ToolPre) -> HookResult | None:
        """Refuse `rm`, ask about `mv`, correct `cp`, warn of `ln`, and let the rest pass."""
        match data.get("tool_name"):
            case "rm":
                return HookResult.deny("Nothing is removed here")
            case "mv":
                return HookResult.ask("Move it?", options=("Allow", "Deny"))
            case "cp":
                return HookResult.modify({"tool_input": {"file_path": "copy.txt"}})
            case "ln":
                return HookResult.inject(
                    "Links are rare here.", user_message="A link is made"
                )
            case _:
                return None

    @on("*")
    async def count(self, event: str, data: dict[str, object]) -> None:
        """Count."""
        self.heard += 1


HOOK_SAMPLES: Final = HookSamples(
    payloads={
        "tool:pre": tuple(
            {"tool_name": name, "tool_input": {}} for name in ("rm", "mv", "cp", "ln")
        )
    }
)

# -- orchestrator


@orchestrator
class Round(Loop):
    """A loop: ask, run, ask again."""

    name = "loop-round"

    async def run(self, turn: Turn) -> str:
        while True:
            response = await turn.complete()
            if not response.tool_calls:
                return response.text
            await turn.run_tools(response.tool_calls)


# -- context


@context
class Notebook:
    """A context that shows the latest turns that fit, and always the instructions and the last turn."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.hooks = coordinator.hooks
        self.messages: list[MessageDict] = []
        self.left_out = 0

    async def add_message(self, message: MessageDict, /) -> None:
        if "role" not in message:
            raise ValueError("A message has a role")
        self.messages.append(message)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        budget = self.budget(token_budget, provider)
        turns = self.turns()
        first = 0
        while (
            first < len(turns) - 1
            and tokens([m for turn in turns[first:] for m in turn]) > budget
        ):
            first += 1
        view = [
            m
            for m in self.messages
            if m["role"] == "system" and m not in [n for t in turns[first:] for n in t]
        ]
        view += [message for turn in turns[first:] for message in turn]
        await self.announce(len(self.messages) - len(view), len(view))
        return view

    def budget(self, named: int | None, provider: Provider | None) -> int:
        """Return how many tokens a view may have."""
        if named is not None:
            return named
        try:
            defaults = provider.get_info().defaults if provider is not None else {}
        except Exception:  # the provider's own affair
            defaults = {}
        window, most = defaults.get("context_window"), defaults.get("max_output_tokens")
        return (
            window - most
            if isinstance(window, int) and isinstance(most, int)
            else 100_000
        )

    def turns(self) -> list[list[MessageDict]]:
        """Split the history where a person speaks."""
        found: list[list[MessageDict]] = []
        for message in self.messages:
            if message["role"] == "user" or not found:
                found.append([])
            found[-1].append(message)
        return found

    async def announce(self, left_out: int, shown: int) -> None:
        """Say when more is left out than before."""
        if left_out > self.left_out:
            self.left_out = left_out
            await self.hooks.emit(CONTEXT_PRE_COMPACT, counts(left_out + shown))
            await self.hooks.emit(CONTEXT_POST_COMPACT, counts(shown))

    async def get_messages(self) -> list[MessageDict]:
        return list(self.messages)

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        self.messages = list(messages)

    async def repair_messages(self, repair: Repair, /) -> None:
        self.messages = list(repair.messages)

    async def clear(self) -> None:
        self.messages = []

    async def get_token_count(self) -> int:
        """Count the tokens of the whole history."""
        return tokens(self.messages)

    async def compact(self) -> None:
        """Do nothing: views are shortened when they are asked for."""


def tokens(messages: Sequence[MessageDict]) -> int:
    """Estimate the tokens of messages."""
    return sum(len(str(message)) for message in messages) // 4


def counts(messages: int) -> dict[str, object]:
    """Make the data of an event of shortening."""
    return {"message_count": messages, "token_count": 0}


SOUND: Final[Mapping[str, Subject]] = {
    "tool": Subject(kind="tool", module=mounting(Echo), samples=TOOL_SAMPLES),
    "provider": Subject(kind="provider", module=Parrot, samples=PROVIDER_SAMPLES),
    "hook": Subject(kind="hook", module=Guard, samples=HOOK_SAMPLES),
    "orchestrator": Subject(kind="orchestrator", module=Round),
    "context": Subject(kind="context", module=Notebook),
}
