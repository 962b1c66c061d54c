"""Using a module the plain way, whatever its type, and sessions that end in every way."""

from __future__ import annotations

import contextlib
import copy
import io
import time
from collections.abc import AsyncIterator, Callable

import anyio
import anyio.lowlevel
import attrs

from amplifier.validation.behaviors._cancellation import cancel_early
from amplifier.validation.behaviors._payloads import PAYLOADS, payload
from amplifier.validation.behaviors._tool_scenarios import calls_of
from amplifier.validation.behaviors.behavior import (
    NotApplicable,
    require,
    scenario,
    skip_unless,
)
from amplifier.validation.behaviors.harness import Harness, SessionSetup, open_harness
from amplifier.validation.behaviors.subject import ProviderSamples, Subject
from amplifier.validation.leftovers import Leftovers, settle
from amplifier_sdk.errors import AmplifierError, ConfigError, Problem
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.secret import is_secret_name
from amplifier_sdk.threads import abandoned

STRAY_KEY = "no_such_setting"


async def use(harness: Harness) -> None:
    """Run a turn with the module, and what else it is there for."""
    subject = harness.subject
    if not harness.model.steps:
        harness.model.steps += ["Done.", "Done."]
    prompt = "Begin."
    if subject.kind == "provider":
        prompt = subject.samples_as(ProviderSamples).talks.prompt
    await harness.turn(prompt)
    if subject.kind == "tool":
        for call in calls_of(harness):
            await call.run()
    elif subject.kind == "hook":
        for event, data in PAYLOADS.items():
            await harness.coordinator.hooks.emit(event, payload(data))


@scenario
async def used(
    subject: Subject, setup: SessionSetup = SessionSetup()
) -> AsyncIterator[tuple[Harness]]:
    async with open_harness(subject, setup) as harness:
        await use(harness)
        yield (harness,)


async def ended_session(subject: Subject) -> AsyncIterator[tuple[Harness]]:
    async with open_harness(subject) as harness:
        await use(harness)
    yield (harness,)


async def two_sessions(subject: Subject) -> AsyncIterator[tuple[Harness, Harness]]:
    async with open_harness(subject) as first:
        await use(first)
    async with open_harness(subject) as second:
        await use(second)
        yield (first, second)


async def overlapping_sessions(subject: Subject) -> AsyncIterator[tuple[Harness]]:
    """Look at a session that outlives another one."""
    async with open_harness(subject) as first:
        async with open_harness(subject) as second:
            await use(second)
        await use(first)
        yield (first,)


async def two_names(subject: Subject) -> AsyncIterator[tuple[Harness]]:
    skip_unless(
        subject.kind in ("tool", "provider"),
        f"a session has no names for {subject.kind} modules",
    )
    async with open_harness(subject) as harness:
        skip_unless(
            len(harness.instances) == 1,
            "it mounts several instances, which keep their own names",
        )
    async with open_harness(
        subject, SessionSetup(instances=("first-instance", "second-instance"))
    ) as harness:
        yield (harness,)


# -- configurations


async def subject_itself(subject: Subject) -> AsyncIterator[tuple[Subject]]:
    yield (subject,)


async def subject_with_secrets(subject: Subject) -> AsyncIterator[tuple[Subject]]:
    skip_unless(
        secrets_of(subject), "its configuration holds no key, token or password"
    )
    yield (subject,)


def secrets_of(subject: Subject) -> list[str]:
    return [
        value
        for name, value in subject.config.items()
        # a shorter one may stand in any text
        if isinstance(value, str) and len(value) > 3 and is_secret_name(name)
    ]


@attrs.frozen(kw_only=True)
class Refused:
    """A session whose module refused its configuration, beside one whose module was never there."""

    harness: Harness
    empty: Harness

    def left(self, what: str) -> list[str]:
        """Return what is there of the one session and not of the other: tools, providers, capabilities."""
        names = [
            harness.coordinator.to_dict()[what]
            for harness in (self.harness, self.empty)
        ]
        refused, empty = (
            set(part) if isinstance(part, list) else set() for part in names
        )
        return sorted(refused - empty)


