"""How the samples of the context contract, and of the specification before it, are run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from amplifier import AmplifierSession, ModuleLoader
from amplifier.testing import (
    EventRecorder,
    MockContextManager,
    MockTool,
    ScriptedProvider,
    answer,
    call,
    create_test_session,
)
from amplifier.testing.sessions import mounting
from amplifier_sdk import ContextManager, Message, MessageDict, ThinkingBlock
from amplifier_sdk.history import diagnose
from tests.seeds.preamble import names
from tests.seeds.runs.tools import parameters_of
from tests.seeds.samples import Sample, samples

REST = {
    "id": "call_1",
    "name": "search",
    "input": {"query": "x"},
    "tool_call_id": "call_1",
    "output": "found",
}
"""What the samples of messages leave out of a call and of a result."""


def tokens_of(message: Mapping[str, object]) -> int:
    return len(str(message.get("content"))) // 4


class Parts:
    """What the samples leave to their reader; each adds its methods."""

    def __init__(
        self,
        max_tokens: int,
        compaction_threshold: float = 0.8,
        hooks: EventRecorder | None = None,
    ) -> None:
        self._max_tokens = max_tokens
        self._compaction_threshold = compaction_threshold
        self._hooks = EventRecorder() if hooks is None else hooks
        self._messages: list[MessageDict] = []
        self._token_count = 0
        self._keep_recent = 4

    def _estimate_tokens(self, message: MessageDict) -> int:
        return tokens_of(message)

    def _count_tokens(self, messages: Sequence[MessageDict]) -> int:
        return sum(map(tokens_of, messages))

    def _should_compact(self, tokens: int, budget: int) -> bool:
        return tokens > budget * self._compaction_threshold

    def _compact_messages(
        self, messages: Sequence[MessageDict], budget: int
    ) -> list[MessageDict]:
        return [message for message in messages if message["role"] == "user"][-2:]


METHODS = (
    "add_message()",
    "get_messages_for_request()",
    "get_messages()",
    "set_messages()",
    "clear()",
)
COMPACTION = "Tool Pair Preservation"


async def manager(*headings: str) -> type:
    """Put a class together of the samples below the headings, the last one first."""
    made: type = Parts
    for heading in headings:
        sample = samples()[f"Context Contract / {heading}"]
        ran = await sample.run(names(Base=made), within="class Part(Base):")
        made = ran.Part
    return made


async def protocol(sample: Sample) -> None:
    ran = await sample.run(names())
    assert isinstance(MockContextManager(), ran.ContextManager)
    for name, method in vars(ran.ContextManager).items():
        if name.startswith(("add", "get", "set", "clear")):
            assert parameters_of(method) == parameters_of(getattr(ContextManager, name))


async def message_format(sample: Sample) -> None:
    """Messages of each form are stored as they are, in a shipped context too, and reach a provider."""
    ran = await sample.run(names())
    messages = [ran.shown[index] for index in (0, 1, 3, 0, 2, 4)]
    provider = ScriptedProvider("Done.")
    async with create_test_session(provider=mounting(provider)) as session:
        await session.coordinator.context.set_messages(messages)
        await session.execute("go")
        stored = await session.coordinator.context.get_messages()
    assert stored[: len(messages)] == messages
    roles = [role for role, _ in provider.last_messages]
    assert roles == [*(message["role"] for message in messages), "user"]
    assert [block.type for block in provider.requests[0].messages[4].blocks] == [
        "tool_call"
    ]


async def mounted(sample: Sample) -> None:
    """A session of the class that the samples make remembers, clears and is resumed."""
    made = await manager(*METHODS, COMPACTION)
    ran = await sample.run(names(MyContextManager=made))
    config = {"context": {"max_tokens": 60, "compaction_threshold": 0.5}}
    async with create_test_session(
        "One.", "Two.", context=ran.mount, configs=config
    ) as session:
        context = session.coordinator.context
        assert isinstance(context, made)
        assert isinstance(context, Parts)
        assert (context._max_tokens, context._compaction_threshold) == (60, 0.5)
        await session.execute("Hello")
        await session.execute("Again")
        messages = await context.get_messages()
        assert isinstance(messages, list)
        read = [(m["role"], Message.from_dict(m).text) for m in messages]
        assert read == [
            ("user", "Hello"),
            ("assistant", "One."),
            ("user", "Again"),
            ("assistant", "Two."),
        ]
        await context.set_messages(messages[:2])
        assert len(await context.get_messages()) == 2
        await context.clear()
        assert await context.get_messages() == []


async def added(sample: Sample) -> None:
    context = (await manager("add_message()"))(10)
    with pytest.raises(ValueError, match="'role'"):
        await context.add_message({"content": "x"})
    await context.add_message({"role": "user", "content": "x" * 8})
    assert (context._messages[0]["role"], context._token_count) == ("user", 2)


async def for_request(sample: Sample) -> None:
    """The budget is the one given, the provider's, or the configured one."""
    made = await manager(*METHODS, COMPACTION)
    provider = ScriptedProvider(context_window=10_000, max_output_tokens=2_000)
    long = [{"role": "user", "content": "x" * 4_000} for _ in range(5)]
    for given, by, budget, count in [
        (None, provider, 7_000, 5),
        (100_000, provider, 100_000, 5),
        (None, None, 1_000, 4),
    ]:
        context = made(1_000)
        await context.set_messages(long)
        assert context._calculate_budget(given, by) == budget
        shown = await context.get_messages_for_request(given, by)
        assert len(shown) == count


