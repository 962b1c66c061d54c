"""Loops that break what holds of loops: each entry fails at least the behaviour it stands under."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import anyio
import attrs

from amplifier.validation.behaviors import Subject
from amplifier_sdk import ChatRequest, ChatResponse, Loop, Turn
from amplifier_sdk.contracts import ContextManager, Hooks, Provider, Tool
from amplifier_sdk.history import tool_message, typed
from tests.validation.behaviors.sound import Round, mounting

__all__ = ["FAULTY"]


def _made(build: Callable[[], object]) -> Subject:
    return Subject(kind="orchestrator", module=mounting(build))


@attrs.define(eq=False, slots=False)
class ByHand:
    """A loop that does by itself, and badly, what the host is there for.

    It asks the provider and the tools directly: no event, no check, no limit, no deadline. It reads the history
    without asking for a view, and stores only results unless it `stores`.
    """

    stores: bool = False
    rounds: int = 40

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        if self.stores:
            await context.add_message({"role": "user", "content": prompt})
        provider = next(iter(providers.values()))
        for _ in range(self.rounds):
            messages = typed(await context.get_messages())
            request = ChatRequest(messages=messages)
            response: ChatResponse = await provider.provider.complete(request)  # type: ignore[attr-defined]  # past its proxy
            if self.stores:
                await context.add_message(response.to_message())
            if not response.tool_calls:
                return response.text
            for call in response.tool_calls:
                tool = tools[call.name]
                result = await tool.tool.execute(call.arguments)  # type: ignore[attr-defined]  # likewise
                await context.add_message(tool_message(call.id, call.name, str(result)))
        return ""


class Silent:
    """A loop that does nothing at all."""

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        return "nothing"


class Reordered:
    """A loop whose parameters stand in another order and have other names."""

    async def execute(
        self,
        context: ContextManager,
        message: str,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        return message


class Renamed(Round):
    """A loop whose parameters stand in another order."""

    async def execute(  # type: ignore[override]
        self,
        hooks: Hooks,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
    ) -> str:
        return await super().execute(prompt, context, providers, tools, hooks)


class Greedy(Round):
    """A loop that empties what it is given."""

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        try:
            return await super().execute(
                prompt, context, dict(providers), dict(tools), hooks
            )
        finally:
            tools.clear()


class TextOnly(Round):
    """A loop that stores the text of an answer and nothing else."""

    async def run(self, turn: Turn) -> str:
        turn.context = _TextStore(turn.context)  # type: ignore[assignment]  # the rest by delegation
        return await super().run(turn)


class _TextStore:
    def __init__(self, inner: ContextManager) -> None:
        self._inner = inner

    async def add_message(self, message: Mapping[str, object]) -> None:
        content = message["content"]
        parts = content if isinstance(content, list) else []
        text = (
            content
            if isinstance(content, str)
            else "".join(str(part.get("text", "")) for part in parts)
        )
        await self._inner.add_message({"role": str(message["role"]), "content": text})

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


class Restless(Round):
    """A loop that asks once more when it has the answer."""

    async def run(self, turn: Turn) -> str:
        text = await super().run(turn)
        await turn.complete()
        return text


class FirstCallOnly(Round):
    """A loop that runs the first call of an answer."""

    async def run(self, turn: Turn) -> str:
        while True:
            response = await turn.complete()
            if not response.tool_calls:
                return response.text
            await turn.run_tools(response.tool_calls[:1])


class Backwards(Round):
    """A loop that runs and stores calls from the last to the first."""

    async def run(self, turn: Turn) -> str:
        while True:
            response = await turn.complete()
            if not response.tool_calls:
                return response.text
            await turn.run_tools(response.tool_calls[::-1])


class OneRound(Loop):
    """A loop that ends after the first calls."""

    async def run(self, turn: Turn) -> str:
        response = await turn.complete()
        await turn.run_tools(response.tool_calls or ())
        return response.text


class Swallower(Round):
    """A loop that makes an answer of every error, and of a cancellation."""

    async def run(self, turn: Turn) -> str:
        try:
            return await super().run(turn)
        except BaseException as error:
            if not isinstance(error, Exception):
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(0.5)
            return f"Something went wrong: {error}"


class Shielded(Round):
    """A loop that cannot be cancelled."""

    async def run(self, turn: Turn) -> str:
        with anyio.CancelScope(shield=True), anyio.move_on_after(0.3):
            return await super().run(turn)
        return ""


class Mute(Round):
    """A loop without the events that a turn owes."""

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        await context.add_message({"role": "user", "content": prompt})
        turn = Turn(
            self,
            prompt,
            context,
            providers,
            tools,
            hooks,
            hooks.host,
            self.provider_name(providers),
        )
        return await self.run(turn)


class Sticky(Round):
    """A loop that never recovers, and that remembers prompts of other sessions."""

    broken = False
    prompts: Final[list[str]] = []

    async def run(self, turn: Turn) -> str:
        if self.broken:
            raise RuntimeError("still broken")
        self.broken = True
        self.prompts.append(turn.prompt)
        await turn.context.add_message(
            {"role": "system", "content": " ".join(self.prompts)}
        )
        text = await super().run(turn)
        self.broken = False
        return text


class Chatty(Round):
    """A loop that emits what is the kernel's to emit."""

    async def run(self, turn: Turn) -> str:
        await turn.hooks.emit("session:start", {})
        return await super().run(turn)


