"""What a tool says of a call holds whatever is mounted: asked about once, denied, or refused without a question."""

from __future__ import annotations

import attrs
import pytest

from amplifier import AmplifierSession
from amplifier.testing import MockApprovalSystem
from amplifier_sdk.assessments import ACCEPTED, Assessment, Coverage
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.effects import Effect
from amplifier_sdk.events import TOOL_PRE, ToolPre
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import HookResult, ToolResult
from tests.doubles import build_session


@attrs.define(eq=False)
class Assessed:
    """A tool that says of its calls what it is told to."""

    said: Assessment | BaseException | object = None
    effects: tuple[Effect, ...] | None = None
    name: str = "work"
    description: str = "Works."
    ran: list[JSONObject] = attrs.field(factory=list)
    asked: list[JSONObject] = attrs.field(factory=list)

    async def assess_call(self, input: JSONObject, /) -> Assessment | None:
        """Say it."""
        self.asked.append({**input})
        input["x"] = "changed in place"
        if isinstance(self.said, BaseException):
            raise self.said
        return self.said  # type: ignore[return-value]  # what foreign tools return is anything

    async def execute(self, input: JSONObject, /) -> ToolResult:
        """Note it."""
        self.ran.append(input)
        return ToolResult(output="done")


@attrs.define(eq=False)
class Plain:
    """A tool that says nothing of single calls."""

    effects: tuple[Effect, ...] | None = None
    name: str = "work"
    description: str = "Works."

    async def execute(self, _: JSONObject, /) -> ToolResult:
        """Do nothing."""
        return ToolResult(output="done")


async def run(session: AmplifierSession, tool: object) -> ToolResult:
    """Run a call of the tool."""
    call = ToolCall(id="c1", name="work", arguments={"x": 1})
    return await session.coordinator.host.run_tool(call, {"work": tool})  # type: ignore[dict-item]  # doubles


def a_session(
    person: MockApprovalSystem | None = None, **settings: object
) -> AmplifierSession:
    """Make a session of which no module decides about calls."""
    limits = settings.pop("limits", None)
    return build_session("end", approval=person, limits=limits, settings=settings)  # type: ignore[arg-type]  # any


ASK = Assessment(decision="ask", reason="it is odd", details="+ a line")


async def test_call_that_tool_wants_asked_about_is_asked_about_once() -> None:
    person = MockApprovalSystem("Allow once", "Deny")
    async with a_session(person) as session:
        tool = Assessed(ASK)
        assert (await run(session, tool)).success
        refused = await run(session, tool)
    assert [question.prompt for question in person.questions] == [
        'work {"x": 1}\n+ a line\nAsked because it is odd.\nAllow always covers: exactly this, in this session'
    ] * 2
    assert "User denied" in str(refused)
    assert tool.ran == [{"x": 1}]


async def test_without_anybody_to_ask_it_does_not_run() -> None:
    async with a_session() as session:
        tool = Assessed(ASK)
        assert not (await run(session, tool)).success
    assert not tool.ran


async def test_tool_allowed_call_runs_where_changes_are_asked_about() -> None:
    person = MockApprovalSystem("Deny")
    async with a_session(person, ask_before_changes=True) as session:
        assert (
            await run(
                session, Assessed(Assessment(decision="allow"), effects=("exec",))
            )
        ).success
    assert not person.questions


async def test_a_handler_that_approves_answers_for_the_call() -> None:
    async with a_session(ask_before_changes=True) as session:
        session.coordinator.hooks.register(
            TOOL_PRE, lambda *_: HookResult.approve("allowed before")
        )
        assert (await run(session, Assessed(ASK))).success
        assert (await run(session, Plain(("write",)))).success


async def test_a_handler_that_asks_is_the_only_one_who_does() -> None:
    person = MockApprovalSystem("Allow once")
    async with a_session(person) as session:
        session.coordinator.hooks.register(
            TOOL_PRE, lambda *_: HookResult.ask("Really?")
        )
        assert (await run(session, Assessed(ASK))).success
    assert ["Really?" in question.prompt for question in person.questions] == [True]


