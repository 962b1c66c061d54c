"""Carrying out what handlers decided: messages for the person, questions to them, injections into the context."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, Final, get_args

import anyio
import attrs

from amplifier.kernel.cancellation import CancellationToken
from amplifier.kernel.clock import timestamp
from amplifier.kernel.hooks.dispatcher import HookDispatcher
from amplifier.kernel.plans.plan import SessionSettings
from amplifier.kernel.reports import report
from amplifier.kernel.spans import current_turn_id
from amplifier.kernel.suspension import Suspension
from amplifier_sdk.contracts import ApprovalSystem, ContextManager, DisplaySystem
from amplifier_sdk.history import open_calls
from amplifier_sdk.journal import Journal, MessageWritten
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.results import (
    ContextInjection,
    Decision,
    Emission,
    HookResult,
    InjectionRole,
    MessageLevel,
    UserMessage,
)

if TYPE_CHECKING:
    from amplifier.kernel.hooks.approvals import Approvals
    from amplifier_sdk.approvals import ApprovalProvider

__all__ = ["DecisionProcessor", "InjectionCount", "never"]

CHARACTERS_PER_TOKEN: Final = 4
_LEVELS: Final[Mapping[object, MessageLevel]] = {
    level: level for level in get_args(MessageLevel)
}
_UNSAFE: Final = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]"
"""What an injection must not carry: a pattern, compiled with the first one, since that takes 4 ms."""


def never() -> bool:
    """Return false: nothing that enters the history is recorded already, but in a turn that is continued."""
    return False


@attrs.define(eq=False)
class InjectionCount:
    """How many tokens were injected in one turn."""

    tokens: int = 0


@attrs.define(eq=False, repr=False)
class DecisionProcessor:
    """Does what an emission asks for; one per session.

    `context` is asked at each use, since modules and applications may replace what is mounted. `approval` is
    whom the application lets ask the person, `provider` whom a module or the application registered for it.
    `journal` is set while an application offers one, `is_recorded` returns whether it has what enters the history now,
    and `accepted` the kinds of calls that the application accepts.
    `asker` is the agent whose session it is, which the person reads; empty in a session of their own.
    `waiting` are the lasting injections that were made while calls waited for their results. `unbounded` are the
    plugins of modules written for another kernel, which had no such limit: theirs are not truncated. `suspension` is
    shared with the sessions that come of this one.
    """

    hooks: HookDispatcher
    settings: SessionSettings = SessionSettings()
    context: Callable[[], ContextManager | None] = lambda: None
    approval: ApprovalSystem | None = None
    display: DisplaySystem | None = None
    cancellation: CancellationToken = attrs.field(factory=CancellationToken)
    provider: ApprovalProvider | None = None
    journal: Journal | None = None
    accepted: Callable[[], object] = lambda: None
    asker: str = ""
    waiting: list[MessageDict] = attrs.field(factory=list)
    unbounded: list[object] = attrs.field(factory=list)
    suspension: Suspension = attrs.field(factory=Suspension)
    is_recorded: Callable[[], bool] = never
    _approvals: Approvals | None = None
    _parent: DecisionProcessor | None = None

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that led from the root session to this one, its own the last; none in the root."""
        if self._parent is None:
            above: tuple[str, ...] = ()
        else:
            above = self._parent.agents
        return (*above, self.asker) if self.asker else above

    @property
    def approvals(self) -> Approvals:
        """The session's questions to the person; made when they are first needed."""
        if self._approvals is None:
            # few sessions ask anybody
            from amplifier.kernel.hooks.approvals import Approvals

            self._approvals = Approvals(
                self.hooks, self.cancellation, suspension=self.suspension
            )
            if self._parent is not None:
                # one lock for the family: the person has one screen
                self._approvals.turn = self._parent.approvals.turn
        # set at each use, since both may be replaced while the session lives
        self._approvals.system, self._approvals.provider = (
            self.approval,
            self.asked_provider,
        )
        return self._approvals

    @property
    def asked_provider(self) -> ApprovalProvider | None:
        """The approval provider that was registered for this session, else for its parent."""
        if self.provider is not None or self._parent is None:
            return self.provider
        return self._parent.asked_provider

    def approves(self, decision: Decision) -> bool:
        """Whether a decision answers for a call that a person would be asked about.

        An agent's own hooks may deny and ask; what they allow its session has not allowed.
        """
        if not decision.result.approves or decision.plugin is None:
            return decision.result.approves
        # else an agent could mount a hook that allows whatever its parent asks about
        return self._parent is None or self._parent.has_module(
            self.hooks.module_of(decision.plugin)
        )

    def has_module(self, module: str | None) -> bool:
        """Whether a module has handlers in this session and in all its parents."""
        return module in self.hooks.modules and (
            self._parent is None or self._parent.has_module(module)
        )

    def ask_with(self, parent: DecisionProcessor) -> None:
        """Ask the same person as a parent session does, one question at a time among all of them."""
        self._parent = parent
        self.suspension = parent.suspension

    async def process(
        self,
        result: Emission | HookResult,
        event: str,
        hook_name: str = "unknown",
        *,
        injected: InjectionCount | None = None,
    ) -> Emission:
        """Show the messages, ask the question, store the lasting injections.

        What is returned keeps the denial and the ephemeral injections; the rest is done. Nothing is injected
        for an operation that was denied.

        An injection that is larger than the session's limit is truncated, and that is reported.

        Raises:
            ValueError: an injection has a role that no message has; none of them was stored.
        """
        emission = _as_emission(result, hook_name)
        if not emission.decisions:
            return emission
        # messages first: they often explain the question, and a denial too
        for message in emission.user_messages:
            await self._show(message)
        if emission.denied:
            return emission
        asking = [
            decision
            for decision in emission.decisions
            if decision.result.action == "ask_user"
        ]
        if asking:
            refusal = await self._ask(asking, event, emission.data)
            if refusal is not None:
                return Emission(emission.data, (Decision("approval", refusal),))
        return await self._inject(emission, event, injected or InjectionCount())

    async def notify(self, event: str, data: Mapping[str, object]) -> None:
        """Show what a module reports to the person by `user:notification`, or log it where nobody hears it."""
        if self.display is None and self.hooks.list_handlers(event)[event]:
            return
        level = _LEVELS.get(data.get("level"), "info")
        source = str(data.get("source", "unknown"))
        await self._show(
            UserMessage(text=str(data["message"]), level=level, source=source)
        )

    async def _ask(
        self, asking: Sequence[Decision], event: str, data: dict[str, object]
    ) -> HookResult | None:
        from amplifier.kernel.hooks.questions import Question  # likewise

        try:
            questions = [
                Question.of(decision, event, data, self.agents) for decision in asking
            ]
        except (AttributeError, TypeError) as error:  # foreign values
            return HookResult.deny(
                f"The question of {asking[0].handler!r} cannot be asked: {error}"
            )
        return await self.approvals.ask(questions)

    async def _show(self, message: UserMessage) -> None:
        """Show a message, or log it where nothing shows it; a display that fails or hangs stops nothing."""
        if self.display is None:
            report(
                "hook.message",
                source=message.source,
                level=message.level,
                message=message.text,
            )
            return
        limit = self.settings.limits.hook_timeout
        try:
            with anyio.move_on_after(limit) as scope:
                shown = self.display.show_message(
                    message.text, message.level, f"hook:{message.source}"
                )
                if isawaitable(shown):
                    await shown
        except (Exception, SystemExit) as error:  # foreign code
            report("display.failed", error, source=message.source)
            return
        if scope.cancelled_caught:
            # what a person does not see must not stop the work, so nothing is raised
            report("display.timed_out", source=message.source, seconds=limit)

    async def _inject(
        self, emission: Emission, event: str, injected: InjectionCount
    ) -> Emission:
        """Store the lasting injections; return what is left, the ephemeral ones."""
        decisions = [
            self._bounded(d, event)
            for d in emission.decisions
            if d.result.action == "inject_context"
        ]
        injections = Emission(emission.data, decisions).injections
        for injection in injections:
            # all of them before any is stored, so that a wrong role leaves no half
            _check(injection, event)
        has_context = self.context() is not None
        for injection in injections:
            self._charge(injection, event, injected)
            if not injection.ephemeral and has_context:
                self.waiting.append(_message(injection, event))
        await self.store_waiting()
        return Emission(
            emission.data,
            [decision for decision in decisions if decision.result.ephemeral],
        )

    async def store_waiting(self) -> None:
        """Store the lasting injections, unless a call waits for its result: nothing may stand between the two."""
        if not self.waiting:
            return
        context = self.context()
        # vendors refuse a history in which a result does not follow its call at once
        if context is None or open_calls(await context.get_messages()):
            return
        while self.waiting:
            # taken out first: a second caller that finds it here would store it again
            await self.store(context, self.waiting.pop(0))

    async def store(self, context: ContextManager, message: MessageDict) -> None:
        """Add what neither the prompt nor the model said to the history, after the journal has it."""
        if self.journal is not None and not self.is_recorded():
            await self.journal.append(
                MessageWritten(turn_id=current_turn_id(), message=message)
            )
        await context.add_message(message)

    def _bounded(self, decision: Decision, event: str) -> Decision:
        """Take out of an injection what no message should carry, and cut what is over the session's limit."""
        given = decision.result.context_injection or ""
        text, limit = re.sub(_UNSAFE, "", given), self.settings.injection_size_limit
        if any(decision.plugin is plugin for plugin in self.unbounded):
            limit = None
        if limit is not None and len(text) > limit:
            characters = len(text)
            report(
                "injection.truncated",
                hook=decision.handler,
                hook_event=str(event),
                characters=characters,
                limit=limit,
            )
            note = (
                f"\n[truncated: {characters} characters, at most {limit} are injected]"
            )
            if len(note) < limit:
                text = text[: limit - len(note)] + note
            else:
                text = text[:limit]
        if text == given:
            return decision
        return attrs.evolve(
            decision, result=attrs.evolve(decision.result, context_injection=text)
        )

    def _charge(
        self, injection: ContextInjection, event: str, injected: InjectionCount
    ) -> None:
        budget = self.settings.injection_budget_per_turn
        injected.tokens += len(injection.content) // CHARACTERS_PER_TOKEN
        if budget is not None and injected.tokens > budget:
            report(
                "injection.over_budget",
                hook=injection.hook_name,
                hook_event=str(event),
                tokens=injected.tokens,
                budget=budget,
            )


def _message(injection: ContextInjection, event: str) -> MessageDict:
    metadata: JSONObject = {
        "source": "hook",
        "hook_name": injection.hook_name,
        "event": str(event),
        "timestamp": timestamp(),
    }
    return {"role": injection.role, "content": injection.content, "metadata": metadata}


def _check(injection: ContextInjection, event: str) -> None:
    if injection.role not in get_args(InjectionRole):
        known = ", ".join(get_args(InjectionRole))
        raise ValueError(
            f"Hook {injection.hook_name!r} injects with the role {injection.role!r} on {event}; known: {known}"
        )


def _as_emission(result: Emission | HookResult, hook_name: str) -> Emission:
    if isinstance(result, Emission):
        return result
    return Emission(dict(result.data or {}), (Decision(hook_name, result),))
