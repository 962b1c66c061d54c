"""Children in a session's background: no turn's end reaches them, and every guard of the session does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest

from amplifier import AmplifierSession
from amplifier_sdk import ChatRequest, ChatResponse
from amplifier_sdk.capabilities import BACKGROUND
from amplifier_sdk.chat import Usage
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.delegation import BackgroundTask, ChildResult, SessionBackground
from amplifier_sdk.errors import (
    BudgetExceededError,
    OwnerTaskError,
    SessionClosedError,
    TurnCancelled,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import HookResult, ToolResult
from tests.doubles import (
    Blocking,
    Person,
    ScriptedProvider,
    Step,
    answer,
    call,
    calling,
)
from tests.kernel.families import Family, family, fresh, spawn_of


@attrs.define(eq=False)
class Begin:
    """A tool that begins a child in the background, or waits for the last; it keeps what came of them."""

    coordinator: Coordinator
    tasks: list[BackgroundTask] = attrs.field(factory=list)
    results: list[ChildResult | Exception] = attrs.field(factory=list)
    name: str = "begin"
    description: str = "Begins."
    input_schema: Mapping[str, JSONValue] = attrs.field(
        factory=lambda: {"type": "object"}
    )

    async def execute(self, input: JSONObject, /) -> ToolResult:
        if input:
            return ToolResult(output=str(await self.ended()))
        background: SessionBackground | None = self.coordinator.get_capability(
            BACKGROUND
        )  # type: ignore[assignment]  # an open value
        if background is None:
            return ToolResult.failure("nothing may work in the background")
        self.tasks.append(background(self.work, name="helper"))
        return ToolResult(output="begun")

    async def work(self) -> None:
        try:
            spawned = await spawn_of(self.coordinator)(
                agent_name="helper", instruction="help"
            )
        except Exception as error:
            self.results.append(error)
            raise
        self.results.append(spawned)

    async def ended(self) -> ChildResult | Exception:
        """Return what came of the child that was begun last."""
        await self.tasks[-1].wait()
        return self.results[-1]


@attrs.define(eq=False)
class Background:
    """A session whose model begins a child that works in the background, and the tool in which children wait."""

    family: Family
    begins: list[Begin]
    blocking: Blocking

    @property
    def session(self) -> AmplifierSession:
        return self.family.session

    @property
    def begin(self) -> Begin:
        """The tool of the session itself."""
        return self.begins[0]

    @property
    def child(self) -> AmplifierSession:
        (child,) = self.session.family.open_children
        return child


@asynccontextmanager
async def opened(
    *steps: Step, helper: Sequence[Step] = (), **options: object
) -> AsyncIterator[Background]:
    """Open a session that may have a background.

    Args:
        steps: what its model answers.
        helper: what that of its children answers, one after the other.
        options: as those of `family`.
    """
    scripts = {"help": list(helper), "": list(steps)}
    blocking, begins = Blocking(), list[Begin]()

    async def reply(request: ChatRequest) -> Step:
        asked = [message.text for message in request.messages]
        return scripts["help" if "help" in asked else ""].pop(0)

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> Begin:
        begins.append(Begin(coordinator))
        return begins[-1]

    made = family(
        provider=ScriptedProvider(reply, repeat=True),
        tools={"tool-begin": mount, "tool-block": fresh(lambda: blocking)},
        **options,  # type: ignore[arg-type]  # go by name
    )
    with anyio.fail_after(5):
        async with made.session as session:
            session.coordinator.register_capability(BACKGROUND, session.background)
            yield Background(made, begins, blocking)


BEGIN = calling(call("begin"))
BLOCK = calling(call("block"))


def using(response: ChatResponse, tokens: int) -> ChatResponse:
    """Make an answer that used so many tokens."""
    usage = Usage(input_tokens=0, output_tokens=tokens, total_tokens=tokens)
    return attrs.evolve(response, usage=usage)


async def test_a_child_outlives_the_turn_that_began_it() -> None:
    async with opened(BEGIN, "begun", helper=[BLOCK, "helped"]) as stage:
        assert await stage.session.execute("go") == "begun"
        await stage.blocking.started.wait()
        assert stage.child.is_busy
        stage.blocking.release.set()
        result = await stage.begin.ended()

    assert isinstance(result, ChildResult)
    assert (result.output, result.status) == ("helped", "completed")


async def test_cancelling_a_turn_or_the_idle_session_leaves_it_alone() -> None:
    async with opened(BEGIN, "begun", BLOCK, helper=[BLOCK, "helped"]) as stage:
        await stage.session.execute("go")
        await stage.blocking.started.wait()
        await stage.session.cancel(immediate=True)
        async with anyio.create_task_group() as group:

            @group.start_soon
            async def _() -> None:
                with pytest.raises(TurnCancelled):
                    await stage.session.execute("wait")

            await anyio.wait_all_tasks_blocked()
            await stage.session.cancel(immediate=True)
        assert not stage.child.coordinator.cancellation.is_cancelled
        stage.blocking.release.set()
        result = await stage.begin.ended()

    assert isinstance(result, ChildResult)
    assert result.output == "helped"


async def test_a_child_that_begins_in_a_cancelled_turn_still_works() -> None:
    async with opened(
        calling(call("begin"), call("block")), helper=["helped"]
    ) as stage:
        async with anyio.create_task_group() as group:

            @group.start_soon
            async def _() -> None:
                with pytest.raises(TurnCancelled):
                    await stage.session.execute("go")

            await stage.blocking.started.wait()
            await stage.session.cancel(immediate=True)
        result = await stage.begin.ended()

    assert isinstance(result, ChildResult)
    assert result.output == "helped"


async def test_it_is_cancelled_by_itself_with_what_it_had_written() -> None:
    async with opened(BEGIN, "begun", "again", helper=[BLOCK]) as stage:
        await stage.session.execute("go")
        await stage.blocking.started.wait()
        await stage.child.coordinator.request_cancel(immediate=True)
        result = await stage.begin.ended()
        assert await stage.session.execute("go on") == "again"

    assert isinstance(result, ChildResult)
    assert result.status == "cancelled"
    assert stage.blocking.ended == "cancelled"


async def test_its_task_can_be_cancelled() -> None:
    async with opened(BEGIN, "begun", helper=[BLOCK]) as stage:
        await stage.session.execute("go")
        await stage.blocking.started.wait()
        (task,) = stage.begin.tasks
        before = task.is_done
        task.cancel()
        await task.wait()

        assert (before, task.is_done) == (False, True)
        assert stage.session.family.open_children == ()
        assert stage.blocking.ended == "cancelled"


async def test_the_end_of_the_session_ends_it_first() -> None:
    async with opened(BEGIN, "begun", helper=[BLOCK]) as stage:
        await stage.session.execute("go")
        await stage.blocking.started.wait()
        child = stage.child.session_id
    ends = [
        data["session_id"]
        for name, data in stage.family.events.events
        if name == "session:end"
    ]

    assert stage.blocking.ended == "cancelled"
    assert ends == [child, stage.session.session_id]


async def test_the_hooks_of_the_session_guard_it_after_the_turn() -> None:
    def guard(coordinator: Coordinator) -> None:
        async def deny(event: str, data: dict[str, object]) -> HookResult | None:
            if data["tool_name"] != "block":
                return None
            return HookResult.deny("not in this house")

        coordinator.hooks.register("tool:pre", deny, 0, "guard")

    async with opened(BEGIN, "begun", helper=[BLOCK, "helped"], watch=guard) as stage:
        await stage.session.execute("go")
        result = await stage.begin.ended()
        (asked,) = [
            request
            for request in stage.family.provider.requests
            if len(request.messages) == 3 and request.messages[0].text == "help"
        ]

    assert isinstance(result, ChildResult)
    assert "not in this house" in str(asked.messages[-1])
    assert not stage.blocking.started.is_set()


async def test_the_person_is_asked_for_it_after_the_turn() -> None:
    def ask(coordinator: Coordinator) -> None:
        async def question(event: str, data: dict[str, object]) -> HookResult | None:
            if data["tool_name"] != "block":
                return None
            return HookResult.ask("Block?")

        coordinator.hooks.register("tool:pre", question, 0, "guard")

    person = Person("Deny")
    async with opened(
        BEGIN, "begun", helper=[BLOCK, "helped"], watch=ask, approval=person
    ) as stage:
        await stage.session.execute("go")
        await stage.begin.ended()

    ((asked, *_),) = person.questions
    assert "helper" in asked
    assert not stage.blocking.started.is_set()


async def test_it_draws_on_the_budget_of_the_turn_that_began_it() -> None:
    async with opened(
        using(BEGIN, 10),
        using(answer("begun"), 10),
        using(answer("later"), 10),
        helper=[using(BLOCK, 90), using(answer("helped"), 1)],
        limits={"tokens": 100},
    ) as stage:
        await stage.session.execute("go")
        await stage.blocking.started.wait()
        assert await stage.session.execute("go on") == "later"
        stage.blocking.release.set()
        result = await stage.begin.ended()

    assert isinstance(result, ChildResult)
    assert result.limit == "tokens"


async def test_a_later_turn_is_not_charged_with_it_but_the_session_is() -> None:
    async with opened(
        using(BEGIN, 1),
        using(answer("begun"), 1),
        using(calling(call("begin", {"waits": True})), 1),
        using(answer("later"), 1),
        helper=[BLOCK, using(answer("helped"), 50)],
    ) as stage:
        await stage.session.execute("go")
        await stage.blocking.started.wait()
        stage.blocking.release.set()
        await stage.session.execute("go on")
        end = stage.session.last_turn

    assert end is not None
    assert end.usage is not None
    assert end.usage.total_tokens == 2
    assert stage.session.spending.usage is not None
    assert stage.session.spending.usage.total_tokens == 54
    assert stage.session.spending.children == 1


async def test_none_begins_where_the_budget_is_spent() -> None:
    async with opened(
        using(BEGIN, 100), "begun", limits={"session_tokens": 100}
    ) as stage:
        await stage.session.execute("go")
        result = await stage.begin.ended()

    assert isinstance(result, BudgetExceededError)


async def test_a_child_has_no_background_of_its_own() -> None:
    async with opened(
        BEGIN, "begun", helper=[calling(call("begin")), "helped"]
    ) as stage:
        await stage.session.execute("go")
        await stage.begin.ended()
        asked = stage.family.provider.requests[-1]

    assert "nothing may work in the background" in str(asked.messages[-1])


async def test_a_session_without_a_task_of_its_own_has_none() -> None:
    made = family()

    async def work() -> None:
        raise AssertionError

    await made.session.initialize()
    with pytest.raises(OwnerTaskError, match="helper works in the background"):
        made.session.background(work, name="helper")
    await made.session.cleanup()
    with pytest.raises(SessionClosedError):
        made.session.background(work, name="helper")


async def test_work_that_fails_ends_nothing_else() -> None:
    async with opened("fine") as stage:

        async def work() -> None:
            raise ValueError("broken")

        task = stage.session.background(work, name="work")
        await task.wait()

        assert await stage.session.execute("go") == "fine"
