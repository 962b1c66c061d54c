"""What a running tool asks a person: the turn waits, holds nothing where it can, and nothing is done twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio
import attrs
import pytest

from amplifier import AmplifierSession
from amplifier.testing import MockApprovalSystem
from amplifier_sdk.approvals import ApprovalRequest, ApprovalResponse
from amplifier_sdk.contracts import ApprovalSystem
from amplifier_sdk.errors import (
    ApprovalPendingError,
    ApprovalTimeoutError,
    LLMError,
    ToolError,
    TurnCancelled,
    TurnSuspendedError,
)
from amplifier_sdk.journal import (
    CallAnswered,
    CallAsked,
    CallStarted,
    JournalRecord,
    RecordedTurn,
)
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.person_questions import PersonQuestion
from amplifier_sdk.progress import ToolContext
from amplifier_sdk.tools import tool
from tests.doubles import (
    Blocking,
    MemoryJournal,
    ScriptedProvider,
    Step,
    build_session,
    call,
    calling,
    mounted_context,
)
from tests.kernel.test_continued_turns import _TURN, recorded


class Person:
    """Stores what a tool asks, and answers what was answered by now, by the tool's own words."""

    def __init__(self, **answers: JSONValue) -> None:
        self.answers: dict[str, JSONValue] = dict(answers)
        self.asked: list[PersonQuestion] = []
        self.changed = anyio.Event()

    async def request_approval(self, request: ApprovalRequest, /) -> ApprovalResponse:
        raise AssertionError(request)

    async def ask_person(self, question: PersonQuestion, /) -> JSONValue:
        self.asked.append(question)
        message = str(question.details["message"])
        if message not in self.answers:
            raise ApprovalPendingError(message)
        return self.answers[message]

    async def wait_for_person(self, question: PersonQuestion, /) -> JSONValue:
        message = str(question.details["message"])
        while message not in self.answers:
            await self.changed.wait()
        return self.answers[message]

    def answer(self, message: str, answer: JSONValue) -> None:
        self.answers[message] = answer
        self.changed.set()


@attrs.define(eq=False)
class Case:
    """A session whose tool asks; `effects` is what the tool did."""

    responses: Sequence[Step]
    person: Person | None = None
    approval: ApprovalSystem | None = None
    ask: Callable[[ToolContext], Awaitable[object]] = lambda context: context.ask("ok?")
    idempotent: bool = False
    asks_first: bool = False
    effects: list[object] = attrs.field(factory=list)
    journal: MemoryJournal = attrs.field(factory=MemoryJournal)
    results: list[object] = attrs.field(factory=list)
    providers: Sequence[object] = ()
    session: AmplifierSession = attrs.field(init=False)

    async def run(self, turn: RecordedTurn | None = None) -> None:
        @tool(idempotent=self.idempotent, asks_first=self.asks_first)
        async def work(context: ToolContext) -> str:
            """Work."""
            answer = await self.ask(context)
            self.effects.append(answer)
            return f"did {answer}"

        self.session = session = build_session(
            provider=ScriptedProvider(*self.responses),
            tools=[work],
            journal=self.journal,
            approval=self.approval,
        )
        if self.person is not None:
            session.coordinator.decisions.provider = self.person
        register = session.coordinator.get_capability("approval.register_provider")
        assert callable(register)
        for provider in self.providers:
            register(provider)
        async with session:
            try:
                async with session.stream(
                    "go", recorded=turn or RecordedTurn(turn_id=_TURN)
                ) as events:
                    async for _ in events:
                        pass
            finally:
                messages = mounted_context(session.coordinator).messages
                self.results = [
                    each["content"] for each in messages if each["role"] == "tool"
                ]


def first() -> list[Step]:
    return [calling(call("work", id="a")), "end"]


def with_asked(records: Sequence[JournalRecord]) -> RecordedTurn:
    """Return a turn with the questions of its calls, as a store reads them."""
    turn, asked = recorded(records), set[tuple[str, int]]()
    for record in records:
        if isinstance(record, CallAsked):
            asked.add((record.call_id, record.number))
        elif isinstance(record, CallAnswered):
            asked.discard((record.call_id, record.number))
    answer = attrs.evolve(turn.answers[-1], asked=frozenset(asked))
    return attrs.evolve(turn, answers=(*turn.answers[:-1], answer))


@pytest.mark.parametrize("kind", ["idempotent", "asks_first"])
async def test_answer_runs_a_repeatable_call_again(kind: str) -> None:
    case = Case(first()[:1], Person(), **{kind: True})  # type: ignore[arg-type]  # of those names
    with pytest.raises(TurnSuspendedError):
        await case.run()
    again = Case(first()[1:], Person(**{"ok?": "yes"}), **{kind: True})  # type: ignore[arg-type]  # likewise
    await again.run(with_asked(case.journal.records))

    assert case.effects == []
    assert again.effects == ["yes"]
    assert again.results == ["did yes"]


