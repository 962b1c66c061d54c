"""The hook registry: who hears an event, and what all of them decided together.

Handlers run in turn, on the loop, each with its own shallow copy of the data. A handler that decides fails
closed: raising, answering nonsense or passing its deadline denies the operation and names it. A handler
that observes fails open and is reported once. When a handler changes the data, deciders that ran before
are asked again, and a second change is a deny: what was checked is what runs. An event that nobody hears
costs one look-up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, TypeVar, overload

import anyio
import attrs

from amplifier.kernel.clock import timestamp
from amplifier.kernel.reports import report
from amplifier.kernel.spans import current_span
from amplifier_sdk.contracts import Unregister
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
    from amplifier_sdk.contracts import TurnHost

__all__ = ["HookRegistry"]

P = TypeVar("P", bound=Mapping[str, object])

_Handler: TypeAlias = Callable[[str, dict[str, object]], Awaitable[HookResult | None] | HookResult | None]

DECIDING_EVENTS: Final = frozenset({str(TOOL_PRE), str(PROMPT_SUBMIT)})
"""The events whose handlers decide unless they say otherwise."""

_CONTINUE: Final = HookResult()
_NO_FIELDS: Final[dict[str, object]] = {}


@attrs.define(eq=False)
class _Registration:
    """One handler of one event or pattern."""

    pattern: str
    handler: _Handler
    priority: int
    order: int
    name: str
    decides: bool | None
    timeout: float | None
    is_async: bool
    reported: bool = False

    def hears(self, event: str) -> bool:
        return self.pattern == event or fnmatchcase(event, self.pattern)

    def decides_on(self, event: str) -> bool:
        return event in DECIDING_EVENTS if self.decides is None else self.decides


_Heard: TypeAlias = tuple[_Registration, bool]


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

    def __init__(self, *, hook_timeout: float = 30.0) -> None:
        self.hook_timeout = hook_timeout
        self._registrations: list[_Registration] = []
        self._table: dict[str, tuple[_Heard, ...]] = {}
        self._any: dict[tuple[str, ...], bool] = {}
        self._defaults: dict[str, object] = {}
        self._count = 0
        self._host: TurnHost | None = None

    @property
    def host(self) -> TurnHost:
        """The host that runs provider and tool calls; a registry without a session gets one of its own."""
        if self._host is None:
            from amplifier.kernel.calls import Host  # the floor above: needed only by a registry on its own

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
    ) -> Unregister: ...
    @overload
    def register(
        self,
        event: str,
        handler: _Handler,
        priority: int = 0,
        name: str | None = None,
        *,
        decides: bool | None = None,
        timeout: float | None = None,
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
    ) -> Unregister:
        """Call a handler on each event; see `amplifier_sdk.contracts.Hooks.register`.

        Raises:
            TypeError: the handler cannot be called.
        """
        if not callable(handler):
            raise TypeError(f"A handler of {event!r} must be callable; got {handler!r}")
        self._count += 1
        registration = _Registration(
            pattern=str(event),
            handler=handler,
            priority=priority,
            order=self._count,
            name=self._name(handler) if name is None else name,
            decides=decides,
            timeout=timeout,
            is_async=iscoroutinefunction(handler) or iscoroutinefunction(type(handler).__call__),
        )
        self._registrations.append(registration)
        self._registrations.sort(key=lambda entry: (entry.priority, entry.order))
        self._forget()
        return partial(self._remove, registration)

    on = register

    def unregister(self, name: str) -> None:
        """Take back every registration of a name; an unknown name is ignored."""
        self._registrations = [entry for entry in self._registrations if entry.name != name]
        self._forget()

    def list_handlers(self, event: str | None = None) -> dict[str, list[str]]:
        """Return the handlers' names by event or pattern, in the order in which they run."""
        if event is not None:
            return {event: [entry.name for entry, _ in self._handlers(event)]}
        listing: dict[str, list[str]] = {}
        for entry in self._registrations:
            listing.setdefault(entry.pattern, []).append(entry.name)
        return listing

    def has_handlers(self, event: str, /) -> bool:
        """Whether anybody hears the event."""
        if not self._registrations:
            return False
        found = self._table.get(event)
        return bool(self._handlers(event) if found is None else found)

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
    async def emit(self, event: str, data: Mapping[str, object] | None, /) -> Emission:
        """Call the event's handlers in turn and return everything they decided.

        The returned data are the final ones, with every handler's changes.
        """
        handlers = self._table.get(event) if self._registrations else ()
        if handlers is None:
            handlers = self._handlers(event)
        if not handlers:
            return Emission(data if type(data) is dict else dict(data or {}))
        return await self._ask_all(event, handlers, dict(data or {}))

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
        for registration, _ in self._handlers(event):
            try:
                answer = await _within(timeout, registration, event, dict(data))
            except (Exception, SystemExit) as error:  # foreign code
                self._report(registration, event, error)
                continue
            if isinstance(answer, HookResult) and answer.data is not None:
                found.append(answer.data)
        return found

    async def _ask_all(self, event: str, handlers: tuple[_Heard, ...], data: dict[str, object]) -> Emission:
        decisions: list[Decision] = []
        asked: list[tuple[_Registration, Decision | None]] = []
        stale: list[tuple[_Registration, Decision | None]] = []
        fields, now = self._fields(), timestamp()
        for registration, decides in handlers:
            started = perf_counter()
            result = await self._ask(registration, event, {**fields, **data, "timestamp": now}, decides)
            decision = None if result is _CONTINUE else Decision(registration.name, result, perf_counter() - started)
            if decides:
                asked.append((registration, decision))
            if decision is None:
                continue
            decisions.append(decision)
            if result.action == "deny":
                return Emission(data, decisions)
            if result.action == "modify" and _overlay(data, fields, result.data):
                stale = [entry for entry in asked if entry[0] is not registration]
        if stale:
            await self._ask_again(event, stale, data, decisions)
        return Emission(data, decisions)

    async def _ask_again(
        self,
        event: str,
        stale: list[tuple[_Registration, Decision | None]],
        data: dict[str, object],
        decisions: list[Decision],
    ) -> None:
        """Show the changed data to the deciders that saw the old; their new answers replace the old ones."""
        fields = self._fields()
        for registration, before in stale:
            started = perf_counter()
            shown = {**fields, **data, "timestamp": timestamp()}
            result = await self._ask(registration, event, shown, decides=True)
            if before is not None and before.result.action != "modify":
                decisions.remove(before)
            if result.action == "modify" and _overlay(dict(data), fields, result.data):
                result = HookResult.deny(f"{registration.name} changed the data again after a later handler had")
            if result is not _CONTINUE and result.action != "modify":
                decisions.append(Decision(registration.name, result, perf_counter() - started))
            if result.action == "deny":
                return

    async def _ask(self, registration: _Registration, event: str, data: dict[str, object], decides: bool) -> HookResult:
        """Call one handler behind the wall to foreign code; `data` is its own copy."""
        timeout = registration.timeout or (self.hook_timeout if decides else None)
        try:
            if timeout is None:
                answer: object = registration.handler(event, data)
                if registration.is_async or isawaitable(answer):
                    answer = await answer  # type: ignore[misc]  # an async handler's answer is awaitable
            else:
                answer = await _within(timeout, registration, event, data)
            return _CONTINUE if answer is None else _read(answer)
        except (Exception, SystemExit) as error:  # foreign code
            return self._failed(registration, event, error, decides)

    def _failed(self, registration: _Registration, event: str, error: BaseException, decides: bool) -> HookResult:
        self._report(registration, event, error)
        if not decides:
            return _CONTINUE
        problem = str(error) if isinstance(error, _LateError) else f"{type(error).__name__}: {error}"
        return HookResult.deny(f"handler {registration.name!r} failed: {problem}")

    def _report(self, registration: _Registration, event: str, error: BaseException) -> None:
        if not registration.reported:
            registration.reported = True
            report("hook.failed", error, handler=registration.name, hook_event=event)

    def _fields(self) -> dict[str, object]:
        """Return what every event carries now: the session's fields and the ids of the running step."""
        span = current_span.get()
        return self._defaults if span is None else span.fields(self._defaults)

    def _handlers(self, event: str) -> tuple[_Heard, ...]:
        """Return who hears an event, in order, and whether each decides; worked out once for each event."""
        if not self._registrations:
            return ()
        found = self._table.get(event)
        if found is None:
            heard = (entry for entry in self._registrations if entry.hears(event))
            found = self._table[str(event)] = tuple((entry, entry.decides_on(event)) for entry in heard)
        return found

    def _remove(self, registration: _Registration) -> None:
        if registration in self._registrations:
            self._registrations.remove(registration)
            self._forget()

    def _forget(self) -> None:
        """Drop what was worked out from the registrations."""
        self._table.clear()
        self._any.clear()

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


