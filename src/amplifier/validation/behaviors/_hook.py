"""How a hook listens: to which events, under which names, in which turns."""

from __future__ import annotations

import inspect
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Final

import anyio
import anyio.lowlevel

from amplifier.validation.behaviors._cancelling import ends_in_time
from amplifier.validation.behaviors._parts import Worker
from amplifier.validation.behaviors._stage import Setting, Stage, open_stage
from amplifier.validation.behaviors.behavior import BehaviorFailed, Suite, require
from amplifier.validation.behaviors.subject import Subject
from amplifier_kit.scripted import answer, call
from amplifier_sdk.decisions import HOOK_DECIDED
from amplifier_sdk.errors import AmplifierError, did_you_mean
from amplifier_sdk.events import ALL_EVENTS
from amplifier_sdk.loops.events import BASE_EVENTS
from amplifier_sdk.progress import TOOL_OUTPUT, TOOL_PROGRESS

HOOK: Final = Suite("hook")


@HOOK.behavior(fix="Register handlers on coordinator.hooks in mount, or mark methods with @on.")
async def hears_something(subject: Subject) -> None:
    """It registers at least one handler when it is mounted."""
    async with open_stage(subject) as stage:
        require(stage.handlers, "No handler is registered")


@HOOK.behavior(fix="Correct the event's name: take it from amplifier_sdk.events, or declare the module's own.")
async def hears_events_that_exist(subject: Subject) -> None:
    """Every event that it listens to is canonical, declared by some module, or a pattern that some event fits."""
    async with open_stage(subject) as stage:
        contributions = await stage.coordinator.collect_contributions("observability.events")
        handlers = stage.handlers
    declared = [name for names in contributions if isinstance(names, (list, tuple)) for name in names]
    known = [*map(str, (*ALL_EVENTS, *BASE_EVENTS, TOOL_PROGRESS, TOOL_OUTPUT, HOOK_DECIDED)), *declared]
    for handler in handlers:
        heard = any(fnmatchcase(name, handler.event) for name in known) or not _is_ours(handler.event)
        require(heard, f"No event is called {handler.event!r}{did_you_mean(handler.event, known)}")


def _is_ours(event: str) -> bool:
    """Tell whether an event's name begins like a canonical one: other names may belong to other modules."""
    return ":" not in event or any(name.startswith(event.partition(":")[0][:4]) for name in ALL_EVENTS)


@HOOK.behavior(fix="Register each handler once for an event.")
async def hears_each_event_once(subject: Subject) -> None:
    """No handler is registered twice for one event."""
    async with open_stage(subject) as stage:
        seen = [(handler.event, handler.name) for handler in stage.handlers]
    twice = sorted({f"{name} for {event}" for event, name in seen if seen.count((event, name)) > 1})
    require(not twice, f"Registered twice: {', '.join(twice)}")


@HOOK.behavior(fix="Give handlers a name: pass name= to register, or use a named function or method.")
async def names_its_handlers(subject: Subject) -> None:
    """Every handler has a name by which logs and denials call it."""
    async with open_stage(subject) as stage:
        bare = [handler.event for handler in stage.handlers if not handler.name or "<lambda>" in handler.name]
    require(not bare, f"Without a name: the handlers of {', '.join(bare)}")


@HOOK.behavior(fix="Write handlers as (event, data).")
async def takes_an_event_and_its_data(subject: Subject) -> None:
    """Every handler can be called with an event's name and its data."""
    async with open_stage(subject) as stage:
        for handler in stage.handlers:
            try:
                inspect.signature(handler.handler).bind("tool:pre", {})
            except TypeError as error:
                raise BehaviorFailed(f"{handler.name} cannot be called with an event and its data: {error}") from error


@HOOK.behavior(fix="Pass a whole number as priority; lower runs earlier.")
async def has_numbers_as_priorities(subject: Subject) -> None:
    """The priority of every handler is a whole number."""
    async with open_stage(subject) as stage:
        odd = [h.name for h in stage.handlers if not isinstance(h.priority, int) or isinstance(h.priority, bool)]
    require(not odd, f"With another priority: {', '.join(odd)}")


