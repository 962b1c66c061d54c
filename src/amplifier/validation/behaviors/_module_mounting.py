"""What is true of every module when it is mounted."""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel

from amplifier.validation.behaviors._payloads import REQUIRED
from amplifier.validation.behaviors._stage import EAR, Setting, Stage, open_stage, skip_unless
from amplifier.validation.behaviors._use import use
from amplifier.validation.behaviors.behavior import BehaviorFailed, NotApplicable, Suite, require
from amplifier.validation.behaviors.subject import Samples, Subject
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.events import MODULE_ON_SESSION_READY_FAILED
from amplifier_sdk.jsontypes import JSONValue

MODULE: Final = Suite("module")

STRAY_KEY: Final = "no_such_setting"
LONGEST_HOLD: Final = 1.0
"""Seconds for which nothing may hold the event loop; far above what a busy machine does by itself."""
_CONFIDENTIAL: Final = r"(?i)key$|token$|secret|passw|credential|authorization"
_EVENT_NAME: Final = r"[a-z0-9_\-]+(:[a-z0-9_\-]+)+"


@MODULE.behavior(fix="Return the instance from mount, mount it on the coordinator, or register handlers.")
async def mounts(subject: Subject) -> None:
    """A session that names the module starts with something of it mounted or registered."""
    async with open_stage(subject) as stage:
        require(_present(stage), "The session started, but nothing was mounted and no handler registered")


def _present(stage: Stage) -> bool:
    return bool(stage.handlers) if stage.kind == "hook" else bool(stage.instances)


@MODULE.behavior(fix="Keep no session's state in the package; build a new instance in each mount.")
async def mounts_again_after_its_session_ended(subject: Subject) -> None:
    """A second session in the same process works like the first, after that one has ended."""
    for _ in range(2):
        async with open_stage(subject) as stage:
            await use(subject, stage)


@MODULE.behavior(fix="Keep no session's state in the package; what a clean-up closes belongs to one instance.")
async def serves_two_sessions_at_once(subject: Subject) -> None:
    """Of two open sessions each goes on working when the other has ended."""
    async with open_stage(subject) as first:
        async with open_stage(subject) as second:
            await use(subject, second)
        await use(subject, first)


@MODULE.behavior(fix="Take everything that makes an instance from its configuration and coordinator.")
async def mounts_under_two_names(subject: Subject) -> None:
    """A plan may list the module twice, each entry with an instance_id of its own."""
    skip_unless(subject.kind in ("tool", "provider"), f"a session has no names for {subject.kind} modules")
    async with open_stage(subject) as stage:
        skip_unless(len(stage.instances) == 1, "it mounts several instances, which keep their own names")
    names = ("first-instance", "second-instance")
    async with open_stage(subject, Setting(instances=names)) as stage:
        mounted = stage.tools if subject.kind == "tool" else stage.coordinator.providers
        require(set(names) <= set(mounted), f"Mounted are {sorted(mounted)}, not {list(names)}")


@MODULE.behavior(fix="Take what a parent gives from the coordinator; a child has mount points of its own.")
async def mounts_in_a_child_session(subject: Subject) -> None:
    """A session that is the child of another starts and works with the module."""
    async with open_stage(subject, Setting(parent_id="parent-session")) as stage:
        await use(subject, stage)


@MODULE.behavior(fix="Treat a resumed session like a new one unless the module has stored something itself.")
async def mounts_in_a_resumed_session(subject: Subject) -> None:
    """A session that goes on from a stored one starts and works with the module."""
    async with open_stage(subject, Setting(is_resumed=True)) as stage:
        await use(subject, stage)


@MODULE.behavior(fix="Give capabilities defaults: get_capability returns None for what the application lacks.")
async def mounts_without_capabilities(subject: Subject) -> None:
    """The module mounts although the application offers no working directory and no session directory."""
    async with open_stage(subject, Setting(bare=True)) as stage:
        require(_present(stage), "Nothing was mounted and no handler registered")


@MODULE.behavior(fix="Make on_session_ready an async function of the coordinator that does not raise.")
async def gets_ready_without_failing(subject: Subject) -> None:
    """Its on_session_ready, if it has one, does not fail."""
    async with open_stage(subject) as stage:
        failures = stage.all(MODULE_ON_SESSION_READY_FAILED)
    require(not failures, f"on_session_ready failed: {[failure.get('error') for failure in failures]}")


