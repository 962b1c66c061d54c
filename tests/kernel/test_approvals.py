"""Questions to the person: what is shown is what runs, and whatever is no clear permission denies."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from math import inf

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier import HookRegistry, ModuleCoordinator
from amplifier_sdk.approvals import ApprovalRequest, ApprovalResponse
from amplifier_sdk.errors import (
    ApprovalPendingError,
    ApprovalTimeoutError,
    ApprovalUnavailableError,
    TurnCancelled,
)
from amplifier_sdk.events import (
    APPROVAL_DENIED,
    APPROVAL_GRANTED,
    APPROVAL_REQUIRED,
    TOOL_POST,
    TOOL_PRE,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import HookResult
from tests.doubles import (
    Blocking,
    Person,
    Recorder,
    Screen,
    Sentry,
    Worker,
    build_session,
    call,
    calling,
    mounted_context,
    only_result,
)
from tests.kernel.turns import a_session, cancelled_turn, the_result

Reports = list[MutableMapping[str, object]]

ALWAYS = ("Allow once", "Allow always", "Deny")


async def decide(
    person: object,
    *questions: HookResult,
    data: dict[str, object] | None = None,
    event: str = TOOL_PRE,
) -> str | None:
    """Carry out questions of one emission; return why it is denied, or `None` when it is allowed."""
    coordinator = ModuleCoordinator(approval_system=person)  # type: ignore[arg-type]  # any double of a person
    return await ask(coordinator, *questions, data=data, event=event)


async def ask(
    coordinator: ModuleCoordinator,
    *questions: HookResult,
    data: dict[str, object] | None = None,
    event: str = TOOL_PRE,
) -> str | None:
    hooks = HookRegistry()
    for number, question in enumerate(questions):
        hooks.register(event, Sentry([question]), name=f"h{number}")
    emission = await hooks.emit(
        event, {"tool_name": "work", "tool_input": {"x": 1}} if data is None else data
    )
    decided = await coordinator.process_hook_result(emission, event)
    return decided.reason if decided.denied else None


# -- answers


async def test_without_an_approval_system_a_question_is_a_denial() -> None:
    session, worker = a_session(Sentry([HookResult.ask("sure?")]))
    recorder = Recorder.of(session.coordinator.hooks, "approval:*")

    text = await the_result(session)

    assert (
        text
        == "Error: Denied by approval: No approval system is available, so the operation is denied"
    )
    assert recorder.names == [APPROVAL_DENIED]
    assert worker.inputs == []


@pytest.mark.parametrize("reply", ["Allow", "allow once", " ALLOW ALWAYS "])
async def test_an_allowed_operation_runs(reply: str) -> None:
    person = Person(reply)
    session, worker = a_session(
        Sentry([HookResult.ask("sure?", options=["Allow", "Never"], timeout=7)]),
        approval=person,
    )
    recorder = Recorder.of(session.coordinator.hooks, "approval:*")

    assert await the_result(session) == "done"
    assert person.questions == [('work {"x": 1}\nsure?', ("Allow", "Never"), 7, "deny")]
    assert recorder.names == [APPROVAL_REQUIRED, APPROVAL_GRANTED]
    assert worker.inputs == [{"x": 1}]


@pytest.mark.parametrize(
    "reply", ["Deny", "", "allowed", "yes", "Never", "Allow\nDeny"]
)
async def test_any_other_answer_denies(reply: str) -> None:
    session, worker = a_session(
        Sentry([HookResult.ask("sure?")]), approval=Person(reply)
    )
    recorder = Recorder.of(session.coordinator.hooks, "approval:*")

    assert await the_result(session) == "Error: Denied by approval: User denied: sure?"
    assert recorder.names == [APPROVAL_REQUIRED, APPROVAL_DENIED]
    assert worker.inputs == []


@pytest.mark.parametrize("reply", [True, None, 1, ["Allow"]])
async def test_an_answer_that_is_no_text_denies(reply: object) -> None:
    assert await decide(Person(reply), HookResult.ask("sure?")) == "User denied: sure?"  # type: ignore[arg-type]


async def test_an_option_that_the_handler_names_as_allowing_allows() -> None:
    question = HookResult.ask(
        "Deploy?", options=["Yes, deploy", "Yes, later", "No"], allowing=["yes, deploy"]
    )

    assert await decide(Person("Yes, deploy"), question) is None
    assert await decide(Person("Yes, later"), question) == "User denied: Deploy?"
    assert await decide(Person("Allow"), question) is None


async def test_question_without_possible_permission_is_not_asked() -> None:
    person = Person("Yes")

    reason = await decide(person, HookResult.ask("Deploy?", options=["Yes", "No"]))

    assert (
        reason
        == "h0 asks without an option that allows: 'Yes', 'No'; name one as allowing"
    )
    assert person.questions == []


@pytest.mark.parametrize(
    "question",
    [
        HookResult(action="ask_user", approval_prompt=5),  # type: ignore[arg-type]
        HookResult.ask("sure?", options=[1, 2]),  # type: ignore[list-item]
        HookResult.ask("sure?", allowing=[None]),  # type: ignore[list-item]
    ],
)
async def test_question_that_is_no_text_denies_and_names_handler(
    question: HookResult,
) -> None:
    person = Person()

    reason = await decide(person, question)

    assert reason is not None
    assert reason.startswith("The question of 'h0' cannot be asked: ")
    assert person.questions == []


async def test_a_question_has_a_text_and_options_of_its_own_accord() -> None:
    person = Person()

    assert await decide(person, HookResult(action="ask_user")) is None
    assert person.questions == [
        ('work {"x": 1}\nAllow this operation?', ("Allow", "Deny"), 300.0, "deny")
    ]


async def test_an_approval_system_that_fails_denies_and_is_named(
    reports: Reports,
) -> None:
    session, worker = a_session(
        Sentry([HookResult.ask("sure?")]),
        approval=Person(ConnectionError("no terminal")),
    )

    text = await the_result(session)

    assert (
        text
        == "Error: Denied by approval: The approval system failed: ConnectionError: no terminal"
    )
    assert worker.inputs == []
    assert [report["event"] for report in reports] == ["approval.failed"]


async def test_an_approval_system_may_say_that_nobody_can_be_asked(
    reports: Reports,
) -> None:
    person = Person(ApprovalUnavailableError("the browser is closed"))

    assert await decide(person, HookResult.ask("sure?", default="allow")) == (
        "Nobody can be asked: the browser is closed"
    )
    assert reports == []


async def test_the_events_tell_what_was_asked_and_what_was_said() -> None:
    session, _ = a_session(Sentry([HookResult.ask("sure?")]), approval=Person("Deny"))
    recorder = Recorder.of(session.coordinator.hooks, "approval:*")

    await the_result(session)

    required, denied = recorder.one(APPROVAL_REQUIRED), recorder.one(APPROVAL_DENIED)
    assert (required["tool_name"], required["action"], required["options"]) == (
        "work",
        "sure?",
        ("Allow", "Deny"),
    )
    assert required["prompt"] == denied["prompt"] == 'work {"x": 1}\nsure?'
    assert (denied["tool_name"], denied["reason"]) == ("work", "User denied: sure?")


# -- what is shown


async def test_the_question_shows_the_arguments_that_run() -> None:
    """An observer's question was made of the first arguments; the person reads the last ones."""
    person = Person()
    session, worker = a_session(
        Sentry([HookResult.ask("Allow x=1?")]),
        Sentry([HookResult.modify({"tool_input": {"x": 2}})]),
        approval=person,
    )
    session.coordinator.hooks.unregister("h0")
    asks = Sentry([HookResult.ask("Allow x=1?")])
    session.coordinator.hooks.register(TOOL_PRE, asks, -1, "watcher", decides=False)

    assert await the_result(session) == "done"
    ((prompt, *_),) = person.questions
    assert prompt == 'work {"x": 2}\nAllow x=1?'
    assert worker.inputs == [{"x": 2}]


