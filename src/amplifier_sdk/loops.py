"""The base class of orchestrators: a loop is a page, because the duties are here and in the host.

`Loop.execute` is the contract's five-argument call. It opens a `Turn`, emits the events that a turn owes
(balanced, also on error and cancel) and leaves the order of the steps to `run`:

```python
@orchestrator
class BasicLoop(Loop):
    name = "loop-basic"

    async def run(self, turn: Turn) -> str:
        while True:
            response = await turn.complete()
            if not response.tool_calls:
                return response.text
            await turn.run_tools(response.tool_calls)
```
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar, Final

import anyio
import attrs

from amplifier_sdk.chat import ChatRequest, ChatResponse, ToolCall, ToolChoice, ToolSpec, Usage
from amplifier_sdk.contracts import ContextManager, Hooks, Provider, Tool, TurnHost
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean
from amplifier_sdk.events import (
    EXECUTION_END,
    EXECUTION_START,
    ORCHESTRATOR_COMPLETE,
    PROMPT_COMPLETE,
    PROMPT_SUBMIT,
    ExecutionEnd,
    ExecutionStart,
    OrchestratorComplete,
    PromptComplete,
    PromptSubmit,
)
from amplifier_sdk.history import tool_message
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import ToolResult

__all__ = ["Loop", "Turn", "choose_provider", "schema_of", "tool_spec"]

ANY_OBJECT: Final[Mapping[str, JSONValue]] = {"type": "object"}
DEFAULT_PRIORITY: Final = 100
"""The priority of a provider that names none; the lowest is chosen."""


class Loop(ABC):
    """An orchestrator whose duties are done: write `run`."""

    name: ClassVar[str] = "loop"
    _described: tuple[dict[str, Tool], tuple[ToolSpec, ...]] = ({}, ())

    @abstractmethod
    async def run(self, turn: Turn) -> str:
        """Decide the order of the turn's steps and return its answer."""

    def provider_name(self, providers: Mapping[str, Provider]) -> str:
        """Choose the turn's provider; the one with the lowest priority unless a loop decides otherwise."""
        return choose_provider(providers)

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        """Run one turn; see `amplifier_sdk.contracts.Orchestrator`."""
        specs = self._specs(tools)
        turn = Turn(prompt, context, providers, tools, hooks, hooks.host, self.provider_name(providers), specs)
        status, answer = "error", ""
        try:
            if hooks.has_handlers(EXECUTION_START):
                await hooks.emit(EXECUTION_START, ExecutionStart(prompt=prompt))
            denial = await turn.begin()
            answer = await self.run(turn) if denial is None else denial
            status = "success" if denial is None else "denied"
            await turn.end(answer)
        except BaseException as error:
            status = "error" if isinstance(error, Exception) else "cancelled"
            raise
        finally:
            await self._report(turn, answer, status)
        return answer

    def _specs(self, tools: dict[str, Tool]) -> tuple[ToolSpec, ...]:
        """Describe the tools for the model, anew only when they are other tools than in the turn before."""
        if tools != self._described[0]:
            self._described = (dict(tools), tuple(map(tool_spec, tools.values())))
        return self._described[1]

    async def _report(self, turn: Turn, answer: str, status: str) -> None:
        """Emit the events that close the turn; they are owed however it ended."""
        hooks = turn.hooks
        if not hooks.has_handlers(ORCHESTRATOR_COMPLETE) and not hooks.has_handlers(EXECUTION_END):
            return
        with anyio.CancelScope(shield=True), anyio.move_on_after(turn.host.limits.cleanup_timeout):
            await hooks.emit(
                ORCHESTRATOR_COMPLETE,
                OrchestratorComplete(orchestrator=self.name, turn_count=turn.iteration, status=status),
            )
            await hooks.emit(EXECUTION_END, ExecutionEnd(response=answer, status=status))


