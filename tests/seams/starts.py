"""The rows: how a session starts. Each prepares the session that it resumes, if it does, and plays one turn."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, redirect_stderr
from typing import TYPE_CHECKING, ClassVar, Final, Never

import anyio
import attrs

from amplifier import Agent, AmplifierSession
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.sessions.composition import compose
from amplifier.app.sessions.opened import open_session
from amplifier.app.store.fork import fork_session
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import ProjectSessions
from amplifier.compat.original.session import AmplifierSession as OriginalSession
from amplifier.server.activity import ActivityLog
from amplifier.server.application import StoredServer
from amplifier.server.quotas import open_quotas
from amplifier.server.served_turns import TurnSetup
from amplifier.server.stores import ServerStores
from amplifier.server.token_store import TokenStore
from amplifier.server.workers import TurnWorker
from amplifier.testing.engines import InMemoryEngine
from amplifier_sdk.delegation import ChildRecord
from amplifier_sdk.engines import WorkerOptions
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import Prompt
from tests.seams.stage import (
    BEGIN,
    HAND_BEGIN,
    HAND_GO,
    HAND_GO_AGAIN,
    HAND_GO_BEHIND,
    Outcome,
    Stage,
)
from tests.server.serving import ended
from tests.serving.client import Caller, serving

if TYPE_CHECKING:
    from amplifier import AgentSession

__all__ = ["BOTH", "MOVED", "STARTS", "EmbeddedStart", "Start"]

ENDS: Final = ("turn_result", "turn_failed", "turn_cancelled")
WAITING: Final = 3
"""The exit code of a turn that waits for a person."""

BOTH: Final = ("asyncio", "trio")


class Start:
    """A way to start a session.

    Args:
        name: what it is called in the table.
        backends: the event loops on which it is tried; the commands that have a choice are tried on both.
        is_resumed: whether there was a session before, which is not named its guard again.
        is_same: whether what was spent before counts: the other sessions are new ones with an old history.
        is_child: whether another session runs the turn's prompt than the one that was started.
        by_profile: whether only the profile and the settings can say what it is made of.
        can_refuse: whether the product may refuse it, with a clear message, rather than guard it.
    """

    name: ClassVar[str]
    backends: ClassVar[tuple[str, ...]] = ("asyncio",)
    is_resumed: ClassVar[bool] = False
    is_same: ClassVar[bool] = True
    is_child: ClassVar[bool] = False
    by_profile: ClassVar[bool] = False
    can_refuse: ClassVar[bool] = False

    def play(self, stage: Stage) -> Outcome:
        """Start the session and return what came of it."""
        raise NotImplementedError

    def records(self, stage: Stage) -> Sequence[JSONObject]:
        """Return who the sessions are, and what each has spent."""
        return stage.sessions(children=self.name == "child-by-id")


class Run(Start):
    """`amplifier run`."""

    name = "run"

    def play(self, stage: Stage) -> Outcome:
        stage.resume()
        return stage.take_turn("run", *stage.composition())


class RunAskingLater(Start):
    """`amplifier run --ask-later`: what would be asked waits in the store, and is denied by whoever answers."""

    name = "run-ask-later"

    def play(self, stage: Stage) -> Outcome:
        stage.resume()
        outcome = stage.take_turn("run", "--ask-later", *stage.composition())
        text = outcome.reported
        while outcome.code == WAITING:
            # the turn is continued by another program, which opens the session anew
            (asked,) = json.loads(stage.amplifier("questions", "list", "--json").shown)
            outcome = stage.amplifier("answer", asked["question_id"], "deny")
            text += outcome.reported
        return attrs.evolve(outcome, reported=text)


class Chat(Start):
    """`amplifier chat`, at a terminal."""

    name = "chat"

    def play(self, stage: Stage) -> Outcome:
        stage.resume()
        return stage.chat("chat", *stage.composition())


class ChatAgain(Start):
    """`amplifier continue` without a prompt, at a terminal."""

    name = "continued-chat"
    is_resumed = True

    def play(self, stage: Stage) -> Outcome:
        stage.begun(BEGIN)
        stage.resume()
        return stage.chat("continue", *stage.again)


class Continue(Start):
    """`amplifier continue`."""

    name = "continue"
    is_resumed = True

    def play(self, stage: Stage) -> Outcome:
        stage.begun(BEGIN)
        stage.resume()
        return stage.take_turn("continue", *stage.again)


class Resume(Start):
    """`amplifier resume`."""

    name = "resume"
    is_resumed = True

    def play(self, stage: Stage) -> Outcome:
        session = stage.begun(BEGIN)
        stage.resume()
        return stage.take_turn("resume", *stage.again, session)


class ResumeLeft(Start):
    """`amplifier resume` with a prompt, which ends the turn that was left until a person answers."""

    name = "resume-left"

    def play(self, stage: Stage) -> Outcome:
        stage.resume()
        left = stage.take_turn("run", "--ask-later", *stage.composition())
        if left.code != WAITING:
            return left
        asked = json.loads(stage.amplifier("questions", "list", "--json").shown)
        session = asked[0]["session_id"]
        outcome = stage.take_turn("resume", *stage.again, session)
        waiting = stage.amplifier("questions", "list", "--json").shown
        assert json.loads(waiting) == [], "the prompt ends the turn that asked it"
        return attrs.evolve(outcome, reported=left.reported + outcome.reported)


class ResumeMoved(Start):
    """`amplifier resume`, of a session that was moved to another store and back."""

    name = "resume-moved"
    is_resumed = True

    def play(self, stage: Stage) -> Outcome:
        session = stage.begun(BEGIN)
        stage.move_there_and_back()
        stage.resume()
        return stage.take_turn("resume", *stage.again, session)


class MovedChild(Start):
    """A child that a model hands more work to, after the family was moved to another store and back."""

    name = "moved-child"
    is_resumed = True
    is_child = True

    def play(self, stage: Stage) -> Outcome:
        stage.begun(HAND_BEGIN)
        stage.move_there_and_back()
        stage.resume()
        return stage.amplifier("continue", *stage.again, HAND_GO_AGAIN)


class ResumeShared(Start):
    """`amplifier resume`, of a session that stands in the database and is copied for each turn."""

    name = "resume-shared"
    is_resumed = True

    def play(self, stage: Stage) -> Outcome:
        stage.share()
        session = stage.begun(BEGIN)
        stage.resume()
        return stage.take_turn("resume", *stage.again, session)


class SharedChild(Start):
    """A child that a model hands more work to, in a family that stands in the database."""

    name = "shared-child"
    is_resumed = True
    is_child = True

    def play(self, stage: Stage) -> Outcome:
        stage.share()
        stage.begun(HAND_BEGIN)
        stage.resume()
        return stage.amplifier("continue", *stage.again, HAND_GO_AGAIN)


class RunResume(Start):
    """`amplifier run --resume`."""

    name = "run-resume"
    is_resumed = True

    def play(self, stage: Stage) -> Outcome:
        session = stage.begun(BEGIN)
        stage.resume()
        return stage.take_turn("run", "--resume", session, *stage.again)


class RunContinue(Start):
    """`amplifier run --continue`."""

    name = "run-continue"
    is_resumed = True

    def play(self, stage: Stage) -> Outcome:
        stage.begun(BEGIN)
        stage.resume()
        return stage.take_turn("run", "--continue", *stage.again)


class Fork(Start):
    """`amplifier session fork`, and a turn in what it made."""

    name = "fork"
    is_resumed = True
    is_same = False

    def play(self, stage: Stage) -> Outcome:
        fork = stage.amplifier("session", "fork", stage.begun(BEGIN)).shown.strip()
        stage.resume()
        return stage.take_turn("resume", *stage.again, fork)


class Import(Start):
    """`amplifier session import`: the file names no composition; the one of this project holds, as it did before."""

    name = "import"
    is_resumed = True
    is_same = False
    by_profile = True

    def play(self, stage: Stage) -> Outcome:
        stage.activate_profile()
        file = stage.root / "exported.json"
        stage.amplifier(
            "session", "export", stage.begun(BEGIN), "-o", str(file), "--as-is"
        )
        file.write_text(
            file.read_text("utf-8").replace(BEGIN, f"{BEGIN} {stage.exported}"), "utf-8"
        )
        session = stage.amplifier("session", "import", str(file)).shown.strip()
        stage.resume()
        return stage.take_turn("resume", *stage.again, session)


class Child(Start):
    """A child that a model hands work to."""

    name = "child"
    backends: ClassVar[tuple[str, ...]] = BOTH
    is_child = True

    def play(self, stage: Stage) -> Outcome:
        stage.resume()
        return stage.amplifier(
            "run", HAND_GO, *stage.composition(), "--backend", stage.backend
        )


class BackgroundChild(Start):
    """A child that works in the background of a chat."""

    name = "background-child"
    is_child = True

    def play(self, stage: Stage) -> Outcome:
        stage.resume()
        return stage.chat("chat", *stage.composition(), prompt=HAND_GO_BEHIND)


class ResumedChild(Start):
    """A child that a model hands more work to, in a process after the one that made it."""

    name = "resumed-child"
    backends: ClassVar[tuple[str, ...]] = BOTH
    is_resumed = True
    is_child = True

    def play(self, stage: Stage) -> Outcome:
        stage.begun(HAND_BEGIN, "--backend", stage.backend)
        stage.resume()
        return stage.amplifier(
            "continue", *stage.again, HAND_GO_AGAIN, "--backend", stage.backend
        )


class ChildById(Start):
    """`amplifier resume` with the id of a child."""

    name = "child-by-id"
    is_resumed = True
    can_refuse = True

    def play(self, stage: Stage) -> Outcome:
        stage.begun(HAND_BEGIN)
        stage.resume()
        return stage.take_turn("resume", *stage.again, stage.child())


class ForkedChild(Start):
    """`amplifier session fork` with the id of a child, and a turn in what it made."""

    name = "forked-child"
    is_resumed = True
    is_same = False
    can_refuse = True

    def play(self, stage: Stage) -> Outcome:
        stage.begun(HAND_BEGIN)
        made = stage.amplifier("session", "fork", stage.child())
        if made.code:
            return made
        stage.resume()
        return stage.take_turn("resume", *stage.again, made.shown.strip())


class Acp(Start):
    """A session that an editor begins over the Agent Client Protocol."""

    name = "acp"
    backends: ClassVar[tuple[str, ...]] = BOTH

    def play(self, stage: Stage) -> Outcome:
        stage.resume()
        return stage.edit(*stage.composition())


class AcpLoad(Start):
    """A session that an editor loads over the Agent Client Protocol."""

    name = "acp-load"
    backends: ClassVar[tuple[str, ...]] = BOTH
    is_resumed = True

    def play(self, stage: Stage) -> Outcome:
        session = stage.begun(BEGIN)
        stage.resume()
        return stage.edit(*stage.again, session=session)


class AcpLeft(Start):
    """A turn that `amplifier run --ask-later` left, whose session an editor loads: it asks, and continues the turn."""

    name = "acp-left"
    backends: ClassVar[tuple[str, ...]] = BOTH

    def play(self, stage: Stage) -> Outcome:
        stage.resume()
        outcome = stage.take_turn("run", "--ask-later", *stage.composition())
        if outcome.code != WAITING:
            return outcome
        asked = json.loads(stage.amplifier("questions", "list", "--json").shown)
        session = asked[0]["session_id"]
        ended = stage.edit(*stage.again, session=session, is_left=True)
        return attrs.evolve(ended, reported=outcome.reported + ended.reported)


class McpAgent(Start):
    """A child that an MCP client begins, by `amplifier mcp serve`."""

    name = "mcp-agent"
    backends: ClassVar[tuple[str, ...]] = BOTH
    is_child = True

    def play(self, stage: Stage) -> Outcome:
        stage.resume()
        return stage.call_agent(*stage.composition())


class ToolInvoke(Start):
    """`amplifier tool invoke`: the call, without a model."""

    name = "tool-invoke"

    def play(self, stage: Stage) -> Outcome:
        stage.resume()
        call = stage.calls[0]
        arguments = [f"{key}={value}" for key, value in call.arguments.items()]
        return stage.amplifier(
            "tool", "invoke", call.tool, *arguments, *stage.composition()
        )


class EmbeddedStart(Start):
    """A session that a program opens."""

    backends: ClassVar[tuple[str, ...]] = BOTH

    def play(self, stage: Stage) -> Outcome:
        reported, code, shown = io.StringIO(), 0, ""
        with redirect_stderr(reported):
            try:
                shown = anyio.run(self.embed, stage, backend=stage.backend)
            except Exception as error:  # whatever ended the start is what came of it
                code = 1
                reported.write(f"{type(error).__name__}: {error}\n")
        return stage.outcome(code, shown, reported.getvalue())

    async def embed(self, stage: Stage) -> str:
        """Start the session and return its answer."""
        raise NotImplementedError


@asynccontextmanager
async def _opened(
    stage: Stage,
    shelf: Shelf | None = None,
    kind: type[AmplifierSession] = AmplifierSession,
) -> AsyncIterator[AmplifierSession]:
    """Open a session of the plan as a program does, with the capabilities that modules need."""
    session = kind(stage.plan, session_id=stage.session_id)
    session.coordinator.register_capability("session.working_dir", str(stage.project))
    session.coordinator.register_capability("session.dir", str(stage.home / "embedded"))
    if shelf is not None:
        session.coordinator.register_capability("session.children", shelf)
    stage.equip(session)
    async with session:
        yield session


class EmbeddedPlan(EmbeddedStart):
    """A session of a plan."""

    name = "embedded-plan"

    async def embed(self, stage: Stage) -> str:
        stage.resume()
        async with _opened(stage) as session:
            return await session.execute(stage.given)


class EmbeddedOriginal(EmbeddedStart):
    """A session of a plan, opened by an application of the original."""

    name = "embedded-original"
    backends: ClassVar[tuple[str, ...]] = ("asyncio",)

    async def embed(self, stage: Stage) -> str:
        stage.resume()
        async with _opened(stage, kind=OriginalSession) as session:
            return await session.execute(stage.given)


class EmbeddedAgent(EmbeddedStart):
    """A session of an agent, whose plan is laid over the agent's own."""

    name = "embedded-agent"

    async def embed(self, stage: Stage) -> str:
        stage.resume()
        session = Agent("ay", plan=stage.plan).session(session_id=stage.session_id)
        coordinator = session.session.coordinator
        coordinator.register_capability("session.working_dir", str(stage.project))
        coordinator.register_capability("session.dir", str(stage.home / "embedded"))
        stage.equip(session.session)
        async with session:
            return (await session.run(stage.given)).output


