"""Opening a session with what the application gives to its modules, and taking turns in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from typing import TYPE_CHECKING, TypeAlias

import anyio
import attrs
from anyio import to_thread

from amplifier.app.directories import AppDirs
from amplifier.app.instructions.files import Instructions
from amplifier.app.mentions.session import SessionMentions
from amplifier.app.plans.base_plans import provider_and_model, set_loop
from amplifier.app.plans.tool_rules import require_named_tools
from amplifier.app.projects.trusted_file_guard import TrustedFiles
from amplifier.app.sessions.composition import Composition, new_record
from amplifier.app.sessions.guards import require_guards, require_recorded_guards
from amplifier.app.sessions.initial_history import instruct, restore
from amplifier.app.sessions.reopened import describe_composition, resolver_of
from amplifier.app.sessions.snapshot import describe
from amplifier.app.store.amounts import subtracted
from amplifier.app.store.charges import charge_cut_off
from amplifier.app.store.children import StoredChildren
from amplifier.app.store.choice import served_files
from amplifier.app.store.interrupted import InterruptedTurn
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.shared import LeasedSessions
from amplifier.app.store.states import CutOff
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import read_metadata
from amplifier.app.store.writer import SessionWriter
from amplifier.kernel.budgets.expenses import Spending
from amplifier.kernel.reports import redact_reports_by, report
from amplifier.kernel.sessions.history import replace_history
from amplifier.kernel.sessions.session import AmplifierSession
from amplifier_kit.commands import WrittenText
from amplifier_kit.files.appendlog import Durability
from amplifier_kit.redaction import StrictRedactor
from amplifier_sdk.assessments import ACCEPTED
from amplifier_sdk.capabilities import BACKGROUND, SHOWN
from amplifier_sdk.contracts import ApprovalSystem, DisplaySystem
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean
from amplifier_sdk.journal import RecordedTurn
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.media import Prompt, prompt_text
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.streaming import StreamEvent

if TYPE_CHECKING:
    from amplifier_sdk.approvals import ApprovalProvider
    from amplifier_sdk.delegation import BackgroundTask
    from amplifier_sdk.stores import StoredQuestion

__all__ = ["OpenSession", "TurnEvents", "open_session"]

TurnEvents: TypeAlias = AsyncIterator[StreamEvent]
"""The events of a turn, for one reader."""


@attrs.define(eq=False)
class OpenSession:
    """A session in which turns can be taken; `stream` is the one way.

    Args:
        session: the session itself.
        composition: what it is made of.
        mentions: finds and loads what prompts mention.
        writer: where it is stored; `None` where it is not.
        store: where the others are that belong to it; likewise.
        interrupted: the turn that was running when the program ended last.
        cut_off: the sessions that came of it and were running then.
        instructions: the files of instructions that it began with.
        turn: what is recorded of the turn that is run first, where it was named when the session was opened.
        has_turn: whether that turn came to its end before, so that it is not to be run.
        left: what the last turn asked that waits for an answer, or was given them all; the next turn ends that one.
    """

    session: AmplifierSession
    composition: Composition
    mentions: SessionMentions
    writer: SessionWriter | None = None
    store: ProjectSessions | None = None
    interrupted: InterruptedTurn | None = None
    cut_off: tuple[CutOff, ...] = ()
    instructions: Instructions = attrs.field(factory=Instructions)
    turn: RecordedTurn | None = None
    has_turn: bool = False
    left: tuple[StoredQuestion, ...] = ()
    _spent_before: Spending = attrs.field(factory=Spending)

    @property
    def spent_since(self) -> Spending:
        """What the session has spent since it was opened; `session.spending` is all that it ever spent."""
        total, before = self.session.spending.to_dict(), self._spent_before.to_dict()
        return Spending.from_dict(subtracted(total, before))

    @asynccontextmanager
    async def stream(
        self,
        prompt: Prompt,
        *,
        typed: str | None = None,
        written: WrittenText | None = None,
        metadata: Mapping[str, JSONValue] | None = None,
        schema: Mapping[str, JSONValue] | None = None,
    ) -> AsyncIterator[TurnEvents]:
        """Take a turn: what the person mentions enters before it, and how the turn left the history is stored.

        Args:
            prompt: what the person asks, perhaps with media.
            typed: the part of its text that the person typed, whose mentions are followed; default all of it.
            written: the part of it that they wrote in a file, whose mentions stay where that file's may lead.
            metadata: as in `AmplifierSession.execute`, for example the `provider` and the `model` that shall answer.
            schema: a JSON Schema that keeps the agent at work until its answer fits; the turn's end has that as JSON.

        Yields:
            The turn's events, as `AmplifierSession.stream` does; leaving the block early cancels the turn.

        Raises:
            MediaError: media are not of their kind, or are too large.
            OutputError: no answer fits the schema.
            OSError: the turn could not be stored.
            TurnSuspendedError: it waits for a person; the journal has it.
            Exception: whatever ended the turn.
        """
        recorded, self.turn = self.turn, None
        text = prompt_text(prompt)
        if self.writer is not None:
            # Before the turn: a session that is killed in it is still found by its
            # prompt.
            await self.writer.note_prompt(text)
        self.mentions.expect(text, text if typed is None else typed, written)
        turn: AbstractAsyncContextManager[TurnEvents]
        if schema is None:
            turn = self.session.stream(prompt, metadata=metadata, recorded=recorded)
        else:
            from amplifier.app.sessions.formed_answers import stream_formed  # few are

            turn = stream_formed(
                self.session, prompt, schema, metadata=metadata, recorded=recorded
            )
        has_begun = False
        try:
            async with turn as events:
                has_begun = True
                yield events
        finally:
            # one that was refused leaves the turn that runs, or waits, to its own journal
            if has_begun and not self.left and not self.session.is_suspended:
                await self._store()

    def offer_background(self) -> None:
        """Let agents work on between the turns: the session is held open meanwhile, and the person is there."""
        self.session.coordinator.register_capability(BACKGROUND, self._background)

    def _background(
        self, function: Callable[[], Awaitable[object]], /, *, name: str
    ) -> BackgroundTask:
        async def work() -> None:
            try:
                await function()
            finally:
                # the end of a turn that runs stores it as well
                if self.writer is not None and not self.session.is_busy:
                    with anyio.CancelScope(shield=True):
                        spent = self.session.spending.to_dict()
                        await self.writer.note_spending(spent)

        return self.session.background(work, name=name)

    async def note_choice(self, provider: str | None, model: str | None) -> None:
        """Record who was chosen to answer while the session ran: who opens it again is answered by the same.

        Args:
            provider: the mounted name of the provider; `None` leaves it as it is.
            model: the model; `None` is the provider's own where one was chosen, else as it is.

        Raises:
            OSError: it could not be stored.
        """
        written, plan = dict(self.composition.written), dict(self.composition.plan)
        for each in (written, plan):
            if provider is not None:
                set_loop(each, "default_provider", provider)
            if provider is not None or model is not None:
                set_loop(each, "model", model)
        # Mostly nobody chose, and recording costs a write to disk each turn.
        if plan == self.composition.plan:
            return
        self.composition = attrs.evolve(self.composition, written=written, plan=plan)
        await self.record_composition()

    async def record_composition(self) -> None:
        """Record what the session is made of, where it is stored.

        Raises:
            OSError: it could not be stored.
        """
        if self.writer is None:
            return
        recorded = await to_thread.run_sync(describe_composition, self.composition)
        provider, model = provider_and_model(self.composition.plan)
        await self.writer.record_composition(
            recorded,
            provider=provider,
            model=model,
            instructions=[str(file.path) for file in self.instructions.files],
        )

    async def rewrite(self, messages: Sequence[MessageDict], *, turns: int) -> None:
        """Put another history in the place of the session's, and store it; call it between turns.

        Args:
            messages: all of it, system messages included.
            turns: of how many turns it is.

        Raises:
            OSError: it could not be stored; the session has it all the same.
        """
        await replace_history(self.session.coordinator.context, messages)
        # What was shown may be in the part of the history that is gone, and would not
        # be shown again.
        self.mentions.forget()
        self.mentions.restore(messages)
        writer = self.writer
        if writer is None:
            return
        said = [message for message in messages if message.get("role") != "system"]
        await writer.transcript.store(
            writer.transcript.last_turn or "", said, writer.clean
        )
        await writer.write(attrs.evolve(writer.record, turn_count=turns))

    async def _store(self) -> None:
        """Store the history, also when the turn was cancelled."""
        if self.writer is None:
            return
        # A cancelled turn leaves messages too; resumed without them, the model would
        # not know of its own calls.
        with anyio.CancelScope(shield=True):
            messages = await self.session.coordinator.context.get_messages()
            await self.writer.note_turn(
                messages, spending=self.session.spending.to_dict()
            )


@asynccontextmanager
async def open_session(
    composition: Composition,
    *,
    record: SessionRecord | None = None,
    store: ProjectSessions | None = None,
    first_tool: str | None = None,
    needs_provider: bool = True,
    display: DisplaySystem | None = None,
    approval: ApprovalSystem | None = None,
    accepted: frozenset[str] = frozenset(),
    shown: frozenset[str] = frozenset(),
    turn_id: str | None = None,
    asks: Callable[[OpenSession], ApprovalProvider] | None = None,
) -> AsyncIterator[OpenSession]:
    """Open a session that is ready for a turn; it is closed at the end of the block.

    Modules that failed and are not needed are in the session's `failures`.

    Args:
        composition: what the session is made of. Its working directory is the capability `session.working_dir`,
            and what a relative path under `source` in the plan is relative to.
        record: who it is; default a session of its own. One that the store has is resumed.
        store: where it is stored; default nowhere.
        first_tool: a tool that must be mounted.
        needs_provider: whether a session that has providers and could mount none is refused.
        display: shows messages to the person.
        approval: asks the person; without one, what needs approval is denied.
        accepted: the kinds of calls that are accepted without a question, by the keys of `Coverage`.
        shown: what the caller shows of the turns, which no module shows then; see `amplifier_sdk.capabilities.SHOWN`.
        turn_id: the turn that is run first: 32 hexadecimal digits. One that did not come to its end is continued.
        asks: without an `approval`, makes what asks the person of the session.

    Raises:
        ConfigError: the plan has problems, it guards a stored session less than what that
            was made of, no provider of several could be mounted, `first_tool` is unknown, or what
            a person trusted of the project, and may guard the session, is other now.
        ModuleError: a module that is needed failed.
        LockedError: another process has the session open.
        OSError: it cannot be stored.
    """
    # Before anything can be reported: a plan with a problem may hold a key.
    redact_reports_by(StrictRedactor, default=True)
    await to_thread.run_sync(require_guards, composition)
    record = record or new_record(composition)
    async with AsyncExitStack() as stack:
        writer = None
        if store is not None:
            writer = await stack.enter_async_context(
                _stored(composition, record, store)
            )
        opened = await _made(
            composition,
            record,
            store,
            writer,
            approval=approval,
            display=display,
            turn_id=turn_id,
        )
        session = opened.session
        # Before the modules are mounted: they may ask for capabilities as soon as they
        # are.
        await _equip(opened, store)
        session.coordinator.register_capability(ACCEPTED, accepted)
        if display is not None:
            shown |= {"messages"}
        session.coordinator.register_capability(SHOWN, shown)
        if asks is not None:
            session.coordinator.decisions.provider = asks(opened)
        # its modules may run for long before it is open, and a kill leaves what is stored
        if not session.is_resumed:
            await opened.record_composition()
        await stack.enter_async_context(session)
        # Checked once all modules had their turn: one may mount what another failed to.
        if needs_provider:
            _require_provider(session)
        _require_tools(session, composition, first_tool)
        await _begin_with_history(opened)
        yield opened


async def _made(
    composition: Composition,
    record: SessionRecord,
    store: ProjectSessions | None,
    writer: SessionWriter | None,
    *,
    approval: ApprovalSystem | None,
    display: DisplaySystem | None,
    turn_id: str | None,
) -> OpenSession:
    """Make a session, without its modules, of what it is made of and what is stored of it."""
    recorded = _recorded(writer, turn_id)
    before, cut_off = await _account(store, writer, recorded)
    session = AmplifierSession(
        composition.plan,
        session_id=record.session_id,
        parent_id=record.parent_id,
        approval_system=approval,
        display_system=display,
        is_resumed=_has_history(writer),
        spent=before,
    )
    return OpenSession(
        session,
        composition,
        _mentions(composition),
        writer,
        store,
        cut_off=cut_off,
        turn=recorded,
        has_turn=_has_ended(writer, turn_id),
        left=await _left(writer, recorded),
        spent_before=before,
    )


async def _begin_with_history(opened: OpenSession) -> None:
    # The history first, the instruction after it: it is built anew and replaces the
    # one that was stored.
    await restore(opened, opened.store)
    await instruct(opened)
    if opened.writer is not None:
        await opened.writer.describe(describe(opened.composition))
        await opened.record_composition()


@asynccontextmanager
async def _stored(
    composition: Composition, record: SessionRecord, store: ProjectSessions
) -> AsyncIterator[SessionWriter]:
    """Hold a session open where it is stored: locked, and guarded no less than it was."""
    durability: Durability
    if composition.settings.read().sessions.durability == "sync":
        durability = "sync"
    else:
        durability = "written"
    async with AsyncExitStack() as stack:
        # First on the stack, so that it runs last: the session must be closed and
        # unlocked before it can be deleted.
        stack.push_async_callback(_forget_unused, store, record.session_id)
        writer = await stack.enter_async_context(
            store.open(record, durability=durability)
        )
        if not isinstance(store, LeasedSessions):
            await to_thread.run_sync(_require_unserved, writer.record, composition.dirs)
        # Nobody else can change what is recorded now: the session is locked.
        await to_thread.run_sync(
            require_recorded_guards, composition, store, writer.record
        )
        yield writer


def _has_history(writer: SessionWriter | None) -> bool:
    return writer is not None and (
        writer.record.turn_count > 0 or bool(writer.messages)
    )


def _require_unserved(record: SessionRecord, dirs: AppDirs) -> None:
    """Refuse a session whose turn a server continues, once it was answered: it would find another history."""
    # what a server of this folder knows of it is newer than its copy here
    served = read_metadata(served_files(dirs).folder(record.session_id))
    if (served or record).waits_at_server:
        problem = (
            "a turn of it waits at a server: answer what it asks ('amplifier questions'),"
            " or cancel it there"
        )
        raise ConfigError.of("session", problem, subject=record.session_id)


def _recorded(writer: SessionWriter | None, turn_id: str | None) -> RecordedTurn | None:
    """Return what is recorded of the turn that is run first; nothing but its id of one that begins now."""
    if turn_id is None:
        return None
    recorded = None if writer is None else writer.recorded(turn_id)
    return recorded or RecordedTurn(turn_id=turn_id)


def _has_ended(writer: SessionWriter | None, turn_id: str | None) -> bool:
    return writer is not None and turn_id is not None and writer.has_ended(turn_id)


async def _left(
    writer: SessionWriter | None, recorded: RecordedTurn | None
) -> tuple[StoredQuestion, ...]:
    """Return what the last turn asked, where it was left until a person answers and is not the one that is run."""
    if writer is None or writer.interrupted is None:
        return ()
    if recorded is not None and recorded.is_begun:
        return ()
    from amplifier.app.sessions.later_turns import left_turn  # few turns wait

    try:
        later = await to_thread.run_sync(left_turn, writer.folder)
    except ConfigError as error:
        # nobody could continue it
        report("sessions.left_turn_unread", error, session=writer.record.session_id)
        return ()
    return () if later is None else later[1]


async def _account(
    store: ProjectSessions | None,
    writer: SessionWriter | None,
    recorded: RecordedTurn | None,
) -> tuple[Spending, tuple[CutOff, ...]]:
    """Return what a session has spent before its first turn, and the turns of children that were cut off."""
    if store is None or writer is None:
        return Spending(), ()
    if recorded is not None and recorded.is_begun:
        # its children are continued with it, and its own account is a part of what is recorded
        return Spending.from_dict(writer.record.account), ()
    # What children of a killed turn spent counts against the limits before a first new call.
    cut_off = await charge_cut_off(store, writer)
    return Spending.from_dict(writer.spending), cut_off


async def _forget_unused(store: ProjectSessions, session_id: str) -> None:
    """Keep no session that could not begin, or in which nobody said anything."""
    # it is left in the list, and no more
    with anyio.CancelScope(shield=True), suppress(OSError, ConfigError):
        await to_thread.run_sync(store.forget_unused, session_id)


def _mentions(composition: Composition) -> SessionMentions:
    return SessionMentions(
        composition.dirs,
        composition.collections,
        composition.settings.read().mentions,
    )


async def _equip(opened: OpenSession, store: ProjectSessions | None) -> None:
    """Give the session's modules what the application offers them."""
    coordinator, composition = opened.session.coordinator, opened.composition
    dirs = composition.dirs
    coordinator.register_capability("session.working_dir", str(dirs.working_dir))
    coordinator.register_capability("session.dir", str(dirs.state))
    opened.mentions.register(coordinator)
    TrustedFiles(frozenset({dirs.root, dirs.working_dir})).register(coordinator)
    writer = opened.writer
    if writer is not None and store is not None:
        coordinator.register_capability("session.journal", writer.journal)
        children = StoredChildren(
            store=store,
            root=writer,
            working_dir=str(dirs.working_dir),
            durability=writer.journal.durability,
            clean=lambda: writer.clean,
        )
        coordinator.register_capability("session.children", children)
    await coordinator.mount("module-source-resolver", resolver_of(composition))


def _require_provider(session: AmplifierSession) -> None:
    """Raise why no provider of the plan could be mounted."""
    named = {spec.module for spec in session.plan.modules["provider"]}
    failed = [failure for failure in session.failures if failure.module_id in named]
    # A provider that found no key is skipped, not failed; with one provider that works
    # the session is of use.
    if not failed or session.coordinator.get("providers"):
        return
    if len(failed) == 1:
        raise failed[0]
    problems = [Problem(failure.module_id, failure.reason) for failure in failed]
    raise ConfigError(problems, subject="plan's choice of providers")


def _require_tools(
    session: AmplifierSession, composition: Composition, first: str | None
) -> None:
    """Refuse a session without a tool that must be mounted, or that a rule names."""
    tools = session.coordinator.tools
    if first is not None:
        _require_tool(sorted(tools), first)
    require_named_tools((*composition.denied_tools, *composition.allowed_tools), tools)


def _require_tool(names: Sequence[str], name: str) -> None:
    if name not in names:
        known = ", ".join(names) or "none"
        problem = (
            f"no such tool is mounted; mounted: {known}{did_you_mean(name, names)}"
        )
        raise ConfigError.of(f"tool {name!r}", problem, subject="session")
