"""Child sessions: made from agents, run in the caller's task, found again by their parent alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import cast

import anyio
import attrs
import pytest

from amplifier import AmplifierSession, ModuleCoordinator
from amplifier.kernel.sessions.child_plans import preferences_of
from amplifier_sdk import ChatRequest, ChatResponse, ModelInfo
from amplifier_sdk.contracts import Coordinator, ModuleSource
from amplifier_sdk.delegation import (
    ChildRecord,
    ChildResult,
    JournaledChildStore,
    SpawnOptions,
    ToolInheritance,
)
from amplifier_sdk.errors import (
    BudgetExceededError,
    ChildNotFoundError,
    ConfigError,
    LLMError,
    ModuleNotFoundError,
    SessionBusyError,
    SessionClosedError,
    SessionError,
    TurnSuspendedError,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import HookResult
from tests.doubles import (
    Blocking,
    MemoryContext,
    MemoryJournal,
    Person,
    Recorder,
    ScriptedProvider,
    Worker,
    answer,
    build_session,
    call,
    calling,
    mounted_context,
    only_result,
    open_call_ids,
)
from tests.kernel.families import family, fresh, resume_of, spawn_of

Reports = list[MutableMapping[str, object]]


def delegating(
    instruction: str = "help", agent: str = "helper", id: str = ""
) -> ChatResponse:
    return calling(
        call("delegate", {"agent": agent, "instruction": instruction}, id=id)
    )


class NoResolver:
    """A resolver that knows no module."""

    def resolve(self, module_id: str, profile_hint: object = None) -> ModuleSource:
        raise ModuleNotFoundError(module_id, "not here")


# -- spawn


async def test_a_child_answers_and_its_result_is_plain_data() -> None:
    made = family(delegating("find it"), "found", "done")
    async with made.session as session:
        assert await session.execute("go") == "done"

        (result,) = made.results
        assert (result.output, result.status, result.turn_count, result.limit) == (
            "found",
            "completed",
            1,
            None,
        )
        assert result.session_id.startswith(f"{session.session_id}-")
        assert result.session_id.endswith("_helper")
        assert result["output"] == "found"
        assert '"output": "found"' in only_result(
            mounted_context(session.coordinator).messages
        )


async def test_a_child_has_its_agents_instruction_and_its_own_history() -> None:
    made = family(
        delegating("find it"),
        "found",
        "done",
        agents={"helper": {"system": {"instruction": "You help."}}},
    )
    async with made.session as session:
        await session.execute("go")

    assert [(m.role, m.text) for m in made.provider.requests[1].messages] == [
        ("system", "You help."),
        ("user", "find it"),
    ]


async def test_child_without_instruction_keeps_context_preamble() -> None:
    def context() -> MemoryContext:
        made = MemoryContext()
        made.messages.append({"role": "system", "content": "Be brief."})
        return made

    options = cast(
        "SpawnOptions", {"parent_messages": [{"role": "user", "content": "Before."}]}
    )
    made = family(
        delegating("find it"), "found", "done", context=context, options=options
    )
    async with made.session as session:
        await session.execute("go")

    assert [m.text for m in made.provider.requests[1].messages] == [
        "Be brief.",
        "Before.",
        "find it",
    ]


async def test_events_of_child_carry_id_parents_and_calls_span() -> None:
    made = family(delegating(), "found", "done")
    async with made.session as session:
        await session.execute("go")

    child = made.results[0].session_id
    assert made.names("session:", child) == [
        "session:fork",
        "session:start",
        "session:end",
    ]
    of_child = [data for _, data in made.events.events if data["session_id"] == child]
    assert {data["parent_id"] for data in of_child} == {session.session_id}
    assert made.events.all("session:fork")[0]["parent"] == session.session_id
    call_span = made.events.all("tool:pre")[0]["span_id"]
    assert call_span in {data.get("parent_span_id") for data in of_child}


async def test_what_child_mounted_is_released_when_its_turn_has_ended() -> None:
    released: list[str] = []

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        coordinator.register_cleanup(lambda: released.append(coordinator.session_id))

    made = family(delegating(), "found", "done", tools={"tool-mark": mount})
    async with made.session as session:
        await session.execute("go")

        assert released == [made.results[0].session_id]


async def test_a_child_begins_with_what_its_family_shares() -> None:
    resolver = NoResolver()
    made = family(
        delegating(),
        "found",
        "done",
        options=cast("SpawnOptions", {"self_delegation_depth": 2}),
    )
    made.session.coordinator.register_capability("session.working_dir", "/work")
    made.session.coordinator.register_capability("session.dir", "/state")
    made.session.coordinator.mount_points["module-source-resolver"] = resolver
    async with made.session as session:
        await session.execute("go")

    assert made.child.get_capability("session.working_dir") == "/work"
    assert made.child.get_capability("session.dir") == "/state"
    assert made.child.get("module-source-resolver") is resolver
    assert made.child.get_capability("self_delegation_depth") == 2


@pytest.mark.parametrize(
    ("rule", "stored"),
    [
        ({"exclude_tools": ["tool-work"]}, ["delegate"]),
        ({"exclude_tools": ["work"]}, ["delegate"]),
        ({"inherit_tools": ["tool-work"]}, ["work"]),
        ({"inherit_tools": ["*"], "exclude_tools": ["d*"]}, ["work"]),
        ({"inherit_tools": []}, []),
        ({}, ["delegate", "work"]),
    ],
)
async def test_a_child_inherits_the_tools_it_may(
    rule: ToolInheritance, stored: list[str]
) -> None:
    made = family("found", tools={"tool-work": fresh(Worker)})
    async with made.session as session:
        await session.spawn(agent_name="helper", instruction="x", tool_inheritance=rule)

        assert list(made.child.tools) == stored


async def test_a_child_always_has_the_tools_of_its_agent() -> None:
    made = family(
        "found",
        agents={"helper": {"tools": ["tool-work"]}},
        others={"tool-work": fresh(Worker)},
    )
    async with made.session as session:
        await session.spawn(
            agent_name="helper", instruction="x", tool_inheritance={"inherit_tools": []}
        )

        assert list(made.child.tools) == ["work"]
        assert list(session.coordinator.tools) == ["delegate"]


async def test_a_child_inherits_the_hooks_it_may() -> None:
    heard: list[str] = []

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        heard.append(coordinator.session_id)
        coordinator.hooks.register("turn:*", lambda *_: None, decides=False)

    made = family("a", "b", hooks={"hooks-extra": mount})
    async with made.session as session:
        await session.spawn(
            agent_name="helper",
            instruction="x",
            sub_session_id="one",
            hook_inheritance={"exclude_hooks": ["extra"]},
        )
        await session.spawn(agent_name="helper", instruction="x", sub_session_id="two")

    assert heard == [session.session_id, "two"]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"exclude": ["x"]}, "exclude: unknown key; did you mean 'exclude_tools'?"),
        ({"zzz": ["x"]}, "zzz: unknown key; known: inherit_tools, exclude_tools"),
        (
            {"inherit_tools": "tool-work"},
            "inherit_tools: a list of module ids; got str",
        ),
        (["tool-work"], "a mapping of inherit_tools or exclude_tools; got list"),
    ],
)
async def test_a_rule_of_inheritance_that_cannot_be_read_is_refused(
    rule: object, problem: str
) -> None:
    async with family().session as session:
        with pytest.raises(ConfigError) as caught:
            await session.spawn(
                agent_name="helper",
                instruction="x",
                tool_inheritance=rule,  # type: ignore[arg-type]
            )

    assert problem in str(caught.value)


async def test_an_agent_may_be_the_parent_itself() -> None:
    made = family("found", tools={"tool-work": fresh(Worker)})
    async with made.session as session:
        await session.spawn(agent_name="self", instruction="x")

        assert list(made.child.tools) == ["delegate", "work"]


@pytest.mark.parametrize(
    ("agents", "problem"),
    [
        ({"helper": {}}, "agents.helpr: no such agent; did you mean 'helper'?"),
        ({}, "agents.helpr: no such agent; known: none"),
        ({"helpr": "text"}, "agents.helpr: an agent is a partial mount plan; got str"),
        ({"helpr": {"system": 7}}, "agents.helpr.system.instruction: a text; got int"),
        (
            {"helpr": {"system": {}}},
            "agents.helpr.system.instruction: a text; got NoneType",
        ),
        ({"helpr": {"tols": []}}, "tols: unknown key; did you mean 'tools'?"),
        (
            {"helpr": {"agents": 7}},
            "agents.helpr.agents: 'all', 'none', a list of names or a mapping; got 7",
        ),
    ],
)
async def test_an_agent_that_cannot_be_made_is_named(
    agents: dict[str, object], problem: str
) -> None:
    async with family(agents=agents).session as session:
        with pytest.raises(ConfigError) as caught:
            await session.spawn(agent_name="helpr", instruction="x")

    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("choice", "known"),
    [
        ("all", ["helper", "other"]),
        ("none", []),
        (["other"], ["other"]),
        (None, []),
        ({"third": {}}, ["helper", "other", "third"]),
    ],
)
async def test_an_agent_says_which_agents_it_knows(
    choice: object, known: list[str]
) -> None:
    made = family("found", agents={"helper": {"agents": choice}, "other": {}})
    async with made.session as session:
        await session.spawn(agent_name="helper", instruction="x")

        child = made.child.session
        assert child is not None
        assert list(child.plan.agents) == known


async def test_agents_may_be_given_with_the_call() -> None:
    made = family("found", agents={"helper": {"tools": ["tool-none"]}})
    async with made.session as session:
        result = await session.spawn(
            agent_name="helper", instruction="x", agent_configs={"helper": {}}
        )

    assert result.output == "found"


async def test_a_child_gets_configuration_and_metadata_with_the_call() -> None:
    made = family("found", plan={"orchestrator": {"config": {"a": 1, "b": 1}}})
    async with made.session as session:
        result = await session.spawn(
            agent_name="helper",
            instruction="x",
            orchestrator_config={"b": 2},
            session_metadata={"task": "t1"},
        )

        child = made.child.session
        assert child is not None
        assert child.plan.modules["orchestrator"][0].config == {"a": 1, "b": 2}
    assert result.metadata == {"task": "t1"}
    assert made.events.one("session:fork")["metadata"] == {"task": "t1"}


async def test_session_fork_carries_plan_where_plan_asks_for_it() -> None:
    session = build_session("hi", parent_id="above", settings={"raw": True})
    recorder = Recorder.of(session.coordinator.hooks, "session:fork")
    async with session:
        pass

    assert recorder.one("session:fork")["config"] == session.config


async def test_a_failing_child_raises_its_own_error_and_names_itself() -> None:
    made = family(LLMError("overloaded"))
    async with made.session as session:
        with pytest.raises(LLMError, match="overloaded") as caught:
            await session.spawn(
                agent_name="helper", instruction="x", sub_session_id="c1"
            )

        assert caught.value.__notes__ == ["in session 'c1', agent 'helper'"]
        assert made.names("session:", "c1")[-1] == "session:end"
        assert made.events.one("session:end")["status"] == "failed"
        made.provider.steps.append("better")
        assert (
            await session.resume(sub_session_id="c1", instruction="again")
        ).output == "better"


async def test_a_session_makes_children_of_itself_alone() -> None:
    async with family("a").session as session, family().session as other:
        assert (
            await session.spawn(
                agent_name="helper", instruction="x", parent_session=session
            )
        ).output == "a"
        with pytest.raises(
            SessionError,
            match=f"cannot make a child of '{other.session_id}'; ask that session",
        ):
            await session.spawn(
                agent_name="helper", instruction="x", parent_session=other
            )


async def test_a_child_needs_an_id_of_its_own() -> None:
    async with family("a").session as session:
        await session.spawn(agent_name="helper", instruction="x", sub_session_id="c1")

        with pytest.raises(
            SessionError, match="There is a session 'c1' already; resume it"
        ):
            await session.spawn(
                agent_name="helper", instruction="x", sub_session_id="c1"
            )


async def test_answer_of_a_child_that_is_meant_is_there_already() -> None:
    made = family("found")
    async with made.session as session:
        first = await session.spawn(
            agent_name="helper", instruction="x", sub_session_id="c1"
        )
        again = await session.spawn(
            agent_name="helper", instruction="x", sub_session_id="c1", continues=True
        )

    assert (again.output, again.session_id) == (first.output, "c1") == ("found", "c1")
    assert len(made.provider.requests) == 1


async def test_an_application_may_offer_its_own_way_to_spawn() -> None:
    asked: list[SpawnOptions] = []

    async def elsewhere(**options: object) -> ChildResult:
        asked.append(cast("SpawnOptions", options))
        return ChildResult(output="from elsewhere", session_id="far")

    made = family(delegating(), "done")
    made.session.coordinator.register_capability("session.spawn", elsewhere)
    async with made.session as session:
        await session.execute("go")

    assert asked == [{"agent_name": "helper", "instruction": "help"}]
    assert made.results[0].output == "from elsewhere"


async def test_the_capabilities_are_the_sessions_own_methods() -> None:
    async with family("a", "b").session as session:
        first = await spawn_of(session.coordinator)(
            agent_name="helper", instruction="x"
        )
        second = await resume_of(session.coordinator)(
            sub_session_id=first.session_id, instruction="y"
        )

    assert (first.output, second.output, second.turn_count) == ("a", "b", 2)


async def test_an_unknown_option_is_an_error() -> None:
    async with family("a").session as session:
        with pytest.raises(TypeError, match="agent"):
            await session.spawn(agent="helper", instruction="x")  # type: ignore[call-arg]  # that is the point


async def test_whoever_delegates_may_hear_what_the_child_does() -> None:
    heard: list[tuple[str, object]] = []

    def hear(event: str, data: dict[str, object]) -> None:
        heard.append((event, data.get("tool_name")))

    def fail(event: str, data: dict[str, object]) -> None:
        raise ValueError("an observer decides nothing")

    worker = Worker()
    made = family(
        calling(call("work")),
        "a",
        calling(call("work")),
        "b",
        tools={"tool-work": fresh(lambda: worker)},
    )
    async with made.session as session:
        first = await session.spawn(
            agent_name="helper",
            instruction="x",
            observers={"tool:pre": hear, "tool:post": hear, "prompt:submit": fail},
        )
        second = await session.resume(
            sub_session_id=first.session_id,
            instruction="y",
            observers={"tool:pre": hear, "session:resume": hear},
        )

    assert (first.output, second.output, len(worker.inputs)) == ("a", "b", 2)
    assert heard == [
        ("tool:pre", "work"),
        ("tool:post", "work"),
        ("session:resume", None),
        ("tool:pre", "work"),
    ]


async def test_child_with_uncallable_observer_is_refused() -> None:
    async with family("a").session as session:
        for _ in range(2):
            with pytest.raises(TypeError, match="must be callable; got 'hear'"):
                await session.spawn(
                    agent_name="helper",
                    instruction="x",
                    sub_session_id="c1",
                    observers={"tool:pre": "hear"},  # type: ignore[dict-item]  # that is the point
                )

        assert (
            await session.spawn(
                agent_name="helper", instruction="x", sub_session_id="c1"
            )
        ).output == "a"


# -- resume


async def test_a_resumed_child_remembers() -> None:
    made = family(
        "first", "second", agents={"helper": {"system": {"instruction": "You help."}}}
    )
    async with made.session as session:
        child = (await session.spawn(agent_name="helper", instruction="one")).session_id
        result = await session.resume(sub_session_id=child, instruction="two")

    assert (result.output, result.session_id, result.turn_count) == ("second", child, 2)
    assert [m.text for m in made.provider.requests[1].messages] == [
        "You help.",
        "one",
        "first",
        "two",
    ]
    assert made.names("session:", child)[3:] == [
        "session:fork",
        "session:resume",
        "session:end",
    ]


async def test_only_the_session_that_made_a_child_resumes_it() -> None:
    async with family("a").session as session, family().session as other:
        child = (await session.spawn(agent_name="helper", instruction="x")).session_id

        with pytest.raises(
            ChildNotFoundError,
            match=f"Session {other.session_id} has no child '{child}'",
        ):
            await other.resume(sub_session_id=child, instruction="y")


@attrs.define(eq=False)
class Shelf:
    """A store of children that several sessions share."""

    records: dict[str, ChildRecord] = attrs.field(factory=dict)

    async def save(self, record: ChildRecord, /) -> None:
        self.records[record.session_id] = record

    async def load(self, session_id: str, /) -> ChildRecord | None:
        return self.records.get(session_id)


async def test_application_may_keep_children_beyond_parents_life() -> None:
    shelf = Shelf()
    first = family("a")
    first.session.coordinator.register_capability("session.children", shelf)
    async with first.session as session:
        child = (await session.spawn(agent_name="helper", instruction="x")).session_id
    second = family("b")
    again = AmplifierSession(
        second.session.config, second.session.loader, session_id=session.session_id
    )
    again.coordinator.register_capability("session.children", shelf)
    async with again:
        assert (
            await again.resume(sub_session_id=child, instruction="y")
        ).turn_count == 2
    stranger = family("c")
    stranger.session.coordinator.register_capability("session.children", shelf)
    async with stranger.session:
        with pytest.raises(ChildNotFoundError):
            await stranger.session.resume(sub_session_id=child, instruction="z")


async def test_children_of_children_are_kept_in_the_same_place() -> None:
    shelf = Shelf()
    made = family(delegating(), delegating(agent="self"), "deep", "found", "done")
    made.session.coordinator.register_capability("session.children", shelf)
    async with made.session as session:
        await session.execute("go")

    (child,) = [
        record
        for record in shelf.records.values()
        if record.parent_id == session.session_id
    ]
    (grandchild,) = [
        record
        for record in shelf.records.values()
        if record.parent_id == child.session_id
    ]
    assert grandchild.agent_name == "self"


async def test_what_is_no_store_of_children_is_named() -> None:
    made = family("a")
    made.session.coordinator.register_capability("session.children", {})
    async with made.session as session:
        with pytest.raises(
            TypeError,
            match=r"'session.children' is a ChildStore, with 'save' and 'load'; got \{\}",
        ):
            await session.spawn(agent_name="helper", instruction="x")


async def test_a_child_that_cannot_be_kept_has_answered_all_the_same(
    reports: Reports,
) -> None:
    class Full(Shelf):
        async def save(self, record: ChildRecord, /) -> None:
            raise OSError("disk full")

    class Slow(Shelf):
        async def save(self, record: ChildRecord, /) -> None:
            await anyio.sleep_forever()

    for shelf in (Full(), Slow()):
        made = family("a", limits={"cleanup_timeout": 0.05})
        made.session.coordinator.register_capability("session.children", shelf)
        with anyio.fail_after(5):
            async with made.session as session:
                assert (
                    await session.spawn(agent_name="helper", instruction="x")
                ).output == "a"

    assert [report["event"] for report in reports] == [
        "child.not_kept",
        "child.not_kept",
    ]


async def test_what_child_does_is_journaled_where_its_store_journals() -> None:
    happened: list[str] = []
    journals: list[MemoryJournal] = []

    class Journaled(Shelf):
        @asynccontextmanager
        async def open(self, record: ChildRecord, /) -> AsyncIterator[MemoryJournal]:
            happened.append(f"open {record.turn_count}")
            journals.append(MemoryJournal())
            yield journals[-1]
            happened.append("close")

        async def save(self, record: ChildRecord, /) -> None:
            happened.append(f"save {record.turn_count}")
            await super().save(record)

    shelf = Journaled()
    made = family("a", "b")
    made.session.coordinator.register_capability("session.children", shelf)
    async with made.session as session:
        child = await session.spawn(agent_name="helper", instruction="x")
        await session.resume(sub_session_id=child.session_id, instruction="y")

    assert happened == ["open 0", "save 1", "close", "open 1", "save 2", "close"]
    assert [journal.kinds for journal in journals] == [
        ["TurnStarted", "MessageWritten", "TurnEnded"]
    ] * 2
    assert isinstance(shelf, JournaledChildStore)
    assert not isinstance(Shelf(), JournaledChildStore)


async def test_a_child_whose_journal_cannot_be_opened_does_not_run() -> None:
    class Full(Shelf):
        def open(
            self, record: ChildRecord, /
        ) -> AbstractAsyncContextManager[MemoryJournal]:
            raise OSError("disk full")

    made = family("a")
    made.session.coordinator.register_capability("session.children", Full())
    async with made.session as session:
        with pytest.raises(OSError, match="disk full") as failure:
            await session.spawn(
                agent_name="helper", instruction="x", sub_session_id="c1"
            )

    assert failure.value.__notes__ == ["in session 'c1', agent 'helper'"]
    assert made.provider.requests == []


async def test_a_child_that_runs_is_not_made_again() -> None:
    blocking = Blocking()
    made = family(
        calling(call("block")), "end", tools={"tool-block": fresh(lambda: blocking)}
    )
    asked: list[str] = []

    class Watched(Shelf):
        async def load(self, session_id: str, /) -> ChildRecord | None:
            asked.append(session_id)
            return await super().load(session_id)

    made.session.coordinator.register_capability("session.children", Watched())
    with anyio.fail_after(5):
        async with made.session as session, anyio.create_task_group() as group:

            async def run() -> None:
                await session.spawn(
                    agent_name="helper", instruction="x", sub_session_id="c1"
                )

            group.start_soon(run)
            await blocking.started.wait()
            with pytest.raises(SessionBusyError, match="Session c1 is open"):
                await session.spawn(
                    agent_name="helper", instruction="y", sub_session_id="c1"
                )
            group.cancel_scope.cancel()

    assert asked == ["c1"]  # before it ran; while it does, its files are its own


async def test_turn_left_at_once_leaves_calls_of_its_child_open() -> None:
    blocking = Blocking()
    made = family(
        delegating(id="d"),
        calling(call("block")),
        tools={"tool-block": fresh(lambda: blocking)},
    )

    async def run() -> None:
        with pytest.raises(TurnSuspendedError):
            await made.session.execute("go")

    with anyio.fail_after(5):
        async with made.session as session, anyio.create_task_group() as group:
            group.start_soon(run)
            await blocking.started.wait()
            session.suspend(immediate=True)

    assert blocking.ended == "cancelled"
    assert open_call_ids(mounted_context(session.coordinator).messages) == ["d"]


async def test_a_child_that_runs_is_not_resumed() -> None:
    blocking = Blocking()
    made = family(
        calling(call("block")), "end", tools={"tool-block": fresh(lambda: blocking)}
    )
    with anyio.fail_after(5):
        async with made.session as session, anyio.create_task_group() as group:

            async def run() -> None:
                await session.spawn(
                    agent_name="helper", instruction="x", sub_session_id="c1"
                )

            group.start_soon(run)
            await blocking.started.wait()
            with pytest.raises(SessionBusyError, match="Session c1 is open"):
                await session.resume(sub_session_id="c1", instruction="y")
            with pytest.raises(
                SessionBusyError,
                match="Session c1 is open; wait for it, or choose another id",
            ):
                await session.spawn(
                    agent_name="helper", instruction="x", sub_session_id="c1"
                )
            blocking.release.set()


# -- providers


class Catalogue(ScriptedProvider):
    """A provider that lists models, or fails to."""

    def __init__(self, *models: str, name: str, error: Exception | None = None) -> None:
        super().__init__("answer", name=name)
        self.models, self.error = models, error

    async def list_models(self) -> list[ModelInfo]:
        if self.error is not None:
            raise self.error
        return [
            ModelInfo(id=m, display_name=m, context_window=1, max_output_tokens=1)
            for m in self.models
        ]


@pytest.mark.parametrize(
    ("preferences", "asked", "model"),
    [
        ([{"provider": "second", "model": "m2"}], "second", "m2"),
        ([{"provider": "provider-second"}], "second", None),
        (
            [
                {"provider": "third", "model": "m1"},
                {"provider": "sec*", "model": "big-*"},
            ],
            "second",
            "big-2",
        ),
        (
            [
                {"provider": "second", "model": "none-*"},
                {"provider": "broken", "model": "x-*"},
            ],
            "scripted",
            None,
        ),
        ([{"model": "big-*"}], "second", "big-2"),
        ([], "scripted", None),
    ],
)
async def test_child_asks_first_provider_and_model_that_there_is(
    preferences: list[dict[str, str]], asked: str, model: str | None, reports: Reports
) -> None:
    first = Catalogue(name="scripted")
    second = Catalogue("small", "big-2", "big-1", name="second")
    broken = Catalogue(name="broken", error=LLMError("no list"))
    made = family(
        provider=first,
        plan={"providers": ["provider", "provider-second", "provider-broken"]},
        others={"provider-second": second, "provider-broken": broken},
    )
    async with made.session as session:
        await session.spawn(
            agent_name="helper",
            instruction="x",
            provider_preferences=preferences,  # type: ignore[arg-type]  # as a module writes them
        )

    providers = {provider.name: provider for provider in (first, second, broken)}
    (request,) = providers[asked].requests
    assert request.model == model
    assert sum(len(provider.requests) for provider in providers.values()) == 1
    unmet = preferences and asked == "scripted"
    assert (
        "delegation.no_preference_met" in [report["event"] for report in reports]
    ) is bool(unmet)


async def test_an_agent_asks_its_own_providers_before_its_parents() -> None:
    own, parents = Catalogue(name="own"), Catalogue(name="scripted")
    made = family(
        provider=parents,
        agents={"helper": {"providers": ["provider-own"]}},
        others={"provider-own": own},
    )

    async with made.session as session:
        await session.spawn(agent_name="helper", instruction="x")

    assert (len(own.requests), len(parents.requests)) == (1, 0)


@pytest.mark.parametrize(
    ("agent", "preferred"),
    [
        ({}, []),
        (
            {
                "providers": [
                    {"module": "provider-a"},
                    {"module": "provider-b", "instance_id": "fast"},
                ]
            },
            ["provider-a", "fast"],
        ),
        ({"providers": ["provider-a", 5]}, ["provider-a"]),
        (
            {
                "providers": ["provider-a"],
                "orchestrator": {"config": {"default_provider": "b"}},
            },
            [],
        ),
        (
            {"providers": ["provider-a"], "orchestrator": {"config": {"model": "m"}}},
            ["provider-a"],
        ),
    ],
)
def test_what_an_agent_says_of_providers_is_its_preference(
    agent: dict[str, object], preferred: list[str]
) -> None:
    assert [preference["provider"] for preference in preferences_of(agent)] == preferred


# -- fork


async def test_a_forked_session_is_opened_by_the_caller() -> None:
    made = family("child", "parent", tools={"tool-work": fresh(Worker)})
    async with made.session as session:
        async with session.fork(
            {"tools": [{"module": "tool-work", "instance_id": "job"}]}, session_id="c1"
        ) as child:
            assert (child.session_id, child.parent_id) == ("c1", session.session_id)
            assert list(child.coordinator.tools) == ["delegate", "work", "job"]
            assert await child.execute("x") == "child"
        assert await session.execute("y") == "parent"

        assert made.names("session:", "c1") == [
            "session:fork",
            "session:start",
            "session:end",
        ]
        assert session.spending.children == 1


async def test_two_children_of_one_id_are_not_open_at_once() -> None:
    async with family().session as session, session.fork(session_id="c1"):
        with pytest.raises(SessionBusyError, match="Session c1 is open"):
            session.fork(session_id="c1")


async def test_cleaning_up_session_cleans_up_children_that_are_open() -> None:
    made = family()
    session = made.session
    await session.initialize()
    children = [session.fork(session_id=name) for name in ("one", "two")]
    for child in children:
        await child.initialize()

    await session.cleanup()

    assert [child.is_closed for child in children] == [True, True]
    ends = [data["session_id"] for data in made.events.all("session:end")]
    assert ends == ["two", "one", session.session_id]
    with pytest.raises(SessionClosedError):
        session.fork()


async def test_child_whose_cleanup_is_interrupted_keeps_no_other_open() -> None:
    made = family()
    session = made.session
    await session.initialize()
    children = [session.fork(session_id=name) for name in ("one", "two")]

    async def interrupt(event: str, data: object) -> None:
        raise KeyboardInterrupt

    for child in children:
        await child.initialize()
    children[-1].coordinator.hooks.register("session:end", interrupt)

    with pytest.raises(KeyboardInterrupt):
        await session.cleanup()

    assert [child.is_closed for child in children] == [True, True]
    assert [data["session_id"] for data in made.events.all("session:end")] == [
        "two",
        "one",
        session.session_id,
    ]


async def test_children_may_be_left_to_themselves() -> None:
    made = family("alive")
    session = made.session
    await session.initialize()
    child = session.fork()

    await session.cleanup(cascade_children=False)

    assert await child.execute("x") == "alive"
    await child.cleanup()


async def test_a_child_whose_start_failed_is_forgotten() -> None:
    made = family("a", agents={"helper": {"hooks": ["hooks-broken"]}})
    async with made.session as session:
        for _ in range(2):
            with pytest.raises(Exception, match="hooks-broken"):
                await session.spawn(
                    agent_name="helper", instruction="x", sub_session_id="c1"
                )


# -- the person


async def test_a_child_asks_the_parents_person_one_question_at_a_time() -> None:
    class Slow(Person):
        open = 0

        async def request_approval(
            self, prompt: str, options: Sequence[str], timeout: float, default: str, /
        ) -> str:
            assert self.open == 0
            self.open += 1
            await anyio.wait_all_tasks_blocked()
            self.open -= 1
            return await super().request_approval(prompt, options, timeout, default)

    def ask(coordinator: ModuleCoordinator) -> None:
        coordinator.hooks.register(
            "tool:pre",
            lambda event, data: HookResult.ask(f"in {coordinator.session_id}?"),
        )

    async def by_request(request: ChatRequest) -> ChatResponse:
        seen = [message.text for message in request.messages]
        if seen[-1] == "parent":
            return calling(
                call("delegate", {"instruction": "child"}, id="a"),
                call("delegate", {"instruction": "child"}, id="b"),
            )
        return calling(call("work")) if seen[-1] == "child" else answer("end")

    person = Slow()
    made = family(
        *[by_request] * 6,
        watch=ask,
        approval=person,
        tools={"tool-work": fresh(Worker)},
    )
    with anyio.fail_after(5):
        async with made.session as session:
            assert await session.execute("parent") == "end"

    assert len(person.questions) == 4
    assert all(result.status == "completed" for result in made.results)


async def test_child_asks_provider_of_approval_that_its_parent_has() -> None:
    from amplifier_sdk.approvals import ApprovalRequest, ApprovalResponse

    class Desk:
        def __init__(self) -> None:
            self.requests: list[ApprovalRequest] = []

        async def request_approval(
            self, request: ApprovalRequest, /
        ) -> ApprovalResponse:
            self.requests.append(request)
            return ApprovalResponse(approved=True)

    def ask(coordinator: ModuleCoordinator) -> None:
        if coordinator.parent_id is not None:
            coordinator.hooks.register(
                "tool:pre", lambda event, data: HookResult.ask("May it?")
            )

    desk, worker = Desk(), Worker()
    made = family(
        calling(call("work")),
        "end",
        watch=ask,
        tools={"tool-work": fresh(lambda: worker)},
    )
    register = cast(
        "Callable[[object], None]",
        made.session.coordinator.get_capability("approval.register_provider"),
    )
    register(desk)
    async with made.session as session:
        await session.spawn(agent_name="helper", instruction="x")

    assert len(desk.requests) == len(worker.inputs) == 1
    assert str(desk.requests[0].details["prompt"]).startswith(
        "The agent 'helper' asks:\nwork "
    )


async def test_what_an_application_accepts_holds_in_a_child() -> None:
    from amplifier_sdk.assessments import ACCEPTED, Assessment, Coverage

    class Editor(Worker):
        async def assess_call(self, _: JSONObject, /) -> Assessment:
            return Assessment(
                decision="ask",
                reason="it writes",
                coverages=(Coverage(key="edits", label="edits"),),
            )

    worker = Editor()
    made = family(
        calling(call("work")), "end", tools={"tool-work": fresh(lambda: worker)}
    )
    made.session.coordinator.register_capability(ACCEPTED, frozenset({"edits"}))
    async with made.session as session:
        await session.spawn(agent_name="helper", instruction="x")

    assert len(worker.inputs) == 1


# -- how many and how deep


async def test_a_session_has_so_many_children_at_work_at_once() -> None:
    at_work, most = 0, 0

    async def work(request: ChatRequest) -> ChatResponse:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await anyio.wait_all_tasks_blocked()
        at_work -= 1
        return answer("ok")

    made = family(*[work] * 5, limits={"parallel_children": 2})
    with anyio.fail_after(5):
        async with made.session as session, anyio.create_task_group() as group:

            async def run() -> None:
                await session.spawn(agent_name="helper", instruction="x")

            for _ in range(5):
                group.start_soon(run)

    assert most == 2


async def test_children_of_one_answer_have_their_own_limit_alone() -> None:
    """A call that waits for a child leaves its place to the next one."""
    at_work = 0
    all_at_work = anyio.Event()

    async def work(_: ChatRequest) -> ChatResponse:
        nonlocal at_work
        at_work += 1
        if at_work == 5:
            all_at_work.set()
        await all_at_work.wait()
        return answer("ok")

    calls = [call("delegate", id=f"c{number}") for number in range(5)]
    made = family(
        calling(*calls),
        *[work] * 5,
        "end",
        limits={"parallel_children": 5, "parallel_tools": 1},
    )
    with anyio.fail_after(5):
        async with made.session as session:
            assert await session.execute("go") == "end"

    assert [result.output for result in made.results] == ["ok"] * 5


async def test_a_call_continues_in_its_place_after_its_children() -> None:
    """It may wait for several at once, and is one call again afterwards."""
    running = max_running = 0

    async def mount(coordinator: Coordinator, config: object) -> Worker:
        async def spawn() -> None:
            await spawn_of(coordinator)(agent_name="helper", instruction="x")

        async def work(_: JSONObject) -> str:
            nonlocal running, max_running
            async with anyio.create_task_group() as group:
                for _number in range(2):
                    group.start_soon(spawn)
            await spawn()
            running += 1
            max_running = max(max_running, running)
            await anyio.wait_all_tasks_blocked()
            running -= 1
            return "done"

        return Worker(name="team", function=work)

    made = family(
        calling(*[call("team", id=f"c{number}") for number in range(3)]),
        *[answer("ok")] * 9,
        "end",
        tools={"tool-team": mount},
        limits={"parallel_tools": 1},
    )
    with anyio.fail_after(5):
        async with made.session as session:
            assert await session.execute("go") == "end"

    assert max_running == 1


async def test_a_child_that_waits_for_its_turn_may_be_cancelled() -> None:
    blocking = Blocking()
    made = family(
        calling(call("block")),
        "end",
        tools={"tool-block": fresh(lambda: blocking)},
        limits={"parallel_children": 1},
    )
    with anyio.fail_after(5):
        async with made.session as session, anyio.create_task_group() as group:
            first, second = session.fork(), session.fork()

            async def wait() -> None:
                with pytest.raises(SessionError, match="cancelled"):
                    await second.execute("y")
                blocking.release.set()

            group.start_soon(first.execute, "x")
            await blocking.started.wait()
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await second.cancel()


@pytest.mark.parametrize("depth", [0, 1, 3])
async def test_delegation_goes_so_deep_and_no_deeper(
    depth: int, reports: Reports
) -> None:
    """Every session delegates to itself, until its tool is refused; then each has an answer."""

    async def by_request(request: ChatRequest) -> ChatResponse:
        has_result = any(message.role == "tool" for message in request.messages)
        return (
            answer(request.messages[-1].text[:60])
            if has_result
            else delegating("deeper", "self")
        )

    made = family(*[by_request] * 12, limits={"delegation_depth": depth})
    async with made.session as session:
        await session.execute("go")

        assert len({data["session_id"] for _, data in made.events.events}) == 1 + depth
    assert [report["event"] for report in reports] == ["tool.failed"]
    deepest = made.provider.requests[depth + 1].messages[-1].text
    assert (
        deepest
        == f"Error: The limit 'delegation_depth' of {depth} is reached; raise it to continue"
    )


async def test_an_agent_does_not_allow_itself_more_depth_than_is_left() -> None:
    made = family(
        agents={"helper": {"session": {"limits": {"delegation_depth": 9}}}},
        limits={"delegation_depth": 1},
    )
    async with made.session as session:
        child = session.fork({"session": {"limits": {"delegation_depth": 9}}})
        with pytest.raises(BudgetExceededError):
            child.fork()
