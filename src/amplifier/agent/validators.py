"""An application's own checks of an answer that is of the right type."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from inspect import isawaitable
from typing import TypeAlias, TypeVar, cast

from amplifier_sdk.run_context import RunContext

__all__ = ["OutputValidator", "validated"]

DepsT = TypeVar("DepsT")
OutputT = TypeVar("OutputT")

OutputValidator: TypeAlias = Callable[
    [RunContext[DepsT], OutputT], OutputT | Awaitable[OutputT]
]
"""Returns the answer, or another one in its place; sync or async. It raises `OutputRejectedError` with what the model
has to do better; whatever else it raises ends the run."""


async def validated(
    output: OutputT,
    context: RunContext[DepsT],
    validators: Iterable[OutputValidator[DepsT, OutputT]],
) -> OutputT:
    """Give an answer to the validators, each of which gets what the one before returned.

    Raises:
        OutputRejectedError: one of them rejects it.
        Exception: whatever one of them raised.
    """
    for validate in validators:
        checked = validate(context, output)
        if isawaitable(checked):
            checked = await checked
        output = cast("OutputT", checked)
    return output
