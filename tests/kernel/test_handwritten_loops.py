"""Loops written by hand: they announce their tool calls themselves, and handlers and people hear of each once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

import anyio
import attrs
import pytest

from amplifier import AmplifierSession, HookRegistry, ModuleCoordinator
from amplifier.kernel.handwritten.announcements import Announcements
from amplifier_sdk.chat import ChatRequest, ToolCall
from amplifier_sdk.content import TextBlock
from amplifier_sdk.contracts import ContextManager, Hooks, Provider, Tool
from amplifier_sdk.events import TOOL_ERROR, TOOL_POST, TOOL_PRE
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.loops import Loop
from amplifier_sdk.loops import Turn as SdkTurn
from amplifier_sdk.messages import Message, MessageDict
from amplifier_sdk.results import Emission, HookResult, ToolResult
from amplifier_sdk.toolinfo import ToolInfo
from tests.doubles import (
    MemoryContext,
    Person,
    PlainLoop,
    Recorder,
    Screen,
    Sentry,
    Worker,
    build_session,
    mounted_context,
)

A_BLOCK: Final[JSONObject] = {"type": "text", "text": "a"}

Steps: TypeAlias = Callable[["Given"], Awaitable[None]]


@attrs.define(eq=False)
class Given:
    """What a loop received, and what it does with it as the contract shows it."""

    tools: dict[str, Tool]
    hooks: Hooks
    context: ContextManager
    results: list[ToolResult] = attrs.field(factory=list)

    async def announce(
        self, arguments: JSONObject, name: str = "work", **more: object
    ) -> Emission:
        """Emit `tool:pre` of a call."""
        return await self.hooks.emit(
            "tool:pre", {"tool_name": name, "tool_input": arguments, **more}
        )

    async def run(self, arguments: JSONObject, name: str = "work") -> ToolResult:
        """Call the tool and keep its result."""
        result = await self.tools[name].execute(arguments)
        self.results.append(result)
        return result

    async def report(
        self,
        arguments: JSONObject,
        result: object,
        name: str = "work",
        event: str = "tool:post",
    ) -> Emission:
        """Emit `tool:post` of a call, or another event of its end."""
        return await self.hooks.emit(
            event, {"tool_name": name, "tool_input": arguments, "tool_result": result}
        )

    async def whole(self, arguments: JSONObject) -> Emission:
        """Announce a call, run what handlers left of it unless they deny it, and report it."""
        before = await self.announce(arguments)
        if not before.denied:
            result = await self.run(self.input_of(before))
            await self.report(arguments, result)
        return before

    @staticmethod
    def input_of(emission: Emission) -> JSONObject:
        changed = emission.data["tool_input"]
        assert isinstance(changed, dict)
        return changed

    @property
    def texts(self) -> list[str]:
        return [result.get_serialized_output() for result in self.results]


@attrs.define(eq=False)
class Turn:
    """A turn of a loop written by hand: what it received, the tool, and the events of its calls that were heard."""

    given: Given
    worker: Worker
    recorder: Recorder
    session: AmplifierSession

    @property
    def events(self) -> list[str]:
        return [name for name in self.recorder.names if name.startswith("tool:")]


async def a_turn(
    steps: Steps,
    *guards: object,
    worker: Worker | None = None,
    event: str = TOOL_PRE,
    person: Person | None = None,
    screen: Screen | None = None,
    **settings: object,
) -> Turn:
    """Run one turn of a loop; `guards` are handlers of `event`, after a recorder of all."""
    worker, recorder = worker or Worker(), Recorder()
    givens: list[Given] = []

    async def run(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        givens.append(Given(tools, hooks, context))
        await steps(givens[0])
        return "end"

    session = build_session(
        loop=PlainLoop(run),
        tools=[worker],
        approval=person,
        display=screen,
        settings=settings or None,
    )
    session.coordinator.hooks.register(
        "*", recorder.hear, -100, "recorder", decides=False
    )
    for number, guard in enumerate(guards):
        session.coordinator.hooks.register(event, guard, name=f"guard-{number}")  # type: ignore[call-overload]
    async with session:
        with anyio.fail_after(5):
            assert await session.execute("go") == "end"
    return Turn(givens[0], worker, recorder, session)


ASKS: Final = HookResult.ask("May it?")


def always(result: HookResult) -> Callable[[str, Mapping[str, object]], HookResult]:
    """A handler that answers the same each time."""
    return lambda event, data: result


def by_input(
    answers: Mapping[str, HookResult],
) -> Callable[[str, Mapping[str, object]], HookResult | None]:
    """A handler that answers by the path that a call names."""

    def decide(event: str, data: Mapping[str, object]) -> HookResult | None:
        given = data["tool_input"]
        assert isinstance(given, Mapping)
        return answers.get(str(given.get("path")))

    return decide


# -- events


async def test_each_event_of_call_that_loop_announces_is_heard_once() -> None:
    async def steps(given: Given) -> None:
        await given.whole({"path": "a"})

    turn = await a_turn(steps)

    assert turn.events == [TOOL_PRE, TOOL_POST]
    before, after = turn.recorder.one(TOOL_PRE), turn.recorder.one(TOOL_POST)
    assert before["tool_input"] == after["tool_input"] == {"path": "a"}
    assert before["tool_call_id"] == after["tool_call_id"]
    described = before["tool_obj"]
    assert isinstance(described, ToolInfo)
    assert described.is_of(turn.worker)
    assert turn.worker.inputs == [{"path": "a"}]


async def test_unannounced_call_events_are_heard_once() -> None:
    async def steps(given: Given) -> None:
        await given.run({"path": "a"})
        await given.run({"path": "b"})

    turn = await a_turn(steps)

    assert turn.events == [TOOL_PRE, TOOL_POST] * 2
    assert turn.worker.inputs == [{"path": "a"}, {"path": "b"}]


async def test_loop_may_announce_beginnings_alone_or_ends_alone() -> None:
    async def steps(given: Given) -> None:
        await given.announce({"path": "a"})
        await given.run({"path": "a"})
        await given.report({"path": "b"}, await given.run({"path": "b"}))

    assert (await a_turn(steps)).events == [TOOL_PRE, TOOL_POST] * 2


@pytest.mark.parametrize("event", [TOOL_POST, TOOL_ERROR])
async def test_a_failed_call_ends_once_whatever_the_loop_says_of_it(event: str) -> None:
    async def fail(arguments: JSONObject) -> object:
        raise ValueError("broken")

    async def steps(given: Given) -> None:
        await given.announce({})
        await given.report({}, await given.run({}), event=event)

    assert (await a_turn(steps, worker=Worker(function=fail))).events == [
        TOOL_PRE,
        TOOL_ERROR,
    ]


async def test_loop_s_own_id_of_call_is_one_of_all_its_events() -> None:
    async def steps(given: Given) -> None:
        await given.announce({}, tool_call_id="call-7", note="own")
        result = await given.run({})
        await given.hooks.emit(
            "tool:post", {"tool_call_id": "call-7", "result": result.output}
        )
        await given.announce({}, tool_call_id=7)

    turn = await a_turn(steps)

    assert turn.events == [TOOL_PRE, TOOL_POST, TOOL_PRE]
    first, second = turn.recorder.all(TOOL_PRE)
    assert (
        first["tool_call_id"]
        == turn.recorder.one(TOOL_POST)["tool_call_id"]
        == "call-7"
    )
    assert first["note"] == "own"
    assert isinstance(second["tool_call_id"], str)


async def test_end_of_call_is_known_by_tool_where_loop_tells_no_more() -> None:
    async def steps(given: Given) -> None:
        result = await given.run({"path": "a"})
        await given.hooks.emit(
            "tool:post", {"tool_name": "work", "tool_result": result.output}
        )

    assert (await a_turn(steps)).events == [TOOL_PRE, TOOL_POST]


async def test_an_end_that_nobody_told_is_told() -> None:
    async def steps(given: Given) -> None:
        await given.report({"path": "a"}, ToolResult(output="from a cache"))
        await given.report({"path": "b"}, await given.run({"path": "b"}))
        await given.run({"path": "c"})
        await given.report({"path": "d"}, "of another input")
        await given.hooks.emit(
            "tool:post", {"tool_name": "other", "tool_result": "of another tool"}
        )
        await given.hooks.emit("tool:post", {})

    turn = await a_turn(steps)

    assert turn.events == [
        TOOL_POST,
        TOOL_PRE,
        TOOL_POST,
        TOOL_PRE,
        TOOL_POST,
        TOOL_POST,
        TOOL_POST,
        TOOL_POST,
    ]


async def test_call_cancelled_before_it_ran_ends_as_loop_says() -> None:
    sessions: list[ModuleCoordinator] = []

    recorder = Recorder()

    async def run(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        given = Given(tools, hooks, context)
        await sessions[0].request_cancel()
        await given.report({}, await given.run({}))
        return "end"

    async with build_session(loop=PlainLoop(run), tools=[Worker()]) as session:
        sessions.append(session.coordinator)
        session.coordinator.hooks.register("tool:*", recorder.hear)
        assert await session.execute("go") == "end"

    assert recorder.names == [TOOL_POST]


async def test_calls_beside_each_other_are_heard_once_each() -> None:
    async def steps(given: Given) -> None:
        async with anyio.create_task_group() as group:
            for path in ("a", "a", "b"):
                arguments: JSONObject = {"path": path}
                group.start_soon(given.whole, arguments)

    turn = await a_turn(steps)

    assert sorted(turn.events) == [TOOL_POST] * 3 + [TOOL_PRE] * 3
    assert sorted(str(given["path"]) for given in turn.worker.inputs) == ["a", "a", "b"]


async def test_events_of_the_provider_are_heard_once() -> None:
    recorder = Recorder()

    async def run(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        await hooks.emit("provider:request", {"provider": "scripted", "messages": []})
        response = await providers["scripted"].complete(
            ChatRequest(messages=[Message(role="user", content="go")])
        )
        await hooks.emit(
            "provider:response", {"provider": "scripted", "response": response}
        )
        return response.text

    async with build_session("Hi.", loop=PlainLoop(run)) as session:
        session.coordinator.hooks.register("provider:*", recorder.hear)
        assert await session.execute("go") == "Hi."

    assert recorder.names == ["provider:request", "provider:response"]


async def test_loop_events_about_impossible_calls_pass_unchanged() -> None:
    async def steps(given: Given) -> None:
        await given.announce({}, name="missing")
        await given.hooks.emit(
            "tool:pre", {"tool_name": "work", "tool_input": "no object"}
        )
        await given.hooks.emit("tool:pre", {})
        await given.hooks.emit("loop:own", {"x": 1})

    turn = await a_turn(steps)

    assert turn.events == [TOOL_PRE] * 3
    assert turn.recorder.one("loop:own")["x"] == 1


async def test_without_handlers_nothing_is_decided_and_all_runs() -> None:
    worker, results = Worker(), list[ToolResult]()

    async def run(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        emission = await hooks.emit("tool:pre", {"tool_name": "work", "tool_input": {}})
        results.append(await tools["work"].execute(Given.input_of(emission)))
        await hooks.emit("tool:post", {"tool_name": "work", "tool_result": results[0]})
        return emission.action

    async with build_session(loop=PlainLoop(run), tools=[worker]) as session:
        assert await session.execute("go") == "continue"

    assert worker.inputs == [{}]
    assert results[0].output == "done"


# -- denials


async def test_a_loop_is_given_back_the_input_that_nobody_changed() -> None:
    arguments: JSONObject = {"path": "a"}

    async def steps(given: Given) -> None:
        assert given.input_of(await given.announce(arguments)) is arguments

    await a_turn(steps, always(HookResult.proceed()))


async def test_a_denial_is_told_to_the_loop() -> None:
    async def steps(given: Given) -> None:
        before = await given.whole({})
        assert (before.action, before.reason, before.decided_by) == (
            "deny",
            "policy",
            "guard-0",
        )

    turn = await a_turn(steps, always(HookResult.deny("policy")))

    assert turn.events == [TOOL_PRE]
    assert turn.worker.inputs == []


async def test_a_loop_that_runs_what_was_denied_is_refused() -> None:
    guard = Sentry([HookResult.deny("policy")])

    async def steps(given: Given) -> None:
        await given.announce({"path": "a"})
        await given.report({"path": "a"}, await given.run({"path": "a"}))

    turn = await a_turn(steps, guard)

    assert turn.given.texts == ["Error: Denied by guard-0: policy"]
    assert turn.events == [TOOL_PRE, TOOL_ERROR]
    assert len(guard.seen) == 1
    assert turn.worker.inputs == []


async def test_a_denial_holds_when_its_handler_is_gone() -> None:
    registries: list[Hooks] = []

    def once(event: str, data: Mapping[str, object]) -> HookResult:
        registry = registries[0]
        assert isinstance(registry, HookRegistry)
        for name in ("guard-0", "recorder"):
            registry.unregister(name)
        return HookResult.deny("once")

    async def steps(given: Given) -> None:
        registries.append(given.hooks)
        await given.announce({})
        await given.run({})

    turn = await a_turn(steps, once)

    assert turn.given.texts == ["Error: Denied by guard-0: once"]
    assert turn.worker.inputs == []


async def test_loop_running_another_call_has_that_one_checked() -> None:
    async def steps(given: Given) -> None:
        await given.announce({"path": "good"})
        await given.run({"path": "bad"})
        await given.run({"path": "good"})

    turn = await a_turn(steps, by_input({"bad": HookResult.deny("policy")}))

    assert turn.given.texts == ["Error: Denied by guard-0: policy", "done"]
    assert turn.events == [TOOL_PRE, TOOL_PRE, TOOL_ERROR, TOOL_POST]
    assert turn.worker.inputs == [{"path": "good"}]


async def test_what_loop_changes_after_it_announced_it_is_judged_anew() -> None:
    async def steps(given: Given) -> None:
        arguments: JSONObject = {"path": "good"}
        before = await given.announce(arguments)
        Given.input_of(before)["path"] = arguments["path"] = "bad"
        await given.run(arguments)

    turn = await a_turn(steps, by_input({"bad": HookResult.deny("policy")}))

    assert turn.given.texts == ["Error: Denied by guard-0: policy"]
    assert turn.worker.inputs == []


async def test_what_is_no_object_never_runs_as_call_announced() -> None:
    async def steps(given: Given) -> None:
        await given.announce({})
        await given.run("no object")  # type: ignore[arg-type]  # a loop may err

    turn = await a_turn(steps)

    assert turn.given.texts == ["Error: The arguments of 'work' are an object; got str"]
    assert turn.worker.inputs == []


async def test_each_announcement_lets_one_call_run() -> None:
    guard = Sentry([None, HookResult.deny("twice")])

    async def steps(given: Given) -> None:
        await given.announce({})
        await given.run({})
        await given.run({})

    turn = await a_turn(steps, guard)

    assert turn.given.texts == ["done", "Error: Denied by guard-0: twice"]
    assert turn.worker.inputs == [{}]


async def test_of_equal_calls_each_has_its_own_answer() -> None:
    first: JSONObject = {"path": "a"}
    second: JSONObject = {"path": "a"}

    async def steps(given: Given) -> None:
        await given.announce(first)
        await given.announce(second)
        await given.run(first)
        await given.run(second)

    turn = await a_turn(steps, Sentry([None, HookResult.deny("policy")]))

    assert turn.given.texts == ["done", "Error: Denied by guard-0: policy"]
    assert turn.events == [TOOL_PRE, TOOL_PRE, TOOL_POST, TOOL_ERROR]


async def test_call_that_was_announced_twice_is_held_to_last_answer() -> None:
    async def steps(given: Given) -> None:
        await given.announce({})
        await given.announce({})
        await given.run({})

    turn = await a_turn(steps, Sentry([None, HookResult.deny("on second thought")]))

    assert turn.given.texts == ["Error: Denied by guard-0: on second thought"]
    assert turn.worker.inputs == []


async def test_an_announcement_ends_with_its_turn() -> None:
    guard = Sentry()

    async def run(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        if prompt == "announce":
            await hooks.emit("tool:pre", {"tool_name": "work", "tool_input": {}})
            return "announced"
        return (await tools["work"].execute({})).get_serialized_output()

    async with build_session(loop=PlainLoop(run), tools=[Worker()]) as session:
        session.coordinator.hooks.register(TOOL_PRE, guard, name="guard")
        assert await session.execute("announce") == "announced"
        guard.answers.append(HookResult.deny("policy"))
        assert await session.execute("run") == "Error: Denied by guard: policy"


async def test_handler_that_changes_input_in_place_denies_call() -> None:
    def meddle(event: str, data: Mapping[str, object]) -> None:
        given = data["tool_input"]
        assert isinstance(given, dict)
        given["path"] = "b"

    async def steps(given: Given) -> None:
        arguments: JSONObject = {"path": "a"}
        before = await given.announce(arguments)
        assert before.denied
        assert "in place" in str(before.reason)
        assert arguments == {"path": "a"}
        await given.run(arguments)

    turn = await a_turn(steps, meddle)

    assert "in place" in turn.given.texts[0]
    assert turn.worker.inputs == []


async def test_invalid_arguments_are_denied_without_a_question() -> None:
    person = Person()
    worker = Worker(
        input_schema={
            "type": "object",
            "properties": {"x": {"type": "number"}},
            "required": ["x"],
        }
    )

    async def steps(given: Given) -> None:
        before = await given.announce({"x": "one"})
        assert before.denied
        assert "x" in str(before.reason)
        await given.run({"x": "one"})

    turn = await a_turn(steps, always(ASKS), worker=worker, person=person)

    assert person.questions == []
    assert turn.worker.inputs == []
    assert turn.given.results[0].error is not None
    assert turn.given.results[0].error["type"] == "invalid_arguments"


# -- changes


@pytest.mark.parametrize("passes_the_change", [True, False])
async def test_modified_call_runs_and_handlers_are_asked_once(
    passes_the_change: bool,
) -> None:
    guard = Sentry([HookResult.modify({"tool_input": {"path": "b"}})])

    async def steps(given: Given) -> None:
        before = await given.announce({"path": "a"})
        assert before.action == "modify"
        await given.report(
            {"path": "a"},
            await given.run(
                given.input_of(before) if passes_the_change else {"path": "a"}
            ),
        )

    turn = await a_turn(steps, guard)

    assert turn.worker.inputs == [{"path": "b"}]
    assert turn.events == [TOOL_PRE, TOOL_POST]
    assert turn.recorder.one(TOOL_POST)["tool_input"] == {"path": "b"}
    assert len(guard.seen) == 1


async def test_what_the_loop_makes_of_a_change_is_judged_anew() -> None:
    guard = Sentry([HookResult.modify({"tool_input": {"path": "b"}})])

    async def steps(given: Given) -> None:
        changed = Given.input_of(await given.announce({"path": "a"}))
        changed["path"] = "c"
        await given.run(changed)

    turn = await a_turn(steps, guard)

    assert turn.worker.inputs == [{"path": "c"}]
    assert turn.events == [TOOL_PRE, TOOL_PRE, TOOL_POST]


async def test_args_that_do_not_fit_are_denial_though_nobody_decided() -> None:
    async def steps(given: Given) -> None:
        before = await given.announce({"x": "no"})
        assert (before.action, before.decided_by) == ("deny", "arguments")
        assert "x: expected an integer" in str(before.reason)
        await given.run({"x": "no"})

    schema: JSONObject = {"type": "object", "properties": {"x": {"type": "integer"}}}
    turn = await a_turn(steps, worker=Worker(input_schema=schema))

    assert turn.worker.inputs == []


async def test_change_that_does_not_fit_is_denial_before_and_when_run() -> None:
    async def steps(given: Given) -> None:
        before = await given.announce({})
        assert before.denied
        await given.run({})

    turn = await a_turn(steps, Sentry([HookResult.modify({"tool_input": "no object"})]))

    (text,) = turn.given.texts
    assert text.endswith(
        "DecisionError: modify of tool:pre, tool_input: expected an object, got str"
    )
    assert turn.worker.inputs == []


# -- questions, injections, messages


@pytest.mark.parametrize(("reply", "runs"), [("Allow", 1), ("Deny", 0)])
@pytest.mark.parametrize("obeys", [True, False])
async def test_a_person_is_asked_once(obeys: bool, reply: str, runs: int) -> None:
    person = Person(reply)

    async def steps(given: Given) -> None:
        if obeys:
            before = await given.whole({})
        else:
            before = await given.announce({})
            await given.run({})
        assert before.denied is not bool(runs)

    turn = await a_turn(steps, always(ASKS), person=person)

    assert len(person.questions) == 1
    assert len(turn.worker.inputs) == runs
    assert turn.events.count(TOOL_PRE) == 1


async def test_carrying_an_announcement_out_again_does_nothing() -> None:
    person, screen = Person(), Screen()
    reported = attrs.evolve(
        HookResult.modify({"tool_input": {"path": "b"}}), user_message="Changed."
    )

    async def steps(given: Given) -> None:
        before = await given.announce({"path": "a"})
        again = await given.hooks.host.process_hook_result(before, "tool:pre")
        assert again is before
        await given.run(given.input_of(again))

    turn = await a_turn(
        steps, always(ASKS), always(reported), person=person, screen=screen
    )

    assert len(person.questions) == 1
    assert '"b"' in person.questions[0][0]
    assert [text for text, _, _ in screen.shown] == ["Changed."]
    assert turn.worker.inputs == [{"path": "b"}]


async def test_what_a_loop_decides_by_itself_is_carried_out_as_ever() -> None:
    screen = Screen()

    async def steps(given: Given) -> None:
        own = HookResult(user_message="Own.")
        await given.hooks.host.process_hook_result(own, "loop:own", "loop")

    await a_turn(steps, screen=screen)

    assert [text for text, _, _ in screen.shown] == ["Own."]


@pytest.mark.parametrize("event", [TOOL_PRE, TOOL_POST])
async def test_lasting_injection_stored_once_and_loop_need_not_add_it(
    event: str,
) -> None:
    emissions: list[Emission] = []

    async def steps(given: Given) -> None:
        emissions.append(await given.announce({}))
        emissions.append(await given.report({}, await given.run({})))

    turn = await a_turn(steps, always(HookResult.inject("Mind the gap")), event=event)

    context = turn.session.coordinator.context
    assert isinstance(context, MemoryContext)
    assert [message["content"] for message in context.messages] == ["Mind the gap"]
    assert [emission.action for emission in emissions] == ["continue", "continue"]


@pytest.mark.parametrize("event", [TOOL_PRE, TOOL_POST])
async def test_injection_for_next_request_is_told_to_loop_once(
    event: str,
) -> None:
    emissions: list[Emission] = []

    async def steps(given: Given) -> None:
        emissions.append(await given.announce({}))
        emissions.append(await given.report({}, await given.run({})))

    turn = await a_turn(
        steps, always(HookResult.inject("Mind the gap", ephemeral=True)), event=event
    )

    reported = [
        injection.content for emission in emissions for injection in emission.injections
    ]
    assert reported == ["Mind the gap"]
    assert mounted_context(turn.session.coordinator).messages == []


async def test_oversized_injection_is_truncated_where_announced() -> None:
    async def steps(given: Given) -> None:
        before = await given.whole({})
        assert not before.denied

    turn = await a_turn(
        steps, always(HookResult.inject("x" * 11)), injection_size_limit=10
    )

    assert turn.worker.inputs == [{}]
    assert "x" * 10 in [
        message["content"]
        for message in mounted_context(turn.session.coordinator).messages
    ]


async def test_withheld_or_modified_result_is_what_loop_gets() -> None:
    async def steps(given: Given) -> None:
        withheld = await given.report({}, await given.run({}))
        assert (withheld.action, withheld.reason) == ("deny", "secret")
        changed = await given.report({}, await given.run({}))
        assert changed.data["tool_result"] is given.results[1]

    guard = Sentry(
        [
            HookResult.deny("secret"),
            HookResult.modify({"result": ToolResult(output="redacted")}),
        ]
    )
    turn = await a_turn(steps, guard, event=TOOL_POST)

    assert turn.given.texts == ["Error: Withheld by guard-0: secret", "redacted"]
    assert len(guard.seen) == 2


# -- the coordinator's hooks


class CoordinatorLoop:
    """A loop that takes the coordinator, emits on its hooks and carries out by it."""

    async def execute(
        self,
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
        coordinator: ModuleCoordinator,
    ) -> str:
        own = coordinator.hooks
        unregister = own.register(
            "loop:own", lambda event, data: HookResult.deny("heard")
        )
        assert (await hooks.emit("loop:own", {})).denied
        unregister()
        assert not hooks.has_handlers("loop:own")
        data: dict[str, object] = {"tool_name": "work", "tool_input": {}}
        before = await coordinator.process_hook_result(
            await own.emit("tool:pre", data), "tool:pre", "work"
        )
        if before.denied:
            return str(before.reason)
        result = await tools["work"].execute({})
        after = await own.emit("tool:post", {**data, "result": result})
        await coordinator.process_hook_result(after, "tool:post", "work")
        return result.get_serialized_output()


async def test_a_loop_may_use_the_coordinator_s_hooks_all_the_same() -> None:
    recorder, person, worker = Recorder(), Person(), Worker()

    async with build_session(
        loop=CoordinatorLoop(), tools=[worker], approval=person
    ) as session:
        coordinator = session.coordinator
        registry = coordinator.hooks
        registry.register("tool:*", recorder.hear)
        registry.register(TOOL_PRE, always(ASKS), name="guard")
        assert await session.execute("go") == "done"
        assert coordinator.hooks is registry

    assert recorder.names == [TOOL_PRE, TOOL_POST]
    assert len(person.questions) == 1
    assert worker.inputs == [{}]


async def test_coordinator_has_own_hooks_again_when_such_loop_fails() -> None:
    async def run(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        raise ValueError("broken")

    async with build_session(loop=PlainLoop(run)) as session:
        registry = session.coordinator.hooks
        with pytest.raises(ValueError, match="broken"):
            await session.execute("go")

        assert session.coordinator.hooks is registry


async def test_sdk_loop_calling_received_tool_is_checked_once() -> None:
    class Direct(Loop):
        async def run(self, turn: SdkTurn) -> str:
            return (await turn.tools["work"].execute({})).get_serialized_output()

    recorder = Recorder()
    async with build_session(loop=Direct(), tools=[Worker()]) as session:
        session.coordinator.hooks.register("tool:*", recorder.hear)
        assert await session.execute("go") == "done"

    assert recorder.names == [TOOL_PRE, TOOL_POST]


def test_each_result_of_calls_to_one_tool_belongs_to_own_input() -> None:
    calls = Announcements()
    for number in (1, 2):
        made = ToolCall(id=f"c{number}", name="work", arguments={"x": number})
        calls.end(made, (made.arguments,), ToolResult(output=number))

    second, first = (
        calls.take_result("work", {"x": 2}),
        calls.take_result("work", {"x": 1}),
    )
    assert second is not None
    assert first is not None
    assert (second.output, first.output) == (2, 1)
    assert calls.take_result("work", {"x": 1}) is None


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"role": "assistant", "content": (TextBlock(text="a"),)}, [A_BLOCK]),
        (
            {"role": "assistant", "content": [TextBlock(text="a"), A_BLOCK]},
            [A_BLOCK] * 2,
        ),
        ({"role": "assistant", "content": [A_BLOCK]}, [A_BLOCK]),
        ({"role": "tool", "content": {"a": [1]}}, '{"a": [1]}'),
        ({"role": "function", "content": ["a", "b"]}, '["a", "b"]'),
        ({"role": "tool", "content": [{"name": "a"}]}, '[{"name": "a"}]'),
        ({"role": "tool", "content": [A_BLOCK]}, [A_BLOCK]),
        ({"role": "tool", "content": 3}, "3"),
        ({"role": "tool", "content": None}, None),
        ({"role": "user", "content": "hello"}, "hello"),
    ],
)
async def test_what_such_a_loop_stores_is_plain_data(
    message: MessageDict, content: object
) -> None:
    async def steps(given: Given) -> None:
        await given.context.add_message(message)

    turn = await a_turn(steps)

    stored = mounted_context(turn.session.coordinator).messages
    assert {**message, "content": content} in stored
