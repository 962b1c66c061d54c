"""Scripted doubles of the five module types, and sessions made of them.

Each does the least its contract asks for and keeps what it saw. Those that an author wants as well are
`amplifier.testing`'s.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from types import ModuleType
from typing import TypeAlias

import anyio
import attrs
from anyio.abc import TaskGroup

from amplifier import AmplifierSession, ModuleCoordinator, ModuleLoader, testing
from amplifier.kernel.budgets.expenses import Spending
from amplifier.testing import (
    EventRecorder,
    MemoryJournal,
    MockContextManager,
    MockOrchestrator,
    ScriptedProvider,
)
from amplifier.testing.sessions import Mount
from amplifier_kit.scripted import Step
from amplifier_sdk import ChatRequest, ChatResponse, ModelInfo, ProviderInfo
from amplifier_sdk.chat import ToolCall, Usage
from amplifier_sdk.content import ContentBlock, TextBlock, ThinkingBlock, ToolCallBlock
from amplifier_sdk.contracts import (
    ApprovalSystem,
    ContextManager,
    DisplaySystem,
    Hooks,
    Provider,
    Tool,
)
from amplifier_sdk.hookspecs import KINDS, ModuleKind
from amplifier_sdk.journal import Journal
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.modules import MODULE_ATTRIBUTE
from amplifier_sdk.results import HookResult, ToolResult
from amplifier_sdk.streaming import Delta

__all__ = [
    "Ask",
    "Blocking",
    "EchoLoop",
    "Listener",
    "MemoryContext",
    "MemoryJournal",
    "Mount",
    "Person",
    "PlainLoop",
    "PlainProvider",
    "Recorder",
    "Screen",
    "ScriptedProvider",
    "Sentry",
    "Step",
    "Worker",
    "answer",
    "build_loader",
    "build_plan",
    "build_session",
    "call",
    "calling",
    "ended_early",
    "forever",
    "mounting",
    "only_result",
    "open_call_ids",
]

Ask: TypeAlias = Callable[[ChatRequest], Awaitable[ChatResponse]]
Generate: TypeAlias = Callable[
    [ChatRequest], AsyncGenerator[Delta | ChatResponse, None]
]


def answer(
    text: str,
    *,
    finish_reason: str = "stop",
    usage: Usage | None = None,
    thinking: str = "",
) -> ChatResponse:
    """Make an answer of text alone."""
    content: list[ContentBlock] = [ThinkingBlock(thinking=thinking)] if thinking else []
    if text:
        content.append(TextBlock(text=text))
    return ChatResponse(content=content, finish_reason=finish_reason, usage=usage)


def call(name: str, arguments: JSONObject | None = None, *, id: str = "") -> ToolCall:
    """Make a tool call; its id is the tool's name unless given."""
    return ToolCall(
        id=id or f"id-{name}",
        name=name,
        arguments={} if arguments is None else arguments,
    )


def calling(
    *calls: ToolCall, text: str = "", finish_reason: str = "tool_calls"
) -> ChatResponse:
    """Make an answer that calls tools."""
    content: list[ContentBlock] = [TextBlock(text=text)] if text else []
    content += [
        ToolCallBlock(id=call.id, name=call.name, input=call.arguments)
        for call in calls
    ]
    return ChatResponse(content=content, tool_calls=calls, finish_reason=finish_reason)


def ended_early(text: str, limit: str, amount: object) -> str:
    """Return the answer of a turn that a limit ended, as the model's last words make it."""
    return (
        f"{text}\n\n[The turn ended early: its limit {limit!r} of {amount} is reached.]"
    )


async def forever() -> None:
    """Wait until cancelled."""
    await anyio.sleep_forever()


class Generated(ScriptedProvider):
    """A streaming provider whose deltas a function yields, for every request anew."""

    def __init__(self, generate: Generate) -> None:
        super().__init__(generate, repeat=True)