class AskAll(Round):
    """A loop that asks every provider."""

    async def run(self, turn: Turn) -> str:
        return " ".join(
            [(await turn.complete(provider=name)).text for name in turn.providers]
        )


class Empty(Round):
    """A loop that gives up when the model says nothing."""

    async def run(self, turn: Turn) -> str:
        return await super().run(turn) or await super().run(turn)


class Graceless(Round):
    """A loop that does not let a tool finish."""

    async def run(self, turn: Turn) -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, turn, group.cancel_scope)
            text = await super().run(turn)
            group.cancel_scope.cancel()
        return text

    async def _watch(self, turn: Turn, scope: anyio.CancelScope) -> None:
        while not turn.host.cancellation.is_cancelled:  # noqa: ASYNC110  # the token has no event
            await anyio.sleep(0.01)
        scope.cancel()


class NoProvider(Round):
    """A loop whose context is not told who reads the view."""

    async def run(self, turn: Turn) -> str:
        view = turn.context.get_messages_for_request
        turn.context = _TextStore(turn.context)  # type: ignore[assignment]  # the rest by delegation
        vars(turn.context)["get_messages_for_request"] = lambda provider=None: view()
        return await super().run(turn)


BY_HAND: Final = _made(partial(ByHand, stores=True))
SWALLOWER: Final = _made(Swallower)
MUTE: Final = _made(Mute)
SILENT: Final = _made(Silent)

