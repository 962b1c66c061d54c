"""The contracts: what each module type must have, what `mount` receives, what the host offers.

The five module types are runtime-checkable protocols with the module contracts' members; optional members (a tool's
`input_schema`, a provider's `stream`) are protocols of their own. Source: the module contracts and
module source protocol.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager
from typing import (
    TYPE_CHECKING,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    overload,
    runtime_checkable,
)

from amplifier_sdk.chat import (
    ChatRequest,
    ChatResponse,
    Degradation,
    ModelInfo,
    ProviderInfo,
    ToolCall,
    Usage,
)
from amplifier_sdk.events import Event
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.limits import Limits
from amplifier_sdk.messages import Message, MessageDict
from amplifier_sdk.results import Emission, HookResult, ToolResult
from amplifier_sdk.streaming import Delta

if TYPE_CHECKING:
    from pathlib import Path  # only a source of modules has one

    from amplifier_sdk.history import Repair  # few sessions repair anything

__all__ = [
    "ApprovalSystem",
    "Cancellation",
    "Cleanup",
    "ContextManager",
    "Coordinator",
    "DisplaySystem",
    "HookHandler",
    "Hooks",
    "MeteredProvider",
    "ModuleSource",
    "ModuleSourceResolver",
    "Orchestrator",
    "Provider",
    "RepairableContext",
    "RequestBuilder",
    "StreamingProvider",
    "Tool",
    "ToolWithSchema",
    "TurnHost",
    "Unregister",
]

T = TypeVar("T")
P = TypeVar("P", bound=Mapping[str, object])


@runtime_checkable
class Tool(Protocol):
    """What a model can call."""

    @property
    def name(self) -> str:
        """The name the model calls; short, snake_case, unique in a session."""

    @property
    def description(self) -> str:
        """What the tool does and expects, for the model."""

    async def execute(self, input: JSONObject, /) -> ToolResult:
        """Run the tool.

        Args:
            input: the arguments, checked against the tool's schema.
        """


@runtime_checkable
class ToolWithSchema(Tool, Protocol):
    """A tool that says what arguments it takes."""

    @property
    def input_schema(self) -> Mapping[str, JSONValue]:
        """The JSON Schema (2020-12) of the arguments, an object schema."""


@runtime_checkable
class Provider(Protocol):
    """A model behind one vendor's API."""

    @property
    def name(self) -> str:
        """The provider's short name."""

    def get_info(self) -> ProviderInfo:
        """Say what the provider is; no network."""

    async def list_models(self) -> list[ModelInfo]:
        """List the models on offer."""

    async def complete(self, request: ChatRequest, /) -> ChatResponse:
        """Answer one request.

        Raises:
            LLMError: the vendor failed, refused or could not be reached.
        """

    def parse_tool_calls(self, response: ChatResponse, /) -> list[ToolCall]:
        """Return the tool calls of an answer."""


@runtime_checkable
class StreamingProvider(Provider, Protocol):
    """A provider that hands out its answer as it forms."""

    def stream(
        self, request: ChatRequest, /
    ) -> AbstractAsyncContextManager[AsyncIterator[Delta | ChatResponse]]:
        """Open one answer: deltas as they come, then exactly one `ChatResponse`, which is complete."""


@runtime_checkable
class MeteredProvider(Provider, Protocol):
    """A provider that says beforehand what its requests count against; whoever limits them asks it."""

    @property
    def account(self) -> str:
        """What the vendor limits together: the same for all who use one key at one address, and no secret."""

    async def max_usage(self, request: ChatRequest, /) -> Usage:
        """Return what a request uses at most, and costs where that is known."""


@runtime_checkable
class HookHandler(Protocol):
    """Hears events, and may decide what happens."""

    async def __call__(self, event: str, data: dict[str, object], /) -> HookResult:
        """Handle one event; `data` is the handler's own shallow copy."""


@runtime_checkable
class ContextManager(Protocol):
    """What the agent remembers. Messages are plain JSON data and come back as they went in."""

    async def add_message(self, message: MessageDict, /) -> None:
        """Append a message."""

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        """Return a view that fits the model's window; the history itself is never changed."""

    async def get_messages(self) -> list[MessageDict]:
        """Return the whole history."""

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        """Replace the history, when a session is resumed."""

    async def clear(self) -> None:
        """Forget everything."""


@runtime_checkable
class RepairableContext(ContextManager, Protocol):
    """A context that is notified when its history is repaired or replaced; others get it by `set_messages`.

    For those that store more than the history, or whose `set_messages` does not replace it.
    """

    async def repair_messages(self, repair: Repair, /) -> None:
        """Replace the history by `repair.messages`, which vendors accept; `repair.findings` say what was wrong."""


@runtime_checkable
class Orchestrator(Protocol):
    """The agent loop: decides the order of provider and tool calls."""

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        """Run one turn and return the final answer."""


Unregister: TypeAlias = Callable[[], None]
"""Takes a registration back; calling it twice does nothing."""

Cleanup: TypeAlias = Callable[[], Awaitable[object] | object]
"""Releases what a module holds; sync or async."""