class PlainProvider:
    """A provider that cannot stream."""

    def __init__(self, *steps: Step, name: str = "plain") -> None:
        self.name = name
        self.script = ScriptedProvider(*steps, name=name)

    @property
    def steps(self) -> list[Step]:
        return self.script.steps

    @property
    def requests(self) -> list[ChatRequest]:
        return self.script.requests

    def get_info(self) -> ProviderInfo:
        return self.script.get_info()

    async def list_models(self) -> list[ModelInfo]:
        return await self.script.list_models()

    async def complete(self, request: ChatRequest, /) -> ChatResponse:
        return await self.script.complete(request)

    def parse_tool_calls(self, response: ChatResponse, /) -> list[ToolCall]:
        return list(response.tool_calls or ())


class MemoryContext(MockContextManager):
    """A list of messages; `on_add`, when set, is awaited before each is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.on_add: Callable[[MessageDict], Awaitable[None]] | None = None

    async def add_message(self, message: MessageDict, /) -> None:
        if self.on_add is not None:
            await self.on_add(message)
        await super().add_message(message)


class EchoLoop(MockOrchestrator):
    """The least loop."""

    name = "loop-echo"


Execute: TypeAlias = Callable[
    [str, ContextManager, dict[str, Provider], dict[str, Tool], Hooks], Awaitable[str]
]


@attrs.define(eq=False)
class PlainLoop:
    """A loop written by hand, from one function of the contract's five arguments."""

    function: Execute

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        return await self.function(prompt, context, providers, tools, hooks)


@attrs.define(eq=False)
class Worker:
    """A tool that calls a function with its input and keeps every input it saw."""

    name: str = "work"
    function: Callable[[JSONObject], Awaitable[object]] | None = None
    input_schema: Mapping[str, JSONValue] = attrs.field(
        factory=lambda: {"type": "object"}
    )
    exclusive: bool = False
    idempotent: bool = False
    description: str = "Works."
    inputs: list[JSONObject] = attrs.field(factory=list)

    async def execute(self, input: JSONObject, /) -> ToolResult:
        self.inputs.append(input)
        value = await self.function(input) if self.function is not None else "done"
        if isinstance(value, ToolResult):
            return value
        return ToolResult(
            output=value if isinstance(value, (str, dict)) else repr(value)
        )


@attrs.define(eq=False)
class Blocking:
    """A tool that says when it runs, waits for `release`, and says how it ended."""

    name: str = "block"
    description: str = "Waits."
    started: anyio.Event = attrs.field(factory=anyio.Event)
    release: anyio.Event = attrs.field(factory=anyio.Event)
    ended: str = ""

    async def execute(self, input: JSONObject, /) -> ToolResult:
        self.started.set()
        try:
            await self.release.wait()
        except BaseException:
            self.ended = "cancelled"
            raise
        self.ended = "finished"
        return ToolResult(output="released")


class Recorder(EventRecorder):
    """Hears every event of a registry and keeps it."""

    def all(self, event: str) -> list[dict[str, object]]:
        """Return what each event of a name carried."""
        return self.data(event)

    async def hear(self, event: str, data: Mapping[str, object]) -> None:
        """Record an event and answer nothing."""
        await self.record(event, data)


@attrs.define(eq=False)
class Listener:
    """A handler that says when it runs and then waits for ever."""

    started: anyio.Event = attrs.field(factory=anyio.Event)
    cancelled: bool = False

    async def __call__(self, event: str, data: dict[str, object]) -> HookResult | None:
        self.started.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled = True
        return None


@attrs.define(eq=False)
class Sentry:
    """A handler that answers what it is given, in order, and then `continue`; it keeps the data it saw."""

    answers: list[HookResult | None] = attrs.field(factory=list)
    seen: list[dict[str, object]] = attrs.field(factory=list)

    async def __call__(self, event: str, data: dict[str, object]) -> HookResult | None:
        self.seen.append(data)
        return self.answers.pop(0) if self.answers else None


@attrs.define(eq=False)
class Person:
    """An approval system with one answer, or an error to raise; it keeps the questions."""

    reply: str | Exception = "Allow"
    questions: list[tuple[str, tuple[str, ...], float, str]] = attrs.field(factory=list)

    async def request_approval(
        self, prompt: str, options: Sequence[str], timeout: float, default: str, /
    ) -> str:
        self.questions.append((prompt, tuple(options), timeout, default))
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


@attrs.define(eq=False)
class Screen:
    """A display that keeps what it was shown, or fails."""

    shown: list[tuple[str, str, str]] = attrs.field(factory=list)
    error: Exception | None = None

    def show_message(self, message: str, level: str, source: str = "hook", /) -> None:
        if self.error is not None:
            raise self.error
        self.shown.append((message, level, source))


