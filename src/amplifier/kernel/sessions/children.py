"""A session's children: making them, running turns in them, finding them again, releasing them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from random import getrandbits
from typing import TYPE_CHECKING, Final, Literal, Unpack, cast

import anyio
import attrs

from amplifier.kernel.budgets.deadlines import call_deadlines_held
from amplifier.kernel.budgets.expenses import Spending
from amplifier.kernel.capabilities import INSTRUCTIONS
from amplifier.kernel.modules.mounts import RESOLVER
from amplifier.kernel.plans.overlays import merge_plans
from amplifier.kernel.sessions.background import work_of
from amplifier.kernel.sessions.child_plans import (
    SpawnRequest,
    child_plan,
    instruction_of,
    preferences_of,
)
from amplifier.kernel.sessions.child_records import ChildRecords
from amplifier.kernel.sessions.guards import Guards, is_looser
from amplifier.kernel.turn.routes import find_route
from amplifier.kernel.turn.slots import call_slot_released
from amplifier_sdk.delegation import ChildRecord, ChildResult, ResumeOptions
from amplifier_sdk.errors import (
    BudgetExceededError,
    ChildNotFoundError,
    ConfigError,
    Problem,
    SessionBusyError,
    SessionClosedError,
    SessionError,
    TurnCancelled,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.limits import LimitChanges
from amplifier_sdk.messages import MessageDict

if TYPE_CHECKING:
    from amplifier.kernel.sessions.session import AmplifierSession
    from amplifier_sdk.journal import RecordedTurn

__all__ = ["Children"]

OBSERVER: Final = "parent"
LAST: Final = 10**9
"""The priority of the parent's observers: they hear what the child's own handlers left."""


@attrs.define(eq=False)
class Children:
    """The children of one session: those that are open, by id, and the records of those that are not."""

    session: AmplifierSession
    _open: dict[str, AmplifierSession] = attrs.field(factory=dict)
    _records: ChildRecords = attrs.field(init=False)
    _slots: anyio.Semaphore = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._records = ChildRecords(self.session)
        self._slots = anyio.Semaphore(
            self.session.plan.session.limits.parallel_children
        )

    # -- the capabilities

    async def spawn(self, request: SpawnRequest) -> ChildResult:
        """Run one turn in a new child; see `amplifier_sdk.delegation.SessionSpawn`."""
        session = self.session
        if request.parent_session not in (None, session):
            asked = getattr(
                request.parent_session, "session_id", request.parent_session
            )
            raise SessionError(
                f"Session {session.session_id} cannot make a child of {asked!r}; ask that session"
            )
        agent = request.agent(session.plan.agents)
        instruction = instruction_of(request.agent_name, agent)
        record = ChildRecord(
            session_id=request.sub_session_id or self._new_id(request.agent_name),
            parent_id=session.session_id,
            agent_name=request.agent_name,
            plan=child_plan(Guards(session), agent, request),
            messages=_beginning(
                session.coordinator.get_capability(INSTRUCTIONS),
                instruction,
                request.parent_messages or (),
            ),
            provider_preferences=request.provider_preferences or preferences_of(agent),
            request=request.record,
        )
        if record.session_id in self._open:
            return await self._run(record, request)
        if request.continues:
            left = await self._records.unfinished(record.session_id)
            if left is not None:
                known, recorded = left
                known = attrs.evolve(known, plan=record.plan, request=record.request)
                return await self._run(known, request, recorded)
        found = await self._records.find(record.session_id)
        if found is None:
            return await self._run(record, request)
        if request.continues and found.parent_id == session.session_id:
            return found.last_result
        raise SessionError(
            f"There is a session {record.session_id!r} already; resume it, or choose another id"
        )

    async def resume(self, **options: Unpack[ResumeOptions]) -> ChildResult:
        """Run another turn in a child; see `amplifier_sdk.delegation.ChildResume`."""
        session, session_id = self.session, options["sub_session_id"]
        if session_id in self._open:
            raise SessionBusyError(f"Session {session_id} is open; wait for it")
        record = await self._records.find(session_id)
        if record is None or record.parent_id != session.session_id:
            raise ChildNotFoundError(session_id, session.session_id)
        request = SpawnRequest.again(record, **options)
        try:
            # what the parent's present plan says counts, also for a child of an older
            # one
            agent = request.agent(session.plan.agents)
        except ConfigError as error:
            reason = f"session {session_id!r} was made from it and cannot be resumed"
            problems = [
                Problem(problem.path, f"{problem.message}; {reason}")
                for problem in error.problems
            ]
            raise ConfigError(problems, subject="mount plan") from error
        plan = child_plan(Guards(session), agent, request)
        return await self._run(attrs.evolve(record, plan=plan), request)

    def fork(
        self,
        overlay: Mapping[str, object] | None = None,
        *,
        session_id: str | None = None,
    ) -> AmplifierSession:
        """Make a child session of the parent's plan with another laid over it; the caller opens it."""
        plan = merge_plans(
            self.session.config, overlay or {}, self.session.loader.kinds
        )
        return self._adopt(self._make(plan, session_id or self._new_id("fork")))

    @property
    def open(self) -> tuple[AmplifierSession, ...]:
        """The children that are open."""
        return tuple(self._open.values())

    # -- what a child asks of its parent

    @asynccontextmanager
    async def slot(self, child: AmplifierSession) -> AsyncIterator[None]:
        """Wait until one more child may run; a child that is cancelled meanwhile waits no longer."""
        with (
            anyio.CancelScope() as waiting,
            child.coordinator.cancellation.ending(waiting),
        ):
            await self._slots.acquire()
        try:
            yield
        finally:
            if not waiting.cancelled_caught:
                self._slots.release()

    def release(self, child: AmplifierSession) -> None:
        """Forget an open child, which is cleaned up."""
        self._open.pop(child.session_id, None)

    async def cleanup(self) -> None:
        """Clean up the children that are open, the last one first; one that fails keeps no other from it."""
        async with AsyncExitStack() as last_first:
            for child in self._open.values():
                last_first.push_async_callback(child.cleanup)

    # -- running

    async def _run(
        self,
        record: ChildRecord,
        request: SpawnRequest,
        recorded: RecordedTurn | None = None,
    ) -> ChildResult:
        """Open a child, run one turn in it or continue one, keep what it remembers, and release it."""
        try:
            spent = Spending.from_dict(record.spending)
            child = self._make(
                record.plan,
                record.session_id,
                is_resumed=record.turn_count > 0,
                spent=spent,
            )
            child.family.runs_once = True
            # the person has to read which agent asks
            child.coordinator.decisions.asker = record.agent_name
            if request.self_delegation_depth is not None:
                child.coordinator.register_capability(
                    "self_delegation_depth", request.self_delegation_depth
                )
            for event, observer in (request.observers or {}).items():
                child.coordinator.hooks.register(
                    event, observer, LAST, OBSERVER, decides=False, inherited=False
                )
            # the child has deadlines of its own; the delegating call's would end it
            # midway
            with call_deadlines_held():
                async with call_slot_released(), self._adopt(child):
                    await _remember(child, record)
                    providers = child.coordinator.providers
                    child.coordinator.services.route = await find_route(
                        record.provider_preferences, providers
                    )
                    # inside the child's life: its context is read before its modules
                    # are released
                    async with self._records.turn(child, record):
                        return await self._turn(
                            child,
                            request.instruction,
                            request.limits,
                            record.turn_count + 1,
                            recorded,
                        )
        except Exception as error:
            error.add_note(
                f"in session {record.session_id!r}, agent {record.agent_name!r}"
            )
            raise

    async def _turn(
        self,
        child: AmplifierSession,
        instruction: str,
        limits: LimitChanges | None,
        turn_count: int,
        recorded: RecordedTurn | None,
    ) -> ChildResult:
        status: Literal["completed", "cancelled"] = "completed"
        try:
            bounds = self._limits(child, limits)
            if recorded is None:
                output = await child.execute(instruction, bounds)
            else:
                output = await child.continue_turn(instruction, recorded, bounds)
        except TurnCancelled as cancelled:
            # the parent's model learns what there is instead of a failed call
            status, output = "cancelled", cancelled.partial_text
        end = child.last_turn
        return ChildResult(
            output=output,
            session_id=child.session_id,
            status=status,
            limit=end.limit if end is not None else None,
            turn_count=turn_count,
            spending=child.coordinator.host.budget.total.to_dict(),
            metadata=child.plan.session.metadata or {},
        )

    def _limits(
        self, child: AmplifierSession, given: LimitChanges | None
    ) -> LimitChanges | None:
        """Return the limits of a child's turn: none is looser than those of its parent's, running or next."""
        ledger, drawn = self.session.ledger, child.ledger.drawn
        if drawn is not None:
            changes = drawn.changes
        elif ledger.running is not None:
            changes = ledger.changes
        else:
            changes = None
        if not changes and not given:
            return given
        above = ledger.limits_of(changes)
        own = attrs.asdict(child.plan.session.limits, recurse=False) | (given or {})
        limits = {name: getattr(above, name) for name in LimitChanges.__annotations__}
        # the stricter of the two: a turn's own limits must not be escaped by delegating
        inherited = {
            name: value for name, value in limits.items() if is_looser(own[name], value)
        }
        return cast("LimitChanges", {**(given or {}), **inherited})

    # -- making

    def _make(
        self,
        plan: Mapping[str, object],
        session_id: str,
        *,
        is_resumed: bool = False,
        spent: Spending | None = None,
    ) -> AmplifierSession:
        """Make a child that shares what a family shares.

        Raises:
            SessionClosedError: the parent was cleaned up.
            SessionBusyError: the child is open.
            BudgetExceededError: the delegation is too deep, or nothing is left of a budget.
        """
        parent = self.session
        if parent.is_closed:
            raise SessionClosedError(
                f"Session {parent.session_id} was cleaned up; it has no more children"
            )
        if session_id in self._open:
            raise SessionBusyError(
                f"Session {session_id} is open; wait for it, or choose another id"
            )
        if parent.family.depth_left <= 0:
            raise BudgetExceededError("delegation_depth", parent.family.depth)
        work = work_of(parent)
        reached = parent.ledger.reached
        if work is not None:
            reached = work.share.account.reached
        if reached is not None:
            raise BudgetExceededError(*reached)
        # an application's subclass of the session makes children of its own kind
        child = type(parent)(
            plan,
            parent.loader,
            session_id,
            parent.session_id,
            parent.coordinator.approval_system,
            parent.coordinator.display_system,
            is_resumed,
            spent=spent,
        )
        # the application mounts it on the first session alone, and all find the same
        # code
        child.coordinator.mount_points[RESOLVER] = parent.coordinator.mount_points[
            RESOLVER
        ]
        return child

    def _adopt(self, child: AmplifierSession) -> AmplifierSession:
        """Make a child one of the family, which ends with its clean-up."""
        child.family.join(self.session)
        self._open[child.session_id] = child
        return child

    def _new_id(self, agent_name: str) -> str:
        return f"{self.session.session_id}-{getrandbits(64):016x}_{agent_name}"


