"""The modules that every cell mounts: two models that play one script, and tools that leave a trace.

A model's answer depends on the request alone: on the prompt it finds there and on how often it has answered since.
So one script serves a session, its children and whatever resumes them, in whatever order they ask.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import ClassVar, Final, TypeAlias

import attrs

from amplifier_kit.scripted import ScriptedAnswer, ScriptedProvider, answer, call
from amplifier_sdk import HookResult, Usage, hook, on, tool, toolset
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.events import TOOL_PRE, ToolPre
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import MEDIA_BLOCKS
from amplifier_sdk.messages import Message
from amplifier_sdk.results import ToolResult

__all__ = [
    "FIRST_WORDS",
    "LAST_WORDS",
    "SCRIPT",
    "SECRET",
    "TILL",
    "TOKENS",
    "Asked",
    "Call",
    "Turns",
]

LAST_WORDS: Final = "That was all of it."
"""The answer of a turn whose script is at its end."""

FIRST_WORDS: Final = "That is a beginning."
"""The same of the turn before the one that counts."""

TOKENS: Final = 20
"""What each answer of a model costs."""

SECRET: Final = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
"""A token, as it would stand in somebody's notes."""

CHILD_ID: Final = re.compile(r"[\w-]+-[0-9a-f]{16}_[\w-]+")


@attrs.frozen
class Asked:
    """A request: which provider got it, its messages, the tools it offered, and the data of what it shows."""

    provider: str
    messages: tuple[tuple[str, str], ...]
    tools: tuple[str, ...]
    shown: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The texts of its messages."""
        return "\n".join(text for _, text in self.messages)

    @property
    def results(self) -> tuple[str, ...]:
        """What tools gave, or why they did not run."""
        return tuple(text for role, text in self.messages if role == "tool")


@attrs.frozen
class Call:
    """A call that the model tries; `child` has it name the child that the history tells of."""

    tool: str
    arguments: JSONObject = attrs.field(factory=dict)
    child: bool = False


Turns: TypeAlias = Mapping[str, tuple[Call, ...]]


@attrs.define
class Script:
    """What the models try, by what their prompt holds, and what came of it."""

    turns: Turns = attrs.field(factory=dict)
    asked: list[Asked] = attrs.field(factory=list)
    ran: list[str] = attrs.field(factory=list)
    meanwhile: Callable[[], Awaitable[object]] | None = None
    """Awaited by the tool `pause` while it runs."""

    def begin(self) -> None:
        """Forget everything."""
        self.turns, self.meanwhile = {}, None
        self.asked.clear()
        self.ran.clear()

    def answer(self, provider: str, request: ChatRequest) -> ScriptedAnswer:
        """Return what a model answers to a request."""
        messages = list(request.messages)
        tools = tuple(spec.name for spec in request.tools or ())
        shown = tuple(
            str(block.source.get("data"))
            for message in messages
            for block in message.blocks
            if isinstance(block, MEDIA_BLOCKS)
        )
        asked = Asked(
            provider,
            tuple((message.role, message.text) for message in messages),
            tools,
            shown,
        )
        self.asked.append(asked)
        usage = Usage(
            input_tokens=TOKENS // 2, output_tokens=TOKENS // 2, total_tokens=TOKENS
        )
        prompt, answered = self._find(messages)
        calls = self.turns.get(prompt, ())
        if answered >= len(calls) or not tools:
            return answer(
                FIRST_WORDS if "beginning" in prompt else LAST_WORDS, usage=usage
            )
        made = calls[answered]
        named: JSONObject = {"session_id": last_child(asked.text)} if made.child else {}
        return answer(call(made.tool, {**made.arguments, **named}), usage=usage)

    def _find(self, messages: Sequence[Message]) -> tuple[str, int]:
        """Return the prompt that a history has last, and how often it was answered to."""
        answered = 0
        for message in reversed(messages):
            answered += message.role == "assistant"
            found = [
                prompt
                for prompt in self.turns
                if message.role == "user" and prompt in message.text
            ]
            if found:
                return found[0], answered
        return "", answered


def last_child(text: str) -> str:
    """Return the id of the child that a text names last, or nothing."""
    found = CHILD_ID.findall(text)
    return found[-1] if found else ""


SCRIPT: Final = Script()
"""The script of the cell that runs; modules are mounted by name, so that they find it here."""


@toolset
class Trials:
    """Tools that leave a trace of having run."""

    @tool(effects=("read",))
    def tally(self) -> str:
        """Count one."""
        SCRIPT.ran.append("tally")
        return "counted"

    @tool(effects=("read",))
    def fetch(self) -> str:
        """Fetch the notes."""
        SCRIPT.ran.append("fetch")
        return f"first line\n{SECRET}\nlast line"

    @tool(effects=("read",))
    async def pause(self) -> str:
        """Pause until the test has done what it wants to do meanwhile."""
        SCRIPT.ran.append("pause")
        if SCRIPT.meanwhile is not None:
            await SCRIPT.meanwhile()
        return "paused"


@hook
class Sentinel:
    """A guard of a package of its own."""

    @on(TOOL_PRE)
    def deny(self, event: str, data: ToolPre) -> HookResult | None:
        """Let nothing be deleted."""
        return (
            HookResult.deny("Denied by the sentinel")
            if data["tool_name"] == "delete"
            else None
        )


TILL: Final = "shop.till"
"""A capability that an application registers."""


class Till:
    """A tool that looks for the application's capability in its own session."""

    name = "till"
    description = "Open the till."
    input_schema: ClassVar[JSONObject] = {"type": "object"}
    effects = ("read",)

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    async def execute(self, input: JSONObject, /) -> ToolResult:
        """Say whether there is one."""
        found = self._coordinator.get_capability(TILL) is not None
        SCRIPT.ran.append("till" if found else "no till")
        return ToolResult(output="open" if found else "there is none")


async def mount_till(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> Till:
    """Mount that tool."""
    return Till(coordinator)


def _provider(name: str) -> ScriptedProvider:
    async def reply(request: ChatRequest) -> ScriptedAnswer:
        return SCRIPT.answer(name, request)

    return ScriptedProvider(reply, repeat=True, name=name)


async def mount_ay(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> ScriptedProvider:
    """Mount the provider with which sessions begin."""
    return _provider("ay")


async def mount_bee(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> ScriptedProvider:
    """Mount the provider that the person's settings name meanwhile."""
    return _provider("bee")