async def test_call_that_waited_runs_however_often_it_is_left() -> None:
    case = Case(first()[:1], Person(), asks_first=True)
    with pytest.raises(TurnSuspendedError):
        await case.run()
    second = Case([], Person(), asks_first=True)
    with pytest.raises(TurnSuspendedError):
        await second.run(with_asked(case.journal.records))
    records = [*case.journal.records, *second.journal.records]
    last = Case(["end"], Person(**{"ok?": "yes"}), asks_first=True)
    await last.run(with_asked(records))

    assert last.effects == ["yes"]


async def test_call_killed_after_its_answer_is_in_doubt() -> None:
    case = Case(first()[:1], Person(**{"ok?": "yes"}), asks_first=True)
    with pytest.raises(LLMError):  # the script of the model has no more
        await case.run()
    records = case.journal.records
    at = next(i for i, each in enumerate(records) if isinstance(each, CallAnswered))
    killed = Case(["end"], Person(**{"ok?": "yes"}), asks_first=True)
    await killed.run(with_asked(records[: at + 1]))

    assert killed.effects == []
    assert "Whether it had its effect is not known" in str(killed.results[0])


async def test_other_calls_wait_in_memory_and_are_in_doubt_after_a_kill() -> None:
    person = Person()
    case = Case(first(), person)
    async with anyio.create_task_group() as group:
        group.start_soon(case.run)
        while not person.asked:
            await anyio.wait_all_tasks_blocked()
        records = [*case.journal.records]
        person.answer("ok?", "yes")
    killed = Case(["end"], Person(**{"ok?": "yes"}))
    await killed.run(with_asked(records))

    assert case.effects == ["yes"]
    assert isinstance(records[-1], CallStarted)
    assert killed.effects == []
    assert "not known" in str(killed.results[0])


async def test_several_questions_are_answered_one_after_the_other() -> None:
    async def ask(context: ToolContext) -> object:
        return [await context.ask(each) for each in ("one?", "two?", "two?")]

    case = Case(first()[:1], Person(), ask=ask, asks_first=True)
    with pytest.raises(TurnSuspendedError):
        await case.run()
    second = Case([], Person(**{"one?": "1"}), ask=ask, asks_first=True)
    with pytest.raises(TurnSuspendedError):
        await second.run(with_asked(case.journal.records))
    records = [*case.journal.records, *second.journal.records]
    person = Person(**{"one?": "1", "two?": "2"})
    last = Case(["end"], person, ask=ask, asks_first=True)
    await last.run(with_asked(records))

    assert last.effects == [["1", "2", "2"]]
    assert [each.details["number"] for each in person.asked] == [0, 0, 1]


@attrs.define(eq=False)
class _Slow(Blocking):
    read_only: bool = True


async def test_running_call_ends_before_one_that_asks_is_left() -> None:
    running, person = _Slow(), Person()

    @tool(asks_first=True, read_only=True)
    async def work(context: ToolContext) -> object:
        """Work."""
        await running.started.wait()
        return await context.ask("ok?")

    session = build_session(calling(call("block"), call("work")), tools=[running, work])
    session.coordinator.decisions.provider = person

    async def run() -> None:
        with pytest.raises(TurnSuspendedError):
            await session.execute("go")

    async with session, anyio.create_task_group() as group:
        group.start_soon(run)
        await running.started.wait()
        await anyio.wait_all_tasks_blocked()
        assert session.is_busy
        running.release.set()

    assert running.ended == "finished"


@pytest.mark.parametrize(
    ("schema", "reply", "answer"),
    [
        ({"enum": ["red", "blue"]}, "blue", "blue"),
        ({"type": "boolean"}, "No", False),
        ({"enum": ["red", "blue"]}, "Allow once", None),
    ],
)
async def test_choice_is_asked_as_an_approval_is(
    schema: Mapping[str, JSONValue], reply: str, answer: JSONValue
) -> None:
    approval = MockApprovalSystem(reply)
    case = Case(
        first(), approval=approval, ask=lambda context: context.ask("?", schema=schema)
    )
    await case.run()

    assert case.effects == [answer]
    assert approval.questions[0].options[-1] == "Do not answer"
    assert "in its own words: ?" in approval.questions[0].prompt


async def refusal(case: Case) -> str:
    await case.run()
    assert case.effects == []
    return str(case.results[0])


async def test_what_must_be_written_is_refused_where_nobody_can_write() -> None:
    reported = await refusal(Case(first(), approval=MockApprovalSystem("x")))

    assert "choices alone" in reported


async def test_nobody_to_ask_is_an_error_for_the_model() -> None:
    assert "nobody is there" in await refusal(Case(first()))


async def test_answer_that_does_not_fit_reaches_no_tool() -> None:
    case = Case(
        first(),
        Person(**{"ok?": 7}),
        ask=lambda context: context.ask("ok?", options=["red"]),
    )

    assert "does not fit" in await refusal(case)


