"""Every mixture of our modules and the original's runs every kind of turn, and owes the same in each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import TypeAlias

import anyio
import attrs
import pytest

import amplifier_module_hooks_logging
from amplifier import AmplifierSession
from amplifier.testing import (
    EventRecorder,
    MemoryJournal,
    MockContextManager,
    MockTool,
    ScriptedProvider,
    create_test_session,
)
from amplifier_sdk.chat import ChatRequest, Usage
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import BudgetExceededError, TurnCancelled
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.limits import LimitChanges
from amplifier_sdk.results import HookResult, ToolResult
from tests.compat.modules import context, hook, loop, provider, tool
from tests.doubles import answer, call, calling

Messages: TypeAlias = list[tuple[str, str]]

KINDS = ("loop", "provider", "context", "tool", "hook")
MIXTURES = list(product((False, True), repeat=len(KINDS)))
SECRET = (
    "sk-ant-api03-Zk3vQ9wLr7TbXe2MnPc8YdHs5UfGa1JoKi4EtRuWyBxVqSzNmLhDgFjC-Aa0Bb1Cc2Q"
)
USAGE = Usage(input_tokens=10, output_tokens=2, total_tokens=12)
SCHEMA: JSONObject = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}


def _name(mixture: tuple[bool, ...]) -> str:
    return "-".join(
        kind for kind, is_original in zip(KINDS, mixture, strict=True) if is_original
    )


@attrs.define
class Mixture:
    """Which modules are the original's, and what all of them noted."""

    originals: frozenset[str]
    journal: MemoryJournal = attrs.field(factory=MemoryJournal)
    recorder: EventRecorder = attrs.field(factory=EventRecorder)
    coordinator: Coordinator | None = None

    def session(
        self,
        *steps: str | JSONObject,
        deny: str | None = None,
        inject: str | None = None,
        history: list[JSONObject] | None = None,
        log: Path | None = None,
    ) -> AmplifierSession:
        """Make a session of this mixture; a step is an answer or the text of a call of the tool."""
        written = [
            step
            if isinstance(step, str)
            else {"id": f"c{index}", "name": "count_words", "input": step}
            for index, step in enumerate(steps)
        ]
        native_hook = NativeHook(deny, inject)
        return create_test_session(
            provider=provider if "provider" in self.originals else _scripted(steps),
            tools=[
                tool
                if "tool" in self.originals
                else MockTool("count_words", self._count, input_schema=SCHEMA)
            ],
            hooks=[
                hook if "hook" in self.originals else native_hook,
                self.recorder,
                Keeper(self),
                *([amplifier_module_hooks_logging] if log else []),
            ],
            orchestrator=loop if "loop" in self.originals else None,
            context=context
            if "context" in self.originals
            else MockContextManager(history or []),
            configs={
                "provider": {"steps": written},
                "hook-0": {"deny": deny, "inject": inject},
                "hook-3": {"session_log_template": str(log)} if log else {},
                "context": {"messages": history or []},
            },
            journal=self.journal,
        )

    async def _count(self, given: JSONObject) -> ToolResult:
        assert self.coordinator is not None
        if given["text"] == "cancel":
            await self.coordinator.request_cancel(immediate=True)  # type: ignore[attr-defined]
            await anyio.sleep(3600)
        words = str(given["text"]).split()
        return ToolResult(output={"words": len(words)})

    def requests(self, session: AmplifierSession) -> list[Messages]:
        """Return what the provider was asked, whichever it is: the roles and texts of each request."""
        mounted = next(iter(session.coordinator.providers.values()))
        asked: list[ChatRequest] = getattr(mounted, "original", mounted).requests  # type: ignore[union-attr]
        return [
            [(each.role, _text(each.content)) for each in one.messages] for one in asked
        ]


