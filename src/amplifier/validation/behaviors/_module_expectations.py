"""What must hold of every module, of its sessions and of what they leave."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping

import anyio

from amplifier.validation.behaviors import _limits
from amplifier.validation.behaviors._module_scenarios import (
    STRAY_KEY,
    Refused,
    secrets_of,
)
from amplifier.validation.behaviors._payloads import REQUIRED
from amplifier.validation.behaviors.behavior import (
    BehaviorFailed,
    NotApplicable,
    require,
    skip_unless,
)
from amplifier.validation.behaviors.harness import Harness, SessionSetup, open_harness
from amplifier.validation.behaviors.subject import Samples, Subject
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.events import MODULE_ON_SESSION_READY_FAILED
from amplifier_sdk.jsontypes import JSONValue

_EVENT_NAME = re.compile(r"[a-z0-9_\-]+(:[a-z0-9_\-]+)+")


def is_there(harness: Harness) -> None:
    present = harness.handlers if harness.subject.kind == "hook" else harness.instances
    require(
        present,
        "The session started, but nothing was mounted and no handler registered",
    )


def has_both_names(harness: Harness) -> None:
    mounted = harness.named
    names = ["first-instance", "second-instance"]
    require(set(names) <= set(mounted), f"Mounted are {sorted(mounted)}, not {names}")


def got_ready(harness: Harness) -> None:
    failures = harness.data_of(MODULE_ON_SESSION_READY_FAILED)
    require(
        not failures,
        f"on_session_ready failed: {[failure.get('error') for failure in failures]}",
    )


# -- its configuration


async def refuses_an_unknown_key(subject: Subject) -> None:
    text = await _refusal(subject, {**subject.config, STRAY_KEY: True})
    require(STRAY_KEY in text, f"The error does not name {STRAY_KEY!r}: {text}")


async def refuses_the_bad_sample(subject: Subject) -> None:
    bad = subject.samples_as(Samples).bad_config
    if bad is None:
        raise NotApplicable("no sample 'bad_config' is given")
    await _refusal(subject, bad)


async def _refusal(subject: Subject, config: Mapping[str, JSONValue]) -> str:
    try:
        async with open_harness(subject, SessionSetup(config=config)):
            pass
    except AmplifierError as error:
        return str(error)
    raise BehaviorFailed(f"The configuration {dict(config)!r:.300} was accepted")


def left_nothing(refused: Refused) -> None:
    handlers = refused.harness.own_handlers
    require(not handlers, f"Handlers are left: {handlers}")
    for what in ("tools", "providers", "capabilities"):
        left = refused.left(what)
        require(not left, f"Of the {what} there are left: {left}")


def is_unchanged(configured: tuple[dict[str, JSONValue], Subject]) -> None:
    config, subject = configured
    require(
        config == subject.config,
        f"The configuration was {dict(subject.config)!r} and became {config!r}",
    )


async def hides_secrets_from_repr(subject: Subject) -> None:
    async with open_harness(subject) as harness:
        for instance in harness.instances:
            shown = f"{instance!r} {instance}"
            hidden = not any(secret in shown for secret in secrets_of(subject))
            require(hidden, f"{type(instance).__name__} shows a secret")


async def hides_secrets_from_errors(subject: Subject) -> None:
    text = await _refusal(subject, {**subject.config, STRAY_KEY: True})
    require(
        not any(secret in text for secret in secrets_of(subject)),
        "The error repeats a secret",
    )


# -- the process that it shares


async def declares_names(harness: Harness) -> None:
    declared = await harness.contributions()
    skip_unless(declared, "it declares no events")
    for names in declared:
        good = isinstance(names, (list, tuple)) and all(
            isinstance(name, str) and _EVENT_NAME.fullmatch(name) for name in names
        )
        require(good, f"Declared is {names!r:.200}")


async def declares_what_it_emits(harness: Harness) -> None:
    declared = await harness.declared_events()
    strays = [name for name in harness.unknown_events if name not in declared]
    require(not strays, f"Emitted and declared nowhere: {', '.join(strays)}")


def emits_complete_events(harness: Harness) -> None:
    for event, data in harness.heard:
        missing = sorted(REQUIRED.get(event, frozenset()) - set(data))
        require(
            not missing, f"{event} lacks {', '.join(missing)}; it has {sorted(data)}"
        )


def is_empty(printed: str) -> None:
    require(not printed, f"Printed: {printed!r:.200}")


def unchanged(what: str) -> Callable[[list[object]], None]:
    def expectation(states: list[object]) -> None:
        require(all(state == states[0] for state in states), f"{what} changed")

    return expectation


def is_short(longest: float) -> None:
    require(longest < _limits.HELD_LOOP, f"Nothing else ran for {longest:.1f} s")


# -- its release


async def cleans_up(harness: Harness) -> None:
    """Run the module's own clean-ups, last registered first, and let what they raise through."""
    # as a session does it; but what they raise is wanted here
    for cleanup in reversed(harness.cleanups):
        answer = cleanup()
        if inspect.isawaitable(answer):
            await answer


async def cleans_up_soon(harness: Harness) -> None:
    with anyio.move_on_after(_limits.CLEANUP) as scope:
        await cleans_up(harness)
    require(
        not scope.cancel_called, f"The clean-ups took longer than {_limits.CLEANUP:g} s"
    )


async def is_unmounted(harness: Harness) -> None:
    for name in [*harness.named]:
        await harness.coordinator.unmount(f"{harness.subject.kind}s", name)


def has_no_handlers(harness: Harness) -> None:
    left = harness.own_handlers
    require(not left, f"Still registered: {', '.join(left)}")


def is_released(left: list[str]) -> None:
    require(not left, f"Left are {', '.join(left)}")


def has_ended(running: list[str]) -> None:
    require(not running, f"Still running: {', '.join(running)}")
