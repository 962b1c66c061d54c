"""Opening a session with what the application gives to its modules, and taking turns in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import anyio
import attrs

from amplifier.app.composition import Composition
from amplifier.app.mentions.session import SessionMentions
from amplifier.app.settings.settings import Settings
from amplifier.app.sources.resolver import make_resolver
from amplifier.app.store.children import StoredChildren
from amplifier.app.store.journal import InterruptedTurn
from amplifier.app.store.kept import KeptSession
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.snapshot import describe, provider_and_model
from amplifier.app.store.store import SessionStore
from amplifier.kernel.budgets.spending import Spending
from amplifier.kernel.sessions.session import AmplifierSession
from amplifier_sdk.contracts import ApprovalSystem, DisplaySystem
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.kit.appendlog import Durability
from amplifier_sdk.kit.redaction import clean_message, redactor_of
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.redaction import REDACTOR

if TYPE_CHECKING:
    from amplifier.kernel.calls.stream import TurnStream

__all__ = ["OpenSession", "Spent", "new_record", "open_session"]

_TOKENS: Final = ("input_tokens", "output_tokens", "total_tokens")


@attrs.frozen(kw_only=True)
class Spent:
    """What a session had spent when it was opened: tokens by kind, and US dollars as decimal text."""

    usage: Mapping[str, int] = attrs.field(factory=dict)
    cost_usd: str | None = None

    def plus(self, spending: Spending) -> Spent:
        """Add what it spent since."""
        data = spending.to_dict()
        tokens = {name: value for name in _TOKENS if isinstance(value := data[name], int)}
        cost = data["cost_usd"]
        usage = {name: self.usage.get(name, 0) + value for name, value in tokens.items()}
        if not isinstance(cost, str):
            return Spent(usage=usage, cost_usd=self.cost_usd)
        return Spent(usage=usage, cost_usd=str(Decimal(self.cost_usd or "0") + Decimal(cost)))


@attrs.define(eq=False)
class OpenSession:
    """A session in which turns can be taken; `stream` is the one way.

    Args:
        session: the session itself.
        composition: what it is made of.
        mentions: finds and loads what prompts mention.
        kept: where it is stored; `None` where it is not.
        interrupted: the turn that was running when the program ended last.
    """

    session: AmplifierSession
    composition: Composition
    mentions: SessionMentions
    kept: KeptSession | None = None
    interrupted: InterruptedTurn | None = None
    _spent: Spent = attrs.field(factory=Spent)

    @asynccontextmanager
    async def stream(
        self, prompt: str, *, metadata: Mapping[str, JSONValue] | None = None
    ) -> AsyncIterator[TurnStream]:
        """Take a turn: what the prompt mentions enters before it, and how the turn left the history is stored.

        Args:
            prompt: what the person asks.
            metadata: as in `AmplifierSession.execute`, for example the `provider` and the `model` that shall answer.

        Yields:
            The turn's events, as `AmplifierSession.stream` does; leaving the block early cancels the turn.

        Raises:
            OSError: the turn could not be stored.
            Exception: whatever ended the turn.
        """
        if self.kept is not None:
            await self.kept.note_prompt(prompt)
        try:
            async with self.session.stream(prompt, metadata=metadata) as events:
                yield events
        finally:
            await self._store()

    async def rewrite(self, messages: Sequence[MessageDict], *, turns: int) -> None:
        """Put another history in the place of the session's, and store it; call it between turns.

        Args:
            messages: all of it, system messages included.
            turns: of how many turns it is.

        Raises:
            OSError: it could not be stored; the session has it all the same.
        """
        await self.session.coordinator.context.set_messages(messages)
        self.mentions.forget()
        self.mentions.restore(messages)
        kept = self.kept
        if kept is None:
            return
        said = [message for message in messages if message.get("role") != "system"]
        await kept.transcript.store(kept.transcript.last_turn or "", said, kept.clean)
        await kept.write(attrs.evolve(kept.record, turn_count=turns))

    async def _store(self) -> None:
        """Store the history, also when the turn was cancelled."""
        if self.kept is None:
            return
        with anyio.CancelScope(shield=True):
            messages = await self.session.coordinator.context.get_messages()
            spent = self._spent.plus(self.session.spending)
            await self.kept.note_turn(messages, usage=spent.usage, cost_usd=spent.cost_usd)


@asynccontextmanager
async def open_session(
    composition: Composition,
    *,
    record: SessionRecord | None = None,
    store: SessionStore | None = None,
    first_tool: str | None = None,
    display: DisplaySystem | None = None,
    approval: ApprovalSystem | None = None,
) -> AsyncIterator[OpenSession]:
    """Open a session that is ready for a turn; it is closed at the end of the block.

    Modules that failed and are not needed are in the session's `failures`.

    Args:
        composition: what the session is made of. Its working directory is the capability `session.working_dir`,
            and what a relative path under `source` in the plan is relative to.
        record: who it is; default a session of its own. One that the store has goes on where it ended.
        store: where it is kept; default nowhere.
        first_tool: a tool that must be mounted.
        display: shows messages to the person.
        approval: asks the person; without one, what needs approval is denied.

    Raises:
        ConfigError: the plan has problems, no provider of several could be mounted, or `first_tool` is unknown.
        ModuleError: a module that is needed failed.
        LockedError: another process has the session open.
        OSError: it cannot be stored.
    """
    record = record or new_record(composition)
    durability: Durability = "sync" if composition.settings.read().sessions.durability == "sync" else "written"
    async with AsyncExitStack() as stack:
        kept = None if store is None else await stack.enter_async_context(store.open(record, durability=durability))
        session = AmplifierSession(
            composition.plan,
            session_id=record.session_id,
            parent_id=record.parent_id,
            approval_system=approval,
            display_system=display,
            is_resumed=kept is not None and (kept.record.turn_count > 0 or kept.interrupted is not None),
        )
        opened = OpenSession(session, composition, _mentions(composition), kept)
        await _equip(opened, store)
        await stack.enter_async_context(session)
        _require_provider(session)
        if first_tool is not None:
            _require_tool(session, first_tool)
        await _restore(opened)
        await _instruct(opened)
        if kept is not None:
            await kept.describe(describe(composition))
        yield opened


def new_record(composition: Composition) -> SessionRecord:
    """Say who a new session is."""
    profile = composition.profile
    provider, model = provider_and_model(composition.plan)
    return SessionRecord(
        session_id=str(uuid4()),
        working_dir=str(composition.places.working_dir),
        profile=None if profile is None else profile.profile.name or None,
        provider=provider,
        model=model,
    )


def _mentions(composition: Composition) -> SessionMentions:
    return SessionMentions(composition.places, composition.collections, composition.settings.read().mentions)


async def _equip(opened: OpenSession, store: SessionStore | None) -> None:
    """Give the session's modules what the application offers them."""
    coordinator, composition = opened.session.coordinator, opened.composition
    places = composition.places
    coordinator.register_capability("session.working_dir", str(places.working_dir))
    coordinator.register_capability("session.dir", str(places.state))
    opened.mentions.register(coordinator, lambda: coordinator.context)
    kept = opened.kept
    if kept is not None and store is not None:
        coordinator.register_capability("session.journal", kept.journal)
        working_dir = str(places.working_dir)
        children = StoredChildren(store=store, plan=composition.plan, working_dir=working_dir, clean=lambda: kept.clean)
        coordinator.register_capability("session.children", children)
    settings = Settings() if composition.is_plan_file else composition.settings
    resolver = make_resolver(places, composition.project, settings, composition.collections)
    await coordinator.mount("module-source-resolver", resolver)