async def _remember(child: AmplifierSession, record: ChildRecord) -> None:
    """Give a child its history; a new one without an instruction of its agent's keeps what its context begins with."""
    context, messages = child.coordinator.context, record.messages
    # its own instruction replaces what a fresh context begins with
    is_instructed = (
        bool(messages)
        and messages[0]["role"] == "system"
        and not messages[0].get("metadata")
    )
    if record.turn_count or is_instructed:
        await context.set_messages(messages)
        return
    for message in messages:
        await context.add_message(message)


def _beginning(
    offered: object, instruction: str | None, parent_messages: Sequence[MessageDict]
) -> list[MessageDict]:
    """Return what a new child's history begins with: what every child reads, then what its agent is."""
    shared = offered if isinstance(offered, str) else ""
    if parent_messages and parent_messages[0]["role"] == "system":
        # A copy of its parent has the parent's system message, which says it already.
        shared = ""
    if instruction is not None:
        text = "\n\n".join(part for part in (shared, instruction) if part)
        return [{"role": "system", "content": text}, *parent_messages]
    if not shared:
        return list(parent_messages)
    # Marked as no agent's: what a fresh context begins with stays beside it.
    metadata: JSONObject = {"source": INSTRUCTIONS}
    return [
        {"role": "system", "content": shared, "metadata": metadata},
        *parent_messages,
    ]
