"""The places of a turn where it is cancelled: real modules, each with something that does not end by itself.

A place says what the provider is sent, and what of the session is special. The turn first lets the tool `quick` do
its work, where it gets that far: what finished before the cancellation has to be kept.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import anyio
import attrs

from amplifier import AmplifierSession, ModuleLoader
from amplifier.testing import mounting
from amplifier.testing.sessions import Mount
from amplifier.testing.transport import HttpAnswer, HttpPart, ScriptedTransport, sse
from amplifier_module_context_persistent import PersistentConfig, PersistentContext
from amplifier_module_provider_chat_completions import ChatCompletionsProvider
from amplifier_module_tool_bash import Bash
from amplifier_module_tool_mcp import mount as mount_mcp
from amplifier_sdk import Coordinator, HookResult, JSONValue, MessageDict, tool
from amplifier_sdk.configuration import read_config
from amplifier_sdk.modules import definition_of
from tests.reliability.turn import LOOPS

__all__ = ["PLACES", "Place", "Run", "answering", "build", "text_answer"]

Place: TypeAlias = Literal[
    "before the answer",
    "mid-stream",
    "a retry wait",
    "a hook",
    "an async tool",
    "a thread tool",
    "bash with grandchildren",
    "an MCP call",
    "a context write",
]
PLACES: Final[tuple[Place, ...]] = Place.__args__  # type: ignore[attr-defined]  # a Literal has them

STUB: Final = str(Path(__file__).with_name("stub_server.py"))
NEVER_SECONDS: Final = 300


@attrs.define(eq=False)
class Run:
    """One turn that is to be cancelled, and what can be asked about it."""

    folder: Path
    # how many seconds those processes would sleep that must not outlive the turn
    mark: str
    transport: ScriptedTransport = attrs.field(factory=ScriptedTransport)
    reached: anyio.Event = attrs.field(factory=anyio.Event)
    release: threading.Event = attrs.field(factory=threading.Event)
    keeps_quick: bool = True
    writes: int = 0


def answering(*calls: tuple[str, str, str], text: str = "") -> HttpAnswer:
    """Make an answer that calls tools: id, name and arguments as JSON."""
    deltas: list[JSONValue] = [{"content": text}] if text else []
    deltas += [
        {
            "tool_calls": [
                {
                    "index": index,
                    "id": id,
                    "type": "function",
                    "function": {"name": name, "arguments": given},
                }
            ]
        }
        for index, (id, name, given) in enumerate(calls)
    ]
    return _answer(deltas, "tool_calls" if calls else "stop")


def text_answer(text: str) -> HttpAnswer:
    """Make an answer of text alone."""
    return answering(text=text)


def _answer(deltas: list[JSONValue], reason: str) -> HttpAnswer:
    return HttpAnswer(parts=(sse(*map(_chunk, deltas), _chunk({}, reason), "[DONE]"),))


def _chunk(delta: JSONValue, reason: str | None = None) -> JSONValue:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


QUICK: Final = ("q", "quick", "{}")


def build(
    place: Place, loop: str, run: Run, session_id: str = "run"
) -> AmplifierSession:
    """Make the session whose first turn comes to a place and stays there; its second one answers at once."""
    never: HttpPart = anyio.Event()
    tools: dict[str, object] = {"quick": quick}
    tool_entries: list[object] = ["quick"]
    hooks: dict[str, object] = {}
    context = _context_of(run, holds=place == "a context write")
    steps: list[HttpAnswer] = []
    match place:
        case "before the answer":
            run.keeps_quick = False
            steps = [HttpAnswer(before=(never,))]
            hooks["reach"] = _observer("provider:request", run)
        case "mid-stream":
            run.keeps_quick = False
            steps = [HttpAnswer(parts=(sse(_chunk({"content": "I beg"})), never))]
            hooks["reach"] = _observer("content_block:delta", run)
        case "a retry wait":
            run.keeps_quick = False
            steps = [
                HttpAnswer(status=429, headers={"retry-after": "55"}, parts=(b"{}",))
            ]
            hooks["reach"] = _observer("provider:retry", run)
        case "a hook":
            steps = [answering(QUICK, ("h", "held", "{}"))]
            tools["held"] = held
            tool_entries.append("held")
            hooks["reach"] = _waiting_hook(run)
        case "an async tool":
            steps = [answering(QUICK, ("w", "work", "{}"))]
            tools["work"] = _async_tool(run)
            tool_entries.append("work")
        case "a thread tool":
            steps = [answering(QUICK, ("w", "work", "{}"))]
            tools["work"] = _thread_tool(run)
            tool_entries.append("work")
        case "bash with grandchildren":
            sleep = f"sleep {run.mark}"
            command = f"setsid {sleep} & (setsid sh -c '{sleep} & {sleep}' &) ; ({sleep} &) ; echo started; {sleep}"
            steps = [answering(QUICK, ("b", "bash", f'{{"command": "{command}"}}'))]
            tools["tool-bash"] = Bash
            config = {
                "default_rules": False,
                "unlisted": "allow",
                "sandbox": "none",
                "working_dir": str(run.folder),
            }
            tool_entries.append({"module": "tool-bash", "config": config})
            hooks["reach"] = _observer("tool:output", run)
        case "an MCP call":
            steps = [answering(QUICK, ("m", "mcp__stub__hang", "{}"))]
            tools["tool-mcp"] = mount_mcp
            server = {"command": sys.executable, "args": [STUB, run.mark]}
            tool_entries.append(
                {
                    "module": "tool-mcp",
                    "config": {"servers": {"stub": server}, "home_file": False},
                }
            )
        case "a context write":
            run.keeps_quick = False
            steps = [text_answer("Said.")]
    run.transport.steps += steps
    plan: dict[str, object] = {
        "session": {"orchestrator": "loop", "context": "context"},
        "providers": [
            {
                "module": "provider",
                "config": {"base_url": "http://stub.invalid/v1", "default_model": "m"},
            }
        ],
        "tools": tool_entries,
        "hooks": list(hooks),
    }
    modules = {
        "loop": LOOPS[loop],
        "context": context,
        "provider": _provider(run),
        **tools,
        **hooks,
    }
    session = AmplifierSession(plan, ModuleLoader(modules=modules, path=[]), session_id)
    session.coordinator.register_capability("session.dir", str(run.folder))
    session.coordinator.register_capability("session.working_dir", str(run.folder))
    return session


@tool
async def quick() -> str:
    """Finish at once."""
    return "quick result"


@tool
async def held() -> str:
    """Never run: a hook waits before it."""
    raise AssertionError


def _async_tool(run: Run) -> object:
    @tool(timeout=NEVER_SECONDS)
    async def work() -> None:
        """Work without end."""
        run.reached.set()
        await anyio.sleep_forever()

    return work


def _thread_tool(run: Run) -> object:
    @tool(timeout=NEVER_SECONDS)
    def work() -> None:
        """Work without end in a thread."""
        anyio.from_thread.run_sync(run.reached.set)
        run.release.wait(NEVER_SECONDS)

    return work


def _observer(event: str, run: Run) -> Mount:
    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        def reach(event: str, data: Mapping[str, object]) -> None:
            run.reached.set()

        coordinator.hooks.register(event, reach, name="reach")

    return mount


def _waiting_hook(run: Run) -> Mount:
    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        async def wait(event: str, data: Mapping[str, object]) -> HookResult | None:
            if data["tool_name"] == "held":
                run.reached.set()
                await anyio.sleep_forever()
            return None

        coordinator.hooks.register("tool:pre", wait, name="wait")

    return mount


def _provider(run: Run) -> Mount:
    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        definition = definition_of(ChatCompletionsProvider)
        assert definition is not None
        built = definition.build(coordinator, config)
        assert isinstance(built, ChatCompletionsProvider)
        built.transport = run.transport
        return await mounting(built)(coordinator, config)

    return mount


def _context_of(run: Run, *, holds: bool) -> Mount:
    class Holding(PersistentContext):
        """Says when the answer is being written, and lets others run before it is."""

        async def add_message(self, message: MessageDict, /) -> None:
            if holds and message["role"] == "assistant":
                run.writes += 1
                if run.writes == 1:
                    run.reached.set()
                    await anyio.sleep_forever()
            await super().add_message(message)

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> PersistentContext:
        settings = read_config(
            PersistentConfig, config, subject="configuration of the context"
        )
        context = await Holding.open(settings, coordinator)
        coordinator.register_cleanup(context.aclose)
        return context

    return mount