class ServedAgent(EmbeddedStart):
    """A session of an agent, begun and asked over HTTP."""

    name = "served-agent"

    async def embed(self, stage: Stage) -> str:
        stage.resume()

        def prepare(session: AgentSession[Never, object], _token: str) -> None:
            coordinator = session.session.coordinator
            coordinator.register_capability("session.working_dir", str(stage.project))
            coordinator.register_capability("session.dir", str(stage.home / "embedded"))
            stage.session_id = session.session.session_id
            stage.equip(session.session)

        async with serving(Agent("ay", plan=stage.plan), prepare=prepare) as caller:
            events = await caller.events(
                await caller.turn(await caller.begin(), stage.given_json)
            )
        end = events[-1].data
        if end["type"] != "turn_result":
            raise RuntimeError(str(end))
        return str(end["output"])


class ServedSession(EmbeddedStart):
    """A stored session that a worker resumes for a server; both were started with a profile that guards less."""

    name = "served-session"
    by_profile = True
    is_resumed = True
    can_refuse = True

    async def embed(self, stage: Stage) -> str:
        stores = ServerStores("files", stage.dirs())
        secret = await TokenStore(await stores.server()).add("olga", "default", "owner")
        await stores.aclose()
        async with self.serving(stage, secret) as caller:
            session = await caller.begin()
            await self.turn(caller, session, BEGIN)
        stage.resume()
        stage.weaken()
        async with self.queueing(stage, secret) as caller:
            end = await self.turn(caller, session, stage.given_json)
        if end["type"] != "turn_result":
            raise RuntimeError(str(end))
        return str(end["output"])

    def records(self, stage: Stage) -> Sequence[JSONObject]:
        return anyio.run(self.stored_records, stage)

    async def stored_records(self, stage: Stage) -> Sequence[JSONObject]:
        """Return what the server's store has."""
        stores = ServerStores("files", stage.dirs())
        tenant = await stores.tenant("default")
        found = await tenant.store.list_sessions(limit=10)
        await stores.aclose()
        return found

    @asynccontextmanager
    async def serving(self, stage: Stage, secret: str) -> AsyncIterator[Caller]:
        """Run a server with the profile."""
        options = PlanOptions(profile=stage.profile, provider="ay")
        server = StoredServer(ServerStores("files", stage.dirs()), options)
        async with server.lifespan():
            yield Caller(server, secret)

    @asynccontextmanager
    async def queueing(self, stage: Stage, secret: str) -> AsyncIterator[Caller]:
        """Run a server with the profile that runs no turn, and a worker that does."""
        options, engine = (
            PlanOptions(profile=stage.profile, provider="ay"),
            InMemoryEngine(),
        )
        stores = ServerStores("files", stage.dirs())
        activity = ActivityLog(await stores.server())
        setup = TurnSetup(options, activity, quotas=await open_quotas(stores))
        folder = stage.dirs().home / "working"
        # nobody else may have what it lacks
        alone = WorkerOptions(name="w", drain=0)
        worker = TurnWorker(stores, setup, alone, folder, max_left=0)
        server = StoredServer(
            ServerStores("files", stage.dirs()), options, queue=engine
        )
        async with server.lifespan(), anyio.create_task_group() as group:
            group.start_soon(worker.work, engine)
            yield Caller(server, secret)
            group.cancel_scope.cancel()
        await stores.aclose()

    async def deny(
        self, caller: Caller, session: str, asked: Mapping[str, object]
    ) -> None:
        """Answer a question as nobody does elsewhere; one that was answered is as it is."""
        path = f"/sessions/{session}/approvals/{asked['approval_id']}"
        await caller.post(path, {"option": "Deny"})

    async def turn(
        self, caller: Caller, session: str, prompt: JSONValue
    ) -> Mapping[str, object]:
        """Take a turn and return its last event."""
        path = f"/sessions/{session}"
        begun = await caller.post(f"{path}/turns", {"prompt": prompt})
        if begun.status != 202:
            raise RuntimeError(begun.body.decode())
        turn, is_own = begun.json["turn_id"], False
        async with caller.stream("GET", f"{path}/events") as events:
            async for event in events:
                is_own |= event.data.get("turn_id") == turn
                if event.type == "approval_requested":
                    await self.deny(caller, session, event.data)
                if is_own and event.type in ENDS:
                    break
        await ended(caller, session, turn)
        return event.data


