"""Agents in the background: the call returns at once, and the model reads later what came of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import attrs
import pytest

from amplifier.testing import answer, call
from amplifier_kit.scripted import Step
from amplifier_sdk.capabilities import BACKGROUND
from amplifier_sdk.delegation import BackgroundTask, ChildRecord
from amplifier_sdk.journal import Journal
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import ToolResult

Team: TypeAlias = Any  # type: ignore[explicit-any]  # the class is conftest.py's
Build: TypeAlias = Callable[..., Team]  # type: ignore[explicit-any]  # its options go by name
Open: TypeAlias = Callable[..., Any]  # type: ignore[explicit-any]  # likewise

BLOCK = answer(call("block"))


def begin(**more: JSONValue) -> Step:
    """A call that begins an agent in the background."""
    arguments: JSONObject = {
        "agent": "finder",
        "instruction": "Go.",
        "background": True,
    }
    return answer(call("task", {**arguments, **more}))


@attrs.define(eq=False)
class Blocking:
    """A tool that says when it runs, and then waits until it is released."""

    name: str = "block"
    description: str = "Waits."
    started: anyio.Event = attrs.field(factory=anyio.Event)
    release: anyio.Event = attrs.field(factory=anyio.Event)

    async def execute(self, input: JSONObject, /) -> ToolResult:
        self.started.set()
        await self.release.wait()
        return ToolResult(output="released")


@attrs.define(eq=False)
class Stage:
    """A session that is held open between its turns, and the tool in which its agents wait."""

    team: Team
    blocking: Blocking
    tasks: list[BackgroundTask] = attrs.field(factory=list)

    async def turn(self, prompt: str = "Go.") -> str:
        text: str = await self.team.session.execute(prompt)
        return text

    async def ended(self) -> None:
        """Let the agents come to their ends."""
        self.blocking.release.set()
        for task in self.tasks:
            await task.wait()

    @property
    def child(self) -> str:
        """The session of the one agent."""
        (child,) = self.team.session.family.open_children
        return str(child.session_id)

    def read(self, number: int = -1) -> str:
        """All that the session's model was sent in a request, but for tools."""
        return "\n".join(text for _, text in self.team.said("", number))


@pytest.fixture
def opened(team: Build, tmp_path: Path) -> Open:
    """Open a session whose agents may work in the background."""

    @asynccontextmanager
    async def opened(
        own: Sequence[Step],
        finder: Sequence[Step] = (),
        *,
        session_id: str | None = None,
        children: object = None,
        **options: object,
    ) -> AsyncIterator[Stage]:
        blocking = Blocking()
        made = team(
            {"": own, "finder": finder},
            tools={"tool-block": lambda: blocking},
            session_id=session_id,
            is_resumed=children is not None,
            **options,
        )
        with anyio.fail_after(10):
            coordinator = made.coordinator
            coordinator.register_capability("session.dir", str(tmp_path))
            if children is not None:
                coordinator.register_capability("session.children", children)
            async with made.session as session:
                stage = Stage(made, blocking)

                def background(
                    function: Callable[[], Awaitable[object]], /, *, name: str
                ) -> BackgroundTask:
                    stage.tasks.append(session.background(function, name=name))
                    return stage.tasks[-1]

                coordinator.register_capability(BACKGROUND, background)
                yield stage

    return opened


def stored(tmp_path: Path) -> dict[str, Any]:  # type: ignore[explicit-any]  # JSON
    """The agents that the model has not read of, as they are stored."""
    (path,) = tmp_path.glob("sessions/*/background.json")
    agents: dict[str, Any] = json.loads(path.read_text())["agents"]  # type: ignore[explicit-any]  # JSON
    return agents


async def test_the_call_returns_at_once_and_names_the_session(
    opened: Open,
) -> None:
    async with opened([begin(), "I go on."], [BLOCK, "Found."]) as stage:
        assert await stage.turn() == "I go on."
        await stage.blocking.started.wait()

        assert "works in the background" in stage.read()
        assert f"[session_id: {stage.child}]" in stage.read()


async def test_the_model_reads_of_it_in_the_next_turn(
    opened: Open, tmp_path: Path
) -> None:
    async with opened([begin(), "Begun.", "Thanks."], [BLOCK, "Found."]) as stage:
        await stage.turn()
        await stage.blocking.started.wait()
        child = stage.child
        await stage.ended()
        assert stored(tmp_path)[child]["text"] is not None
        await stage.turn("And?")

        assert (
            "The agent 'finder' that worked in the background has ended" in stage.read()
        )
        assert "Found." in stage.read()
        assert '<untrusted-content id="' in stage.read()
        assert f"[session_id: {child}]" in stage.read()
        assert stored(tmp_path) == {}


async def test_the_model_reads_of_it_once_and_keeps_it_in_its_history(
    opened: Open,
) -> None:
    async with opened([begin(), "Begun.", "Thanks.", "Well."], ["Found."]) as stage:
        await stage.turn()
        await stage.ended()
        await stage.turn("And?")
        await stage.turn("And now?")

        assert stage.read().count("has ended.]") == 1


async def test_the_model_reads_of_it_in_the_middle_of_a_turn(
    opened: Open,
) -> None:
    async with opened([begin(), BLOCK, "Thanks."], ["Found."]) as stage:
        async with anyio.create_task_group() as group:
            group.start_soon(stage.turn)
            await stage.blocking.started.wait()
            await stage.tasks[0].wait()
            stage.blocking.release.set()

        assert "Found." in stage.read()