async def refused_configuration(subject: Subject) -> AsyncIterator[tuple[Refused]]:
    """Let the module refuse a configuration."""
    opened: list[Harness] = []
    setup = SessionSetup(
        config={**subject.config, STRAY_KEY: True}, answers={"session:none": ()}
    )
    with contextlib.suppress(AmplifierError):
        async with open_harness(subject, setup, opened=opened):
            raise NotApplicable(
                "it accepts unknown settings; see module.refuses-unknown-settings"
            )
    # A session has capabilities of its own, so that what is left is compared with
    # what a module leaves that was never there.
    with contextlib.suppress(AmplifierError):
        async with open_harness(
            attrs.evolve(subject, module=_refuse), setup, opened=opened
        ):
            pass
    harness, empty = opened
    yield (Refused(harness=harness, empty=empty),)


async def _refuse(coordinator: object, config: object) -> None:
    """Mount nothing, as a module that reads its configuration first."""
    raise ConfigError([Problem(STRAY_KEY, "unknown")])


async def configuration(
    subject: Subject,
) -> AsyncIterator[tuple[tuple[dict[str, JSONValue], Subject]]]:
    """Use the module with a configuration of its own copy."""
    config = copy.deepcopy(dict(subject.config))
    async with open_harness(subject, SessionSetup(config=config)) as harness:
        await use(harness)
    yield ((config, subject),)


# -- the process that it shares


async def captured_output(subject: Subject) -> AsyncIterator[tuple[str]]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        async with open_harness(subject) as harness:
            await use(harness)
    yield (out.getvalue(),)


@scenario
async def before_during_after(
    subject: Subject, read: Callable[[], object]
) -> AsyncIterator[tuple[list[object]]]:
    states = [read()]
    async with open_harness(subject) as harness:
        await use(harness)
        states.append(read())
    yield ([*states, read()],)


async def heartbeat(subject: Subject) -> AsyncIterator[tuple[float]]:
    """Measure for how long nothing else runs while the module is mounted and used."""
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await anyio.sleep(0.01)
            longest = max(longest, time.perf_counter() - before)

    async with anyio.create_task_group() as group:
        group.start_soon(beat)
        # the beat must have begun before the module is mounted
        await anyio.lowlevel.checkpoint()
        async with open_harness(subject) as harness:
            await use(harness)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    yield (longest,)


# -- its release


@scenario
async def cleanups(
    subject: Subject, *, is_used: bool = True
) -> AsyncIterator[tuple[Harness]]:
    async with open_harness(subject) as harness:
        skip_unless(harness.cleanups, "it registers no clean-up")
        if is_used:
            await use(harness)
        yield (harness,)


@scenario
async def leftovers(
    subject: Subject, *, is_used: bool = True
) -> AsyncIterator[tuple[list[str]]]:
    before = Leftovers.now()
    for _ in range(2):
        # What a process opens once, such as a random source, is open the second time.
        before = Leftovers.baseline()
        async with open_harness(subject) as harness:
            if is_used:
                await use(harness)
    yield (await settle(before),)


async def leftovers_of_a_cancelled_session(
    subject: Subject,
) -> AsyncIterator[tuple[list[str]]]:
    async with open_harness(subject) as harness:
        await use(harness)
    before = Leftovers.baseline()
    with anyio.CancelScope() as scope:
        async with open_harness(subject) as harness:
            await use(harness)
            # raised in here, so that the session closes under the cancellation
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    left = await settle(before)
    # last: what was left is waited for in any case
    require(scope.cancelled_caught, "The cancellation was swallowed")
    yield ([*left, *(f"the handler {name}" for name in harness.own_handlers)],)


async def leftovers_of_a_cancelled_mount(
    subject: Subject,
) -> AsyncIterator[tuple[list[str]]]:
    """List what is left when mounting is cancelled at one of its first steps."""

    async def mount() -> None:
        async with open_harness(subject):
            pass

    # once undisturbed: what a process opens at its first mount is no leftover
    await mount()
    before = Leftovers.baseline()
    await cancel_early("Mounting", *[mount] * 4)
    yield (await settle(before),)


async def running_threads(subject: Subject) -> AsyncIterator[tuple[list[str]]]:
    # threads that other modules left are not this one's
    known = set(abandoned())
    async with open_harness(subject) as harness:
        await use(harness)
    yield ([entry.name for entry in abandoned() if entry not in known],)
