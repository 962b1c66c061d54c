"""A session whose turn was left until a person answers: opening it changes nothing, and a prompt ends the turn."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import attrs
import pytest
from anyio import to_thread

from amplifier.app.commands.builtin import make_registry
from amplifier.app.commands.talk import Talk
from amplifier.app.directories import AppDirs
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.sessions.later_turns import LATER, LaterTurn
from amplifier.app.sessions.opened import OpenSession, open_session
from amplifier.app.sessions.selection import (
    SelectedSession,
    SessionSelector,
    opening_notices,
    select_session,
)
from amplifier.app.store.choice import StoreChoice
from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.leases import LEASE
from amplifier.app.store.repair import repair
from amplifier.app.store.store import ProjectSessions
from amplifier.testing.postgres import PASSWORD, find_programs, running_server
from amplifier_kit.commands import CommandError
from amplifier_sdk.errors import MediaError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import image_block
from amplifier_sdk.stores import SessionStore, StoredQuestion
from amplifier_sdk.streaming import TurnFinished
from tests.cli.programs import call, write_plan

URL: Final = "shared://db/sessions"
LEFT: Final = 3
"""The exit code of a turn that waits for a person."""
SPEAK: Final[JSONObject] = {"tool_calls": [{"name": "speak", "arguments": {}}]}


@attrs.frozen(eq=False)
class Left:
    """A session whose turn was left by `amplifier run --ask-later`, in a store."""

    url: str
    session: str

    async def select(self) -> SelectedSession:
        choice = StoreChoice(store=self.url)
        selector = SessionSelector(resume=self.session, choice=choice)
        return await to_thread.run_sync(
            select_session, PlanOptions(), selector, AppDirs.find()
        )

    async def open(self) -> AbstractAsyncContextManager[OpenSession]:
        chosen = await self.select()
        return open_session(
            chosen.composition, record=chosen.record, store=chosen.store
        )

    async def questions(self) -> tuple[StoredQuestion, ...]:
        store = await self.store()
        try:
            return tuple(
                each for each in await store.questions() if "key" in each.details
            )
        finally:
            await store.aclose()

    async def store(self) -> SessionStore:
        return await StoreChoice(store=self.url).opened(AppDirs.find())

    async def answer(self, option: str = "Deny") -> None:
        """Answer as `amplifier answer --no-run` does."""
        (question,) = await self.questions()
        store = await self.store()
        await store.answer(question.question_id, option, by="Ann")
        await store.aclose()

    async def continued(self) -> str:
        """Continue the turn as `amplifier answer` does, and return what the model said last."""
        chosen, store = await self.select(), await self.store()
        for question in await store.questions():
            if "key" in question.details and question.answer is None:
                await store.answer(question.question_id, "Deny", by="Ann")
        later = await LaterTurn.of_session(store, chosen.record.session_id)
        await store.aclose()
        assert later is not None
        opening = open_session(
            chosen.composition,
            record=chosen.record,
            store=chosen.store,
            turn_id=later.turn_id,
            asks=later.asks(lambda _: None),
        )
        async with opening as opened:
            assert not later.is_over(opened)
            async with later.under_way(opened):
                return await take_turn(opened, "go")


@pytest.fixture(params=["files", "copies"])
def left(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Left:
    """Such a session, in the files of the project, and in a store that is copied."""
    monkeypatch.setattr("amplifier.app.store.choice.open_named_store", shared)
    return leave("files" if request.param == "files" else URL, tmp_path, monkeypatch)


def leave(
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *modules: str,
    said: Sequence[JSONValue] = (SPEAK, "The end.", "More."),
    more: Mapping[str, JSONValue] | None = None,
) -> Left:
    """Begin a session in a store whose turn is left."""
    (tmp_path / "shop/.git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "home"))
    file = write_plan(tmp_path, said, *(modules or ("tool-trials", "hooks-asks")))
    plan = json.loads(file.read_text())
    plan["providers"][0]["config"]["by_history"] = True
    plan.update(more or {})
    file.write_text(json.dumps(plan))
    command = ("run", "--plan", str(file), "--ask-later", "--store", url, "go")
    call(*command, expect=LEFT)
    (asked,) = json.loads(call("questions", "list", "--store", url, "--json").stdout)
    return Left(url, asked["session_id"])


async def shared(name: str, dirs: AppDirs, *, namespace: str) -> SessionStore:
    root = dirs.working_dir.parent / "shared"
    if name == "files":
        return FileSessionStore(ProjectSessions.of(dirs))
    assert name == URL
    return FileSessionStore(ProjectSessions(root / namespace))


async def take_turn(opened: OpenSession, prompt: str = "And now?") -> str:
    async with opened.stream(prompt) as events:
        async for event in events:
            if isinstance(event, TurnFinished):
                return event.text
    raise AssertionError


async def test_opening_a_session_leaves_the_turn_that_waits(left: Left) -> None:
    async with await left.open() as opened:
        notices = [*opening_notices(opened)]
        said = await Talk.of(opened).said()
    async with await left.open():
        pass
    (question,) = await left.questions()

    command = f"'amplifier answer {question.question_id[:12]} allow' or 'deny'"
    assert any(command in line and "a prompt" in line for line in notices)
    assert said[0].get("content") == "go"
    assert (question.answer, question.is_void) == (None, False)
    assert await left.continued() == "The end."


async def test_an_answered_turn_waits_to_be_continued(left: Left) -> None:
    await left.answer()
    async with await left.open() as opened:
        notices = [*opening_notices(opened)]
    (question,) = await left.questions()

    text = "\n".join(notices)
    assert "was answered and not continued" in text
    assert question.question_id[:12] in text
    assert question.answer == "Deny"
    assert await left.continued() == "The end."


async def test_a_prompt_ends_the_turn_that_waits(left: Left) -> None:
    async with await left.open() as opened:
        await take_turn(opened)
        assert not opened.left
        (while_open,) = await left.questions()
        await take_turn(opened, "Once more?")
    (question,) = await left.questions()
    async with await left.open() as again:
        talk = Talk.of(again)
        said = [each.get("content") for each in await talk.said()]

    assert while_open.is_void
    assert question.is_void
    assert again.interrupted is None
    assert said.count("go") == said.count("And now?") == said.count("Once more?") == 1
    assert len(talk.starts) == 3


@pytest.mark.parametrize("left", ["files"], indirect=True)
async def test_a_repair_withdraws_what_the_turn_asked(left: Left) -> None:
    await repair(ProjectSessions.of(AppDirs.find()), left.session)

    (question,) = await left.questions()
    assert question.is_void


async def test_slash_commands_leave_the_turn_that_waits(left: Left) -> None:
    async with await left.open() as opened:
        talk = Talk.of(opened)
        registry, _ = await make_registry(talk)
        for name in ("status", "fork", "export"):
            await registry.find(name).make("")
        for name in ("clear", "undo", "rewind"):
            with pytest.raises(CommandError, match="waits"):
                await registry.find(name).make("1")
    (question,) = await left.questions()

    assert not question.is_void
    assert await left.continued() == "The end."


async def test_what_cannot_be_read_of_the_turn_refuses_no_session(left: Left) -> None:
    async with await left.open() as opened:
        assert opened.writer is not None
        (opened.writer.folder / LATER).write_text("{")
    async with await left.open() as again:
        await take_turn(again)
        assert not again.left


async def test_a_prompt_that_is_refused_ends_nothing(left: Left) -> None:
    broken = [image_block("image/png", "!")]
    async with await left.open() as opened:
        with pytest.raises(MediaError):
            async with opened.stream(broken) as events:
                async for _ in events:
                    pass
    (question,) = await left.questions()

    assert not question.is_void
    assert await left.continued() == "The end."


async def test_a_later_turn_that_is_refused_ends_nothing(left: Left) -> None:
    chosen = await left.select()
    later = LaterTurn.of("Look", "Look")
    opening = open_session(
        chosen.composition,
        record=chosen.record,
        store=chosen.store,
        turn_id=later.turn_id,
        asks=later.asks(lambda _: None),
    )
    async with opening as opened:
        with pytest.raises(RuntimeError, match="refused"):
            async with later.under_way(opened):
                raise RuntimeError("refused")
    (question,) = await left.questions()

    assert not question.is_void
    assert await left.continued() == "The end."


@pytest.mark.parametrize("left", ["files", "copies"], indirect=True)
@pytest.mark.parametrize("step", ["void", "transcript", "record", "journal"])
async def test_a_kill_as_the_turn_is_ended_loses_nothing(
    left: Left, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill = Kill(tmp_path)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        async with await left.open() as opened:
            patched.setattr(*kill.at(step))
            await take_turn(opened)
    kill.restore()
    async with await left.open() as again:
        waits = bool(again.left)
        await take_turn(again, "Once more?")
        said = [each.get("content") for each in await Talk.of(again).said()]
    (question,) = await left.questions()

    # a copy goes with its process, and the store has the turn as it was
    assert waits == (step == "void" or left.url == URL)
    assert said.count("go") == said.count("Once more?") == 1
    assert question.is_void


@attrs.frozen(eq=False)
class Kill:
    """Ends the program in a step of ending the turn that was left; what it writes from then on is taken back.

    Args:
        root: the folder of all files.
    """

    root: Path

    def at(self, step: str) -> tuple[str, Callable[[object], None]]:
        names = {
            "void": "store.writer.void_questions",
            "transcript": "store.writer.Transcript.store",
            "record": "store.writer.write_record",
            "journal": "store.journal.FileJournal.begin_anew",
        }
        return f"amplifier.app.{names[step]}", self.die

    def die(self, *_: object) -> None:
        if not self._copy.exists():
            shutil.copytree(self.root, self._copy)
        raise KeyboardInterrupt

    def restore(self) -> None:
        for name in ("home", "shared"):
            shutil.rmtree(self.root / name, ignore_errors=True)
            if (self._copy / name).exists():
                shutil.copytree(self._copy / name, self.root / name)
        for lease in self.root.rglob(LEASE):
            lease.unlink()  # it has ended by now

    @property
    def _copy(self) -> Path:
        return self.root.with_name(f"{self.root.name}-killed")


async def test_a_turn_that_another_process_leaves_as_it_is_opened_stays(
    left: Left,
) -> None:
    """What selected the session may have seen it before anything waited."""
    chosen = await left.select()
    value: list[str] = []
    for _ in range(2):
        opening = open_session(
            chosen.composition, record=chosen.record, store=chosen.store
        )
        async with opening as opened:
            value = [each.question_id for each in opened.left]
    (question,) = await left.questions()

    assert value == [question.question_id]
    assert not question.is_void


@pytest.fixture
def agent_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Left:
    """A session whose agent asks; each answer of a model costs ten tokens."""
    task: JSONObject = {
        "name": "task",
        "arguments": {"agent": "scout", "instruction": "Look."},
    }
    end: JSONValue = {"text": "The end.", "usage": [5, 5]}
    said: list[JSONValue] = [{"tool_calls": [task], "usage": [5, 5]}, end, end]
    seen: list[JSONValue] = [{**SPEAK, "usage": [5, 5]}, end]
    scout: JSONValue = {
        "module": "provider-scripted",
        "config": {"responses": seen, "by_history": True},
    }
    more: JSONObject = {"agents": {"scout": {"providers": [scout]}}}
    modules = ("tool-trials", "tool-task", "hooks-asks")
    left = leave("files", tmp_path, monkeypatch, *modules, said=said, more=more)
    (asked,) = json.loads(call("questions", "list", "--json").stdout)
    call("answer", asked["question_id"], "allow", expect=LEFT)  # the agent asks now
    return left


@pytest.mark.parametrize("is_opened", [False, True])
async def test_an_agent_that_asked_is_charged_once(
    agent_left: Left, *, is_opened: bool
) -> None:
    """A turn that continues is not charged what its agent spent; the agent continues as well."""
    if is_opened:
        async with await agent_left.open() as opened:
            assert opened.left
    answer = await agent_left.continued()
    spent = (await agent_left.select()).record.account

    assert answer == "The end."
    assert (spent["provider_calls"], spent["children"]) == (4, 1)
    assert spent["total_tokens"] == 40


async def test_an_agent_counts_for_a_turn_that_a_prompt_ends(agent_left: Left) -> None:
    async with await agent_left.open() as opened:
        await take_turn(opened)
    spent = (await agent_left.select()).record.account

    assert (spent["provider_calls"], spent["children"]) == (3, 1)
    assert spent["total_tokens"] == 30


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    programs = find_programs()
    if programs is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    with running_server(programs) as server:
        yield server.url()


@pytest.fixture
def in_database(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Left:
    """Such a session in a database; of each test its own sessions."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "home"))
    call("config", "set", "sessions.namespace", tmp_path.name)
    return leave(database, tmp_path, monkeypatch)


@pytest.mark.process
@pytest.mark.timeout(60)
async def test_a_session_in_a_database_is_left_as_it_is(in_database: Left) -> None:
    async with await in_database.open() as opened:
        assert len(opened.left) == 1
    (question,) = await in_database.questions()

    assert not question.is_void
    assert await in_database.continued() == "The end."


@pytest.mark.process
@pytest.mark.timeout(60)
async def test_a_prompt_in_a_database_ends_the_turn(in_database: Left) -> None:
    async with await in_database.open() as opened:
        await take_turn(opened)
        (question,) = await in_database.questions()
    async with await in_database.open() as again:
        assert not again.left

    assert question.is_void