FAULTY: Final[Mapping[str, Subject]] = {
    "orchestrator.returns-the-answer": SILENT,
    "orchestrator.returns-an-empty-answer": _made(Empty),
    "orchestrator.takes-its-arguments-by-name": _made(Reordered),
    "orchestrator.takes-its-arguments-in-order": _made(Renamed),
    "orchestrator.leaves-its-arguments-alone": _made(Greedy),
    "orchestrator.stores-the-prompt": _made(ByHand),
    "orchestrator.stores-the-answer": _made(ByHand),
    "orchestrator.stores-signed-thinking": _made(TextOnly),
    "orchestrator.stores-unknown-blocks": _made(TextOnly),
    "orchestrator.asks-with-the-prompt": _made(ByHand),
    "orchestrator.asks-with-earlier-turns": _made(ByHand),
    "orchestrator.asks-the-context-for-a-view": BY_HAND,
    "orchestrator.names-the-provider-to-the-context": _made(NoProvider),
    "orchestrator.offers-the-tools": BY_HAND,
    "orchestrator.offers-tools-with-their-schema": BY_HAND,
    "orchestrator.offers-nothing-when-there-is-nothing": SILENT,
    "orchestrator.asks-once-when-no-tool-is-called": _made(Restless),
    "orchestrator.works-with-a-provider-that-cannot-stream": SILENT,
    "orchestrator.streams-the-answer": BY_HAND,
    "orchestrator.streams-tool-calls": BY_HAND,
    "orchestrator.accounts-for-what-was-used": BY_HAND,
    "orchestrator.asks-one-provider": _made(AskAll),
    "orchestrator.keeps-turns-apart": _made(Sticky),
    "orchestrator.runs-a-call": SILENT,
    "orchestrator.gives-the-model-the-result": SILENT,
    "orchestrator.stores-results-behind-their-calls": SILENT,
    "orchestrator.runs-all-calls-of-an-answer": _made(FirstCallOnly),
    "orchestrator.keeps-results-in-the-order-of-their-calls": _made(Backwards),
    "orchestrator.runs-calls-round-after-round": _made(OneRound),
    "orchestrator.answers-a-call-of-an-unknown-tool": BY_HAND,
    "orchestrator.survives-a-tool-that-raises": BY_HAND,
    "orchestrator.gives-the-model-a-tools-own-error": BY_HAND,
    "orchestrator.gives-the-model-a-failed-result": _made(OneRound),
    "orchestrator.runs-no-call-with-unreadable-arguments": BY_HAND,
    "orchestrator.runs-no-call-with-wrong-arguments": BY_HAND,
    "orchestrator.runs-no-call-of-a-cut-answer": BY_HAND,
    "orchestrator.runs-no-call-of-a-filtered-answer": BY_HAND,
    "orchestrator.ends-an-endless-turn": BY_HAND,
    "orchestrator.ends-a-turn-of-too-many-calls": BY_HAND,
    "orchestrator.announces-each-call": BY_HAND,
    "orchestrator.announces-failed-calls": BY_HAND,
    "orchestrator.tells-of-a-failing-provider": SWALLOWER,
    "orchestrator.leaves-a-valid-history-after-an-error": SILENT,
    "orchestrator.works-after-an-error": _made(Sticky),
    "orchestrator.announces-the-prompt": MUTE,
    "orchestrator.announces-the-answer": MUTE,
    "orchestrator.announces-each-request": BY_HAND,
    "orchestrator.announces-a-failed-request": BY_HAND,
    "orchestrator.announces-its-work": MUTE,
    "orchestrator.announces-the-end-of-its-work-after-an-error": MUTE,
    "orchestrator.announces-the-end-of-its-work-after-a-cancel": MUTE,
    "orchestrator.reports-success": MUTE,
    "orchestrator.reports-an-error": SWALLOWER,
    "orchestrator.reports-a-cancel": MUTE,
    "orchestrator.leaves-the-sessions-events-to-the-kernel": _made(Chatty),
    "orchestrator.obeys-a-denied-prompt": MUTE,
    "orchestrator.uses-a-changed-prompt": MUTE,
    "orchestrator.obeys-a-denied-call": BY_HAND,
    "orchestrator.runs-a-call-as-it-was-changed": BY_HAND,
    "orchestrator.withholds-a-denied-result": BY_HAND,
    "orchestrator.runs-a-call-that-a-person-allows": BY_HAND,
    "orchestrator.runs-no-call-that-a-person-denies": BY_HAND,
    "orchestrator.runs-no-call-that-nobody-can-allow": BY_HAND,
    "orchestrator.adds-what-a-handler-adds-to-the-prompt": MUTE,
    "orchestrator.adds-what-a-handler-adds-to-one-request": BY_HAND,
    "orchestrator.adds-what-a-handler-adds-to-a-result": BY_HAND,
    "orchestrator.makes-no-denied-request": BY_HAND,
    "orchestrator.ends-at-once-while-the-model-answers": _made(Shielded),
    "orchestrator.works-after-a-cancel": _made(Sticky),
    "orchestrator.ends-at-once-while-a-tool-runs": _made(Shielded),
    "orchestrator.finishes-the-running-tool-when-asked-gently": _made(Graceless),
    "orchestrator.ends-all-tools-that-run-at-once": _made(Shielded),
    "orchestrator.ends-when-its-reader-leaves": _made(Shielded),
    "orchestrator.ends-with-its-callers-task": _made(Shielded),
}
