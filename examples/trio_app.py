"""An application that streams a turn: `asyncio_app.py` and `trio_app.py` differ in their last line.

    python examples/asyncio_app.py
    python examples/trio_app.py --provider provider-local

Without an argument the answers come from a script; `provider-local` is a small model that needs no key.
"""

from __future__ import annotations

import argparse
from typing import Final, assert_never

import anyio

from amplifier import AmplifierSession, ModuleLoader
from amplifier_sdk import (
    JSONValue,
    SteeringInjected,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolFinished,
    ToolOutput,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    UsageReported,
    tool,
)

PROMPT: Final = "What is 19 plus 23? Use the tool."
SCRIPT: Final[JSONValue] = [
    {
        "text": "I add them.",
        "tool_calls": [{"name": "add", "arguments": {"left": 19, "right": 23}}],
    },
    {"deltas": ["19 plus 23 ", "is 42."]},
]


@tool
def add(left: int, right: int) -> int:
    """Add two whole numbers.

    Args:
        left: the first number.
        right: the second number.
    """
    return left + right


def plan(provider: str) -> dict[str, JSONValue]:
    """Name the session's modules; the model has to call `add` before it answers."""
    config: JSONValue = {"responses": SCRIPT} if provider == "provider-scripted" else {}
    return {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "orchestrator": {"config": {"first_tool": "add"}},
        "providers": [{"module": provider, "config": config}],
        "tools": ["add"],
    }


def show(event: StreamEvent) -> None:
    """Print one event of the turn on a line of its own."""
    match event:
        case TextDelta():
            print("text    ", event.text)
        case ThinkingDelta():
            print("thinking", event.text)
        case ToolCallDelta():
            print("call    ", event.name, event.arguments)
        case ToolStarted():
            print("started ", event.call.name)
        case ToolProgress() | ToolOutput() | SteeringInjected():
            print("told    ", event)
        case ToolFinished():
            print("finished", event.call.name, "->", event.result)
        case UsageReported():
            print("usage   ", event.usage.total_tokens)
        case TurnFinished():
            print("answer  ", event.text)
        case _:
            assert_never(event)


async def main(provider: str = "provider-scripted") -> None:
    """Run one turn and print its events as they happen."""
    loader = ModuleLoader(modules={"add": add})
    async with (
        AmplifierSession(plan(provider), loader) as session,
        session.stream(PROMPT) as events,
    ):
        async for event in events:
            show(event)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Stream a turn with a tool call.")
    parser.add_argument(
        "--provider", default="provider-scripted", help="the id of the provider module"
    )
    anyio.run(main, parser.parse_args().provider, backend="trio")
