"""An agent's instructions: a text, or functions that say something new in each turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from typing import TypeAlias, TypeVar, cast

import attrs

from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.events import PROMPT_SUBMIT
from amplifier_sdk.jsontypes import JSONValue
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


@attrs.define(eq=False)
class TurnInstructions:
    """A hook module that asks the functions in each turn.

    What they say stands behind the history and before the prompt, and only where it is new: what a vendor's cache has
    read of the conversation stays as it is.
    """

    functions: tuple[InstructionFunction[object], ...]

    async def mount(
        self, coordinator: Coordinator, _config: dict[str, JSONValue]
    ) -> object:
        """Register the handler of one session."""
        said: list[str | None] = [None] * len(self.functions)

        async def instruct(_event: str, _data: object) -> HookResult | None:
            make = cast("RunContextMaker", coordinator.get_capability(RUN_CONTEXT))
            context = make(coordinator)
            news: list[str] = []
            for index, function in enumerate(self.functions):
                answer = function(context)
                text = await answer if isawaitable(answer) else answer
                if text is not None and text != said[index]:
                    news.append(text)
                said[index] = text
            if not news:
                return None
            return HookResult.inject("\n\n".join(news))

        return coordinator.hooks.register(PROMPT_SUBMIT, instruct, name="instructions")