class _LateError(Exception):
    """A handler passed its deadline."""


async def _within(timeout: float, registration: _Registration, event: str, data: dict[str, object]) -> object:
    """Call a handler under a deadline of its own.

    Raises:
        _LateError: it did not answer within `timeout` seconds.
    """
    answer: object = None
    with anyio.move_on_after(timeout) as scope:
        answer = registration.handler(event, data)
        if isawaitable(answer):
            answer = await answer
    if scope.cancelled_caught:
        raise _LateError(f"no answer within {timeout:g} s")
    return answer


def _read(answer: object) -> HookResult:
    """Read a handler's answer; an empty mapping means `continue`.

    Raises:
        TypeError: it is neither a `HookResult` nor a mapping of its fields.
    """
    if isinstance(answer, HookResult):
        plain = answer.action == "continue" and not answer.user_message
        return _CONTINUE if plain else answer
    if isinstance(answer, Mapping):
        return _read(HookResult(**answer)) if answer else _CONTINUE
    raise TypeError(f"a handler returns a HookResult or None; got {answer!r:.200}")


def _overlay(data: dict[str, object], fields: dict[str, object], changes: Mapping[str, object] | None) -> bool:
    """Put what a handler changed over the data; return whether it changed anything.

    A handler may send back all it got: what it left as it was, the ids and the time among them, is no
    change.
    """
    shown = {**fields, **data}
    changed = {
        key: value
        for key, value in (changes or _NO_FIELDS).items()
        if key != "timestamp" and (key not in shown or (shown[key] is not value and shown[key] != value))
    }
    data.update(changed)
    return bool(changed)