async def _restore(opened: OpenSession) -> None:
    """Go on where the stored session ended; a context that keeps its own history knows better."""
    kept = opened.kept
    if kept is None:
        return
    coordinator = opened.session.coordinator
    if coordinator.get_capability(REDACTOR) is not None:
        kept.clean_with(partial(clean_message, redactor=redactor_of(coordinator)))
    opened._spent = Spent(usage=kept.record.usage, cost_usd=kept.record.cost_usd)  # noqa: SLF001  # its own maker
    opened.interrupted = await kept.settle()
    context = coordinator.context
    own = [message for message in await context.get_messages() if message.get("role") != "system"]
    if not own and kept.messages:
        await context.set_messages(kept.messages)
    opened.mentions.restore(own or kept.messages)


async def _instruct(opened: OpenSession) -> None:
    """Put the one system message at the head of the history; that of an earlier time makes way for it."""
    profile, text = opened.composition.profile, opened.composition.instruction
    if profile is None or text is None:
        return
    coordinator = opened.session.coordinator
    text = await opened.mentions.instruction(text, profile.profile.path.parent)
    context = coordinator.context
    stored = list(await context.get_messages())
    system: MessageDict = {"role": "system", "content": text}
    if not stored:
        await context.add_message(system)
    elif stored[0] != system:
        await context.set_messages([system, *(message for message in stored if message.get("role") != "system")])


def _require_provider(session: AmplifierSession) -> None:
    """Raise what kept every provider of the plan from being mounted."""
    named = {spec.module for spec in session.plan.modules["provider"]}
    failed = [failure for failure in session.failures if failure.module_id in named]
    if not failed or session.coordinator.get("providers"):
        return
    if len(failed) == 1:
        raise failed[0]
    problems = [Problem(failure.module_id, failure.reason) for failure in failed]
    raise ConfigError(problems, subject="plan's choice of providers")


def _require_tool(session: AmplifierSession, name: str) -> None:
    tools = session.coordinator.get("tools")
    names = sorted(tools) if isinstance(tools, dict) else []
    if name not in names:
        known = ", ".join(names) or "none"
        problem = f"no such tool is mounted; mounted: {known}{did_you_mean(name, names)}"
        raise ConfigError([Problem(f"tool {name!r}", problem)], subject="session")
