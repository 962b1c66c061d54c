"""What the decorators and base classes of modules accept and refuse. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import assert_type

import attrs

from amplifier_sdk import (
    BaseContext,
    BaseProvider,
    ChatRequest,
    ChatResponse,
    ContextManager,
    Delta,
    Loop,
    MessageDict,
    Orchestrator,
    Provider,
    Secret,
    ToolContext,
    Turn,
    context,
    module,
    orchestrator,
    provider,
    tool,
)


@provider
class Echo(BaseProvider):
    name = "echo"

    async def deltas(self, request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        yield ChatResponse(finish_reason="stop")


@orchestrator
class OneRound(Loop):
    async def run(self, turn: Turn) -> str:
        return (await turn.complete()).text


@context
class Latest(BaseContext):
    def view(self, messages: Sequence[MessageDict], budget: int | None) -> Sequence[MessageDict]:
        return messages[-40:]


@module("judge")
class Judge:
    def evaluate(self, text: str) -> bool:
        return bool(text)


as_provider: Provider = Echo()
as_loop: Orchestrator = OneRound()
as_context: ContextManager = Latest()
assert_type(Judge().evaluate("x"), bool)


class NoContext:
    async def add_message(self, message: MessageDict) -> None:
        raise NotImplementedError


class NoLoop:
    def execute(self, prompt: str) -> str:
        return prompt


context(NoContext)  # error: type-var
orchestrator(NoLoop)  # error: type-var


class WrongView(BaseContext):
    def view(self, messages: str, budget: int | None) -> Sequence[MessageDict]:  # error: override
        return []


class WrongRun(Loop):
    def run(self, turn: Turn) -> str:  # error: override
        return turn.prompt


Loop()  # error: abstract


@attrs.frozen(kw_only=True)
class Config:
    key: Secret


Config(key=Secret("x"))
Config(key="x")  # error: arg-type
assert_type(Config(key=Secret("x")).key.reveal(), str)
shown: str = Config(key=Secret("x")).key  # error: assignment


@tool
def build(target: str, context: ToolContext) -> str:
    """Build."""
    context.progress("compiling", done=1, total=2)
    context.progress("compiling", 1)  # error: call-arg
    context.output(3)  # error: arg-type
    return target


assert_type(build("x", ToolContext()), str)
build("x")  # error: call-arg
