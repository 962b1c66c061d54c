"""What every store guarantees of questions: answered once, by nobody too late."""

from __future__ import annotations

from typing import Final

import anyio
import attrs

from amplifier.testing.stores.behavior import (
    PERIOD,
    StoreBehavior,
    StoreSubject,
    begin,
    opened,
    refuses,
    same,
)
from amplifier_sdk.errors import QuestionClosedError, StoreError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import SessionStore, StoredQuestion

__all__ = ["QUESTIONS"]

_QUESTION: Final = StoredQuestion(
    question_id="q1",
    session_id="s1",
    prompt="Run rm -rf build?\n\u0000 ä",
    options=("Allow once", "Deny"),
    details={"tool": "bash", "arguments": {"z": 1, "a": "rm"}},
)
_PEOPLE: Final = ("ann", "bob", "cid", "dan")


async def _waits(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        lease = await begin(store, "s1")
        await store.ask(lease, _QUESTION)
        # as a turn does that is repeated after a crash
        await store.ask(lease, _QUESTION)
        await store.release(lease)
    async with opened(subject) as store:
        same("the questions", await store.questions(), (_QUESTION,))
        same("those of another session", await store.questions("s2"), ())


async def _answered(subject: StoreSubject) -> None:
    wanted = attrs.evolve(_QUESTION, answer="Deny", answered_by="ann")
    async with opened(subject) as store:
        lease = await begin(store, "s1")
        await store.ask(lease, _QUESTION)
        same("the answer", await store.answer("q1", "Deny", by="ann"), wanted)
        same("the same answer", await store.answer("q1", "Deny", by="bob"), wanted)
        other = store.answer("q1", "Allow once", by="bob")
        await refuses(QuestionClosedError, "another answer", other)
        await store.ask(lease, _QUESTION)
        await store.void_questions(lease)
        # neither asking again nor voiding changes what was answered
        same("the question", await store.questions("s1"), (wanted,))


async def _moved(subject: StoreSubject) -> None:
    answered = attrs.evolve(_QUESTION, answer="Deny", answered_by="ann")
    void = attrs.evolve(_QUESTION, question_id="q2", is_void=True)
    async with opened(subject) as store:
        lease = await begin(store, "s1")
        for question in (answered, void):
            await store.ask(lease, question)
        await store.ask(lease, _QUESTION)
        same("the questions", await store.questions("s1"), (answered, void))


async def _race(subject: StoreSubject) -> None:
    taken: list[StoredQuestion] = []

    async def answer(store: SessionStore, name: str, option: str) -> None:
        try:
            taken.append(await store.answer("q1", option, by=name))
        except QuestionClosedError:
            return

    async with opened(subject) as one, opened(subject) as other:
        lease = await begin(one, "s1")
        await one.ask(lease, _QUESTION)
        async with anyio.create_task_group() as tasks:
            for number, name in enumerate(_PEOPLE):
                store = (one, other)[number % 2]
                # two people for each option: the second of the same answer is no loser
                option = _QUESTION.options[number // 2]
                tasks.start_soon(answer, store, name, option)
        (stored,) = await other.questions()
    for each in taken:
        same("an answer that was accepted", each, stored)
    same("people whose answer was accepted", len(taken), 2)


async def _refused(subject: StoreSubject) -> None:
    expired = attrs.evolve(_QUESTION, question_id="q2", expires=1000.0)
    void = attrs.evolve(_QUESTION, question_id="q3")
    async with opened(subject) as store:
        lease = await begin(store, "s1")
        for question in (void, expired):
            await store.ask(lease, question)
        await store.void_questions(lease)
        # asked after the others were voided: it is closed by its time alone
        later = attrs.evolve(expired, question_id="q4")
        for question in (_QUESTION, later):
            await store.ask(lease, question)
        for question_id, option in (
            ("q1", "allow once"),
            ("q2", "Deny"),
            ("q3", "Deny"),
            ("q4", "Deny"),
            ("none", "Deny"),
        ):
            late = store.answer(question_id, option, by="ann")
            what = f"the answer {option!r} to {question_id}"
            await refuses(QuestionClosedError, what, late)
        states = [(each.answer, each.is_void) for each in await store.questions("s1")]
        wanted = [(None, False), (None, True), (None, True), (None, False)]
        same("the questions", states, wanted)


async def _one_id(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        lease = await begin(store, "s1")
        other = await begin(store, "s2")
        await store.ask(lease, _QUESTION)
        changed = attrs.evolve(_QUESTION, prompt="Run ls?")
        await refuses(StoreError, "another text", store.ask(lease, changed))
        stolen = attrs.evolve(_QUESTION, session_id="s2")
        await refuses(StoreError, "the id in another session", store.ask(other, stolen))
        await refuses(
            StoreError,
            "the question of another session",
            store.ask(other, attrs.evolve(_QUESTION, question_id="q9")),
        )
        same("the questions", await store.questions(), (_QUESTION,))


async def _with_a_schema(subject: StoreSubject) -> None:
    form: JSONObject = {"type": "object", "properties": {"size": {"type": "integer"}}}
    details: JSONObject = {**_QUESTION.details, "schema": form}
    asked = attrs.evolve(_QUESTION, options=(), details=details)
    async with opened(subject) as store:
        lease = await begin(store, "s1")
        await store.ask(lease, asked)
        for text in ("Deny", "{", '{"size":"big"}', "7"):
            wrong = store.answer("q1", text, by="ann")
            await refuses(QuestionClosedError, f"the answer {text!r}", wrong)
        await store.answer("q1", '{"size":7}', by="ann")
        (question,) = await store.questions("s1")
        same("the answer", question.answer, '{"size":7}')
        other = store.answer("q1", '{"size":8}', by="bob")
        await refuses(QuestionClosedError, "another answer", other)


async def _forgotten(subject: StoreSubject) -> None:
    ids = ("q1", "q2", "q3")
    first, second, third = (attrs.evolve(_QUESTION, question_id=id_) for id_ in ids)
    others = attrs.evolve(_QUESTION, question_id="q4", session_id="s2")
    async with opened(subject) as store:
        lease, other = await begin(store, "s1"), await begin(store, "s2")
        for question in (first, second, third):
            await store.ask(lease, question)
        await store.ask(other, others)
        await store.answer("q1", "Deny", by="ann")
        await store.forget_questions(lease, ["q1", "q3", "q4", "none"])
        same("the questions", await store.questions(), (second, others))
        late = store.answer("q3", "Deny", by="ann")
        await refuses(QuestionClosedError, "an answer to what was forgotten", late)


async def _without_a_worker(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        lease = await begin(store, "s1")
        await store.ask(lease, _QUESTION)
        # nobody works on the session while the person thinks
        await subject.expire_leases()
        await store.answer("q1", "Deny", by="ann")
        again = await store.acquire("s1", owner="worker 2", period=PERIOD)
        (question,) = await store.questions("s1")
        same("the answer that the next worker finds", question.answer, "Deny")
        await store.release(again)
        await store.delete("s1")
        same("the questions of a deleted session", await store.questions(), ())


# A row: what is done; what is true of a good one; what its author does when it is not.
# fmt: off
QUESTIONS: Final = (
    StoreBehavior(id="question.waits", check=_waits,
        says="A question comes back as it was asked, and is stored once however often it is asked.",
        fix="Insert it unless its id is there, and compare it with what is there."),
    StoreBehavior(id="question.is-answered-once", check=_answered,
        says="The first answer stays; the same one again is no error, and asking again does not open the question.",
        fix="Answer with `StoredQuestion.with_answer` while the row is locked."),
    StoreBehavior(id="question.comes-with-its-answer", check=_moved,
        says="A question of another store is stored with its answer, and voided where it was.",
        fix="Compare questions by `StoredQuestion.asked`, and store the other fields as they come."),
    StoreBehavior(id="question.is-answered-once-in-a-race", check=_race,
        says="Of several answers at the same time one counts, and whoever gave another one is refused.",
        fix="Lock the row of a question before it is read."),
    StoreBehavior(id="question.is-closed", check=_refused,
        says="A question that expired or was voided takes no answer, and none takes what it does not offer.",
        fix="Answer with `StoredQuestion.with_answer`, with the time of the store's clock."),
    StoreBehavior(id="question.takes-a-value", check=_with_a_schema,
        says="A question with a schema takes JSON text that fits it, once, and nothing else.",
        fix="Answer with `StoredQuestion.with_answer`, and store `details` as they come."),
    StoreBehavior(id="question.has-one-id", check=_one_id,
        says="No other question takes the id of one, and a lease asks for its own session alone.",
        fix="Make the id unique in the whole store, and compare the question's session with the lease's."),
    StoreBehavior(id="question.is-forgotten", check=_forgotten,
        says="Questions are deleted when their session says so, and no other ones with them.",
        fix="Delete by the ids and by the session of the lease."),
    StoreBehavior(id="question.needs-no-worker", check=_without_a_worker,
        says="A question is answered while nobody has a lease on its session, and is deleted with it.",
        fix="Let `answer` need no lease."),
)
