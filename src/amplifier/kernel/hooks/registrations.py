"""A registration: one handler of one event or pattern, and how it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase
from inspect import isawaitable
from time import perf_counter
from typing import Final, TypeAlias, cast

import anyio
import attrs

from amplifier.kernel.foreign import ForeignCall
from amplifier.kernel.hooks.actions import checked_result
from amplifier.kernel.hooks.readonly import writable
from amplifier.kernel.hooks.watchdog import WAITING, watchdog
from amplifier.kernel.spans import current_module
from amplifier_sdk.bounds import seconds
from amplifier_sdk.events import PROMPT_SUBMIT, TOOL_PRE
from amplifier_sdk.results import HookResult

__all__ = [
    "DECIDING_EVENTS",
    "Handler",
    "LateError",
    "Registration",
    "changes_of",
    "read_answer",
]

Handler: TypeAlias = Callable[
    [str, dict[str, object]], Awaitable[HookResult | None] | HookResult | None
]
"""What hears an event: it gets the event's name and a copy of its data of its own."""

DECIDING_EVENTS: Final = frozenset({str(TOOL_PRE), str(PROMPT_SUBMIT)})
"""The events whose handlers decide unless they say otherwise."""


@attrs.define(eq=False, repr=False)
class Registration:
    """One handler of one event or pattern.

    `warn_after` is how many seconds an event may wait in it before the watchdog reports that; `warned` are the
    events of which it did. `reported` says that a failure was reported. `plugin` is the plugin of the module that
    registered it, `None` for an application's; `inherited` says that the session's children have it as well.
    """

    pattern: str
    handler: Handler
    priority: int
    order: int
    name: str
    decides: bool | None
    timeout: float | None = attrs.field(validator=attrs.validators.optional(seconds))
    is_async: bool
    warn_after: float
    reported: bool = False
    warned: frozenset[str] = frozenset()
    plugin: object = attrs.field(factory=current_module.get)
    inherited: bool = False

    def hears(self, event: str) -> bool:
        """Whether the handler hears an event."""
        return self.pattern == event or fnmatchcase(event, self.pattern)

    def decides_on(self, event: str) -> bool:
        """Whether the handler decides on an event, so that its failure is a denial."""
        if self.decides is None:
            return event in DECIDING_EVENTS
        return self.decides

    async def call(
        self, event: str, data: dict[str, object], timeout: float | None = None
    ) -> object:
        """Call the handler in the watchdog's sight and return its answer, which nobody has read yet.

        Args:
            event: what it hears.
            data: its own copy of the event's data.
            timeout: seconds that it may take.

        Raises:
            LateError: it did not answer in time.
        """
        # by the data's identity: each call has a copy of its own, and a dict has no
        # hash
        WAITING[id(data)] = (self, event, data, perf_counter())
        if not watchdog.is_awake:
            watchdog.wake()
        token = current_module.set(self.plugin)
        try:
            answer: object = self.handler(event, data)
            # asked of the function first: most are coroutine functions, and the other
            # costs more
            if self.is_async or isawaitable(answer):
                return await self._awaited(cast("Awaitable[object]", answer), timeout)
            return answer
        finally:
            current_module.reset(token)
            del WAITING[id(data)]

    async def _awaited(
        self, answer: Awaitable[object], timeout: float | None
    ) -> object:
        name = f"Handler {self.name!r}"
        # an observer has no deadline; it needs the containment alone
        if timeout is None:
            return await ForeignCall(name).run(answer)
        foreign = ForeignCall(name, anyio.CancelScope(), timeout)
        given = await foreign.run(answer)
        if foreign.cancelled_caught:
            raise LateError(f"no answer within {timeout:g} s")
        return given


class LateError(Exception):
    """A handler passed its deadline."""


def read_answer(
    answer: object, event: str, shown: Mapping[str, object]
) -> HookResult | None:
    """Read what a handler answered; `None` when it changes nothing, as an empty mapping does.

    One that approves does more: it answers for the call.

    Args:
        answer: what it returned.
        event: what it heard.
        shown: the data that it was shown.

    Raises:
        TypeError: it is neither a `HookResult` nor a mapping of its fields, or nothing that the event takes.
    """
    if isinstance(answer, HookResult):
        if answer.action == "continue":
            if answer.user_message or answer.approves:
                return answer
            return None
        return _freed(checked_result(event, answer, shown), shown)
    if isinstance(answer, Mapping):
        if answer:
            return read_answer(HookResult(**answer), event, shown)
        return None
    raise TypeError(f"a handler returns a HookResult or None; got {answer!r:.200}")


def _freed(result: HookResult, shown: Mapping[str, object]) -> HookResult:
    """Return an answer whose changes are plain data, also where a handler built them of its views."""
    if result.data is None:
        return result
    made: dict[int, object] = {}  # one object under two names stays one
    data: dict[str, object] = {}
    for key, value in result.data.items():
        if id(value) not in made:
            if shown.get(key) is value:
                made[id(value)] = value
            else:
                made[id(value)] = writable(value)
        data[key] = made[id(value)]
    return attrs.evolve(result, data=data)


def changes_of(result: HookResult, shown: Mapping[str, object]) -> dict[str, object]:
    """Return what an answer changes of the data that its handler was shown.

    A handler may send back all it got: what it left as it was, the ids and the time among them, is no change.
    """
    if result.action != "modify" or not result.data:
        return {}
    return {
        key: value
        for key, value in result.data.items()
        if key != "timestamp"
        and (key not in shown or (shown[key] is not value and shown[key] != value))
    }
