"""Orchestrators for tests of everything else: one that answers from a script, and the least loop there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from amplifier_sdk.contracts import Provider
from amplifier_sdk.loops import Loop, Turn, choose_provider

__all__ = ["MockOrchestrator", "ScriptedOrchestrator"]


class MockOrchestrator(Loop):
    """The minimal loop: asks the provider, runs the tools it calls, repeats."""

    name = "mock-orchestrator"

    async def run(self, turn: Turn) -> str:
        """Ask until an answer calls no tool."""
        while True:
            response = await turn.complete()
            if not response.tool_calls:
                return response.text
            await turn.run_tools(response.tool_calls)


class ScriptedOrchestrator(Loop):
    """Answers each turn from a script and asks nobody; it needs no provider.

    Prompt and answer are written to the context, and the events of a turn are emitted. After the script's end
    the answer is `DONE`.

    Args:
        responses: the answers in order; an exception among them is raised.
    """

    name = "scripted-orchestrator"
    needs_provider = False

    def __init__(self, responses: Iterable[str | BaseException] = ()) -> None:
        self.responses: list[str | BaseException] = list(responses)
        self.prompts: list[str] = []

    @property
    def call_count(self) -> int:
        """How many turns it answered."""
        return len(self.prompts)

    def provider_name(self, providers: Mapping[str, Provider]) -> str:
        """Choose a provider if there is one."""
        if providers:
            return choose_provider(providers)
        return ""

    async def run(self, turn: Turn) -> str:
        """Give the next answer."""
        number = len(self.prompts)
        self.prompts.append(turn.prompt)
        # a test may append answers while turns run
        if number < len(self.responses):
            response = self.responses[number]
        else:
            response = "DONE"
        if isinstance(response, BaseException):
            raise response
        await turn.context.add_message({"role": "assistant", "content": response})
        return response