def mounting(instance: object, declared: str | None = None) -> Mount:
    """Make a `mount` function that returns an instance, or raises it, and perhaps declares the module's type."""
    mount = testing.mounting(instance)
    if declared is not None:
        setattr(mount, "__amplifier_module_type__", declared)  # noqa: B010  # a function has no such attribute
    return mount


def build_loader(
    modules: Mapping[str, object], *, kinds: Sequence[ModuleKind] = KINDS
) -> ModuleLoader:
    """Make a loader of modules by id: classes and functions as they are, instances behind a `mount`."""
    return ModuleLoader(
        modules={name: _module(target) for name, target in modules.items()},
        kinds=kinds,
        path=[],
    )


def _module(target: object) -> object:
    is_module = (
        hasattr(target, "mount")
        or hasattr(target, MODULE_ATTRIBUTE)
        or hasattr(target, "__code__")
        or isinstance(target, ModuleType)
    )
    return target if is_module else mounting(target)


def build_plan(
    *,
    providers: Sequence[object] = (),
    tools: Sequence[object] = (),
    hooks: Sequence[object] = (),
    **session: object,
) -> dict[str, object]:
    """Make a plan with the modules `loop` and `context`; `session` are more keys of that section."""
    return {
        "session": {"orchestrator": "loop", "context": "context", **session},
        "providers": list(providers),
        "tools": list(tools),
        "hooks": list(hooks),
    }


def build_session(
    *steps: Step,
    provider: object = None,
    tools: Sequence[object] = (),
    hooks: Sequence[object] = (),
    loop: object = None,
    context: object = None,
    limits: Mapping[str, JSONValue] | None = None,
    settings: Mapping[str, object] | None = None,
    journal: Journal | None = None,
    approval: ApprovalSystem | None = None,
    display: DisplaySystem | None = None,
    task_group: TaskGroup | None = None,
    session_id: str | None = None,
    parent_id: str | None = None,
    is_resumed: bool = False,
    spent: Spending | None = None,
    instruction: str | None = None,
) -> AmplifierSession:
    """Make a session of doubles: a scripted provider, a list as context, the least loop, the tools given."""
    tool_modules = {f"tool-{index}": tool for index, tool in enumerate(tools)}
    hook_modules = {f"hook-{index}": hook for index, hook in enumerate(hooks)}
    modules: dict[str, object] = {
        "loop": loop or EchoLoop(),
        "context": context or MemoryContext(),
        "provider": provider or ScriptedProvider(*steps),
        **tool_modules,
        **hook_modules,
    }
    plan = build_plan(
        providers=["provider"],
        tools=list(tool_modules),
        hooks=list(hook_modules),
        limits=limits,
        **(settings or {}),
    )
    if instruction is not None:
        plan["system"] = {"instruction": instruction}
    session = AmplifierSession(
        plan,
        build_loader(modules),
        session_id,
        parent_id,
        approval,
        display,
        is_resumed,
        task_group,
        spent=spent,
    )
    if journal is not None:
        session.coordinator.register_capability("session.journal", journal)
    return session


def open_call_ids(messages: Sequence[MessageDict]) -> list[str]:
    """Return the ids of the calls that no message right after their own answers: a provider refuses those."""
    open_ids: list[str] = []
    for index, message in enumerate(messages):
        calls = message.get("tool_calls")
        if not isinstance(calls, list):
            continue
        answered = []
        for later in messages[index + 1 :]:
            if later["role"] != "tool":
                break
            answered.append(later["tool_call_id"])
        open_ids += [
            str(call["id"])
            for call in calls
            if isinstance(call, dict) and call["id"] not in answered
        ]
    return open_ids


def only_result(messages: Sequence[MessageDict]) -> str:
    """Return the text of the one tool result of a history."""
    (text,) = [message["content"] for message in messages if message["role"] == "tool"]
    assert isinstance(text, str)
    return text


def mounted_context(coordinator: ModuleCoordinator) -> MemoryContext:
    """Return the double that is mounted as context."""
    context = coordinator.context
    assert isinstance(context, MemoryContext)
    return context
