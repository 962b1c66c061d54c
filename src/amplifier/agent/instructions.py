"""An agent's instructions: a text, or functions that say something new in each turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from typing import TypeAlias, TypeVar, cast

import attrs

from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.events import PROMPT_SUBMIT, PromptSubmit
from amplifier_sdk.handlers import on, register_handlers
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.middleware import Proceed, TurnCall, around
from amplifier_sdk.results import HookResult
from amplifier_sdk.run_context import RUN_CONTEXT, RunContext, RunContextMaker

__all__ = ["InstructionFunction", "Instructions", "TurnInstructions", "split"]

DepsT = TypeVar("DepsT")

InstructionFunction: TypeAlias = Callable[
    [RunContext[DepsT]], str | Awaitable[str | None] | None
]
"""Returns the instructions of this turn, or `None`; sync or async."""

Instructions: TypeAlias = (
    str | InstructionFunction[DepsT] | Sequence[str | InstructionFunction[DepsT]]
)
"""An agent's system prompt: a text, a function of the run, or several of both."""


def split(
    instructions: Instructions[DepsT] | None,
) -> tuple[str | None, tuple[InstructionFunction[DepsT], ...]]:
    """Return the text that always holds, and the functions that are asked in each turn."""
    if instructions is None:
        return None, ()
    if isinstance(instructions, str) or callable(instructions):
        instructions = [instructions]
    texts = [part for part in instructions if isinstance(part, str)]
    functions = tuple(part for part in instructions if not isinstance(part, str))
    return "\n\n".join(texts) or None, functions


@attrs.frozen(eq=False)
class TurnInstructions:
    """A hook module that asks the functions in each turn.

    What they say stands behind the history and before the prompt, and only where it is new: what a vendor's cache has
    read of the conversation stays as it is. What one raises ends the turn before a model is asked.
    """

    functions: tuple[InstructionFunction[object], ...]

    async def mount(
        self, coordinator: Coordinator, _config: dict[str, JSONValue]
    ) -> object:
        """Register the handlers of one session."""
        handlers = _Instructing(coordinator, self.functions)
        for unregister in register_handlers(coordinator.hooks, handlers):
            coordinator.register_cleanup(unregister)
        return None


@attrs.define(eq=False)
class _Instructing:
    """What the functions have said in one session, and what one has raised in the turn that runs."""

    coordinator: Coordinator
    functions: tuple[InstructionFunction[object], ...]
    _said: list[str | None] = attrs.field(init=False)
    _error: Exception | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._said = [None] * len(self.functions)

    @on(PROMPT_SUBMIT)
    async def instruct(self, _event: str, _data: PromptSubmit) -> HookResult | None:
        """Add what is new before the prompt."""
        make = cast("RunContextMaker", self.coordinator.get_capability(RUN_CONTEXT))
        try:
            news = await self._news(make(self.coordinator))
        except Exception as error:  # the application's, for whoever started the turn
            self._error = error
            return HookResult.deny("the agent has no instructions for this turn")
        if not news:
            return None
        return HookResult.inject("\n\n".join(news))

    @around("turn")
    async def surround(self, call: TurnCall, proceed: Proceed[TurnCall, str]) -> str:
        """Raise what a function raised, in place of the answer that says that the prompt was denied."""
        self._error = None
        text = await proceed(call)
        if self._error is not None:
            raise self._error
        return text

    async def _news(self, context: RunContext[object]) -> list[str]:
        news: list[str] = []
        for index, function in enumerate(self.functions):
            answer: object = function(context)
            text = await answer if isawaitable(answer) else answer
            if not isinstance(text, str | None):
                name = getattr(function, "__qualname__", repr(function))
                raise TypeError(
                    f"The instruction function {name} returned {type(text).__name__}; return a text or None"
                )
            if text is not None and text != self._said[index]:
                news.append(text)
            self._said[index] = text
        return news
