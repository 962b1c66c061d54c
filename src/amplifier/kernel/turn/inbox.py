"""Steering: what a person types while the agent works, on its way into the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import attrs

from amplifier.kernel.hooks.dispatcher import HookDispatcher
from amplifier.kernel.turn.decisions import TurnDecisions
from amplifier.kernel.turn.stream import EventSink
from amplifier_sdk.contracts import ContextManager
from amplifier_sdk.errors import SessionError
from amplifier_sdk.events import PROMPT_SUBMIT, PromptSubmit
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.streaming import SteeringInjected

__all__ = ["SteeringInbox", "SteeringReader", "SteeringText"]

CAPACITY: Final = 32
"""How many texts wait for the agent."""


@attrs.frozen
class SteeringText:
    """A text for the agent, and whether a person typed it: a module may make one of what it read somewhere."""

    text: str
    is_typed: bool = True


@attrs.define(eq=False)
class SteeringInbox:
    """The texts that wait for a turn of the session; what came too late for one turn waits for the next."""

    waiting: list[SteeringText] = attrs.field(factory=list)

    @property
    def texts(self) -> tuple[str, ...]:
        """What waits, as bare texts."""
        return tuple(entry.text for entry in self.waiting)

    def put(self, text: str, *, is_typed: bool = True) -> None:
        """Store a text for the next request of a model.

        Raises:
            SessionError: as many texts as can wait are waiting.
            ValueError: the text is empty.
        """
        if not text.strip():
            raise ValueError(
                "The text to steer with is empty; say what the agent shall do"
            )
        if len(self.waiting) >= CAPACITY:
            raise SessionError(
                f"{CAPACITY} texts wait for the agent already; wait until it has read them"
            )
        self.waiting.append(SteeringText(text, is_typed))

    def withdraw(self) -> tuple[str, ...]:
        """Remove the texts that wait, and return them."""
        texts = self.texts
        self.waiting.clear()
        return texts


@attrs.frozen(eq=False)
class SteeringReader:
    """Hands the texts of the inbox to the loop of one turn."""

    inbox: SteeringInbox
    hooks: HookDispatcher
    decisions: TurnDecisions
    stream: EventSink | None

    async def take(self, context: ContextManager) -> Sequence[str]:
        """Add what was typed to the conversation; see `TurnHost.take_steering`."""
        added: list[str] = []
        waiting = self.inbox.waiting
        while waiting:
            # taken out before the wait: a second reader must not add it as well
            entry = waiting.pop(0)
            try:
                submitted = await self._submit(entry)
                if submitted is not None:
                    await self.decisions.processor.store(
                        context, {"role": "user", "content": submitted}
                    )
            except BaseException:
                waiting.insert(0, entry)  # a turn that ends here has not read it
                raise
            if submitted is not None:
                added.append(submitted)
                if self.stream is not None:
                    await self.stream.send(SteeringInjected(text=submitted))
        return added

    async def _submit(self, entry: SteeringText) -> str | None:
        """Show a text to those who decide on prompts; return what they leave of it, or `None` if it is denied."""
        if not self.hooks.has_handlers(PROMPT_SUBMIT):
            return entry.text
        metadata: dict[str, JSONValue] = {"steering": True, "typed": entry.is_typed}
        payload = PromptSubmit(prompt=entry.text, metadata=metadata)
        emission = await self.hooks.emit(PROMPT_SUBMIT, payload)
        emission = await self.decisions.carry_out(emission, PROMPT_SUBMIT)
        if emission.denied:
            return None
        return cast("str", emission.data["prompt"])
