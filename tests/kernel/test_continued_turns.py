"""A turn that is continued from its journal: what is recorded of it is not repeated, whatever loop it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import anyio
import attrs
import pytest

from amplifier import AmplifierSession
from amplifier_sdk.approvals import ApprovalRequest, ApprovalResponse
from amplifier_sdk.chat import ChatRequest, ChatResponse
from amplifier_sdk.contracts import (
    ContextManager,
    Hooks,
    Provider,
    StreamingProvider,
    Tool,
)
from amplifier_sdk.errors import (
    ApprovalPendingError,
    TurnCancelled,
    TurnSuspendedError,
)
from amplifier_sdk.events import TOOL_POST, TOOL_PRE, PromptSubmit, ToolPost, ToolPre
from amplifier_sdk.history import result_message
from amplifier_sdk.journal import (
    CallFinished,
    CallStarted,
    JournalRecord,
    MessageWritten,
    RecordedAnswer,
    RecordedTurn,
    TurnEnded,
    TurnStarted,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.messages import Message, MessageDict
from amplifier_sdk.results import HookResult, ToolResult
from tests.doubles import (
    Blocking,
    EchoLoop,
    MemoryJournal,
    PlainLoop,
    Recorder,
    ScriptedProvider,
    Step,
    Worker,
    build_session,
    call,
    calling,
    mounted_context,
    open_call_ids,
)

_TURN = "0123456789abcdef" * 2


def recorded(records: Sequence[JournalRecord]) -> RecordedTurn:
    """Return what records say of their turn, as a store reads them."""
    answers: list[RecordedAnswer] = []
    for record in records:
        match record:
            case MessageWritten(message=message) if message["role"] == "assistant":
                answers.append(RecordedAnswer(message=message))
            case CallStarted(call_id=id_):
                started = answers[-1].started | {id_}
                answers[-1] = attrs.evolve(answers[-1], started=started)
            case CallFinished(call_id=id_):
                finished = {**answers[-1].finished, id_: record}
                answers[-1] = attrs.evolve(answers[-1], finished=finished)
            case _:
                pass
    return RecordedTurn(turn_id=_TURN, answers=tuple(answers), is_begun=bool(records))


def written(
    *ids: str, finished: Sequence[str] = (), started: Sequence[str] = ()
) -> list[JournalRecord]:
    """Return the records of a turn with one answer that calls `work`."""
    answer = calling(*(call("work", {"id": one}, id=one) for one in ids))
    return [
        TurnStarted(turn_id=_TURN, prompt="go"),
        MessageWritten(turn_id=_TURN, message=answer.to_message()),
        *(
            CallStarted(turn_id=_TURN, call_id=one, tool_name="work")
            for one in (*started, *finished)
        ),
        *(
            CallFinished(turn_id=_TURN, call_id=one, success=True, output="old")
            for one in finished
        ),
    ]


async def _by_hand(
    prompt: str,
    context: ContextManager,
    providers: dict[str, Provider],
    tools: dict[str, Tool],
    hooks: Hooks,
) -> str:
    """Run a turn as loops do that were written for another kernel."""
    await hooks.emit("prompt:submit", PromptSubmit(prompt=prompt))
    await context.add_message({"role": "user", "content": prompt})
    (provider,) = providers.values()
    while True:
        messages = await context.get_messages_for_request()
        request = ChatRequest(messages=[Message.from_dict(each) for each in messages])
        response = await provider.complete(request)
        await context.add_message(response.to_message())
        if not response.tool_calls:
            return response.text
        for one in response.tool_calls:
            asked = ToolPre(
                tool_name=one.name, tool_input=one.arguments, tool_call_id=one.id
            )
            decided = await hooks.emit(TOOL_PRE, asked)
            if decided.denied:
                result = ToolResult.failure(decided.reason or "")
            else:
                result = await tools[one.name].execute(one.arguments)
            await context.add_message(result_message(one.id, one.name, result))


LOOPS = pytest.mark.parametrize("by_hand", [False, True], ids=["loop", "by-hand"])


class Case:
    """A session whose one tool notes what it ran."""

    def __init__(
        self,
        *steps: Step,
        by_hand: bool = False,
        idempotent: bool = False,
        loop: PlainLoop | None = None,
        is_journaled: bool = True,
    ) -> None:
        self.ran: list[object] = []
        self.journal = MemoryJournal()
        self.provider = ScriptedProvider(*steps)
        self.session: AmplifierSession = build_session(
            provider=self.provider,
            tools=[Worker(function=self._work, idempotent=idempotent)],
            loop=loop or (PlainLoop(_by_hand) if by_hand else EchoLoop()),
            journal=self.journal if is_journaled else None,
        )

    async def _work(self, input: JSONObject) -> object:
        self.ran.append(input["id"])
        return "new"

    async def run(self, turn: RecordedTurn) -> None:
        async with self.session:
            try:
                async with self.session.stream("go", recorded=turn) as events:
                    self.events = [type(event).__name__ async for event in events]
            finally:
                context = mounted_context(self.session.coordinator)
                self.history = list(context.messages)

    @property
    def answer(self) -> str:
        assert self.session.last_turn is not None
        return self.session.last_turn.text

    @property
    def results(self) -> list[object]:
        return [each["content"] for each in self.history if each["role"] == "tool"]


@LOOPS
async def test_finished_steps_not_repeated(by_hand: bool) -> None:
    case = Case("end", by_hand=by_hand)
    asked: list[object] = []
    case.session.coordinator.hooks.register(
        TOOL_PRE, lambda _, data: asked.append(data["tool_call_id"]), decides=True
    )
    await case.run(recorded(written("a", "b", finished=["a"])))

    assert case.ran == ["b"]
    assert asked == ["b"]
    assert case.results == ["old", "new"]
    assert case.answer == "end"
    assert len(case.provider.requests) == 1
    assert case.journal.kinds == [
        "CallStarted",
        "CallFinished",
        "MessageWritten",
        "TurnEnded",
    ]
    assert {record.turn_id for record in case.journal.records} == {_TURN}


@LOOPS
async def test_call_in_doubt_is_reported_not_run(by_hand: bool) -> None:
    case = Case("end", by_hand=by_hand)
    await case.run(recorded(written("a", started=["a"])))

    assert case.ran == []
    (result,) = case.results
    assert "Whether it had its effect is not known" in str(result)
    end = case.journal.records[0]
    assert isinstance(end, CallFinished)  # settled: whoever is next finds the same
    assert not end.success


@LOOPS
async def test_call_in_doubt_of_idempotent_tool_runs_again(by_hand: bool) -> None:
    case = Case("end", by_hand=by_hand, idempotent=True)
    await case.run(recorded(written("a", started=["a"])))

    assert case.ran == ["a"]
    assert case.results == ["new"]


async def test_finished_steps_of_a_streamed_answer_not_repeated() -> None:
    async def run(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        (provider,) = providers.values()
        asked = ChatRequest(messages=[Message(role="user", content=prompt)])
        texts: list[str] = []
        for _ in range(2):
            async with cast("StreamingProvider", provider).stream(asked) as items:
                async for item in items:
                    if isinstance(item, ChatResponse):
                        texts.append(item.text)
                        for one in item.tool_calls or ():
                            result = await tools[one.name].execute(one.arguments)
                            texts.append(result.get_serialized_output())
        return " ".join(texts).strip()

    case = Case("end", loop=PlainLoop(run))
    await case.run(recorded(written("a", "b", finished=["a"])))

    assert case.ran == ["b"]
    assert case.answer == "old new end"
    assert len(case.provider.requests) == 1


async def test_a_recorded_failure_is_what_the_model_read_of_it() -> None:
    records = [
        *written("a", started=["a"]),
        CallFinished(
            turn_id=_TURN, call_id="a", success=False, output="Error: disk full"
        ),
    ]
    case = Case("end")
    await case.run(recorded(records))

    assert case.ran == []
    assert case.results == ["Error: disk full"]


async def test_a_recorded_answer_of_text_ends_the_turn() -> None:
    message: MessageDict = {"role": "assistant", "content": "done"}
    records = [*written()[:1], MessageWritten(turn_id=_TURN, message=message)]
    case = Case()
    await case.run(recorded(records))

    assert case.answer == "done"
    assert case.provider.requests == []


async def test_call_in_doubt_is_reported_where_nothing_is_recorded() -> None:
    case = Case("end", is_journaled=False)
    await case.run(recorded(written("a", started=["a"])))

    assert case.ran == []
    assert "Whether it had its effect is not known" in str(case.results[0])


def two_answers() -> RecordedTurn:
    """Return a turn that has two answers, each with a call that ended."""
    return recorded([*written("a", finished=["a"]), *written("b", finished=["b"])[1:]])


async def test_injection_at_a_recorded_result_stands_behind_it() -> None:
    case = Case("end")
    case.session.coordinator.hooks.register(
        TOOL_POST, lambda *_: HookResult.inject("Mind the gap."), decides=True
    )
    await case.run(two_answers())

    roles = [each["role"] for each in case.history]
    assert roles[:5] == ["user", "assistant", "tool", "system", "assistant"]
    assert "Mind the gap." in str(case.history[3]["content"])


async def test_a_cancelled_turn_repeats_no_recorded_answer() -> None:
    case = Case("end")

    async def cancel(_: str, __: object) -> None:
        await case.session.cancel()

    case.session.coordinator.hooks.register(TOOL_POST, cancel)
    with pytest.raises(TurnCancelled):
        await case.run(two_answers())

    assert case.results == ["old"]
    assert case.provider.requests == []


async def test_call_with_withheld_arguments_not_run() -> None:
    case = Case("end")
    turn = recorded(written("a"))
    (answer,) = turn.answers
    answer = attrs.evolve(answer, withheld=frozenset(["a"]))
    await case.run(attrs.evolve(turn, answers=(answer,)))

    assert case.ran == []
    assert "stored nowhere" in str(case.results[0])


async def test_unreadable_arguments_stay_unreadable() -> None:
    problem = attrs.evolve(
        call("work", id="a"), raw_arguments="{", problem="It is no JSON"
    )
    message = calling(problem).to_message()
    records = [*written()[:1], MessageWritten(turn_id=_TURN, message=message)]
    case = Case("end")
    await case.run(recorded(records))

    assert case.ran == []
    assert "could not be read" in str(case.results[0])


async def test_handlers_check_recorded_result_anew() -> None:
    case = Case("end")
    case.session.coordinator.hooks.register(
        TOOL_POST, lambda *_: HookResult.deny("secret"), decides=True
    )
    await case.run(recorded(written("a", finished=["a"])))

    assert "Withheld" in str(case.results[0])


async def test_what_was_seen_is_not_reported_again() -> None:
    case = Case("end")
    await case.run(recorded(written("a", "b", finished=["a"])))

    assert case.events.count("ToolFinished") == 1


async def test_turn_account_counts_from_before() -> None:
    case = Case("end")
    turn = attrs.evolve(
        recorded(written("a", finished=["a"])),
        spending={"provider_calls": 1, "tool_calls": 1, "input_tokens": 7},
    )
    await case.run(turn)

    spending = case.session.spending
    assert (spending.provider_calls, spending.tool_calls) == (2, 1)
    assert spending.usage is not None
    assert spending.usage.input_tokens >= 7


@LOOPS
async def test_every_cut_of_a_journal_continues_to_the_same_end(by_hand: bool) -> None:
    def steps() -> list[Step]:
        first = calling(*(call("work", {"id": one}, id=one) for one in "ab"))
        return [first, calling(call("work", {"id": "c"}, id="c")), "end"]

    whole = Case(*steps(), by_hand=by_hand)
    await whole.run(RecordedTurn(turn_id=_TURN))
    records = whole.journal.records
    assert isinstance(records[0], TurnStarted)
    assert isinstance(records[-1], TurnEnded)
    for cut in range(len(records)):
        done = recorded(records[:cut])
        case = Case(*steps()[len(done.answers) :], by_hand=by_hand)
        await case.run(done)

        assert case.answer == "end"
        assert not open_call_ids(case.history)
        marked = [each for each in records[:cut] if isinstance(each, CallStarted)]
        before = [whole.ran[at] for at in range(len(marked))]
        assert [*before, *case.ran] == ["a", "b", "c"]


class LaterProvider:
    """Stores the questions it is asked, and answers those that were answered."""

    def __init__(self, answers: dict[str, bool] | None = None) -> None:
        self.answers = answers or {}
        self.asked: list[str] = []

    async def request_approval(self, request: ApprovalRequest, /) -> ApprovalResponse:
        call_id = str(request.details["tool_call_id"])
        self.asked.append(call_id)
        if call_id not in self.answers:
            raise ApprovalPendingError("stored")
        return ApprovalResponse(approved=self.answers[call_id])


def asking(case: Case, *ids: str, person: LaterProvider) -> None:
    """Let a handler ask about some calls."""

    def ask(_: str, data: ToolPre) -> HookResult | None:
        return HookResult.ask("Sure?") if data["tool_call_id"] in ids else None

    case.session.coordinator.hooks.register(TOOL_PRE, ask, decides=True)
    case.session.coordinator.decisions.provider = person


@LOOPS
async def test_question_suspends_turn_and_answer_continues_it(by_hand: bool) -> None:
    answer = calling(*(call("work", {"id": one}, id=one) for one in "ab"))
    first = Case(answer, by_hand=by_hand)
    asking(first, "b", person=LaterProvider())
    recorder = Recorder.of(first.session.coordinator.hooks)
    with pytest.raises(TurnSuspendedError):
        await first.run(RecordedTurn(turn_id=_TURN))
    records = first.journal.records

    assert first.ran == ["a"]
    assert not isinstance(records[-1], TurnEnded)
    assert not recorder.all("tool:error")
    assert not first.session.is_busy

    second = Case("end", by_hand=by_hand)
    asking(second, "b", person=LaterProvider({"b": True}))
    await second.run(recorded(records))

    assert second.ran == ["b"]
    assert second.answer == "end"
    assert isinstance(second.journal.records[-1], TurnEnded)


async def test_denied_answer_is_read_by_the_model() -> None:
    case = Case("end")
    asking(case, "a", person=LaterProvider({"a": False}))
    await case.run(recorded(written("a")))

    assert case.ran == []
    assert "denied" in str(case.results[0]).lower()


@attrs.define(eq=False)
class _Slow(Blocking):
    read_only: bool = True


@attrs.define(eq=False)
class _Quick(Worker):
    read_only: bool = True


async def test_running_calls_end_before_turn_is_suspended() -> None:
    running, person = _Slow(), LaterProvider()
    journal = MemoryJournal()
    session = build_session(
        calling(call("block"), call("work")),
        tools=[running, _Quick()],
        journal=journal,
    )

    async def ask(_: str, data: ToolPre) -> HookResult | None:
        if data["tool_name"] == "block":
            return None
        await running.started.wait()
        return HookResult.ask("Sure?")

    session.coordinator.hooks.register(TOOL_PRE, ask, decides=True)
    session.coordinator.decisions.provider = person

    async def run() -> None:
        with pytest.raises(TurnSuspendedError):
            await session.execute("go")

    async with session, anyio.create_task_group() as group:
        group.start_soon(run)
        await running.started.wait()
        await anyio.wait_all_tasks_blocked()
        assert person.asked == ["id-work"]
        assert session.is_busy
        running.release.set()

    assert running.ended == "finished"
    assert isinstance(journal.records[-1], CallFinished)


_MEETINGS = pytest.mark.parametrize("immediate", [False, True], ids=["soft", "hard"])


@_MEETINGS
@pytest.mark.parametrize("comes", ["before", "after"])
async def test_cancel_that_meets_the_last_call_cancels_turn(
    immediate: bool, comes: str
) -> None:
    started, person, journal = anyio.Event(), LaterProvider(), MemoryJournal()
    release = anyio.Event()

    async def work_long(_: JSONObject) -> object:
        started.set()
        await release.wait()
        if comes == "before":
            await session.cancel(immediate=immediate)
        return "done"

    async def ask(_: str, data: ToolPre) -> HookResult | None:
        if data["tool_name"] == "long":
            return None
        await started.wait()
        return HookResult.ask("Sure?")

    async def cancel_after(_: str, data: ToolPost) -> None:
        # no call runs any more and a question waits: the turn is left
        if comes == "after" and data["tool_name"] == "long":
            await session.cancel(immediate=immediate)

    session = build_session(
        calling(call("long"), call("work")),
        tools=[_Quick(name="long", function=work_long), _Quick()],
        journal=journal,
    )
    hooks = session.coordinator.hooks
    recorder = Recorder.of(hooks)
    hooks.register(TOOL_PRE, ask, decides=True)
    hooks.register(TOOL_POST, cancel_after)
    session.coordinator.decisions.provider = person

    async def run() -> None:
        with pytest.raises(TurnCancelled) as raised:
            await session.execute("go")
        assert raised.value.immediate == immediate

    async with session, anyio.create_task_group() as group:
        group.start_soon(run)
        await started.wait()
        await anyio.wait_all_tasks_blocked()
        release.set()
    last = journal.records[-1]

    assert person.asked == ["id-work"]
    assert not session.is_suspended
    assert isinstance(last, TurnEnded)
    assert last.status == "cancelled"
    assert not open_call_ids(mounted_context(session.coordinator).messages)
    assert len(recorder.all("cancel:completed")) == 1


async def test_cancelled_child_does_not_suspend_its_parent() -> None:
    started, release = anyio.Event(), anyio.Event()
    children: list[AmplifierSession] = []

    async def work_long(_: JSONObject) -> object:
        started.set()
        await release.wait()
        await children[0].cancel()
        return "done"

    async def delegate(_: JSONObject) -> object:
        async with session.fork() as child:
            children.append(child)
            with pytest.raises(TurnCancelled):
                await child.execute("part")
        return "cancelled"

    async def ask(_: str, data: ToolPre) -> HookResult | None:
        if data["tool_name"] != "work":
            return None
        await started.wait()
        return HookResult.ask("Sure?")

    session = build_session(
        calling(call("delegate")),
        calling(call("long"), call("work")),
        "end",
        tools=[
            _Quick(name="delegate", function=delegate),
            _Quick(name="long", function=work_long),
            _Quick(),
        ],
        journal=MemoryJournal(),
    )
    session.coordinator.hooks.register(TOOL_PRE, ask, decides=True)
    session.coordinator.decisions.provider = LaterProvider()

    async def run() -> None:
        assert await session.execute("go") == "end"

    async with session, anyio.create_task_group() as group:
        group.start_soon(run)
        await started.wait()
        await anyio.wait_all_tasks_blocked()
        release.set()

    assert not session.is_suspended


async def test_turn_asked_to_stop_is_not_left_to_others() -> None:
    case = Case(calling(call("work", {"id": "a"})), "end")

    async def stop(_: str, __: object) -> None:
        await case.session.cancel()
        case.session.suspend()

    case.session.coordinator.hooks.register(TOOL_POST, stop)
    with pytest.raises(TurnCancelled):
        await case.run(RecordedTurn(turn_id=_TURN))

    assert not case.session.is_suspended
    assert isinstance(case.journal.records[-1], TurnEnded)


async def test_turn_that_ends_all_the_same_is_not_suspended() -> None:
    async def answer(*_: object) -> str:
        session.suspend()
        return "end"

    session = build_session(loop=PlainLoop(answer), journal=MemoryJournal())
    async with session:
        assert await session.execute("go") == "end"
        assert not session.is_suspended
