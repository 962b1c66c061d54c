"""The hook registry: who hears an event, and what all of them decided together.

Handlers run in turn, on the loop, each with its own shallow copy of the data. A handler that decides fails
closed: raising, answering nonsense or passing its deadline denies the operation and names it. A handler
that observes fails open and is reported once. When a handler changes the data, deciders that ran before
are asked again, and a second change is a deny: what was checked is what runs. An event that nobody hears
costs one look-up.

What an application registers on a session its children hear as well: a child's registry shows its parent's as it
is at any time. What modules register is the session's own, since a child mounts its modules anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, TypeVar, overload

import attrs

from amplifier.kernel.clock import timestamp
from amplifier.kernel.hooks.registrations import Handler, LateError, Registration, changes_of, read_answer
from amplifier.kernel.hooks.requestids import REQUEST_EVENTS, request_fields
from amplifier.kernel.hooks.watchdog import WAITING, watchdog
from amplifier.kernel.reports import report
from amplifier.kernel.spans import current_module, current_span
from amplifier_sdk.actions import actions_of
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
from amplifier_sdk.readonly import read_only_entries
from amplifier_sdk.results import Decision, Emission, HookResult

if TYPE_CHECKING:
    from amplifier_sdk.contracts import TurnHost

__all__ = ["HookRegistry"]

P = TypeVar("P", bound=Mapping[str, object])

_Asked: TypeAlias = tuple[Registration, Decision | None]
"""A handler that decides, and what it said."""


@attrs.define(eq=False, repr=False)
class _Audience:
    """Who hears an event, in order; `asks` says that a deadline, a second look or a request's id may be needed."""

    handlers: tuple[Registration, ...] = ()
    asks: bool = False


_NOBODY: Final = _Audience()
_NOTHING_RESERVED: Final[frozenset[str]] = frozenset()  # an empty set takes as much as one of four


