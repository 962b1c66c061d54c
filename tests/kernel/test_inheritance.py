"""What an application registers on a session guards and serves every session below it, as long as it is registered."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Mapping

import pytest

from amplifier.kernel.turn.registry import HookRegistry
from amplifier_kit.redaction import redactor_of
from amplifier_sdk import ChatRequest, ChatResponse
from amplifier_sdk.capabilities import PER_SESSION
from amplifier_sdk.contracts import Coordinator, Provider
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.redaction import REDACTOR
from amplifier_sdk.results import HookResult
from tests.doubles import (
    MemoryContext,
    MemoryJournal,
    Mount,
    Recorder,
    Worker,
    answer,
    call,
    calling,
)
from tests.kernel.families import family, fresh


def deny(event: str, data: dict[str, object]) -> HookResult:
    return HookResult.deny("not here")


class Hiding:
    """A redactor that hides one word."""

    def __init__(self, word: str) -> None:
        self.word = word

    def redact_text(self, text: str, /) -> str:
        return text.replace(self.word, "***")

    def redact(self, value: JSONValue, /) -> JSONValue:
        if isinstance(value, dict):
            return {key: self.redact(item) for key, item in value.items()}
        return self.redact_text(value) if isinstance(value, str) else value


async def by_request(request: ChatRequest) -> ChatResponse:
    """Delegate to oneself as deep as it goes; below the root call `work` first."""
    texts = [message.text for message in request.messages]
    roles = [message.role for message in request.messages]
    if "tool" not in roles:
        if texts[-1] == "go":
            return calling(call("delegate", {"agent": "self", "instruction": "child"}))
        return calling(
            call("work"),
            call("delegate", {"agent": "self", "instruction": "child"}, id="d"),
        )
    return answer("end")


# -- handlers


@pytest.mark.parametrize("when", ["before it is opened", "while it is open"])
async def test_guard_of_application_decides_for_every_descendant(
    when: str,
) -> None:
    worker = Worker()
    made = family(
        *[by_request] * 20,
        tools={"tool-work": fresh(lambda: worker)},
        limits={"delegation_depth": 2},
    )
    asked: list[tuple[object, object]] = []

    def guard(event: str, data: dict[str, object]) -> HookResult | None:
        asked.append((data["session_id"], data["tool_name"]))
        return HookResult.deny("not here") if data["tool_name"] == "work" else None

    hooks = made.session.coordinator.hooks
    if when == "before it is opened":
        hooks.register("tool:pre", guard)
    async with made.session as session:
        if when == "while it is open":
            hooks.register("tool:pre", guard)
        await session.execute("go")

    assert worker.inputs == []
    assert len({session_id for session_id, _ in asked}) == 3


@pytest.mark.parametrize("way", ["spawn", "resume", "fork"])
async def test_a_child_has_the_guards_that_its_parent_has_now(way: str) -> None:
    worker = Worker()
    made = family(
        *(step for _ in range(3) for step in (calling(call("work")), answer("end"))),
        tools={"tool-work": fresh(lambda: worker)},
    )
    async with made.session as session:
        fork = session.fork()
        await fork.initialize()

        async def run() -> None:
            if way == "fork":
                await fork.execute("x")
            elif way == "spawn" or not made.names("session:end", "c1"):
                await session.spawn(
                    agent_name="helper",
                    instruction="x",
                    sub_session_id="c1" if way == "resume" else None,
                )
            else:
                await session.resume(sub_session_id="c1", instruction="x")

        await run()
        assert len(worker.inputs) == 1
        unregister = session.coordinator.hooks.register("tool:pre", deny, name="guard")
        await run()
        assert len(worker.inputs) == 1, (
            "a guard that came later guards those that are open"
        )
        unregister()
        await run()
        assert len(worker.inputs) == 2, (
            "and what is taken back is taken back everywhere"
        )


async def test_observer_of_application_hears_every_descendant_once() -> None:
    made = family(
        *[by_request] * 20,
        tools={"tool-work": fresh(Worker)},
        limits={"delegation_depth": 2},
    )
    recorder = Recorder.of(made.session.coordinator.hooks, "session:end")
    alone = Recorder()
    made.session.coordinator.hooks.register("session:end", alone.hear, inherited=False)
    async with made.session as session:
        await session.execute("go")

    ended = [data["session_id"] for data in recorder.all("session:end")]
    assert len(ended) == len(set(ended)) == 3
    assert [data["session_id"] for data in alone.all("session:end")] == [
        session.session_id
    ]


Hear = Callable[[Coordinator], None]


class Listening(MemoryContext):
    """A context that registers a handler when it is first read."""

    def __init__(self, coordinator: Coordinator, listen: Hear) -> None:
        super().__init__()
        self.coordinator, self.listen = coordinator, listen

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        self.listen(self.coordinator)
        self.listen = lambda _: None
        return await super().get_messages_for_request(token_budget, provider)


def module_that_listens(moment: str, listen: Hear) -> tuple[Mount, Mount, Mount]:
    """Make a hook, a tool and a context of which one registers a handler, at a moment of its session's life."""

    async def mount_hook(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> None:
        if moment == "mount":
            listen(coordinator)
        elif moment == "handler":
            coordinator.hooks.register(
                "prompt:submit", lambda *_: listen(coordinator), decides=True
            )
        elif moment == "start":
            coordinator.hooks.register("session:start", lambda *_: listen(coordinator))

    async def mount_tool(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        async def work(input: JSONObject) -> str:
            if moment == "tool":
                listen(coordinator)
            return "done"

        return Worker(function=work)

    async def mount_context(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        return (
            Listening(coordinator, listen) if moment == "context" else MemoryContext()
        )

    return mount_hook, mount_tool, mount_context


@pytest.mark.parametrize("moment", ["mount", "start", "handler", "context", "tool"])
async def test_what_a_module_registers_is_its_sessions_own(moment: str) -> None:
    """A child mounts the module itself: its handler is there once and not twice."""
    heard: list[tuple[str, object]] = []

    def listen(coordinator: Coordinator) -> None:
        own = coordinator.session_id
        coordinator.hooks.register(
            "provider:request", lambda _, data: heard.append((own, data["session_id"]))
        )

    hook, tool, context = module_that_listens(moment, listen)
    steps = (
        calling(call("work")),
        calling(call("delegate")),
        calling(call("work")),
        "found",
        "end",
    )
    made = family(
        *steps,
        hooks={"hooks-own": hook},
        tools={"tool-work": tool},
        others={"context": context},
    )
    async with made.session as session:
        await session.execute("go")

    assert {own for own, _ in heard} == {session.session_id, made.child.session_id}
    assert all(own == of for own, of in heard)


async def test_handler_registered_by_application_handler_is_its_own() -> None:
    worker = Worker()
    made = family(
        calling(call("delegate")),
        calling(call("work")),
        "found",
        "end",
        tools={"tool-work": fresh(lambda: worker)},
    )
    hooks = made.session.coordinator.hooks

    def guard_from_now_on(event: str, data: dict[str, object]) -> None:
        hooks.register("tool:pre", only_delegate)

    hooks.register("prompt:submit", guard_from_now_on, inherited=False)
    async with made.session as session:
        await session.execute("go")

    assert worker.inputs == []


def only_delegate(event: str, data: dict[str, object]) -> HookResult | None:
    return None if data["tool_name"] == "delegate" else HookResult.deny("not here")


async def test_a_child_takes_back_no_handler_of_its_parents() -> None:
    made = family()
    async with made.session as session, session.fork() as child:
        session.coordinator.hooks.register("tool:pre", deny, name="guard")
        child.coordinator.hooks.unregister("guard")

        assert (
            child.coordinator.hooks.list_handlers("tool:pre")["tool:pre"][-1] == "guard"
        )
        assert child.coordinator.hooks.has_handlers("tool:pre")


async def test_a_parents_handlers_come_first_at_one_priority() -> None:
    made = family()
    async with made.session as session, session.fork() as child:
        child.coordinator.hooks.register("x:y", deny, 5, name="child's")
        child.coordinator.hooks.register("x:y", deny, 1, name="child's first")
        session.coordinator.hooks.register("x:y", deny, 5, name="parent's")

        names = child.coordinator.hooks.list_handlers("x:y")["x:y"]
        assert [name for name in names if "recorder" not in name] == [
            "child's first",
            "parent's",
            "child's",
        ]


async def test_a_child_that_was_released_is_held_by_no_parent() -> None:
    made = family(*["x"] * 3)
    async with made.session as session:
        await session.spawn(agent_name="helper", instruction="x")
        released = weakref.ref(made.coordinators.pop().hooks)
        made.coordinators.clear()
        made.events.events.clear()
        gc.collect()
        session.coordinator.hooks.register("tool:pre", deny)

        assert released() is None


def test_a_registry_by_itself_has_handlers_that_nobody_inherits() -> None:
    hooks, below = HookRegistry(), HookRegistry()
    forget = below.inherit(hooks)
    hooks.register("a", deny, name="first")
    forget()
    hooks.register("a", deny, name="second")

    assert below.list_handlers("a") == {"a": ["first"]}


# -- capabilities


async def test_what_application_offers_its_children_are_offered_too() -> None:
    made = family("found")
    offered = object()
    made.session.coordinator.register_capability("mine", offered)
    made.session.coordinator.register_capability("alone", offered, inherited=False)
    for name in PER_SESSION - {"session.journal"}:
        made.session.coordinator.register_capability(name, offered)
    async with (
        made.session as session,
        session.fork() as child,
        child.fork() as grandchild,
    ):
        session.coordinator.register_capability("later", offered)
        for below in (child.coordinator, grandchild.coordinator):
            assert (
                below.get_capability("mine") is below.get_capability("later") is offered
            )
            assert below.get_capability("alone") is None
            assert not [
                name for name in PER_SESSION if below.get_capability(name) is offered
            ]
            assert {"mine", "later", "session.spawn"} <= set(
                below.to_dict()["capabilities"]
            )  # type: ignore[call-overload]  # a list
        child.coordinator.register_capability("mine", None)
        assert child.coordinator.get_capability("mine") is None
        assert session.coordinator.get_capability("mine") is offered


async def test_a_childs_journal_is_its_own() -> None:
    journal = MemoryJournal()
    made = family("child", "parent")
    made.session.coordinator.register_capability("session.journal", journal)
    async with made.session as session, session.fork() as child:
        await child.execute("x")
        assert journal.records == []
        await session.execute("y")

    assert {record.turn_id for record in journal.records} != set()


async def test_what_a_module_offers_its_childs_module_offers_anew() -> None:
    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        coordinator.register_capability("own", coordinator.session_id)

    made = family(hooks={"hooks-own": mount}, agents={"helper": {"hooks": []}})
    async with (
        made.session as session,
        session.fork({"hooks": None}) as without,
        session.fork() as child,
    ):
        assert session.coordinator.get_capability("own") == session.session_id
        assert child.coordinator.get_capability("own") == child.session_id
        assert without.coordinator.get_capability("own") is None


@pytest.mark.parametrize("offered", ["before", "after", "by a module too"])
async def test_a_child_hides_what_its_parents_redactor_hides(offered: str) -> None:
    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        coordinator.register_capability(REDACTOR, Hiding("m0dule"))

    made = family(hooks={"hooks-hide": mount} if offered == "by a module too" else {})
    if offered != "after":
        made.session.coordinator.register_capability(REDACTOR, Hiding("s3cret"))
    async with (
        made.session as session,
        session.fork() as child,
        child.fork() as grandchild,
    ):
        if offered == "after":
            session.coordinator.register_capability(REDACTOR, Hiding("s3cret"))
        grandchild.coordinator.register_capability(REDACTOR, Hiding("l0west"))
        for coordinator in (
            session.coordinator,
            child.coordinator,
            grandchild.coordinator,
        ):
            redactor = redactor_of(coordinator)
            assert redactor.redact_text("a s3cret") == "a ***"
            assert redactor.redact({"k": "a s3cret"}) == {"k": "a ***"}
        assert (
            redactor_of(grandchild.coordinator).redact_text("s3cret l0west")
            == "*** ***"
        )
        assert redactor_of(child.coordinator).redact_text("l0west") == "l0west"
        if offered == "by a module too":
            assert (
                redactor_of(session.coordinator).redact_text("s3cret m0dule")
                == "*** ***"
            )


async def test_a_redactor_that_is_none_withholds_in_children_too() -> None:
    made = family()
    made.session.coordinator.register_capability(REDACTOR, "no redactor")
    async with made.session as session, session.fork() as child:
        child.coordinator.register_capability(REDACTOR, Hiding("x"))

        assert (
            redactor_of(child.coordinator).redact_text("hello")
            == "(withheld: redaction failed)"
        )