async def test_the_person_is_informed_when_it_ends(opened: Open) -> None:
    async with opened([begin(), "Begun."], [BLOCK, "Found."]) as stage:
        await stage.turn()
        assert not stage.team.events.data("user:notification")
        await stage.ended()

    (reported,) = stage.team.events.data("user:notification")
    assert reported["message"] == (
        "The agent 'finder' has ended. The model reads of it in the next turn."
    )


async def test_the_model_can_wait_for_it(opened: Open) -> None:
    async with opened([begin(), "Begun.", "Well."], [BLOCK, "Found."]) as stage:
        await stage.turn()
        await stage.blocking.started.wait()
        child = stage.child
        stage.blocking.release.set()
        result = await stage.team.call(action="wait", session_id=child)
        await stage.turn("And?")

        assert "Found." in result.output["response"]
        assert "has ended.]" not in stage.read()


async def test_the_model_can_stop_it(opened: Open) -> None:
    async with opened([begin(), "Begun."], [BLOCK]) as stage:
        await stage.turn()
        await stage.blocking.started.wait()
        child = stage.child
        result = await stage.team.call(action="stop", session_id=child)

        assert result.error["type"] == "cancelled"
        assert result.error["session_id"] == child
        assert stage.team.session.family.open_children == ()


async def test_one_that_is_stopped_can_be_resumed_in_the_background(
    opened: Open,
) -> None:
    async with opened([begin(), "Begun.", "Well."], [BLOCK, "At last."]) as stage:
        await stage.turn()
        await stage.blocking.started.wait()
        child = stage.child
        await stage.team.call(action="stop", session_id=child)
        await stage.team.call(session_id=child, instruction="Go on.", background=True)
        await stage.ended()
        await stage.turn("And?")

        assert "At last." in stage.read()


@pytest.mark.parametrize("action", ["wait", "stop"])
async def test_an_agent_that_is_not_there_is_an_error(
    opened: Open, action: str
) -> None:
    async with opened([]) as stage:
        unnamed = await stage.team.call(action=action)
        unknown = await stage.team.call(action=action, session_id="nobody")

    assert f"Name the session_id of the agent to {action}" in str(unnamed.error)
    assert "No agent with the session 'nobody'" in str(unknown.error)


async def test_no_more_begin_than_may(opened: Open) -> None:
    async with opened(
        [begin(), "Begun."], [BLOCK], config={"max_background": 1}
    ) as stage:
        await stage.turn()
        await stage.blocking.started.wait()
        result = await stage.team.call(
            agent="finder", instruction="Go.", background=True
        )

        assert "1 agents work in the background already" in str(result.error)
        assert stage.child in str(result.error)


@pytest.mark.parametrize("config", [{}, {"max_background": 0}])
async def test_it_is_offered_only_where_the_session_has_a_background(
    team: Build, opened: Open, config: JSONObject
) -> None:
    alone = team({"": []})
    await alone.session.initialize()
    assert "background" not in str(alone.coordinator.tools["task"].input_schema)
    result = await alone.call(agent="finder", instruction="Go.", background=True)
    assert not result.success
    await alone.session.cleanup()

    async with opened([], config=config) as stage:
        schema = stage.team.coordinator.tools["task"].input_schema
        assert ("background" in schema["properties"]) == (not config)


async def test_an_agent_that_ends_with_the_session_is_reported_after_a_resume(
    opened: Open,
) -> None:
    async with opened([begin(), "Begun."], [BLOCK], session_id="s") as stage:
        await stage.turn()
        await stage.blocking.started.wait()
    async with opened(["Well."], session_id="s", children=Records()) as stage:
        await stage.turn("And?")

        assert "The agent 'finder' was stopped before it had finished" in stage.read()


@attrs.define(eq=False)
class Records:
    """Children that are stored: of one session, whose turn was left in the middle or came to its end."""

    record: ChildRecord | None = None
    is_unfinished: bool = False

    def open(self, record: ChildRecord, /) -> AbstractAsyncContextManager[Journal]:
        raise AssertionError

    async def save(self, record: ChildRecord, /) -> None:
        raise AssertionError

    async def load(self, session_id: str, /) -> ChildRecord | None:
        return self.record

    async def unfinished(self, session_id: str, /) -> object:
        return (self.record, None) if self.is_unfinished else None


@pytest.mark.parametrize(
    ("parent", "is_unfinished", "expected"),
    [
        ("s", True, "was interrupted: the program ended while it worked"),
        ("s", False, "It is under the bed."),
        ("another", False, "was interrupted: the program ended while it worked"),
    ],
)
async def test_the_end_of_the_process_is_reported_after_a_resume(
    opened: Open,
    tmp_path: Path,
    parent: str,
    is_unfinished: bool,
    expected: str,
) -> None:
    folder = tmp_path / "sessions/s"
    folder.mkdir(parents=True, mode=0o700)
    agents = {"s-1_finder": {"name": "finder", "text": None}}
    (folder / "background.json").write_text(json.dumps({"agents": agents}))
    (folder / "background.json").chmod(0o600)
    record = ChildRecord(
        session_id="s-1_finder",
        parent_id=parent,
        agent_name="finder",
        plan={},
        messages=[{"role": "assistant", "content": "It is under the bed."}],
    )
    async with opened(
        ["Well."], session_id="s", children=Records(record, is_unfinished)
    ) as stage:
        await stage.turn("And?")

        assert expected in stage.read()
        assert ("It is under the bed." in stage.read()) == (expected[:2] == "It")
        assert stored(tmp_path) == {}


async def test_a_damaged_file_is_reported_and_ends_nothing(
    opened: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "sessions/s"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "background.json").write_text("{")
    (folder / "background.json").chmod(0o600)
    async with opened(["Well."], session_id="s", children=Records()) as stage:
        assert await stage.turn() == "Well."

    assert "The agents of the background are not known" in caplog.text