class EmbeddedProfile(EmbeddedStart):
    """A session of a profile, with the person's settings, kept in the store."""

    name = "embedded-profile"
    by_profile = True

    async def embed(self, stage: Stage) -> str:
        stage.resume()
        return await _turn(stage, stage.given)


class EmbeddedStored(EmbeddedStart):
    """A stored session that a program opens again, with a profile that guards less."""

    name = "embedded-stored"
    by_profile = True
    is_resumed = True
    can_refuse = True

    async def embed(self, stage: Stage) -> str:
        store = ProjectSessions.of(stage.dirs())
        await _turn(stage, BEGIN)
        record = await self.stored(store)
        stage.resume()
        stage.weaken()
        return await _turn(stage, stage.given, record)

    async def stored(self, store: ProjectSessions) -> SessionRecord:
        """Return the record of the session to open."""
        (session,) = store.all()
        return session.record


class EmbeddedStoredFork(EmbeddedStored):
    """The same of a session that was forked from the stored one."""

    name = "embedded-stored-fork"
    is_same = False

    async def stored(self, store: ProjectSessions) -> SessionRecord:
        (session,) = store.all()
        return (await fork_session(store, session)).record


async def _turn(
    stage: Stage, prompt: Prompt, record: SessionRecord | None = None
) -> str:
    """Take a turn in a session of the profile, with the person's settings, kept in the store."""
    dirs = stage.dirs()
    composition = compose(PlanOptions(profile=stage.profile, provider="ay"), dirs)
    opening = open_session(composition, record=record, store=ProjectSessions.of(dirs))
    async with opening as opened:
        stage.equip(opened.session)
        async with opened.stream(prompt) as events:
            async for _ in events:
                pass
        end = opened.session.last_turn
        return end.text if end is not None else ""