async def test_an_approval_of_other_arguments_is_none() -> None:
    def change(_: str, data: ToolPre) -> HookResult:
        return HookResult.modify({"tool_input": {"x": 2}})

    def approve(_: str, data: ToolPre) -> HookResult | None:
        return HookResult.approve("it is 1") if data["tool_input"] == {"x": 1} else None

    async with a_session() as session:
        session.coordinator.hooks.register(TOOL_PRE, approve, 0)
        session.coordinator.hooks.register(TOOL_PRE, change, 1)
        tool = Assessed(ASK)
        assert not (await run(session, tool)).success
    assert tool.asked == [{"x": 2}]


async def test_no_approval_lifts_the_tools_own_denial() -> None:
    person = MockApprovalSystem("Allow once")
    async with a_session(person) as session:
        session.coordinator.hooks.register(
            TOOL_PRE, lambda *_: HookResult.approve("fine")
        )
        tool = Assessed(Assessment(decision="deny", reason="never here"))
        result = await run(session, tool)
    assert "never here" in str(result)
    assert not person.questions
    assert not tool.ran


async def test_nobody_is_asked_about_a_call_that_must_fail() -> None:
    person = MockApprovalSystem("Allow once")
    async with a_session(person) as session:
        session.coordinator.hooks.register(
            TOOL_PRE, lambda *_: HookResult.ask("Really?")
        )
        tool = Assessed(attrs.evolve(ASK, problem="the file was not read"))
        result = await run(session, tool)
    assert result.error == {"message": "the file was not read", "type": "precondition"}
    assert not person.questions
    assert not tool.ran


@pytest.mark.parametrize(
    "said", [ValueError("broken"), "yes", 1], ids=["raises", "text", "number"]
)
async def test_a_tool_that_cannot_say_what_it_does_is_asked_about(said: object) -> None:
    person = MockApprovalSystem("Deny")
    async with a_session(person) as session:
        assert not (await run(session, Assessed(said))).success
    assert "the tool cannot say what it does" in person.questions[0].prompt


async def test_a_tool_that_takes_too_long_to_say_it_is_asked_about() -> None:
    class Slow(Assessed):
        async def assess_call(self, _: JSONObject, /) -> Assessment | None:
            import anyio

            await anyio.sleep_forever()
            return None

    person = MockApprovalSystem("Deny")
    async with a_session(person, limits={"hook_timeout": 0.01}) as session:
        assert not (await run(session, Slow())).success
    assert "did not say within 0.01 s" in person.questions[0].prompt


@pytest.mark.parametrize(
    ("tool", "asks"),
    [
        (Plain(("read",)), False),
        (Plain(("write",)), True),
        (Plain(("network",)), True),
        (Plain(None), True),
        (Assessed(None, ("write",)), True),
        (Assessed(Assessment(effects=("read",)), ("write",)), False),
        (Assessed(Assessment(effects=("write",)), ("read",)), True),
    ],
)
@pytest.mark.parametrize("wanted", [True, False], ids=["asks", "asks-not"])
async def test_ask_before_changes_covers_all_but_reads(
    tool: object, asks: bool, wanted: bool
) -> None:
    async with a_session(ask_before_changes=wanted) as session:
        assert (await run(session, tool)).success is not (asks and wanted)


async def test_what_whoever_opened_session_accepts_is_not_asked_about() -> None:
    edit = Assessment(
        effects=("write",), coverages=(Coverage(key="edits", label="edits"),)
    )
    async with a_session(ask_before_changes=True) as session:
        session.coordinator.register_capability(ACCEPTED, frozenset({"edits"}))
        assert (await run(session, Assessed(edit))).success
        assert not (
            await run(session, Assessed(attrs.evolve(edit, coverages=())))
        ).success