async def test_kept_arguments_cannot_change_while_person_reads() -> None:
    held: JSONObject = {"x": 2, "more": {"deep": [1]}}

    class Slow(Person):
        async def request_approval(
            self, prompt: str, options: Sequence[str], timeout: float, default: str, /
        ) -> str:
            held["x"] = 3
            held["more"] = {}
            return await super().request_approval(prompt, options, timeout, default)

    person = Slow()
    session, worker = a_session(
        Sentry([HookResult.modify({"tool_input": held})]),
        Sentry([HookResult.ask("ok?")]),
        approval=person,
    )

    assert await the_result(session) == "done"
    assert person.questions[0][0] == 'work {"x": 2, "more": {"deep": [1]}}\nok?'
    assert worker.inputs == [{"x": 2, "more": {"deep": [1]}}]


@pytest.mark.parametrize(
    ("change", "text", "shown"),
    [
        (
            {"x": "no"},
            "Error: Denied: a handler's change does not fit.",
            [("look", "info", "hook:h1")],
        ),
        (
            3,
            "Error: Denied by h0: handler 'h0' failed: DecisionError: modify of tool:pre, tool_input: expected an",
            [],
        ),
    ],
)
async def test_nobody_is_asked_about_a_call_that_cannot_run(
    change: JSONValue, text: str, shown: list[tuple[str, str, str]]
) -> None:
    person, screen = Person(), Screen()
    session, worker = a_session(
        Sentry([HookResult.modify({"tool_input": change})]),
        Sentry([HookResult(action="ask_user", user_message="look")]),
        approval=person,
        display=screen,
    )

    assert (await the_result(session)).startswith(text)
    assert (person.questions, worker.inputs) == ([], [])
    assert screen.shown == shown


