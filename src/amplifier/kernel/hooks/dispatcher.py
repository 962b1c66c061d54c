"""The dispatcher of hooks: who hears an event, and what all of them decided together.

Handlers run in turn, on the loop, each with its own shallow copy of the data. A blocking handler fails
closed: raising, answering nonsense or passing its deadline denies the operation and names it. An observer
fails open and is reported once. When a handler changes the data, blocking handlers that ran before run
once more, and a second change is a deny: what was checked is what runs. An event without handlers costs
one look-up.

What an application registers on a session its children hear as well: a child's registry shows its parent's as it
is at any time. What modules register is the session's own, since a child mounts its modules anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from inspect import iscoroutinefunction
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, TypeVar, overload

import attrs

from amplifier.kernel.clock import timestamp
from amplifier.kernel.hooks.actions import actions_of
from amplifier.kernel.hooks.readonly import read_only_entries
from amplifier.kernel.hooks.registrations import (
    Handler,
    LateError,
    Registration,
    changes_of,
    read_answer,
)
from amplifier.kernel.hooks.request_ids import REQUEST_EVENTS, request_fields
from amplifier.kernel.reports import report
from amplifier.kernel.spans import current_module, current_span
from amplifier_sdk.contracts import Unregister
from amplifier_sdk.decisions import HOOK_DECIDED
from amplifier_sdk.events import (
    CONTEXT_PRE_COMPACT,
    ORCHESTRATOR_COMPLETE,
    PROMPT_SUBMIT,
    SESSION_END,
    SESSION_START,
    TOOL_POST,
    TOOL_PRE,
    USER_NOTIFICATION,
    Event,
)
from amplifier_sdk.results import Decision, Emission, HookResult

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from amplifier.kernel.hooks.middleware import MiddlewareChain

__all__ = ["HookDispatcher"]

P = TypeVar("P", bound=Mapping[str, object])

_Listener: TypeAlias = tuple[Registration, bool, float | None]
"""A handler of an event, whether it is a blocking one there, and its deadline in seconds, if it has one."""

_Audience: TypeAlias = tuple[_Listener, ...]
"""Who hears an event, in order."""

_Asked: TypeAlias = tuple[_Listener, Decision | None]
"""A blocking handler, and what it decided."""

_NOBODY: Final[_Audience] = ()
# an empty set takes as much as one of four
_NOTHING_RESERVED: Final[frozenset[str]] = frozenset()


class HookDispatcher:
    """The handlers of a session, and what calls them; see `amplifier_sdk.contracts.Hooks`."""

    SESSION_START: ClassVar = SESSION_START
    SESSION_END: ClassVar = SESSION_END
    PROMPT_SUBMIT: ClassVar = PROMPT_SUBMIT
    TOOL_PRE: ClassVar = TOOL_PRE
    TOOL_POST: ClassVar = TOOL_POST
    CONTEXT_PRE_COMPACT: ClassVar = CONTEXT_PRE_COMPACT
    ORCHESTRATOR_COMPLETE: ClassVar = ORCHESTRATOR_COMPLETE
    USER_NOTIFICATION: ClassVar = USER_NOTIFICATION

    def __init__(
        self, *, hook_timeout: float = 30.0, hook_warning: float = 10.0
    ) -> None:
        self.hook_timeout = hook_timeout
        self.hook_warning = hook_warning
        # all that hear, those of the parents among them
        self._registrations: list[Registration] = []
        self._own: list[Registration] = []
        self._parent: HookDispatcher | None = None
        self.heirs: list[HookDispatcher] = []
        # what the session itself does, behind every handler
        self._own_audience: dict[str, _Audience] = {}
        self._table: dict[str, _Audience] = {}
        # asked at each request, where even a look-up for each event is felt
        self._any: dict[tuple[str, ...], bool] = {}
        self._reserved: frozenset[str] = _NOTHING_RESERVED
        # made when a point is first reached; most sessions have no middleware
        self._chains: dict[str, MiddlewareChain | None] = {}
        self._defaults: dict[str, object] = {}
        # how many there have been, those that were taken back among them
        self.registered: int = 0
        self.module_of: Callable[[object], str | None] = _unknown_module
        self.is_module: Callable[[object], bool] = _is_known

    def set_default_fields(self, **fields: object) -> None:
        """Replace the fields that every event carries unless its data names them."""
        self._defaults = fields

    @overload
    def register(
        self,
        event: Event[P],
        handler: Callable[[str, P], Awaitable[HookResult | None] | HookResult | None],
        priority: int = 0,
        name: str | None = None,
        *,
        decides: bool | None = None,
        timeout: float | None = None,
        inherited: bool = True,
    ) -> Unregister: ...
    @overload
    def register(
        self,
        event: str,
        handler: Handler,
        priority: int = 0,
        name: str | None = None,
        *,
        decides: bool | None = None,
        timeout: float | None = None,
        inherited: bool = True,
    ) -> Unregister: ...
    def register(
        self,
        event: str,
        handler: object,
        priority: int = 0,
        name: str | None = None,
        *,
        decides: bool | None = None,
        timeout: float | None = None,
        inherited: bool = True,
    ) -> Unregister:
        """Call a handler on each event; see `amplifier_sdk.contracts.Hooks.register`.

        Args:
            inherited: whether the session's children have it as well, now and later; a module's is never inherited.

        Raises:
            TypeError: the handler cannot be called.
            ValueError: the timeout is no number of seconds above 0.
        """
        if not callable(handler):
            raise TypeError(f"A handler of {event!r} must be callable; got {handler!r}")
        self.registered += 1
        plugin = current_module.get()
        registration = Registration(
            pattern=str(event),
            handler=handler,
            priority=priority,
            order=self.registered,
            name=self._name(handler) if name is None else name,
            # `None` leaves it to the event, which a pattern does not name yet
            decides=decides,
            timeout=timeout,
            is_async=iscoroutinefunction(handler)
            or iscoroutinefunction(type(handler).__call__),
            warn_after=self.hook_warning,
            plugin=plugin,
            inherited=inherited and not self.is_module(plugin),
        )
        self._own.append(registration)
        self.refresh()
        return partial(self._remove, registration)

    on = register

    def answer_last(self, event: str, handler: Handler, name: str) -> None:
        """Let the session itself do something with an event, behind every handler; it is listed nowhere."""
        registration = Registration(
            pattern=str(event),
            handler=handler,
            priority=0,
            order=0,
            name=name,
            decides=False,
            timeout=None,
            is_async=iscoroutinefunction(handler),
            warn_after=self.hook_warning,
        )
        self._own_audience[event] = ((registration, False, None),)
        self._table.clear()

    def unregister(self, name: str) -> None:
        """Take back every registration of a name; an unknown name is ignored, and so is a parent's."""
        self._own = [entry for entry in self._own if entry.name != name]
        self.refresh()

    def forget_module(self, plugin: object, since: int = 0) -> None:
        """Take back every registration that a module made while it was mounted, but for the first `since` of all."""
        self._own = [
            entry
            for entry in self._own
            if entry.plugin is not plugin or entry.order <= since
        ]
        self.refresh()

    def inherit(self, parent: HookDispatcher) -> Unregister:
        """Hear what the parent's application registered and registers; return what ends the parent's interest in it."""
        self._parent = parent
        parent.heirs.append(self)
        self.refresh()
        return partial(parent.heirs.remove, self)

    @property
    def modules(self) -> frozenset[str]:
        """The modules that have registered handlers here; those of sessions above are not among them."""
        names = (
            self.module_of(entry.plugin)
            for entry in self._own
            if entry.plugin is not None
        )
        return frozenset(name for name in names if name is not None)

    def handlers_of(self, plugin: object) -> tuple[Registration, ...]:
        """Return the handlers that a module has registered."""
        return tuple(entry for entry in self._own if entry.plugin is plugin)

    @property
    def registrations(self) -> tuple[Registration, ...]:
        """All that hear anything here, in the order in which they run."""
        return tuple(self._registrations)

    def list_handlers(self, event: str | None = None) -> dict[str, list[str]]:
        """Return the handlers' names by event or pattern, in the order in which they run."""
        if event is not None:
            own = self._own_audience.get(event, _NOBODY)
            heard = self._audience(event)
            return {
                event: [entry.name for entry, _, _ in heard[: len(heard) - len(own)]]
            }
        listing: dict[str, list[str]] = {}
        for entry in self._registrations:
            listing.setdefault(entry.pattern, []).append(entry.name)
        return listing

    def has_handlers(self, event: str, /) -> bool:
        """Whether anybody hears the event."""
        if not self._registrations:
            return event in self._own_audience
        audience = self._table.get(event)
        return bool(self._audience(event) if audience is None else audience)

    def middleware(self, event: str, /) -> MiddlewareChain | None:
        """Return what surrounds a point, by the name under which it is registered; `None` where nothing does.

        Raises:
            ConfigError: the order of several cannot be what they say.
        """
        if not self._registrations:
            return None
        if event not in self._chains:
            self._chains[event] = self._chain(event)
        return self._chains[event]

    def _chain(self, event: str) -> MiddlewareChain | None:
        # no pattern: whoever hears everything is no middleware
        found = [entry for entry in self._registrations if entry.pattern == event]
        if not found:
            return None
        from amplifier.kernel.hooks.middleware import chain_of, in_order

        return chain_of(in_order(found))

    def has_any_handlers(self, events: tuple[str, ...], /) -> bool:
        """Whether anybody hears one of several events, which are always asked about together."""
        if not self._registrations:
            return False
        found = self._any.get(events)
        if found is None:
            found = self._any[events] = any(map(self.has_handlers, events))
        return found

    @overload
    def emit(
        self, event: Event[P], data: P, /
    ) -> Coroutine[object, object, Emission]: ...
    @overload
    def emit(
        self, event: str, data: Mapping[str, object] | None, /
    ) -> Coroutine[object, object, Emission]: ...
    def emit(
        self, event: str, data: Mapping[str, object] | None, /
    ) -> Coroutine[object, object, Emission]:
        """Call the event's handlers in turn and return everything they decided.

        The returned data are the final ones, with every handler's changes.
        """
        if self._registrations:
            audience = self._table.get(event)
        else:
            audience = self._own_audience.get(event, _NOBODY)
        return self._dispatch(
            event, self._audience(event) if audience is None else audience, data
        )

    async def _dispatch(
        self, event: str, audience: _Audience, data: Mapping[str, object] | None
    ) -> Emission:
        """Call handlers in turn; a blocking one that decided on data which changed later runs once more."""
        # a plain dict is the emitter's own and stays the same object where nobody
        # changes it
        final: dict[str, object] = data if type(data) is dict else dict(data or {})
        if not audience:
            return Emission(final)
        if event in REQUEST_EVENTS:
            final = {**final, **request_fields(event, final)}
        fields, now = self._fields(), timestamp()
        decisions: list[Decision] = []
        asked: list[_Asked] = []
        stale: list[_Asked] = []
        before, seen = final, read_only_entries(final)
        for listener in audience:
            shown = fields | seen  # half of what a display of both costs
            shown["timestamp"] = now
            decision = await self._ask(listener, event, shown)
            if listener[1]:
                asked.append((listener, decision))
            if decision is None:
                continue
            decisions.append(decision)
            if decision.result.action == "deny":
                # a denial stands whatever the handlers before it would say of the
                # changed data
                stale = []
                break
            changed = _changed(final, fields, decision.result)
            if changed is not final:
                final = changed
                seen = read_only_entries(final)
                # its own change is known to the handler that made it
                stale = [entry for entry in asked if entry[0] is not listener]
        if stale:
            await self._ask_again(event, stale, final, decisions)
        if not decisions:
            return Emission(final)
        emission = Emission(final, tuple(decisions))
        await self._report_decisions(event, before, emission)
        return emission

    def reserve(self, *events: str) -> None:
        """Emit some events by `emit_reserved` alone, instead of those reserved before."""
        # the table has the audiences without the reservation, so it is made anew
        self._reserved = frozenset(events)
        self.refresh()

    async def emit_reserved(self, event: str, data: Mapping[str, object], /) -> None:
        """Emit an event whether or not it is reserved."""
        await self._dispatch(event, self._hearing(event), data)

    async def emit_and_collect(
        self, event: str, data: Mapping[str, object], timeout: float = 1.0
    ) -> list[Mapping[str, object]]:
        """Call the event's handlers in turn and return the data of their answers, whatever their action.

        Args:
            event: the event's name.
            data: what the handlers get, a copy each.
            timeout: seconds for each handler; one that takes longer or fails is reported and skipped.
        """
        found = []
        for registration, _, _ in self._audience(event):
            try:
                answer = await registration.call(event, dict(data), timeout)
            except (Exception, SystemExit) as error:  # foreign code
                self._report(registration, event, error)
                continue
            if isinstance(answer, HookResult) and answer.data is not None:
                found.append(answer.data)
        return found

    async def _ask(
        self, listener: _Listener, event: str, shown: dict[str, object]
    ) -> Decision | None:
        """Call one handler behind the wall to foreign code; a blocking one that fails denies."""
        registration, is_blocking, timeout = listener
        started = perf_counter()
        try:
            answer = await registration.call(event, shown, timeout)
            result = None
            if answer is not None:
                result = read_answer(answer, event, shown)
        except (Exception, SystemExit) as error:  # foreign code
            self._report(registration, event, error)
            if not is_blocking or "deny" not in actions_of(event).actions:
                return None
            if isinstance(error, LateError):
                problem = str(error)
            else:
                problem = f"{type(error).__name__}: {error}"
            result = HookResult.deny(f"handler {registration.name!r} failed: {problem}")
        if result is None:
            return None
        return Decision(
            registration.name, result, perf_counter() - started, registration.plugin
        )

    async def _ask_again(
        self,
        event: str,
        stale: list[_Asked],
        data: dict[str, object],
        decisions: list[Decision],
    ) -> None:
        """Show the changed data to the blocking handlers that saw the old; their new answers replace the old ones."""
        fields = self._fields()
        seen = read_only_entries(data)
        for listener, before in stale:
            decision = await self._ask(
                listener, event, {**fields, **seen, "timestamp": timestamp()}
            )
            # a change that was made is in the data already and cannot be taken back
            if before is not None and before.result.action != "modify":
                decisions.remove(before)
            if decision is None:
                continue
            if decision.result.action == "modify":
                if _changed(data, fields, decision.result) is data:
                    continue
                # two handlers that undo each other's changes would never come to an end
                reason = f"{decision.handler} changed the data again after a later handler had"
                decision = attrs.evolve(decision, result=HookResult.deny(reason))
            decisions.append(decision)
            if decision.result.action == "deny":
                return

    async def _report_decisions(
        self, event: str, data: Mapping[str, object], emission: Emission
    ) -> None:
        """Emit what was decided on an event, for those who keep a log of it."""
        # what is decided on a decision is not reported again, which would not end
        if event == HOOK_DECIDED or not self.has_handlers(HOOK_DECIDED):
            return
        # few sessions keep a log
        from amplifier.kernel.hooks.decided import decided_payloads

        for payload in decided_payloads(
            event, {**self._fields(), **data}, emission, self.module_of
        ):
            await self.emit(HOOK_DECIDED, payload)

    def _report(
        self, registration: Registration, event: str, error: BaseException
    ) -> None:
        if not registration.reported:
            registration.reported = True
            report("hook.failed", error, handler=registration.name, hook_event=event)

    def _fields(self) -> dict[str, object]:
        """Return what every event carries now: the session's fields and the ids of the running step."""
        span = current_span.get()
        if span is None:
            return self._defaults
        return span.fields(self._defaults)

    def _audience(self, event: str) -> _Audience:
        """Return who hears an event; worked out once for each event, and found by the event object itself."""
        found = self._table.get(event)
        if found is None:
            if event in self._reserved:
                found = self._table[event] = ()
            else:
                found = self._table[event] = self._hearing(event)
        return found

    def _hearing(self, event: str) -> _Audience:
        """Return who hears an event by priority; at one priority those of its name, then those of a pattern."""
        heard = [entry for entry in self._registrations if entry.hears(event)]
        # a stable sort: within both keys the order of registration stays
        heard.sort(key=lambda entry: (entry.priority, entry.pattern != event))
        listeners = [
            (
                entry,
                is_blocking := entry.decides_on(event),
                self._limit(entry, is_blocking),
            )
            for entry in heard
        ]
        return (*listeners, *self._own_audience.get(event, _NOBODY))

    def _limit(self, registration: Registration, is_blocking: bool) -> float | None:
        """Return a handler's deadline: its own, else the session's for a blocking one."""
        return registration.timeout or (self.hook_timeout if is_blocking else None)

    def _remove(self, registration: Registration) -> None:
        if registration in self._own:
            self._own.remove(registration)
            self.refresh()

    @property
    def inheritable(self) -> Iterator[Registration]:
        """What a child hears of this session's handlers."""
        return (entry for entry in self._registrations if entry.inherited)

    def refresh(self) -> None:
        """Put the handlers in order, an ancestor's first, and drop what was worked out from them, children's too."""
        self._own.sort(key=lambda entry: (entry.priority, entry.order))
        # the parent's come first: what guards a session sees an event before its
        # child's own
        inherited = () if self._parent is None else self._parent.inheritable
        self._registrations = sorted(
            [*inherited, *self._own], key=lambda entry: entry.priority
        )
        self._table.clear()
        self._any.clear()
        self._chains.clear()
        for heir in self.heirs:
            heir.refresh()

    def _name(self, handler: object) -> str:
        """Name a handler after itself, with a number when the name is taken."""
        name = str(getattr(handler, "__name__", type(handler).__name__))
        taken = {entry.name for entry in self._registrations}
        if name not in taken:
            return name
        number = 2
        while f"{name}#{number}" in taken:
            number += 1
        return f"{name}#{number}"


def _is_known(owner: object) -> bool:
    """Whether anybody but an application is meant: in a registry without a coordinator, whoever is known."""
    return owner is not None


def _unknown_module(_: object) -> None:
    """Know no module: that of a registry without a coordinator."""


def _changed(
    data: dict[str, object], fields: dict[str, object], result: HookResult
) -> dict[str, object]:
    """Return the data with what a handler changed of them, or the data themselves when it changed nothing."""
    if result.action != "modify":
        return data
    changes = changes_of(result, {**fields, **data})
    if changes:
        return {**data, **changes}
    return data
