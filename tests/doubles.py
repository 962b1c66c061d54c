"""Scripted doubles of the five module types, and sessions made of them.

Each does the least its contract asks for and keeps what it saw. A step of a script is an answer, an
exception to raise, or an async function of the request that returns the answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

import anyio
import attrs
from anyio.abc import TaskGroup

from amplifier import AmplifierSession, HookRegistry, ModuleCoordinator, ModuleLoader
from amplifier_sdk import BaseProvider, ChatRequest, ChatResponse, ModelInfo, ProviderInfo
from amplifier_sdk.chat import ToolCall, Usage
from amplifier_sdk.content import ContentBlock, TextBlock, ThinkingBlock, ToolCallBlock
from amplifier_sdk.contracts import ApprovalSystem, ContextManager, Coordinator, DisplaySystem, Hooks, Provider, Tool
from amplifier_sdk.errors import LLMError
from amplifier_sdk.hookspecs import KINDS, ModuleKind
from amplifier_sdk.journal import Journal, JournalRecord
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.loops import Loop, Turn
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.modules import MODULE_ATTRIBUTE
from amplifier_sdk.results import HookResult, ToolResult
from amplifier_sdk.streaming import Delta, TextDelta

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
    "Worker",
    "answer",
    "build_loader",
    "build_plan",
    "build_session",
    "call",
    "calling",
    "forever",
    "mounting",
    "only_result",
    "open_call_ids",
]

Ask: TypeAlias = Callable[[ChatRequest], Awaitable[ChatResponse]]
Step: TypeAlias = str | ChatResponse | BaseException | Ask
Generate: TypeAlias = Callable[[ChatRequest], AsyncGenerator[Delta | ChatResponse, None]]
Mount: TypeAlias = Callable[[Coordinator, Mapping[str, JSONValue]], Awaitable[object]]
Handler: TypeAlias = Callable[[str, dict[str, object]], Awaitable[HookResult | None] | HookResult | None]

ONE_TOKEN: Final = Usage(input_tokens=1, output_tokens=1, total_tokens=2)


def answer(text: str, *, finish_reason: str = "stop", usage: Usage | None = None, thinking: str = "") -> ChatResponse:
    """Make an answer of text alone."""
    content: list[ContentBlock] = [ThinkingBlock(thinking=thinking)] if thinking else []
    if text:
        content.append(TextBlock(text=text))
    return ChatResponse(content=content, finish_reason=finish_reason, usage=usage)


def call(name: str, arguments: JSONObject | None = None, *, id: str = "") -> ToolCall:
    """Make a tool call; its id is the tool's name unless given."""
    return ToolCall(id=id or f"id-{name}", name=name, arguments={} if arguments is None else arguments)


def calling(*calls: ToolCall, text: str = "", finish_reason: str = "tool_calls") -> ChatResponse:
    """Make an answer that calls tools."""
    content: list[ContentBlock] = [TextBlock(text=text)] if text else []
    content += [ToolCallBlock(id=call.id, name=call.name, input=call.arguments) for call in calls]
    return ChatResponse(content=content, tool_calls=calls, finish_reason=finish_reason)


async def forever() -> None:
    """Wait until cancelled."""
    await anyio.sleep_forever()


async def _play(step: Step, request: ChatRequest) -> ChatResponse:
    if isinstance(step, str):
        return answer(step)
    if isinstance(step, ChatResponse):
        return step
    if isinstance(step, BaseException):
        raise step
    return await step(request)