async def raw(sample: Sample) -> None:
    context = (await manager("add_message()", "get_messages()"))(10)
    await context.add_message({"role": "user", "content": "x"})
    messages = await context.get_messages()
    messages.clear()
    assert await context.get_messages() == [{"role": "user", "content": "x"}]


async def replaced(sample: Sample) -> None:
    context = (await manager("get_messages()", "set_messages()"))(10)
    await context.set_messages(({"role": "user", "content": "x" * 8},))
    assert await context.get_messages() == [{"role": "user", "content": "x" * 8}]
    assert context._token_count == 2


async def file_based(sample: Sample) -> None:
    """A context with a file of its own ignores what a resumed session brings."""
    for loaded, wanted in [(True, ["own", "go"]), (False, ["filtered", "go"])]:
        made = await manager("add_message()", "get_messages()", "set_messages() (2)")
        written: list[object] = []

        class Persistent(made):  # type: ignore[valid-type, misc]  # put together above
            async def get_messages_for_request(
                self, token_budget: int | None = None, provider: object = None
            ) -> list[MessageDict]:
                return list(self._messages)

            async def clear(self) -> None:
                self._messages: list[MessageDict] = []

            def _write_to_file(self) -> None:
                written.append(list(self._messages))  # noqa: B023  # called in this round

        context = Persistent(10)
        context._loaded_from_file = loaded
        context._messages = [{"role": "user", "content": "own"}]
        provider = ScriptedProvider("Done.")
        async with create_test_session(
            context=mounting(context), provider=mounting(provider), is_resumed=True
        ) as session:
            brought: list[MessageDict] = [{"role": "user", "content": "filtered"}]
            await session.coordinator.context.set_messages(brought)
            await session.execute("go")
        assert [text for _, text in provider.last_messages] == wanted
        assert len(written) == (0 if loaded else 1)


async def cleared(sample: Sample) -> None:
    context = (await manager("add_message()", "get_messages()", "clear()"))(10)
    await context.add_message({"role": "user", "content": "x" * 8})
    await context.clear()
    assert (await context.get_messages(), context._token_count) == ([], 0)


async def ephemeral(sample: Sample) -> None:
    """What a model sees is shorter; the history stays complete."""
    made = await manager(*METHODS, "Non-Destructive Compaction (REQUIRED)")
    provider = ScriptedProvider(*["x" * 400] * 4)
    async with create_test_session(
        context=mounting(made(1_000)), provider=mounting(provider)
    ) as session:
        for _ in range(3):
            await session.execute("y" * 400)
        context = session.coordinator.context
        shown = await context.get_messages_for_request(token_budget=100)
        assert len(shown) == 2
        assert len(await context.get_messages()) == 6


async def compacted(sample: Sample) -> None:
    """Both events are heard, instructions stay, and no result loses its call."""
    recorder = EventRecorder()
    context = (await manager(*METHODS, COMPACTION))(10, hooks=recorder)
    calls = [{"id": "c", "name": "a", "arguments": {}}]
    results = [{"role": "tool", "tool_call_id": "c", "content": "r"} for _ in range(4)]
    messages = [
        {"role": "system", "content": "s"},
        *({"role": "user", "content": "u"} for _ in range(5)),
        {"role": "assistant", "content": None, "tool_calls": calls},
        *results,
    ]
    await context.set_messages(messages)
    await context._compact_internal()
    saved = await context.get_messages()
    assert saved == [messages[0], messages[6], *results]
    (before,), (after,) = (
        recorder.data(f"context:{when}_compact") for when in ("pre", "post")
    )
    assert (before["message_count"], after["message_count"]) == (11, 6)