@HOOK.behavior(fix="Register handlers in mount, not when the package is imported, and not for ever.")
async def hears_in_every_session(subject: Subject) -> None:
    """A second session has the same handlers as the first."""
    async with open_stage(subject) as first:
        pass
    async with open_stage(subject) as second:
        pass
    names = [[(handler.event, handler.name) for handler in stage.handlers] for stage in (first, second)]
    require(names[0] == names[1], f"First {names[0]}, then {names[1]}")


@HOOK.behavior(fix="Keep what a handler notes in its instance, one for each session.")
async def hears_its_own_session_alone(subject: Subject) -> None:
    """A handler that is registered in one session is not called by another."""
    async with open_stage(subject) as first, open_stage(subject) as second:
        listings = [stage.coordinator.hooks.list_handlers() for stage in (first, second)]
    require(listings[0] == listings[1], f"The sessions have {listings[0]} and {listings[1]}")


def failures(stage: Stage) -> list[str]:
    """Return the handlers that raised, as their registration notes."""
    return [handler.name for handler in stage.handlers if handler.failures]


async def _turn(subject: Subject, *, tool: Worker | None = None, fails: bool = False) -> Stage:
    """Run a turn with the hook, whatever it decides about it; go on when no handler raised."""
    steps = (OSError("the line went dead"),) if fails else (answer(call("work", {"text": "a"})), "Done.", "Done.")
    async with open_stage(subject, Setting(tools=(tool or Worker(),)), *steps) as stage:
        with suppress(OSError, AmplifierError):
            await stage.turn()
    require(not failures(stage), f"Handlers that raised: {', '.join(failures(stage))}")
    return stage


@HOOK.behavior(fix="Read the data with defaults, and let handlers return HookResult or None instead of raising.")
async def serves_a_turn(subject: Subject) -> None:
    """In a turn with a tool call none of its handlers raises."""
    await _turn(subject)


async def _raise(text: str) -> str:
    raise OSError(f"no disk for {text}")


@HOOK.behavior(fix="Expect tool:error: its data has 'error' and no result.")
async def serves_a_turn_with_a_failing_tool(subject: Subject) -> None:
    """In a turn with a tool that raises none of its handlers raises."""
    await _turn(subject, tool=Worker(work=_raise))


@HOOK.behavior(fix="Expect provider:error, and turns without prompt:complete.")
async def serves_a_turn_that_fails(subject: Subject) -> None:
    """In a turn whose provider fails none of its handlers raises."""
    await _turn(subject, fails=True)


@HOOK.behavior(fix="Expect cancel:requested and turns without an answer, and let cancellation pass.", is_timed=True)
async def serves_a_turn_that_is_cancelled(subject: Subject) -> None:
    """A turn that is cancelled ends within two seconds, and none of its handlers raises."""
    async with open_stage(subject, None, answer("Well, ", anyio.Event(), "yes.")) as stage:
        ended = anyio.Event()

        async def run() -> None:
            with suppress(AmplifierError):
                await stage.turn()
            ended.set()

        with ends_in_time("The turn", "it was cancelled"):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                # A handler may deny the prompt, and then nobody is asked: either may come first.
                while not stage.model.requests and not ended.is_set():
                    await anyio.lowlevel.checkpoint()
                await stage.session.cancel(immediate=True)
    require(not failures(stage), f"Handlers that raised: {', '.join(failures(stage))}")


@HOOK.behavior(fix="Do not emit the event that the handler listens to, or guard against its own.")
async def does_not_answer_itself(subject: Subject) -> None:
    """None of its handlers is called again by what it emits itself."""
    async with open_stage(subject) as stage:
        for event in sorted({handler.event for handler in stage.handlers if "*" not in handler.event}):
            stage.heard.clear()
            await stage.coordinator.hooks.emit(event, {"prompt": "x", "tool_name": "work", "tool_input": {}})
            require(len(stage.all(event)) == 1, f"One {event} became {len(stage.all(event))}")