class HookRegistry:
    """A session's handlers; see `amplifier_sdk.contracts.Hooks`."""

    SESSION_START: ClassVar = SESSION_START
    SESSION_END: ClassVar = SESSION_END
    PROMPT_SUBMIT: ClassVar = PROMPT_SUBMIT
    TOOL_PRE: ClassVar = TOOL_PRE
    TOOL_POST: ClassVar = TOOL_POST
    CONTEXT_PRE_COMPACT: ClassVar = CONTEXT_PRE_COMPACT
    ORCHESTRATOR_COMPLETE: ClassVar = ORCHESTRATOR_COMPLETE
    USER_NOTIFICATION: ClassVar = USER_NOTIFICATION

    def __init__(self, *, hook_timeout: float = 30.0, hook_warning: float = 10.0) -> None:
        self.hook_timeout = hook_timeout
        self.hook_warning = hook_warning
        self._registrations: list[Registration] = []  # all that hear, those of the sessions above among them
        self._own: list[Registration] = []
        self._parent: HookRegistry | None = None
        self.heirs: list[HookRegistry] = []
        self._table: dict[str, _Audience] = {}
        self._any: dict[tuple[str, ...], bool] = {}
        self._reserved: frozenset[str] = _NOTHING_RESERVED
        self._defaults: dict[str, object] = {}
        self.registered: int = 0  # how many there have been, those that were taken back among them
        self._host: TurnHost | None = None
        self.module_of: Callable[[object], str | None] = _unknown_module
        self.is_module: Callable[[object], bool] = _is_somebody

    @property
    def host(self) -> TurnHost:
        """The host that runs provider and tool calls; a registry without a session gets one of its own."""
        if self._host is None:
            from amplifier.kernel.calls.host import Host  # the floor above: needed only by a registry on its own

            self._host = Host(hooks=self)
        return self._host

    @host.setter
    def host(self, host: TurnHost) -> None:
        self._host = host

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
            decides=decides,
            timeout=timeout,
            is_async=iscoroutinefunction(handler) or iscoroutinefunction(type(handler).__call__),
            patience=self.hook_warning,
            plugin=plugin,
            inherited=inherited and not self.is_module(plugin),
        )
        self._own.append(registration)
        self.refresh()
        return partial(self._remove, registration)

    on = register

    def unregister(self, name: str) -> None:
        """Take back every registration of a name; an unknown name is ignored, and so is a parent's."""
        self._own = [entry for entry in self._own if entry.name != name]
        self.refresh()

    def forget_module(self, plugin: object, since: int = 0) -> None:
        """Take back every registration that a module made while it was mounted, but for the first `since` of all."""
        self._own = [entry for entry in self._own if entry.plugin is not plugin or entry.order <= since]
        self.refresh()

    def inherit(self, parent: HookRegistry) -> Unregister:
        """Hear what the parent's application registered and registers; return what ends the parent's interest in it."""
        self._parent = parent
        parent.heirs.append(self)
        self.refresh()
        return partial(parent.heirs.remove, self)

    @property
    def modules(self) -> frozenset[str]:
        """The modules that have registered handlers here; those of sessions above are not among them."""
        names = (self.module_of(entry.plugin) for entry in self._own if entry.plugin is not None)
        return frozenset(name for name in names if name is not None)

    def handlers_of(self, plugin: object) -> tuple[Registration, ...]:
        """Return the handlers that a module has registered."""
        return tuple(entry for entry in self._own if entry.plugin is plugin)

    def list_handlers(self, event: str | None = None) -> dict[str, list[str]]:
        """Return the handlers' names by event or pattern, in the order in which they run."""
        if event is not None:
            return {event: [entry.name for entry in self._audience(event).handlers]}
        listing: dict[str, list[str]] = {}
        for entry in self._registrations:
            listing.setdefault(entry.pattern, []).append(entry.name)
        return listing

    def has_handlers(self, event: str, /) -> bool:
        """Whether anybody hears the event."""
        if not self._registrations:
            return False
        audience = self._table.get(event)
        return bool((self._audience(event) if audience is None else audience).handlers)

    def has_any_handlers(self, events: tuple[str, ...], /) -> bool:
        """Whether anybody hears one of several events, which are always asked about together."""
        if not self._registrations:
            return False
        found = self._any.get(events)
        if found is None:
            found = self._any[events] = any(map(self.has_handlers, events))
        return found

    @overload
    async def emit(self, event: Event[P], data: P, /) -> Emission: ...
    @overload
    async def emit(self, event: str, data: Mapping[str, object] | None, /) -> Emission: ...
    async def emit(  # noqa: C901  # the hot path of a turn: each coroutine more is felt
        self, event: str, data: Mapping[str, object] | None, /
    ) -> Emission:
        """Call the event's handlers in turn and return everything they decided.

        The returned data are the final ones, with every handler's changes.
        """
        audience = self._table.get(event) if self._registrations else _NOBODY
        if audience is None:
            audience = self._audience(event)
        final: dict[str, object] = data if type(data) is dict else dict(data or {})
        if not audience.handlers:
            return Emission(final)
        if audience.asks:
            return await self._ask_and_tell(event, audience.handlers, final)
        span = current_span.get()
        fields, now = self._defaults if span is None else span.fields(self._defaults), timestamp()
        decisions: tuple[Decision, ...] = ()
        seen = read_only_entries(final)
        for registration in audience.handlers:
            shown = fields | seen  # half of what a display of both costs
            shown["timestamp"] = now
            started = perf_counter()
            place = id(shown)
            WAITING[place] = (registration, event, shown, started)
            if not watchdog.is_awake:
                watchdog.wake()
            owner = current_module.set(registration.plugin)
            try:
                answer = registration.handler(event, shown)
                if registration.is_async or isawaitable(answer):
                    answer = await answer  # type: ignore[misc]  # an async handler's answer is awaitable
                result = None if answer is None else read_answer(answer, event, shown)
            except (Exception, SystemExit) as error:  # foreign code
                self._report(registration, event, error)
                continue
            finally:
                current_module.reset(owner)
                del WAITING[place]
            if result is None:
                continue
            took = perf_counter() - started
            decisions = (*decisions, Decision(registration.name, result, took, registration.plugin))
            if result.action == "deny":
                break
            changed = _changed(final, fields, result)
            if changed is not final:
                final = changed
                seen = read_only_entries(final)
        emission = Emission(final, decisions)
        if decisions:
            await self._tell(event, data or {}, emission)
        return emission

    def reserve(self, *events: str) -> None:
        """Let nobody be told of some events but by `emit_reserved`, instead of those reserved before."""
        self._reserved = frozenset(events)
        self.refresh()

    async def emit_reserved(self, event: str, data: Mapping[str, object], /) -> None:
        """Tell everybody of an event, whether or not it is reserved."""
        await self._ask_all(event, self._hearing(event), dict(data))

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
        for registration in self._audience(event).handlers:
            try:
                answer = await registration.call_within(timeout, event, dict(data))
            except (Exception, SystemExit) as error:  # foreign code
                self._report(registration, event, error)
                continue
            if isinstance(answer, HookResult) and answer.data is not None:
                found.append(answer.data)
        return found

    async def _ask_all(self, event: str, handlers: tuple[Registration, ...], final: dict[str, object]) -> Emission:
        """Call handlers of which some decide; whoever decided on data that later changed is asked again."""
        if event in REQUEST_EVENTS:
            final = {**final, **request_fields(event, final)}
        fields, now = self._fields(), timestamp()
        decisions: list[Decision] = []
        asked: list[_Asked] = []
        stale: list[_Asked] = []
        seen = read_only_entries(final)
        for registration in handlers:
            decision = await self._ask(registration, event, {**fields, **seen, "timestamp": now})
            if registration.decides_on(event):
                asked.append((registration, decision))
            if decision is None:
                continue
            decisions.append(decision)
            result = decision.result
            if result.action == "deny":
                return Emission(final, decisions)
            changed = _changed(final, fields, result)
            if changed is not final:
                final = changed
                seen = read_only_entries(final)
                stale = [entry for entry in asked if entry[0] is not registration]
        if stale:
            await self._ask_again(event, stale, final, decisions)
        return Emission(final, decisions)

    async def _ask_again(
        self, event: str, stale: list[_Asked], data: dict[str, object], decisions: list[Decision]
    ) -> None:
        """Show the changed data to the deciders that saw the old; their new answers replace the old ones."""
        fields = self._fields()
        seen = read_only_entries(data)
        for registration, before in stale:
            decision = await self._ask(registration, event, {**fields, **seen, "timestamp": timestamp()})
            if before is not None and before.result.action != "modify":
                decisions.remove(before)
            if decision is None:
                continue
            if decision.result.action == "modify":
                if _changed(data, fields, decision.result) is data:
                    continue
                reason = f"{registration.name} changed the data again after a later handler had"
                decision = attrs.evolve(decision, result=HookResult.deny(reason))
            decisions.append(decision)
            if decision.result.action == "deny":
                return

    async def _ask(self, registration: Registration, event: str, data: dict[str, object]) -> Decision | None:
        """Call one handler behind the wall to foreign code, under its deadline; a failing decider denies."""
        decides = registration.decides_on(event)
        timeout = registration.timeout or (self.hook_timeout if decides else None)
        started = perf_counter()
        try:
            if timeout is None:
                answer = await registration.call(event, data)
            else:
                answer = await registration.call_within(timeout, event, data)
            result = read_answer(answer, event, data)
        except (Exception, SystemExit) as error:  # foreign code
            self._report(registration, event, error)
            if not decides or "deny" not in actions_of(event).actions:
                return None
            problem = str(error) if isinstance(error, LateError) else f"{type(error).__name__}: {error}"
            result = HookResult.deny(f"handler {registration.name!r} failed: {problem}")
        if result is None:
            return None
        return Decision(registration.name, result, perf_counter() - started, registration.plugin)

    async def _ask_and_tell(self, event: str, handlers: tuple[Registration, ...], data: dict[str, object]) -> Emission:
        emission = await self._ask_all(event, handlers, data)
        if emission.decisions:
            await self._tell(event, data, emission)
        return emission

    async def _tell(self, event: str, data: Mapping[str, object], emission: Emission) -> None:
        """Tell those who hear decisions what was decided on an event."""
        if event == HOOK_DECIDED or not self.has_handlers(HOOK_DECIDED):
            return
        from amplifier.kernel.hooks.telling import told  # few sessions keep a log

        for payload in told(event, {**self._fields(), **data}, emission, self.module_of):
            await self.emit(HOOK_DECIDED, payload)

    def _report(self, registration: Registration, event: str, error: BaseException) -> None:
        if not registration.reported:
            registration.reported = True
            report("hook.failed", error, handler=registration.name, hook_event=event)

    def _fields(self) -> dict[str, object]:
        """Return what every event carries now: the session's fields and the ids of the running step."""
        span = current_span.get()
        return self._defaults if span is None else span.fields(self._defaults)

    def _audience(self, event: str) -> _Audience:
        """Return who hears an event; worked out once for each event."""
        if not self._registrations:
            return _NOBODY
        found = self._table.get(event)
        if found is None:
            heard = () if event in self._reserved else self._hearing(event)
            asks = any(entry.timeout is not None or entry.decides_on(event) for entry in heard)
            found = self._table[str(event)] = _Audience(heard, asks or event in REQUEST_EVENTS)
        return found

    def _hearing(self, event: str) -> tuple[Registration, ...]:
        """Return who hears an event by priority; at one priority those of its name, then those of a pattern."""
        heard = [entry for entry in self._registrations if entry.hears(event)]
        return tuple(sorted(heard, key=lambda entry: (entry.priority, entry.pattern != event)))

    def _remove(self, registration: Registration) -> None:
        if registration in self._own:
            self._own.remove(registration)
            self.refresh()

    @property
    def inheritable(self) -> Iterator[Registration]:
        """What a child hears of this session's handlers."""
        return (entry for entry in self._registrations if entry.inherited)

    def refresh(self) -> None:
        """Put the handlers in order, an ancestor's first, and drop what was worked out from them, here and below."""
        self._own.sort(key=lambda entry: (entry.priority, entry.order))
        above = () if self._parent is None else self._parent.inheritable
        self._registrations = sorted([*above, *self._own], key=lambda entry: entry.priority)
        self._table.clear()
        self._any.clear()
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


def _is_somebody(owner: object) -> bool:
    """Whether anybody but an application is meant: in a registry without a coordinator, whoever is known."""
    return owner is not None


def _unknown_module(_: object) -> None:
    """Know no module: that of a registry without a coordinator."""


def _changed(data: dict[str, object], fields: dict[str, object], result: HookResult) -> dict[str, object]:
    """Return the data with what a handler changed of them, or the data themselves when it changed nothing."""
    if result.action != "modify":
        return data
    changes = changes_of(result, {**fields, **data})
    return {**data, **changes} if changes else data