@MODULE.behavior(fix="Describe the configuration by an attrs class or dataclass and let the SDK read it.")
async def refuses_unknown_settings(subject: Subject) -> None:
    """A key of the configuration that the module does not know is an error that names the key."""
    await _refuses(subject, {**subject.config, STRAY_KEY: True}, STRAY_KEY)


async def _refuses(subject: Subject, config: Mapping[str, JSONValue], *words: str) -> str:
    try:
        async with open_stage(subject, Setting(config=config)):
            pass
    except AmplifierError as error:
        missing = [word for word in words if word not in str(error)]
        require(not missing, f"The error does not name {missing}: {error}")
        return str(error)
    raise BehaviorFailed(f"The configuration {dict(config)!r:.300} was accepted")


@MODULE.behavior(fix="Check every value when the module is mounted and raise ConfigError with its path.")
async def refuses_a_bad_configuration(subject: Subject) -> None:
    """The configuration that the author names as bad is refused when the module is mounted."""
    bad = subject.told(Samples).bad_config
    if bad is None:
        raise NotApplicable("no sample 'bad_config' is given")
    await _refuses(subject, bad)


@MODULE.behavior(fix="Read the whole configuration before anything is mounted or registered.")
async def leaves_nothing_when_its_configuration_is_refused(subject: Subject) -> None:
    """When the configuration is refused no handler, mounted instance or capability of the module is left."""
    kept: list[Stage] = []
    setting = Setting(config={**subject.config, STRAY_KEY: True}, handlers={"session:none": _ignore})
    with contextlib.suppress(AmplifierError):
        async with open_stage(subject, setting, kept=kept):
            raise NotApplicable("it accepts unknown settings; see module.refuses-unknown-settings")
    (stage,) = kept
    require(not own_handlers(stage), f"Handlers are left: {own_handlers(stage)}")


def _ignore(event: str, data: dict[str, object]) -> None:
    """Hear nothing."""


def own_handlers(stage: Stage) -> list[str]:
    """Return the names of the handlers that are registered and not those of the checks."""
    listing = stage.coordinator.hooks.list_handlers()
    return sorted({name for names in listing.values() for name in names if not name.startswith(EAR)})


@MODULE.behavior(fix="Copy the configuration before changing it.")
async def leaves_its_configuration_alone(subject: Subject) -> None:
    """Mounting and using the module changes nothing in the mapping that it was configured with."""
    config = copy.deepcopy(dict(subject.config))
    async with open_stage(subject, Setting(config=config)) as stage:
        await use(subject, stage)
    require(config == subject.config, f"The configuration was {dict(subject.config)!r} and became {config!r}")


@MODULE.behavior(fix="Keep secrets out of repr: leave their fields out of it, or use the SDK's secret type.")
async def hides_secrets_from_repr(subject: Subject) -> None:
    """No secret of the configuration stands in the text form of what is mounted."""
    secrets = _secrets(subject.config)
    skip_unless(secrets, "its configuration holds no key, token or password")
    async with open_stage(subject) as stage:
        for instance in stage.instances:
            shown = f"{instance!r} {instance}"
            require(not any(secret in shown for secret in secrets), f"{type(instance).__name__} shows a secret")


@MODULE.behavior(fix="Name the key, not the value, in errors about settings that may hold a secret.")
async def hides_secrets_from_errors(subject: Subject) -> None:
    """An error about the configuration does not repeat the secrets in it."""
    secrets = _secrets(subject.config)
    skip_unless(secrets, "its configuration holds no key, token or password")
    text = await _refuses(subject, {**subject.config, STRAY_KEY: True})
    require(not any(secret in text for secret in secrets), "The error repeats a secret")


def _secrets(config: Mapping[str, JSONValue]) -> list[str]:
    return [v for k, v in config.items() if isinstance(v, str) and len(v) > 3 and re.search(_CONFIDENTIAL, k)]