async def test_changing_arguments_in_place_denies_the_question() -> None:
    person = Person()

    def spoil(event: str, data: dict[str, object]) -> HookResult:
        arguments = data["tool_input"]
        assert isinstance(arguments, dict)
        arguments["x"] = 9
        return HookResult.ask("ok?")

    session, worker = a_session(spoil, approval=person)

    assert "What a handler receives cannot be changed in place" in await the_result(
        session
    )
    assert (person.questions, worker.inputs) == ([], [])


@given(st.text(), st.text())
def test_nothing_in_question_obeyed_by_terminal_or_stays_unseen(
    value: str, asked: str
) -> None:
    person = Person()

    async def run() -> None:
        arguments: dict[str, object] = {
            "tool_name": f"t{value}",
            "tool_input": {value: [value]},
        }
        await decide(person, HookResult.ask(asked), data=arguments)

    anyio.run(run)

    ((prompt, *_),) = person.questions
    call_line, text = prompt.split("\n", 1)
    assert call_line.isprintable()
    assert all(character.isprintable() or character in "\n\t" for character in text)


async def test_characters_that_hide_others_are_shown_as_escapes() -> None:
    person = Person()
    arguments = {
        "path": "safe\u202etxt.exe",
        "text": "a\x1b[2Kb\x7f\u200bc\nd",
        "half": "\ud800",
    }

    await decide(
        person,
        HookResult.ask("ok\r?"),
        data={"tool_name": "write", "tool_input": arguments},
    )

    ((prompt, *_),) = person.questions
    shown = (
        r'"safe\u202etxt.exe", "text": "a\u001b[2Kb\x7f\u200bc\nd", "half": "\ud800"'
    )
    assert prompt == f'write {{"path": {shown}}}\nok\\r?'


async def test_args_that_json_lacks_are_shown_as_python_writes_them() -> None:
    person = Person()

    await decide(
        person,
        HookResult.ask("ok?"),
        data={"tool_name": "write", "tool_input": {"n": 1 + 2j}},
    )

    assert person.questions[0][0] == "write {'n': (1+2j)}\nok?"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({"prompt": "tidy up"}, 'app:ask {"prompt": "tidy up"}\n'),
        ({}, ""),
        ({"response": object()}, ""),
    ],
)
async def test_other_events_show_their_data_where_those_are_plain(
    data: dict[str, object], line: str
) -> None:
    person = Person()

    await decide(person, HookResult.ask("ok?"), data=data, event="app:ask")

    assert person.questions[0][0] == f"{line}ok?"