class Hooks(Protocol):
    """The hook registry that modules and loops receive."""

    @property
    def host(self) -> TurnHost:
        """The host that runs provider and tool calls."""

    @overload
    def register(
        self,
        event: Event[P],
        handler: Callable[[str, P], Awaitable[HookResult | None] | HookResult | None],
        priority: int = 0,
        name: str | None = None,
        *,
        decides: bool | None = None,
        timeout: float | None = None,
    ) -> Unregister: ...
    @overload
    def register(
        self,
        event: str,
        handler: Callable[
            [str, dict[str, object]], Awaitable[HookResult | None] | HookResult | None
        ],
        priority: int = 0,
        name: str | None = None,
        *,
        decides: bool | None = None,
        timeout: float | None = None,
    ) -> Unregister:
        """Call `handler` on each `event`; lower priorities first, ties in the order of registration, patterns last.

        Args:
            event: an event's name, or a glob such as `"tool:*"`.
            handler: sync or async.
            priority: lower runs earlier.
            name: how the handler is named in errors and logs; default its `__name__`.
            decides: whether a failing handler denies the operation; `None` means yes for `tool:pre` and
                `prompt:submit` and no elsewhere.
            timeout: the handler's own deadline in seconds; `None` means the session's for a blocking
                handler and none for an observer.
        """

    def has_handlers(self, event: str, /) -> bool:
        """Whether anybody hears the event: lets a caller skip building a costly payload."""

    @overload
    def emit(
        self, event: Event[P], data: P, /
    ) -> Coroutine[object, object, Emission]: ...
    @overload
    def emit(
        self, event: str, data: Mapping[str, object], /
    ) -> Coroutine[object, object, Emission]:
        """Call the event's handlers in turn and return all they decided."""

    def emit_and_collect(
        self, event: str, data: Mapping[str, object], timeout: float = 1.0
    ) -> Coroutine[object, object, list[Mapping[str, object]]]:
        """Call the event's handlers in turn, `timeout` seconds each, and return the data of their answers."""


class Cancellation(Protocol):
    """How far a turn is asked to stop."""

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn was asked to stop at all."""

    @property
    def is_graceful(self) -> bool:
        """Whether running steps may finish and no new one may start."""

    @property
    def is_immediate(self) -> bool:
        """Whether running steps are cancelled."""


class RequestBuilder(Protocol):
    """Makes a request of the messages it shall carry, for example `partial(ChatRequest, tools=specs)`."""

    def __call__(self, *, messages: Sequence[Message]) -> ChatRequest:
        """Build the request."""


class TurnHost(Protocol):
    """What the kernel does for a loop: one provider call and one tool call, each with all its duties."""

    @property
    def limits(self) -> Limits:
        """The session's limits."""

    @property
    def cancellation(self) -> Cancellation:
        """The session's cancellation token."""

    @property
    def metadata(self) -> Mapping[str, JSONValue]:
        """What the application gave the turn besides its prompt; see `AmplifierSession.execute`."""

    @property
    def conversation_id(self) -> str:
        """What a vendor may group the session's requests by: the session's id."""

    @property
    def assigned(self) -> str | None:
        """The provider that the session was given for all its requests, whatever its loop chooses."""

    @property
    def was_shown(self) -> bool:
        """Whether anybody saw a part of the last request's answer as it formed."""

    @property
    def limit(self) -> str | None:
        """The name of the limit that the turn reached."""

    @property
    def wrapped_up(self) -> bool:
        """Whether the turn's last answer was given, so that there can be no other."""

    @property
    def prompt_media(self) -> Sequence[JSONObject]:
        """What is shown with the turn's prompt, described without its data."""

    def prompt_content(
        self, prompt: str, media: Sequence[Mapping[str, JSONValue]]
    ) -> JSONValue:
        """Return the content of the message that stores the prompt, with the media and as handlers left both."""

    def note_degradation(self, degradation: Degradation) -> None:
        """List in the turn's result in what an answer is not what was asked for."""

    def complete(
        self,
        provider: Provider,
        request: RequestBuilder,
        *,
        context: ContextManager,
        name: str | None = None,
        model: str | None = None,
        iteration: int = 0,
        max_reached: bool = False,
    ) -> Coroutine[object, object, ChatResponse]:
        """Run one provider call.

        Emits `provider:request`, takes the messages from the context, adds what handlers inject, calls or
        streams under the session's deadlines, emits `provider:response` or `provider:error`. Nothing is
        written to the context but lasting injections.

        Args:
            provider: whom to ask.
            request: builds the request of the messages.
            context: where the messages come from.
            name: the provider's mounted name; default its own.
            model: the model asked, for the events.
            iteration: which call of the turn this is, from 0.
            max_reached: tell the model that this is its last answer.

        Raises:
            TurnCancelled: the turn was asked to stop, so no new call starts.
            LLMTimeoutError: a deadline passed.
            Exception: whatever the provider raised, unchanged.
        """

    def run_tool(
        self,
        call: ToolCall,
        tools: Mapping[str, Tool],
        *,
        parallel_group_id: str | None = None,
    ) -> Coroutine[object, object, ToolResult]:
        """Run one tool call; every failure is a result, never an exception."""

    def run_tools(
        self, calls: Sequence[ToolCall], tools: Mapping[str, Tool]
    ) -> Coroutine[object, object, list[ToolResult]]:
        """Run the calls of one answer beside each other and return their results in the calls' order.

        A lone call runs in the caller's task. At most `limits.parallel_tools` run at once. A tool with a true
        `exclusive` attribute runs alone; of tools whose `read_only` attribute is false one runs at a time, in the
        calls' order, beside the others.
        """

    def take_steering(
        self, context: ContextManager, /
    ) -> Coroutine[object, object, Sequence[str]]:
        """Add what was typed while the agent worked to the conversation; return the texts that were added.

        Each passes the handlers of `prompt:submit`, which may change it or keep it out.
        """

    def process_hook_result(
        self, result: Emission | HookResult, event: str, hook_name: str = "unknown", /
    ) -> Coroutine[object, object, Emission]:
        """Carry out what handlers decided: store injections, ask the person, show messages."""