async def test_question_that_nobody_answers_in_time_is_an_error() -> None:
    class Late(Person):
        async def ask_person(self, question: PersonQuestion, /) -> JSONValue:
            raise ApprovalTimeoutError(question.prompt)

    assert "Nobody answered in time: ok?" in await refusal(Case(first(), Late()))


class Silent(Person):
    """Answers nothing; whoever wants to stop the turn meanwhile does."""

    def __init__(self, stop: Callable[[], Awaitable[object]] | None = None) -> None:
        super().__init__()
        self.stop = stop

    async def ask_person(self, question: PersonQuestion, /) -> JSONValue:
        self.asked.append(question)
        if self.stop is not None:
            await self.stop()
        await anyio.sleep_forever()
        raise AssertionError


async def test_question_has_the_time_that_its_tool_gives_it() -> None:
    case = Case(first(), Silent(), ask=lambda context: context.ask("ok?", timeout=0.01))

    with anyio.fail_after(5):
        assert "Nobody answered in time: ok?" in await refusal(case)


async def test_questions_end_with_a_turn_that_is_asked_to_stop() -> None:
    async def stop() -> None:
        await case.session.cancel()

    person = Silent(stop)
    two = calling(call("work", id="a"), call("work", id="b"))
    case = Case([two, "end"], person)

    with anyio.fail_after(5), pytest.raises(TurnCancelled):
        await case.run()

    assert len(person.asked) == 1
    assert case.effects == []
    assert len(case.results) == 2


class Clerk:
    """Approves or not, and asks nothing else."""

    async def request_approval(self, request: ApprovalRequest, /) -> ApprovalResponse:
        raise AssertionError(request)


class Forgetful(Clerk):
    """Leaves a question for later and cannot say when its answer is there."""

    async def ask_person(self, question: PersonQuestion, /) -> JSONValue:
        raise ApprovalPendingError(question.prompt)


async def test_of_several_providers_one_that_asks_is_asked() -> None:
    case = Case(first(), providers=[Clerk(), Person(**{"ok?": "yes"}), Forgetful()])
    await case.run()

    assert case.effects == ["yes"]


async def test_of_several_providers_one_that_stored_answers_later() -> None:
    person = Person()
    case = Case(first(), providers=[Clerk(), person])

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(case.run)
            while not person.asked:
                await anyio.wait_all_tasks_blocked()
            person.answer("ok?", "later")

    assert case.effects == ["later"]


@pytest.mark.parametrize(
    ("providers", "reported"),
    [
        ([Clerk()], "nobody is there to answer a tool"),
        ([Clerk(), Clerk()], "none of the approval providers asks for a tool"),
        ([Forgetful()], "does not say when the answer is there"),
        ([Clerk(), Forgetful()], "the approval provider stores no question"),
    ],
    ids=["one", "several", "forgetful", "beside"],
)
async def test_provider_that_cannot_ask_is_an_error_for_the_model(
    providers: Sequence[object], reported: str
) -> None:
    assert reported in await refusal(Case(first(), providers=providers))


@pytest.mark.parametrize(
    "wrong",
    [
        {"options": ["a"], "schema": {"type": "string"}},
        {"schema": {"type": "no such type"}},
        {"schema": {"description": "x" * 30_000}},
    ],
)
async def test_question_without_a_sense_is_the_tools_error(
    wrong: dict[str, object],
) -> None:
    with pytest.raises(ValueError, match="schema"):
        await ToolContext().ask("?", **wrong)  # type: ignore[arg-type]  # that is wrong


async def test_outside_a_session_nobody_is_asked() -> None:
    with pytest.raises(ToolError, match="outside a session"):
        await ToolContext().ask("?")


async def test_person_reads_the_call_before_the_tools_words() -> None:
    hostile = "Fine?\x1b[2J\u202e"
    person = Person(**{hostile: "yes"})
    case = Case(first(), person, ask=lambda context: context.ask(hostile))
    await case.run()
    prompt = person.asked[0].prompt

    assert prompt.splitlines()[0] == "work {}"
    assert "\\x1b[2J\\u202e" in prompt
    assert "\x1b" not in prompt


async def test_sync_tool_asks_from_its_thread() -> None:
    @tool
    def work(context: ToolContext) -> str:
        """Work."""
        return f"did {anyio.from_thread.run(context.ask, 'ok?')}"

    session = build_session(calling(call("work")), "end", tools=[work])
    session.coordinator.decisions.provider = Person(**{"ok?": "yes"})
    async with session:
        await session.execute("go")
        messages = mounted_context(session.coordinator).messages

    assert "did yes" in str(messages)


async def test_cancelled_turn_asks_no_longer() -> None:
    person = Person()
    case = Case(first(), person)

    async with anyio.create_task_group() as group:
        group.start_soon(case.run)
        while not person.asked:
            await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()

    assert case.effects == []