class EmbeddedChild(EmbeddedStart):
    """A child that a program spawns."""

    name = "embedded-child"
    is_child = True

    async def embed(self, stage: Stage) -> str:
        stage.resume()
        async with _opened(stage) as session:
            return (
                await session.spawn(agent_name="self", instruction=stage.prompt)
            ).output


class EmbeddedFork(EmbeddedStart):
    """A child that a program makes and runs itself."""

    name = "embedded-fork"
    is_child = True

    async def embed(self, stage: Stage) -> str:
        stage.resume()
        async with _opened(stage) as session, session.fork() as child:
            return await child.execute(stage.given)


class EmbeddedResumedChild(EmbeddedStart):
    """A child that a program resumes, in a session that was opened after the one that made it."""

    name = "embedded-resumed-child"
    is_resumed = True
    is_child = True

    async def embed(self, stage: Stage) -> str:
        shelf = Shelf()
        async with _opened(stage, shelf) as session:
            child = await session.spawn(agent_name="self", instruction=BEGIN)
        stage.resume()
        async with _opened(stage, shelf) as session:
            return (
                await session.resume(
                    sub_session_id=child.session_id, instruction=stage.prompt
                )
            ).output


@attrs.define(eq=False)
class Shelf:
    """The children that a program keeps."""

    records: dict[str, ChildRecord] = attrs.field(factory=dict)

    async def save(self, record: ChildRecord) -> None:
        """Keep a child."""
        self.records[record.session_id] = record

    async def load(self, session_id: str) -> ChildRecord | None:
        """Return a child."""
        return self.records.get(session_id)


STARTS: Final[tuple[Start, ...]] = (
    Run(),
    RunAskingLater(),
    Chat(),
    ChatAgain(),
    Continue(),
    Resume(),
    ResumeLeft(),
    RunResume(),
    RunContinue(),
    Fork(),
    Import(),
    Child(),
    ResumedChild(),
    BackgroundChild(),
    ChildById(),
    ForkedChild(),
    Acp(),
    AcpLoad(),
    AcpLeft(),
    McpAgent(),
    ToolInvoke(),
    EmbeddedPlan(),
    EmbeddedOriginal(),
    EmbeddedAgent(),
    ServedAgent(),
    ServedSession(),
    EmbeddedProfile(),
    EmbeddedStored(),
    EmbeddedStoredFork(),
    EmbeddedChild(),
    EmbeddedFork(),
    EmbeddedResumedChild(),
)

MOVED: Final[tuple[Start, ...]] = (
    ResumeMoved(),
    MovedChild(),
    ResumeShared(),
    SharedChild(),
)
"""The rows of sessions that were in a database."""