# -- time


@pytest.mark.parametrize(("default", "runs"), [("allow", True), ("deny", False)])
async def test_an_unanswered_question_takes_its_default(
    default: str, runs: bool
) -> None:
    question = HookResult.ask(
        "sure?", timeout=3, default="allow" if default == "allow" else "deny"
    )
    session, worker = a_session(
        Sentry([question]), approval=Person(ApprovalTimeoutError("away"))
    )

    text = await the_result(session)

    assert text == (
        "done"
        if runs
        else "Error: Denied by approval: Approval timeout after 3 s: sure?"
    )
    assert bool(worker.inputs) is runs


class Away(Person):
    """Never answers; says whether it was told that nobody waits any more."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = anyio.Event()
        self.withdrawn = False

    async def request_approval(
        self, prompt: str, options: Sequence[str], timeout: float, default: str, /
    ) -> str:
        self.questions.append((prompt, tuple(options), timeout, default))
        self.asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.withdrawn = True
        return "Allow"


@pytest.mark.parametrize(
    ("default", "reason"),
    [("allow", None), ("deny", "Approval timeout after 0.01 s: sure?")],
)
async def test_a_person_who_never_answers_is_not_waited_for_longer(
    default: str, reason: str | None
) -> None:
    person = Away()
    question = HookResult.ask(
        "sure?", timeout=0.01, default="allow" if default == "allow" else "deny"
    )

    with anyio.fail_after(5):
        assert await decide(person, question) == reason

    assert person.withdrawn


async def test_waiting_for_a_person_counts_against_no_other_deadline() -> None:
    deadlines: list[float] = []

    class Patient(Person):
        async def request_approval(
            self, prompt: str, options: object, timeout: float, default: str, /
        ) -> str:
            deadlines.append(anyio.current_effective_deadline())
            return "Allow"

    limits: JSONObject = {"tool_timeout": 1, "hook_timeout": 1, "provider_timeout": 1}
    question = HookResult.ask("sure?", timeout=inf)
    session, worker = a_session(Sentry([question]), approval=Patient(), limits=limits)
    async with session:
        await session.execute("go")

    assert deadlines == [inf]
    assert worker.inputs == [{"x": 1}]


@pytest.mark.parametrize("immediate", [False, True])
async def test_a_cancel_at_the_question_withdraws_it(immediate: bool) -> None:
    person = Away()
    session, worker = a_session(Sentry([HookResult.ask("sure?")]), approval=person)

    async def cancel() -> None:
        await person.asked.wait()
        await session.cancel(immediate=immediate)

    with anyio.fail_after(5):
        async with session, anyio.create_task_group() as group:
            group.start_soon(cancel)
            with pytest.raises(TurnCancelled):
                await session.execute("go")

    assert person.withdrawn
    assert worker.inputs == []


async def test_a_permission_that_comes_after_a_cancel_runs_nothing() -> None:
    class Late(Person):
        async def request_approval(
            self, prompt: str, options: object, timeout: float, default: str, /
        ) -> str:
            await session.cancel()
            return "Allow"

    session, worker = a_session(Sentry([HookResult.ask("sure?")]), approval=Late())
    async with session:
        with pytest.raises(TurnCancelled):
            await session.execute("go")

        assert only_result(mounted_context(session.coordinator).messages) == (
            "Error: Denied by approval: The turn was cancelled before the person answered"
        )
    assert worker.inputs == []


async def test_in_a_cancelled_turn_nobody_is_asked() -> None:
    person = Person()
    coordinator = ModuleCoordinator(approval_system=person)
    await coordinator.request_cancel()

    assert (
        await ask(coordinator, HookResult.ask("sure?"))
        == "The turn was cancelled before the person answered"
    )
    assert person.questions == []


# -- one at a time, once


async def test_the_question_is_asked_once_after_the_last_handler() -> None:
    person = Person()
    session, worker = a_session(
        Sentry([HookResult.ask("one?"), HookResult.ask("one, with 2?")]),
        Sentry([HookResult.modify({"tool_input": {"x": 2}})]),
        Sentry([HookResult.ask("two?")]),
        approval=person,
    )

    assert await the_result(session) == "done"
    assert len(person.questions) == 1
    assert worker.inputs == [{"x": 2}]


async def test_a_denial_asks_nobody() -> None:
    person = Person()

    assert await decide(person, HookResult.ask("sure?"), HookResult.deny("no")) == "no"
    assert person.questions == []


async def test_silence_allows_only_if_every_question_says_so() -> None:
    lenient, strict = (
        HookResult.ask("a?", default="allow"),
        HookResult.ask("b?", default="deny"),
    )
    nobody = Person(ApprovalTimeoutError("away"))

    assert await decide(nobody, lenient, lenient) is None
    assert await decide(nobody, lenient, strict) == "Approval timeout after 300 s: a?"


async def test_questions_of_parallel_calls_are_asked_one_at_a_time() -> None:
    asked: list[str] = []
    at_once = 0

    class Busy(Person):
        async def request_approval(
            self, prompt: str, options: object, timeout: float, default: str, /
        ) -> str:
            nonlocal at_once
            at_once += 1
            assert at_once == 1
            asked.append(prompt)
            await anyio.lowlevel.checkpoint()
            at_once -= 1
            return "Allow"

    worker = Worker()
    calls = [call("work", id=f"c{n}") for n in range(3)]
    session = build_session(calling(*calls), "end", tools=[worker], approval=Busy())
    session.coordinator.hooks.register(
        TOOL_PRE, lambda event, data: HookResult.ask("sure?")
    )
    async with session:
        await session.execute("go")

    assert len(asked) == len(worker.inputs) == 3


# -- always


async def test_allow_always_covers_same_call_for_rest_of_session() -> None:
    person = Person("Allow always")
    coordinator = ModuleCoordinator(approval_system=person)
    recorder = Recorder.of(coordinator.hooks, "approval:*")
    question = HookResult.ask("sure?", options=ALWAYS)

    assert [await ask(coordinator, question) for _ in range(3)] == [None] * 3

    assert [prompt for prompt, *_ in person.questions] == [
        'work {"x": 1}\nsure?\nAllow always covers: exactly this, in this session'
    ]
    assert recorder.names == [APPROVAL_REQUIRED, *[APPROVAL_GRANTED] * 3]
    assert (
        recorder.all(APPROVAL_GRANTED)[2]["reason"] == "allowed always in this session"
    )
    assert await decide(Person("Deny"), question) == "User denied: sure?"


@pytest.mark.parametrize(
    "data",
    [
        {"tool_name": "work", "tool_input": {"x": 2}},
        {"tool_name": "work", "tool_input": {"x": 1, "y": 1}},
        {"tool_name": "work", "tool_input": {"x": True}},
        {"tool_name": "work", "tool_input": {"x": "1"}},
        {"tool_name": "walk", "tool_input": {"x": 1}},
    ],
)
async def test_allow_always_does_not_cover_other_arguments(
    data: dict[str, object],
) -> None:
    person = Person("Allow always")
    coordinator = ModuleCoordinator(approval_system=person)
    question = HookResult.ask("sure?", options=ALWAYS)

    await ask(coordinator, question)
    await ask(coordinator, question, data=data)

    assert len(person.questions) == 2


@pytest.mark.parametrize(
    ("other", "event"),
    [(HookResult.ask("surely?", options=ALWAYS), TOOL_PRE), (None, TOOL_POST)],
)
async def test_allow_always_does_not_cover_another_question(
    other: HookResult | None, event: str
) -> None:
    person = Person("Allow always")
    coordinator = ModuleCoordinator(approval_system=person)
    question = HookResult.ask("sure?", options=ALWAYS)

    await ask(coordinator, question)
    await ask(coordinator, other or question, event=event)

    assert len(person.questions) == 2


async def test_allow_always_for_one_handler_leaves_others_open() -> None:
    person = Person("Allow always")
    coordinator = ModuleCoordinator(approval_system=person)
    first, second = (
        HookResult.ask("network?", options=ALWAYS),
        HookResult.ask("delete?", options=ALWAYS),
    )

    await ask(coordinator, first)
    person.reply = "Deny"

    assert await ask(coordinator, first, second) == "User denied: delete?"
    assert len(person.questions) == 2


async def test_named_scope_shown_and_covers_what_handler_puts_into_it() -> None:
    person = Person("Allow always")
    coordinator = ModuleCoordinator(approval_system=person)

    for number in range(3):
        scope = "all git commands" if number < 2 else "all deletions"
        question = HookResult.ask(f"{number}?", options=ALWAYS, scope=scope)
        assert (
            await ask(
                coordinator,
                question,
                data={"tool_name": "bash", "tool_input": {"n": number}},
            )
            is None
        )

    assert [prompt.splitlines()[-1] for prompt, *_ in person.questions] == [
        "Allow always covers: all git commands",
        "Allow always covers: all deletions",
    ]


async def test_allow_once_is_not_remembered_nor_is_always_not_offered() -> None:
    person = Person("Allow once")
    coordinator = ModuleCoordinator(approval_system=person)

    await ask(coordinator, HookResult.ask("sure?", options=ALWAYS))
    await ask(coordinator, HookResult.ask("sure?", options=ALWAYS))
    person.reply = "Allow always"
    await ask(coordinator, HookResult.ask("sure?"))
    await ask(coordinator, HookResult.ask("sure?"))

    assert len(person.questions) == 4


async def test_what_cannot_be_told_from_other_questions_asked_again() -> None:
    person = Person("Allow always")
    coordinator = ModuleCoordinator(approval_system=person)
    data: dict[str, object] = {"tool_name": "work", "tool_input": {"x": object()}}

    await ask(coordinator, HookResult.ask("sure?", options=ALWAYS), data=data)
    await ask(coordinator, HookResult.ask("sure?", options=ALWAYS), data=data)

    assert len(person.questions) == 2


async def test_always_answers_same_question_of_call_beside_it() -> None:
    person = Person("Allow always")
    worker = Worker()
    session = build_session(
        calling(call("work", id="a"), call("work", id="b")),
        "end",
        tools=[worker],
        approval=person,
    )
    session.coordinator.hooks.register(
        TOOL_PRE, lambda event, data: HookResult.ask("sure?", options=ALWAYS)
    )
    async with session:
        await session.execute("go")

    assert len(person.questions) == 1
    assert len(worker.inputs) == 2


@pytest.mark.parametrize("failing", [False, True], ids=["denies", "fails"])
async def test_a_deciding_handler_may_take_a_permission_back(failing: bool) -> None:
    def keep(event: str, data: Mapping[str, object]) -> HookResult:
        if failing:
            raise OSError("the disk is full")
        return HookResult.deny("it cannot be recorded")

    coordinator = ModuleCoordinator(approval_system=Person("Allow"))
    recorder = Recorder()
    coordinator.hooks.register("approval:*", recorder)
    coordinator.hooks.register(APPROVAL_GRANTED, keep, name="records", decides=True)
    decided = await coordinator.process_hook_result(HookResult.ask("Go?"), "app:go")
    assert decided.denied
    assert "records took the permission back: " in str(decided.reason)
    assert ("the disk is full" if failing else "it cannot be recorded") in str(
        decided.reason
    )
    assert recorder.names[-1] == "approval:denied"


async def test_the_risk_is_told_where_the_question_is() -> None:
    coordinator = ModuleCoordinator()
    requests: list[ApprovalRequest] = []

    class Desk:
        async def request_approval(self, request: ApprovalRequest) -> ApprovalResponse:
            requests.append(request)
            return ApprovalResponse(approved=True)

    register = coordinator.get_capability("approval.register_provider")
    assert callable(register)
    register(Desk())
    await coordinator.process_hook_result(
        HookResult.ask("Go?", risk="high\x1b"), "app:go"
    )
    await coordinator.process_hook_result(HookResult.ask("Go?"), "app:go")
    assert [request.risk_level for request in requests] == ["high\\x1b", "unknown"]


# -- approval providers


class Desk:
    """An approval provider with one answer, or an error to raise."""

    def __init__(self, reply: object) -> None:
        self.reply = reply
        self.requests: list[ApprovalRequest] = []

    async def request_approval(self, request: ApprovalRequest, /) -> ApprovalResponse:
        self.requests.append(request)
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply  # type: ignore[return-value]  # also what no provider should return


def a_desk(reply: object, **options: object) -> tuple[ModuleCoordinator, Desk]:
    coordinator, desk = ModuleCoordinator(**options), Desk(reply)  # type: ignore[arg-type]
    register = coordinator.get_capability("approval.register_provider")
    assert callable(register)
    register(desk)
    return coordinator, desk


async def test_a_provider_with_all_the_time_in_the_world_is_told_so() -> None:
    coordinator, desk = a_desk(ApprovalResponse(approved=True))

    assert await ask(coordinator, HookResult.ask("sure?", timeout=inf)) is None

    assert [request.timeout for request in desk.requests] == [None]


async def test_a_registered_provider_is_asked() -> None:
    coordinator, desk = a_desk(ApprovalResponse(approved=True))

    assert await ask(coordinator, HookResult.ask("sure?", timeout=7)) is None

    (request,) = desk.requests
    assert (request.tool_name, request.action, request.timeout) == ("work", "sure?", 7)
    assert request.details == {
        "tool_input": {"x": 1},
        "prompt": 'work {"x": 1}\nsure?',
        "event": "tool:pre",
        "hook": "h0",
        "options": ("Allow", "Deny"),
        "allowing": ("Allow",),
        "covers": '["h0", "tool:pre", "sure?", "work", {"tool_input": {"x": 1}}]',
    }
    assert coordinator.to_dict()["has_approval_provider"] is True


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ApprovalResponse(approved=False), "User denied: sure?"),
        (ApprovalResponse(approved=False, reason="not now"), "User denied: not now"),
        (ApprovalResponse(approved="yes"), "User denied: sure?"),  # type: ignore[arg-type]
        (ApprovalTimeoutError("away"), "Approval timeout after 300 s: sure?"),
        (OSError("gone"), "The approval system failed: OSError: gone"),
    ],
)
async def test_a_provider_that_does_not_approve_denies(
    reply: object, reason: str
) -> None:
    coordinator, _ = a_desk(reply)

    assert await ask(coordinator, HookResult.ask("sure?")) == reason


async def test_a_provider_may_remember() -> None:
    coordinator, desk = a_desk(ApprovalResponse(approved=True, remember=True))

    await ask(coordinator, HookResult.ask("sure?"))
    await ask(coordinator, HookResult.ask("sure?"))
    await ask(
        coordinator,
        HookResult.ask("sure?"),
        data={"tool_name": "work", "tool_input": {"x": 2}},
    )

    assert len(desk.requests) == 2


async def test_the_application_s_approval_system_comes_first() -> None:
    person = Person("Deny")
    coordinator, desk = a_desk(ApprovalResponse(approved=True), approval_system=person)

    assert await ask(coordinator, HookResult.ask("sure?")) == "User denied: sure?"
    assert desk.requests == []


AWAY = ApprovalUnavailableError("nobody is in")


@pytest.mark.parametrize(
    ("replies", "reason", "asked"),
    [
        ((AWAY, ApprovalResponse(approved=True)), None, [1, 1]),
        ((AWAY, AWAY, ApprovalResponse(approved=True)), None, [1, 1, 1]),
        (
            (ApprovalResponse(approved=False), ApprovalResponse(approved=True)),
            "User denied: sure?",
            [1, 0],
        ),
        (
            (ApprovalTimeoutError("away"), ApprovalResponse(approved=True)),
            "Approval timeout after 300 s: sure?",
            [1, 0],
        ),
        (
            (OSError("gone"), ApprovalResponse(approved=True)),
            "The approval system failed: OSError: gone",
            [1, 0],
        ),
        ((AWAY, AWAY), "Nobody can be asked: nobody is in; nobody is in", [1, 1]),
    ],
    ids=["second", "third", "refusal", "silence", "failure", "none"],
)
async def test_a_provider_is_asked_when_those_before_it_cannot_ask(
    replies: Sequence[object], reason: str | None, asked: Sequence[int]
) -> None:
    coordinator, first = a_desk(replies[0])
    desks = [first, *map(Desk, replies[1:])]
    register = coordinator.get_capability("approval.register_provider")
    assert callable(register)
    for desk in (*desks[1:], *desks):  # one that is there already keeps its place
        register(desk)

    assert await ask(coordinator, HookResult.ask("sure?")) == reason
    assert [len(desk.requests) for desk in desks] == asked


async def test_question_that_stays_stored_takes_its_default_in_time() -> None:
    coordinator, _ = a_desk(ApprovalPendingError("stored"))

    with anyio.fail_after(5):
        denied = await ask(coordinator, HookResult.ask("sure?", timeout=0.01))
        allowed = await ask(
            coordinator, HookResult.ask("sure?", timeout=0.01, default="allow")
        )

    assert denied == "Approval timeout after 0.01 s: sure?"
    assert allowed is None


async def test_stored_question_is_left_by_a_turn_that_is_cancelled() -> None:
    """The call beside it keeps the turn from being suspended."""
    blocking = Blocking()
    guard = Sentry([HookResult.ask("sure?")])
    session = build_session(
        calling(call("block"), call("work")), tools=[blocking, Worker()]
    )
    desk = Desk(ApprovalPendingError("stored"))
    session.coordinator.decisions.provider = desk
    session.coordinator.hooks.register(
        TOOL_PRE, lambda e, d: guard(e, d) if d["tool_name"] == "work" else None
    )
    async with session, cancelled_turn(session, blocking.started):
        while not desk.requests:
            await anyio.wait_all_tasks_blocked()
        await session.cancel()
        await anyio.wait_all_tasks_blocked()
        blocking.release.set()

    results = [
        message["content"]
        for message in mounted_context(session.coordinator).messages
        if message["role"] == "tool"
    ]
    assert "cancelled" in str(results[1])


def test_what_cannot_ask_is_no_provider() -> None:
    register = ModuleCoordinator().get_capability("approval.register_provider")
    assert callable(register)

    with pytest.raises(
        TypeError, match="An approval provider has an async 'request_approval'; got 3"
    ):
        register(3)


async def test_an_event_without_a_tool_is_named_by_the_event() -> None:
    coordinator, desk = a_desk(ApprovalResponse(approved=True))

    await ask(
        coordinator, HookResult.ask("tidy?"), data={"disk": "full"}, event="app:tidy"
    )

    assert desk.requests[0].tool_name == "app:tidy"
    assert desk.requests[0].details["disk"] == "full"


@pytest.mark.parametrize(
    "hidden",
    ["\u3164", "\u2800", "\ufe0f", "\U000e0100", "\u034f", "\u200b"],
    ids=ascii,
)
async def test_what_shows_nothing_is_shown_as_an_escape(hidden: str) -> None:
    person = Person("Deny")
    await decide(
        person,
        HookResult.ask(f"Run{hidden} it?"),
        data={"tool_name": "work", "tool_input": {"command": f"ls{hidden}x"}},
    )
    prompt = person.questions[0][0]
    assert hidden not in prompt
    assert prompt.count(ascii(hidden)[1:-1]) == 2


async def test_of_long_command_end_is_shown_and_how_much_is_left_out() -> None:
    person = Person("Deny")
    command = "echo " + "a" * 40_000 + "; rm -rf ~"
    data: dict[str, object] = {
        "tool_name": "bash",
        "tool_input": {"command": command, "timeout": 5},
    }
    await decide(person, HookResult.ask("Sure?"), data=data)
    prompt = person.questions[0][0]
    assert '; rm -rf ~", "timeout": 5}\nSure?' in prompt
    assert f"{len(command) - 3000} characters left out" in prompt
    assert len(prompt) < 4000