PAIR: list[MessageDict] = [
    {"role": "user", "content": "u"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
    {"role": "tool", "tool_call_id": "c", "content": "r"},
    {"role": "tool", "tool_call_id": "c", "content": "r"},
    {"role": "user", "content": "v"},
]


async def truncated(sample: Sample) -> None:
    for count, start in [(1, 4), (2, 1), (3, 1), (5, 0)]:
        context = Parts(10)
        context._messages = list(PAIR)
        await sample.run(names(self=context, keep_count=count))
        assert context._messages == PAIR[start:]


async def summarized(sample: Sample) -> None:
    context = Parts(10)
    context._messages = list(PAIR)

    async def summarize(messages: Sequence[MessageDict]) -> str:
        return f"{len(messages)} messages"

    await sample.run(names(self=context, keep_recent=1, summarize=summarize))
    text = "Previous conversation summary: 4 messages"
    assert context._messages == [{"role": "system", "content": text}, PAIR[-1]]
    assert diagnose(context._messages) == ()


async def scored(sample: Sample) -> None:
    class Scoring(Parts):
        def _score_importance(self, message: MessageDict) -> int:
            return PAIR.index(message)

        def _reorder_preserving_tool_pairs(
            self, messages: Sequence[MessageDict]
        ) -> list[MessageDict]:
            return sorted(messages, key=PAIR.index)

    context = Scoring(10)
    context._messages = [PAIR[0], PAIR[1], PAIR[4]]
    await sample.run(names(self=context, keep_count=2))
    assert context._messages == [PAIR[1], PAIR[4]]


async def testing(sample: Sample) -> None:
    made = await manager(*METHODS, COMPACTION)
    rest = {"name": "read_file", "arguments": "{}"}
    tests = await sample.run(names(MyContextManager=made, rest=rest))
    await tests.test_context_manager()
    await tests.test_compaction_preserves_tool_pairs()
    await tests.test_session_resume()


async def mock_context(sample: Sample) -> None:
    ran = await sample.run(names())
    assert ran.messages == [{"role": "user", "content": "Test"}]


async def blocks_stored(sample: Sample) -> None:
    """Messages of blocks come back exactly as they went in, and reach a model with their calls."""
    ran = await sample.run(names(rest=REST))
    history = [{"role": "user", "content": "Search."}, *ran.shown]
    provider = ScriptedProvider("Done.")
    async with create_test_session(provider=mounting(provider)) as session:
        context = session.coordinator.context
        for message in history:
            await context.add_message(message)
        stored = await context.get_messages()
        assert stored == history
        assert json.loads(json.dumps(stored)) == history
        await session.execute("Go on.")
    sent = provider.requests[0].messages
    thoughts = [
        block.signature
        for message in sent
        for block in message.blocks
        if isinstance(block, ThinkingBlock)
    ]
    shown = [
        block
        for message in ran.shown
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "thinking"
    ]
    assert thoughts == [block["signature"] for block in shown]
    kinds = [block.type for message in sent for block in message.blocks]
    flat = sample.text.count('"type": "tool_call"')
    assert kinds.count("tool_call") == min(flat, 1)


async def pairs(sample: Sample) -> None:
    """Its two messages are a pair: repair finds nothing to mend in both, and something in either alone."""
    ran = await sample.run(names(rest=REST))
    prompt: MessageDict = {"role": "user", "content": "Search."}
    assert diagnose([prompt, *ran.shown]) == ()
    for alone in ran.shown:
        assert diagnose([prompt, alone, prompt]) != ()


async def older_protocol(sample: Sample) -> None:
    ran = await sample.run(names(CompactionResult=object))
    async with create_test_session("Hi.") as session:
        ours = session.coordinator.context
        for name in ("add_message", "get_messages"):
            theirs = getattr(ran.ContextManager, name)
            assert parameters_of(theirs)[1:] == parameters_of(getattr(ours, name))


async def events(sample: Sample) -> None:
    """The events carry what the shipped context says when it compacts."""
    heard: dict[str, dict[str, object]] = {}

    class Emits:
        def emit(self, event: str, data: dict[str, object]) -> None:
            heard[event] = data

    await sample.run(names(self=Emits()))
    recorder = EventRecorder()
    steps = [
        step
        for _ in range(20)
        for step in (answer(call("search", {"query": "x"})), "Found.")
    ]
    provider = ScriptedProvider(*steps, context_window=2_100, max_output_tokens=500)
    modules = {
        "provider": mounting(provider),
        "search": mounting(MockTool("search", "found " * 40)),
        "hook": recorder,
    }
    plan: Mapping[str, object] = {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": ["provider"],
        "tools": ["search"],
        "hooks": ["hook"],
    }
    async with AmplifierSession(plan, ModuleLoader(modules=modules)) as session:
        for number in range(20):
            await session.execute(f"Search {number}.")
    assert set(heard) == {"context:pre_compact", "context:post_compact"}
    for event, data in heard.items():
        assert set(data) <= set(recorder.data(event)[-1])


async def visibility(sample: Sample) -> None:
    ran = await sample.run(names())
    (block,) = ran.shown
    message = {"role": "assistant", "content": [block]}
    (read,) = Message.from_dict(message).blocks
    assert isinstance(read, ThinkingBlock)
    assert read.visibility == "internal"
    assert Message.from_dict(message).to_dict() == message
