"""Steering: what a person types while the agent works, on its way into the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from amplifier.kernel.calls.state import HostState
from amplifier_sdk.contracts import ContextManager
from amplifier_sdk.errors import SessionError
from amplifier_sdk.events import PROMPT_SUBMIT, PromptSubmit
from amplifier_sdk.streaming import SteeringInjected

__all__ = ["SteeringCalls"]

CAPACITY: Final = 32
"""How many texts wait for the agent."""


class SteeringCalls(HostState):
    """Keeps what was typed, and hands it to a loop that asks."""

    __slots__ = ()

    def steer(self, text: str) -> None:
        """Keep a text for the next request of a model.

        Raises:
            SessionError: as many texts as can wait are waiting.
            ValueError: the text is empty.
        """
        if not text.strip():
            raise ValueError("The text to steer with is empty; say what the agent shall do")
        if len(self.steering) >= CAPACITY:
            raise SessionError(f"{CAPACITY} texts wait for the agent already; wait until it has read them")
        self.steering.append(text)

    def withdraw_steering(self) -> tuple[str, ...]:
        """Forget the texts that wait, and return them."""
        waiting = tuple(self.steering)
        self.steering.clear()
        return waiting

    async def take_steering(self, context: ContextManager, /) -> Sequence[str]:
        """Add what was typed to the conversation; see `TurnHost.take_steering`."""
        added: list[str] = []
        while self.steering:
            text = self.steering.pop(0)
            try:
                submitted = await self._submit(text)
                if submitted is not None:
                    await self.decisions.store(context, {"role": "user", "content": submitted})
            except BaseException:
                self.steering.insert(0, text)  # a turn that ends here has not read it
                raise
            if submitted is not None:
                added.append(submitted)
                if self.stream is not None:
                    await self.stream.send(SteeringInjected(text=submitted))
        return added

    async def _submit(self, text: str) -> str | None:
        """Show a text to those who decide on prompts; return what they leave of it, or `None` if it is denied."""
        if not self.hooks.has_handlers(PROMPT_SUBMIT):
            return text
        emission = await self.hooks.emit(PROMPT_SUBMIT, PromptSubmit(prompt=text, metadata={"steering": True}))
        emission = await self.process_hook_result(emission, PROMPT_SUBMIT)
        return None if emission.denied else cast("str", emission.data["prompt"])