@attrs.define(eq=False)
class Turn:
    """One turn of a loop: its parts, and the two steps a loop is made of.

    `specs` are the tools as the model sees them, `iteration` counts the provider calls made, `usage` what they
    reported, `calls_made` the tool calls run.
    """

    prompt: str
    context: ContextManager
    providers: Mapping[str, Provider]
    tools: Mapping[str, Tool]
    hooks: Hooks
    host: TurnHost
    provider_name: str
    specs: tuple[ToolSpec, ...] = ()
    iteration: int = 0
    calls_made: int = 0
    usage: Usage | None = None

    async def begin(self) -> str | None:
        """Announce the prompt and store it; return the refusal's text when a handler denies the turn."""
        if self.hooks.has_handlers(PROMPT_SUBMIT):
            emission = await self.hooks.emit(PROMPT_SUBMIT, PromptSubmit(prompt=self.prompt))
            emission = await self.host.process_hook_result(emission, PROMPT_SUBMIT)
            if emission.denied:
                return f"Operation denied: {emission.reason}"
            prompt = emission.data["prompt"]
            self.prompt = prompt if isinstance(prompt, str) else self.prompt
        await self.context.add_message({"role": "user", "content": self.prompt})
        return None

    async def end(self, answer: str) -> None:
        """Announce the turn's answer."""
        if self.hooks.has_handlers(PROMPT_COMPLETE):
            await self.hooks.emit(
                PROMPT_COMPLETE,
                PromptComplete(prompt=self.prompt, response=answer, response_preview=answer[:200], length=len(answer)),
            )

    async def complete(
        self,
        *,
        provider: str | None = None,
        tool_choice: ToolChoice | None = None,
        model: str | None = None,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        reasoning_effort: str | None = None,
    ) -> ChatResponse:
        """Ask the model once and store its answer.

        When a limit is reached the model is told so and gets no tools, so that its answer ends the turn; after
        that one the turn is over.

        Args:
            provider: the name of the provider to ask; default the turn's.
            tool_choice: as in `ChatRequest`; the rest as well.

        Raises:
            LLMError: the provider failed.
            BudgetExceededError: a limit was reached and the last answer given.
        """
        name = provider or self.provider_name
        asked = self.providers.get(name)
        if asked is None:
            raise self._missing(name)
        request = partial(
            ChatRequest,
            tools=self.specs or None,
            tool_choice=tool_choice,
            model=model,
            temperature=temperature,
            max_output_tokens=max_output_tokens,
            reasoning_effort=reasoning_effort,
        )
        response = await self.host.complete(
            asked,
            request,
            context=self.context,
            name=name,
            model=model,
            iteration=self.iteration,
        )
        self.iteration += 1
        if response.usage is not None:
            self.usage = response.usage if self.usage is None else self.usage + response.usage
        await self.context.add_message(response.to_message())
        return response

    async def run_tools(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Run the calls of one answer and store their results in the calls' order.

        One call runs in the turn's own task; several run beside each other, as many at once as the
        session's limit says. Calls beyond the turn's limit are answered without being run.
        """
        self.calls_made += len(calls)
        results = await self.host.run_tools(calls, self.tools)
        for call, result in zip(calls, results, strict=True):
            await self.context.add_message(tool_message(call.id, call.name, result.get_serialized_output()))
        return results

    def _missing(self, name: str) -> ConfigError:
        known = ", ".join(self.providers) or "none"
        hint = did_you_mean(name, list(self.providers))
        return ConfigError([Problem("provider", f"no provider {name!r} is mounted; mounted: {known}{hint}")])


def choose_provider(providers: Mapping[str, Provider]) -> str:
    """Return the name of the provider with the lowest `priority`, the first mounted among equals.

    The priority is the provider's attribute, else its configuration's, else 100.

    Raises:
        ConfigError: no provider is mounted.
    """
    if not providers:
        raise ConfigError([Problem("providers", "no provider is mounted; name one in the plan's 'providers'")])
    if len(providers) == 1:
        return next(iter(providers))
    return min(providers, key=lambda name: _priority(providers[name]))


def _priority(provider: Provider) -> float:
    priority = getattr(provider, "priority", None)
    if priority is None:
        config = getattr(provider, "config", None)
        priority = config.get("priority") if isinstance(config, Mapping) else None
    return priority if isinstance(priority, (int, float)) else DEFAULT_PRIORITY


def tool_spec(tool: Tool) -> ToolSpec:
    """Describe a tool for a model; its schema is `input_schema`, else `get_schema()`, else any object."""
    return ToolSpec(name=tool.name, description=tool.description, parameters=schema_of(tool))


def schema_of(tool: Tool) -> Mapping[str, JSONValue]:
    """Return the JSON Schema of a tool's arguments, in whichever of the contracts' spellings it offers one."""
    schema = getattr(tool, "input_schema", None)
    if schema is None and callable(get_schema := getattr(tool, "get_schema", None)):
        schema = get_schema()
    return schema if isinstance(schema, Mapping) and schema else ANY_OBJECT