class ApprovalSystem(Protocol):
    """Asks a person."""

    async def request_approval(
        self,
        prompt: str,
        options: Sequence[str],
        timeout: float,
        default: Literal["allow", "deny"],
        /,
    ) -> str:
        """Return the option the person chose.

        One question at a time is asked. It is withdrawn, by a cancellation, after `timeout` seconds and when
        the turn is asked to stop.

        Args:
            prompt: all that the person should read: the tool with the arguments that will run, the handler's
                text, what "Allow always" covers. Nothing in it is obeyed by a terminal.
            options: the answers to choose from.
            timeout: seconds to wait for an answer.
            default: the answer when nobody gives one.

        Raises:
            ApprovalTimeoutError: nobody answered within `timeout` seconds.
            ApprovalUnavailableError: nobody can be asked; the message says why.
        """


class DisplaySystem(Protocol):
    """Shows messages to a person."""

    def show_message(
        self, message: str, level: str, source: str = "hook", /
    ) -> Awaitable[object] | None:
        """Show one message, sync or async; must not block.

        Args:
            message: the text, as the handler wrote it: nothing is escaped yet.
            level: `info`, `warning` or `error`.
            source: who says it, such as `hook:` and the handler's name.
        """


class Coordinator(Protocol):
    """What `mount` receives: the session's mount points, hooks, capabilities and channels."""

    @property
    def hooks(self) -> Hooks:
        """The session's hook registry."""

    @property
    def session_id(self) -> str:
        """The session's id."""

    @property
    def parent_id(self) -> str | None:
        """The parent session's id, for a child."""

    @property
    def config(self) -> Mapping[str, object]:
        """The mount plan the session was given."""

    @property
    def cancellation(self) -> Cancellation:
        """The session's cancellation token."""

    def mount(
        self, mount_point: str, module: object, name: str | None = None
    ) -> Awaitable[None]:
        """Put an instance at a mount point. It is there when the call returns; awaiting is optional."""

    def get(self, mount_point: str, name: str | None = None) -> object:
        """Return what is mounted: the instance of a single point, the live dict of a named one."""

    async def unmount(self, mount_point: str, name: str | None = None) -> None:
        """Take an instance away from its mount point."""

    def register_capability(self, name: str, value: object) -> None:
        """Offer a value to other modules under a name."""

    def get_capability(self, name: str) -> object:
        """Return a capability, or `None`."""

    def register_contributor(
        self, channel: str, name: str, callback: Callable[[], object]
    ) -> None:
        """Contribute to a channel; the callback, sync or async, runs when somebody collects."""

    async def collect_contributions(self, channel: str) -> list[object]:
        """Ask a channel's contributors in order; `None` is dropped, a failing one is reported and skipped."""

    def register_cleanup(self, cleanup: Cleanup) -> None:
        """Run `cleanup` when the session ends, last registered first."""

    async def own(
        self, resource: AbstractAsyncContextManager[T], *, name: str = "resource"
    ) -> T:
        """Open a resource in a task of its own and close it there when the session ends.

        For objects with a task group or cancel scope (clients, watchers, servers).

        Raises:
            OwnerTaskError: the session was not opened with `async with` or given a task group.
        """


@runtime_checkable
class ModuleSource(Protocol):
    """Where a module's code is."""

    def resolve(self) -> Path:
        """Return the directory that holds the importable module; runs in a thread, so it may block.

        Raises:
            ModuleNotFoundError: the source cannot be resolved.
        """


@runtime_checkable
class ModuleSourceResolver(Protocol):
    """Decides where modules come from; the application mounts one at `module-source-resolver`."""

    def resolve(self, module_id: str, source_hint: object = None, /) -> ModuleSource:
        """Return the source of a module; runs in a thread, so it may block.

        A resolver may have an async `async_resolve` of the same arguments instead, which then is asked.

        Args:
            module_id: the module, for example `tool-bash`.
            source_hint: the plan's `source`, whose form the application defines; `None` where the plan has
                none. Given by name to a parameter `source_hint`, `profile_hint` or `profile_source`.

        Raises:
            ModuleNotFoundError: this resolver does not know the module, which is then searched among what is
                installed.
        """