class ScriptedProvider(BaseProvider):
    """A streaming provider that plays one step a request; an answer's text is its one delta."""

    name = "scripted"

    def __init__(self, *steps: Step, name: str = "scripted") -> None:
        self.steps = list(steps)
        self.requests: list[ChatRequest] = []
        self.name = name  # type: ignore[misc]  # several in one session are told apart by it

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id=self.name, display_name="Scripted")

    async def deltas(self, request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        self.requests.append(request)
        if not self.steps:
            raise LLMError("the script is at its end")
        response = await _play(self.steps.pop(0), request)
        if response.text:
            yield TextDelta(text=response.text)
        yield response

    @property
    def last_messages(self) -> list[tuple[str, str]]:
        """The roles and texts of the last request's messages."""
        return [(message.role, message.text) for message in self.requests[-1].messages]


class Generated(ScriptedProvider):
    """A streaming provider whose deltas a function yields."""

    def __init__(self, generate: Generate) -> None:
        super().__init__()
        self.generate = generate

    def deltas(self, request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        self.requests.append(request)
        return self.generate(request)


class PlainProvider:
    """A provider that cannot stream."""

    def __init__(self, *steps: Step, name: str = "plain") -> None:
        self.name = name
        self.steps = list(steps)
        self.requests: list[ChatRequest] = []

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id=self.name, display_name="Plain")

    async def list_models(self) -> list[ModelInfo]:
        return []

    async def complete(self, request: ChatRequest, /) -> ChatResponse:
        self.requests.append(request)
        return await _play(self.steps.pop(0), request)

    def parse_tool_calls(self, response: ChatResponse, /) -> list[ToolCall]:
        return list(response.tool_calls or ())


class MemoryContext:
    """A list of messages; `on_add`, when set, is awaited before each is stored."""

    def __init__(self) -> None:
        self.messages: list[MessageDict] = []
        self.on_add: Callable[[MessageDict], Awaitable[None]] | None = None

    async def add_message(self, message: MessageDict, /) -> None:
        if self.on_add is not None:
            await self.on_add(message)
        self.messages.append(message)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> Sequence[MessageDict]:
        return list(self.messages)

    async def get_messages(self) -> Sequence[MessageDict]:
        return list(self.messages)

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        self.messages = list(messages)

    async def clear(self) -> None:
        self.messages = []

    @property
    def roles(self) -> list[JSONValue]:
        """The roles of the stored messages."""
        return [message["role"] for message in self.messages]

    @property
    def results(self) -> dict[JSONValue, JSONValue]:
        """The stored tool results: texts by call id."""
        return {m["tool_call_id"]: m["content"] for m in self.messages if m["role"] == "tool"}


class EchoLoop(Loop):
    """The least loop: asks, runs the tools that are called, asks again."""

    name = "loop-echo"

    async def run(self, turn: Turn) -> str:
        while True:
            response = await turn.complete()
            if not response.tool_calls:
                return response.text
            await turn.run_tools(response.tool_calls)


Execute: TypeAlias = Callable[[str, ContextManager, dict[str, Provider], dict[str, Tool], Hooks], Awaitable[str]]


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
    input_schema: Mapping[str, JSONValue] = attrs.field(factory=lambda: {"type": "object"})
    exclusive: bool = False
    description: str = "Works."
    inputs: list[JSONObject] = attrs.field(factory=list)

    async def execute(self, input: JSONObject, /) -> ToolResult:
        self.inputs.append(input)
        value = await self.function(input) if self.function is not None else "done"
        if isinstance(value, ToolResult):
            return value
        return ToolResult(output=value if isinstance(value, (str, dict)) else repr(value))


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


@attrs.define(eq=False)
class Recorder:
    """Hears every event of a registry and keeps it."""

    events: list[tuple[str, dict[str, object]]] = attrs.field(factory=list)

    @classmethod
    def of(cls, hooks: HookRegistry, pattern: str = "*") -> Recorder:
        recorder = cls()
        hooks.register(pattern, recorder.hear, -1000, "recorder", decides=False)
        return recorder

    def hear(self, event: str, data: dict[str, object]) -> None:
        self.events.append((str(event), data))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.events]

    def all(self, event: str) -> list[dict[str, object]]:
        return [data for name, data in self.events if name == event]

    def one(self, event: str) -> dict[str, object]:
        (data,) = self.all(event)
        return data


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

    async def request_approval(self, prompt: str, options: Sequence[str], timeout: float, default: str, /) -> str:
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


@attrs.define(eq=False)
class MemoryJournal:
    """A journal in memory; from record `fails_at` on, counted from 0, it fails."""

    records: list[JournalRecord] = attrs.field(factory=list)
    fails_at: int | None = None

    async def append(self, record: JournalRecord) -> None:
        if self.fails_at is not None and len(self.records) >= self.fails_at:
            raise OSError("no space left")
        self.records.append(record)

    @property
    def kinds(self) -> list[str]:
        return [type(record).__name__ for record in self.records]


def mounting(instance: object, declared: str | None = None) -> Mount:
    """Make a `mount` function that returns an instance, or raises it when it is an exception."""

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> object:
        if isinstance(instance, BaseException):
            raise instance
        return instance

    if declared is not None:
        setattr(mount, "__amplifier_module_type__", declared)  # noqa: B010  # a function has no such attribute
    return mount


def build_loader(modules: Mapping[str, object], *, kinds: Sequence[ModuleKind] = KINDS) -> ModuleLoader:
    """Make a loader of modules by id: classes and functions as they are, instances behind a `mount`."""
    return ModuleLoader(modules={name: _module(target) for name, target in modules.items()}, kinds=kinds, path=[])


def _module(target: object) -> object:
    is_module = hasattr(target, "mount") or hasattr(target, MODULE_ATTRIBUTE) or hasattr(target, "__code__")
    return target if is_module else mounting(target)


def build_plan(
    *, providers: Sequence[object] = (), tools: Sequence[object] = (), hooks: Sequence[object] = (), **session: object
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
        providers=["provider"], tools=list(tool_modules), hooks=list(hook_modules), limits=limits, **(settings or {})
    )
    session = AmplifierSession(
        plan,
        build_loader(modules),
        session_id,
        parent_id,
        approval,
        display,
        is_resumed,
        task_group,
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
        open_ids += [str(call["id"]) for call in calls if isinstance(call, dict) and call["id"] not in answered]
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
