"""amplifier-core: a session of it with a loop, a context, a provider and a tool of our own.

None of its modules is on the package index, so they are written here: the loop emits what a loop owes in an
iteration (a request, a response, before and after the tool) and builds a checked request from the history.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  # the peer runs on asyncio alone
import logging
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from amplifier_core import (  # it is installed in an environment of its own
    AmplifierSession,
    ChatRequest,
    ChatResponse,
    HookRegistry,
    HookResult,
    Message,
    ModuleCoordinator,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from amplifier_core.message_models import TextBlock, ToolCallBlock

from benchmarks import floor
from benchmarks.peers.adapter import Peer, main

PLAN: Final = {
    "session": {
        "orchestrator": {"module": "prepared-loop"},
        "context": {"module": "prepared-context"},
    },
    "providers": [{"module": "prepared-provider"}],
    "tools": [{"module": "prepared-tool"}],
}


class PreparedModel:
    """Gives the answers it was handed."""

    name = "prepared"
    priority = 1

    def __init__(self, peer: Peer | None = None) -> None:
        self.peer = peer
        self.answers: list[ChatResponse] = []
        self.given = 0

    async def complete(self, request: ChatRequest, **options: object) -> ChatResponse:
        """Give the next answer."""
        if self.peer is not None and self.peer.think:
            await asyncio.sleep(self.peer.think)
        answer = self.answers[self.given]
        self.given += 1
        return answer

    def parse_tool_calls(self, response: ChatResponse) -> list[ToolCall]:
        """Return the answer's calls."""
        return response.tool_calls or []


class History:
    """Keeps messages in a list."""

    def __init__(self) -> None:
        self.messages: list[dict[str, object]] = []

    async def add_message(self, message: dict[str, object]) -> None:
        """Append a message."""
        self.messages.append(message)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: object = None
    ) -> list[dict[str, object]]:
        """Return all messages."""
        return list(self.messages)

    async def get_messages(self) -> list[dict[str, object]]:
        """Return all messages."""
        return list(self.messages)

    async def set_messages(self, messages: list[dict[str, object]]) -> None:
        """Replace the messages."""
        self.messages = list(messages)

    async def clear(self) -> None:
        """Forget everything."""
        self.messages = []


class Noop:
    """The floor's tool."""

    name = "noop"
    description = "Return the number as text."
    input_schema: ClassVar[Mapping[str, object]] = {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "string"}},
        "required": ["x"],
    }

    async def execute(self, input: floor.Arguments) -> ToolResult:
        """Run it."""
        return ToolResult(success=True, output=await floor.noop(**input))


class Loop:
    """The plain loop: ask, run the tools, ask again."""

    async def execute(
        self,
        prompt: str,
        context: History,
        providers: dict[str, PreparedModel],
        tools: dict[str, Noop],
        hooks: HookRegistry,
        coordinator: object = None,
        **options: object,
    ) -> str:
        """Run one turn."""
        emit = _emitter(hooks, coordinator)
        await emit("prompt:submit", {"prompt": prompt})
        await context.add_message({"role": "user", "content": prompt})
        name, model = next(iter(providers.items()))
        specs = [
            ToolSpec(name=t.name, description=t.description, parameters=t.input_schema)
            for t in tools.values()
        ]
        while True:
            await emit("provider:request", {"provider": name})
            messages = [
                Message(**message)
                for message in await context.get_messages_for_request(provider=model)
            ]
            response = await model.complete(ChatRequest(messages=messages, tools=specs))
            await hooks.emit(
                "provider:response",
                {"provider": name, "tool_calls": bool(response.tool_calls)},
            )
            content = [block.model_dump() for block in response.content]
            calls = model.parse_tool_calls(response)
            if not calls:
                await context.add_message({"role": "assistant", "content": content})
                await emit("prompt:complete", {"prompt": prompt})
                return str(response.content[0].text)
            shown = [
                {"id": call.id, "tool": call.name, "arguments": call.arguments}
                for call in calls
            ]
            await context.add_message(
                {"role": "assistant", "content": content, "tool_calls": shown}
            )
            for call, result in zip(
                calls, await _together(calls, tools, emit), strict=True
            ):
                text = result.get_serialized_output()
                await context.add_message(
                    {"role": "tool", "tool_call_id": call.id, "content": text}
                )