@MODULE.behavior(fix="Return names such as 'my-module:started' from the contributor of observability.events.")
async def declares_events_by_name(subject: Subject) -> None:
    """What it contributes to observability.events are lists of names with a colon in them."""
    async with open_stage(subject) as stage:
        declared = await stage.coordinator.collect_contributions("observability.events")
    skip_unless(declared, "it declares no events")
    for names in declared:
        good = isinstance(names, (list, tuple)) and all(
            isinstance(name, str) and re.fullmatch(_EVENT_NAME, name) for name in names
        )
        require(good, f"Declared is {names!r:.200}")


@MODULE.behavior(fix="Register a contributor for 'observability.events' that lists the events the module emits.")
async def emits_only_declared_events(subject: Subject) -> None:
    """Every event that is heard while it works is canonical or declared."""
    async with open_stage(subject) as stage:
        await use(subject, stage)
        contributions = await stage.coordinator.collect_contributions("observability.events")
    declared = {name for names in contributions if isinstance(names, (list, tuple)) for name in names}
    strays = [name for name in stage.unknown_events if name not in declared]
    require(not strays, f"Emitted and declared nowhere: {', '.join(strays)}")


@MODULE.behavior(fix="Emit canonical events with their payload's constructor, such as ToolPre(tool_name=…).")
async def emits_canonical_events_whole(subject: Subject) -> None:
    """A canonical event that is heard while it works carries the keys its readers rely on."""
    async with open_stage(subject) as stage:
        await use(subject, stage)
    for event, data in stage.heard:
        missing = sorted(REQUIRED.get(event, frozenset()) - set(data))
        require(not missing, f"{event} lacks {', '.join(missing)}; it has {sorted(data)}")


@MODULE.behavior(fix="Write to a logger or emit an event; standard output belongs to the application.")
async def prints_nothing(subject: Subject) -> None:
    """Nothing is written to standard output, which belongs to the application."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        async with open_stage(subject) as stage:
            await use(subject, stage)
    require(not out.getvalue(), f"Printed: {out.getvalue()!r:.200}")


async def _unchanged(subject: Subject, what: str, look: Callable[[], object]) -> None:
    before = look()
    async with open_stage(subject) as stage:
        await use(subject, stage)
        during = look()
    after = look()
    require(before == during == after, f"{what} changed")


@MODULE.behavior(fix="Use absolute paths instead of os.chdir.")
async def keeps_the_working_directory(subject: Subject) -> None:
    """The process's working directory stays what it was."""
    await _unchanged(subject, "The working directory", Path.cwd)


@MODULE.behavior(fix="Pass settings as arguments, and to child processes in an environment of their own.")
async def keeps_the_environment(subject: Subject) -> None:
    """The process's environment variables stay what they were."""
    await _unchanged(subject, "The environment", lambda: dict(os.environ))


@MODULE.behavior(fix="Import by name; leave sys.path to the application.")
async def keeps_the_import_path(subject: Subject) -> None:
    """The list of folders from which Python imports stays what it was."""
    await _unchanged(subject, "sys.path", lambda: list(sys.path))


@MODULE.behavior(fix="Leave signals to the application; be told of a cancel by the coordinator.")
async def keeps_signal_handlers(subject: Subject) -> None:
    """The process's handlers for interrupts and termination stay what they were."""
    kinds = (signal.SIGINT, signal.SIGTERM)
    await _unchanged(subject, "A signal handler", lambda: [signal.getsignal(kind) for kind in kinds])


@MODULE.behavior(fix="Log to a logger of the module's own name; leave handlers and levels to the application.")
async def keeps_the_root_logger(subject: Subject) -> None:
    """The root logger's level and handlers stay what they were."""
    root = logging.getLogger()
    await _unchanged(subject, "The root logger", lambda: (root.level, list(root.handlers)))


@MODULE.behavior(fix="Await, or run what blocks in a worker thread with amplifier_sdk.threads.run_blocking.")
async def does_not_hold_the_event_loop(subject: Subject) -> None:
    """Other tasks run while the module is mounted and used."""
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await anyio.sleep(0.01)
            longest = max(longest, time.perf_counter() - before)

    async with anyio.create_task_group() as group:
        group.start_soon(beat)
        await anyio.lowlevel.checkpoint()
        async with open_stage(subject) as stage:
            await use(subject, stage)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    require(longest < LONGEST_HOLD, f"Nothing else ran for {longest:.1f} s")
