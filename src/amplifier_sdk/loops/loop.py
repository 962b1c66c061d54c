"""The base class itself: what a turn owes however it ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import anyio

from amplifier_sdk.chat import ToolChoice, ToolSpec
from amplifier_sdk.contracts import ContextManager, Hooks, Provider, Tool
from amplifier_sdk.events import (
    EXECUTION_END,
    EXECUTION_START,
    ORCHESTRATOR_COMPLETE,
    ExecutionEnd,
    ExecutionStart,
    OrchestratorComplete,
)
from amplifier_sdk.loops.config import LoopConfig
from amplifier_sdk.loops.events import STEERING_INJECTED, STOPPING, SteeringEntered
from amplifier_sdk.loops.priorities import choose_provider, not_mounted
from amplifier_sdk.loops.specs import tool_spec
from amplifier_sdk.loops.turn import Turn

if TYPE_CHECKING:
    from amplifier_sdk.loops.choice import ProviderChoice

__all__ = ["Loop"]

DEFAULTS: Final = LoopConfig()
MAX_CONTINUED: Final = 25
"""How many times the handlers of `orchestrator:stopping` may continue one turn."""


class Loop(ABC):
    """An orchestrator whose duties are done: write `run`.

    A loop that works without a model sets `needs_provider` to false. One that reads what is typed while it works
    (`Turn.take_steering`) sets `takes_steering` to true. `config` are its settings.
    """

    name: ClassVar[str] = "loop"
    needs_provider: ClassVar[bool] = True
    takes_steering: ClassVar[bool] = False
    config: LoopConfig = DEFAULTS
    _choice: ProviderChoice | None = None
    _described: tuple[dict[str, Tool], tuple[ToolSpec, ...]] = ({}, ())
    _changing: tuple[tuple[Tool, ToolSpec], ...] = ()

    @abstractmethod
    async def run(self, turn: Turn) -> str:
        """Decide the order of the turn's steps and return its answer."""

    def provider_name(self, providers: Mapping[str, Provider]) -> str:
        """Choose whom the loop asks: the configured provider, else the one with the lowest priority.

        A loop that needs no provider and has none gets an empty name.
        """
        if not providers and not self.needs_provider:
            return ""
        return self.config.default_provider or choose_provider(providers)

    def first_choice(self, tools: Mapping[str, Tool]) -> ToolChoice | None:
        """Return the `tool_choice` of a turn's first request: the configured `first_tool`, if there is one.

        Raises:
            ConfigError: it is not mounted.
        """
        name = self.config.first_tool
        if name is None:
            return None
        if name in tools:
            return {"type": "tool", "name": name}
        raise not_mounted("first_tool", "tool", name, tools)

    @property
    def choice(self) -> ProviderChoice:
        """What chooses among several providers, and remembers which of them failed."""
        if self._choice is None:
            # most loops have one provider that works
            from amplifier_sdk.loops.choice import ProviderChoice

            self._choice = ProviderChoice(self.config)
        return self._choice

    @property
    def chooses(self) -> bool:
        """Whether a request may go to another provider than the loop's own, or one has failed."""
        if self._choice is not None and self._choice.breakers:
            return True
        return self.config.role is not None or self.config.fallback

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        """Run one turn; see `amplifier_sdk.contracts.Orchestrator`."""
        host = hooks.host
        name, specs = self.provider_name(providers), self._specs(tools)
        turn = Turn(
            self,
            prompt,
            context,
            providers,
            tools,
            hooks,
            host,
            name,
            specs,
            host.metadata,
        )
        status, answer = "error", ""
        try:
            if hooks.has_handlers(EXECUTION_START):
                await hooks.emit(EXECUTION_START, ExecutionStart(prompt=prompt))
            denial = await turn.begin()
            if denial is not None:
                status, answer = "denied", denial
            else:
                first = await self.run(turn)
                answer = first
                if hooks.has_handlers(STOPPING):
                    answer = await self._continued(turn, first)
                status = _status(turn, answer)
            await turn.end(answer)
        except BaseException as error:
            status = "cancelled"
            if isinstance(error, Exception):
                status = "error"
            raise
        finally:
            await self._report(turn, answer, status)
        return answer

    async def announce_steering(self, turn: Turn, texts: Sequence[str]) -> None:
        """Announce that texts which were typed while the agent worked are in the conversation."""
        if turn.hooks.has_handlers(STEERING_INJECTED):
            for number, text in enumerate(texts, 1):
                await turn.hooks.emit(
                    STEERING_INJECTED,
                    SteeringEntered(text=text, waiting=len(texts) - number),
                )

    async def _continued(self, turn: Turn, answer: str) -> str:
        """Run the turn's steps once more for each time that a handler does not let the agent stop."""
        # a handler that is never content must not keep the turn running for ever
        for continued in range(MAX_CONTINUED):
            if (
                turn.is_over
                or turn.host.cancellation.is_cancelled
                or not await turn.is_continued(answer, continued)
            ):
                break
            answer = await self.run(turn)
        return answer

    def _specs(self, tools: dict[str, Tool]) -> tuple[ToolSpec, ...]:
        """Describe the tools for the model, anew only when they are other tools than in the turn before.

        Those with a true `describes_anew` are described again in each turn.
        """
        if tools != self._described[0] or any(map(_is_new, self._changing)):
            described = [(tool, tool_spec(tool)) for tool in tools.values()]
            # a copy: the mounted tools are a live dict, which changes under this loop
            self._described = (dict(tools), tuple(spec for _, spec in described))
            self._changing = tuple(
                one
                for one in described
                if getattr(one[0], "describes_anew", False) is True
            )
        return self._described[1]

    async def _report(self, turn: Turn, answer: str, status: str) -> None:
        """Emit the events that close the turn; they are owed however it ended."""
        hooks = turn.hooks
        if not hooks.has_handlers(ORCHESTRATOR_COMPLETE) and not hooks.has_handlers(
            EXECUTION_END
        ):
            return
        # A cancelled turn owes these events too; the limit keeps a handler that hangs
        # from holding the cancellation.
        with (
            anyio.CancelScope(shield=True),
            anyio.move_on_after(turn.host.limits.cleanup_timeout),
        ):
            await hooks.emit(
                ORCHESTRATOR_COMPLETE,
                OrchestratorComplete(
                    orchestrator=self.name, turn_count=turn.iteration, status=status
                ),
            )
            await hooks.emit(
                EXECUTION_END, ExecutionEnd(response=answer, status=status)
            )


def _is_new(described: tuple[Tool, ToolSpec]) -> bool:
    """Whether a tool says something else of itself than when it was described."""
    tool, spec = described
    return tool_spec(tool) != spec


def _status(turn: Turn, answer: str) -> str:
    """Say how a turn ended that has an answer: at a limit, with nothing said, or well."""
    if turn.host.limit is not None:
        return "incomplete"
    if answer.strip():
        return "success"
    return "empty"