async def _together(
    calls: Sequence[ToolCall],
    tools: dict[str, Noop],
    emit: Callable[[str, dict[str, object]], Awaitable[None]],
) -> list[ToolResult]:
    async def run(call: ToolCall) -> ToolResult:
        data = {"tool_name": call.name, "tool_input": call.arguments}
        await emit("tool:pre", data)
        result = await tools[call.name].execute(call.arguments)
        await emit("tool:post", {**data, "result": result})
        return result

    return list(await asyncio.gather(*map(run, calls)))


def _emitter(
    hooks: HookRegistry, coordinator: object
) -> Callable[[str, dict[str, object]], Awaitable[None]]:
    process = getattr(coordinator, "process_hook_result", None)

    async def emit(event: str, data: dict[str, object]) -> None:
        result = await hooks.emit(event, data)
        if process is not None:
            await process(result, event, "loop")

    return emit


class Kit:
    """The modules of the session that is being built, for the mount functions below."""

    model = PreparedModel()
    history = History()


async def mount_loop(coordinator: ModuleCoordinator, config: object = None) -> None:
    """Mount the loop."""
    await coordinator.mount("orchestrator", Loop())


async def mount_context(coordinator: ModuleCoordinator, config: object = None) -> None:
    """Mount the history."""
    await coordinator.mount("context", Kit.history)


async def mount_provider(coordinator: ModuleCoordinator, config: object = None) -> None:
    """Mount the model."""
    await coordinator.mount("providers", Kit.model, name="prepared")


async def mount_tool(coordinator: ModuleCoordinator, config: object = None) -> None:
    """Mount the tool."""
    await coordinator.mount("tools", Noop(), name="noop")


def offer_modules(folder: Path) -> None:
    """Write the metadata by which the peer's loader finds the mount functions, and put it on the path."""
    info = folder / "prepared-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: prepared\nVersion: 1.0\n", encoding="utf-8"
    )
    home = "benchmarks.peers.amplifier_core_session"
    lines = [
        f"prepared-{kind} = {home}:mount_{kind}"
        for kind in ("loop", "context", "provider", "tool")
    ]
    (info / "entry_points.txt").write_text(
        "\n".join(["[amplifier.modules]", *lines, ""]), encoding="utf-8"
    )
    sys.path.append(str(folder))
    # one set of classes, whichever way they are imported
    sys.modules[home] = sys.modules[__name__]


class Session(Peer):
    """A session of `amplifier-core`."""

    name: ClassVar[str] = "amplifier-core"

    async def open(self) -> None:
        """Build the session and mount its modules."""
        Kit.model, Kit.history = self.model, self.history = (
            PreparedModel(self),
            History(),
        )
        self.session = AmplifierSession(PLAN)
        await self.session.initialize()

    async def prepare(self, steps: Sequence[int]) -> None:
        """Make one turn's answers and empty the history."""
        asking = [_asking([floor.new_id() for _ in range(calls)]) for calls in steps]
        self.model.answers = [*asking, ChatResponse(content=[TextBlock(text="done")])]
        self.model.given = 0
        await self.history.clear()

    async def remember(self, messages: int) -> bool:
        """Fill the history."""
        said: list[dict[str, object]] = [
            {"role": "user", "content": "m"},
            {"role": "assistant", "content": "m"},
        ]
        await self.history.set_messages(said * (messages // 2))
        return True

    async def turn(self) -> str:
        """Run one turn."""
        return str(await self.session.execute(floor.PROMPT))

    async def close(self) -> None:
        """Release the session."""
        await self.session.cleanup()

    def emitter(self, handlers: int) -> Callable[[], Awaitable[object]]:
        """Return what emits one event to that many handlers."""
        registry = HookRegistry()
        for number in range(handlers):
            registry.register("tool:pre", _observe, name=f"observer-{number}")
        data = {"tool_name": "noop", "tool_input": floor.ARGUMENTS}
        return lambda: registry.emit("tool:pre", data)


async def _observe(event: str, data: object) -> HookResult:
    return HookResult(action="continue")


def _asking(ids: Sequence[str]) -> ChatResponse:
    return ChatResponse(
        content=[
            ToolCallBlock(id=call_id, name="noop", input={**floor.ARGUMENTS})
            for call_id in ids
        ],
        tool_calls=[
            ToolCall(id=call_id, name="noop", arguments={**floor.ARGUMENTS})
            for call_id in ids
        ],
    )


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as made:
        offer_modules(Path(made))
        main(Session)