@attrs.define(eq=False)
class NativeHook:
    """Denies and injects as the original's hook of these tests does."""

    deny: str | None
    inject: str | None

    async def mount(
        self, coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> None:
        coordinator.hooks.register("tool:pre", self.before)
        coordinator.hooks.register("provider:request", self.request)

    async def before(self, event: str, data: dict[str, object]) -> HookResult | None:
        if data["tool_name"] == self.deny:
            return HookResult.deny("not here")
        return None

    async def request(self, event: str, data: dict[str, object]) -> HookResult | None:
        if self.inject is None:
            return None
        return HookResult.inject(self.inject, role="user", ephemeral=True)


@attrs.define(eq=False)
class Keeper:
    """Notes the coordinator, for a tool that cancels its own turn."""

    mixture: Mixture

    async def mount(
        self, coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> None:
        self.mixture.coordinator = coordinator


def _scripted(steps: tuple[str | JSONObject, ...]) -> ScriptedProvider:
    script = [
        answer(step, usage=USAGE)
        if isinstance(step, str)
        else attrs.evolve(
            calling(call("count_words", step, id=f"c{index}")), usage=USAGE
        )
        for index, step in enumerate(steps)
    ]
    return ScriptedProvider(*script, name="scripted-original")


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(getattr(block, "text", "")) for block in content)  # type: ignore[attr-defined]


@pytest.fixture(params=MIXTURES, ids=_name)
def mixture(request: pytest.FixtureRequest) -> Mixture:
    flags: tuple[bool, ...] = request.param
    return Mixture(
        frozenset(kind for kind, flag in zip(KINDS, flags, strict=True) if flag)
    )


async def history_of(session: AmplifierSession) -> list[tuple[str, str]]:
    """Return the roles of the history, with the text where it is one."""
    messages = await session.coordinator.context.get_messages()
    return [
        (
            str(message["role"]),
            message["content"] if isinstance(message["content"], str) else "",
        )
        for message in messages
    ]


async def test_a_tool_call(mixture: Mixture) -> None:
    async with mixture.session({"text": "two words"}, "two") as session:
        assert await session.execute("how many?") == "two"
        history = await history_of(session)
        spending = session.spending

    assert [role for role, _ in history] == ["user", "assistant", "tool", "assistant"]
    assert history[2][1] == '{"words": 2}'
    assert len(mixture.recorder.data("tool:pre")) == 1
    assert len(mixture.recorder.data("tool:post")) == 1
    assert spending.tool_calls == 1
    started = mixture.journal.kinds
    assert started.count("CallStarted") == started.count("CallFinished") == 1
    assert started[0] == "TurnStarted"
    assert started[-1] == "TurnEnded"


async def test_provider_calls_are_paid_for_and_journaled(mixture: Mixture) -> None:
    async with mixture.session({"text": "two words"}, "two") as session:
        await session.execute("how many?")
        spending = session.spending

    assert spending.provider_calls == 2
    assert spending.usage is not None
    assert spending.usage.total_tokens == 24
    assert mixture.journal.kinds.count("MessageWritten") >= 2


async def test_an_injection_is_in_the_request_once(mixture: Mixture) -> None:
    async with mixture.session("hi", inject="be brief") as session:
        assert await session.execute("hello") == "hi"
        (asked,) = mixture.requests(session)
        history = await history_of(session)

    assert asked == [("user", "hello"), ("user", "be brief")]
    assert len(history) == 2


async def test_a_denial(mixture: Mixture) -> None:
    async with mixture.session({"text": "a"}, "ok", deny="count_words") as session:
        assert await session.execute("how many?") == "ok"
        history = await history_of(session)

    assert "not here" in history[2][1]
    assert "CallStarted" not in mixture.journal.kinds


async def test_a_cancel(mixture: Mixture) -> None:
    async with mixture.session({"text": "cancel"}, "never") as session:
        with pytest.raises(TurnCancelled):
            await session.execute("how many?")
        history = await history_of(session)

    assert [role for role, _ in history][-1] == "tool"
    assert mixture.journal.kinds[-1] == "TurnEnded"
    assert len(mixture.recorder.data("cancel:requested")) == 1
    assert len(mixture.recorder.data("cancel:completed")) == 1


LIMITS: list[tuple[LimitChanges, int, int]] = [
    ({"iterations": 2}, 3, 2),
    ({"tool_calls": 1}, 3, 1),
    ({"tokens": 20}, 3, 2),
]
"""A limit, and how many requests and calls of tools it lets through: the last request ends the turn in words."""


@pytest.mark.parametrize(("limits", "requests", "calls"), LIMITS)
async def test_a_limit(
    mixture: Mixture, limits: LimitChanges, requests: int, calls: int
) -> None:
    steps: list[JSONObject] = [
        {"text": "a"},
        {"text": "b"},
        {"text": "c"},
        {"text": "d"},
    ]
    async with mixture.session(*steps, "end") as session:
        with suppress(BudgetExceededError):
            await session.execute("how many?", limits)

    assert 1 <= session.spending.provider_calls <= requests
    assert 1 <= session.spending.tool_calls <= calls
    assert mixture.journal.kinds[-1] == "TurnEnded"


async def test_the_log_has_the_turn_and_no_secret(
    mixture: Mixture, tmp_path: Path
) -> None:
    async with mixture.session(
        {"text": f"password={SECRET}"},
        f"it was {SECRET}",
        inject=f"the key is {SECRET}",
        log=tmp_path / "{session_id}.jsonl",
    ) as session:
        await session.execute(f"how many words has {SECRET}?")

    (written,) = tmp_path.glob("*.jsonl")
    text = written.read_text()
    events = {json.loads(line)["event"] for line in text.splitlines()}
    assert {"prompt:submit", "tool:pre", "tool:post", "session:end"} <= events
    assert SECRET not in text


async def test_a_resume(mixture: Mixture) -> None:
    history: list[JSONObject] = [
        {"role": "user", "content": "first"},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_call", "id": "c9", "name": "count_words", "input": {}}
            ],
            "tool_calls": [{"id": "c9", "tool": "count_words", "arguments": {}}],
        },
    ]
    async with mixture.session("again", history=history) as session:
        assert await session.execute("second") == "again"
        (asked,) = mixture.requests(session)

    # the open call was answered before the vendor is asked
    assert [role for role, _ in asked] == ["user", "assistant", "tool", "user"]
