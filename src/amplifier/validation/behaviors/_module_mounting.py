"""What is true of every module when it is mounted."""

from __future__ import annotations

from typing import Final

from amplifier.validation.behaviors._stage import Setting, Stage, open_stage, skip_unless
from amplifier.validation.behaviors._use import use
from amplifier.validation.behaviors.behavior import Suite, require
from amplifier.validation.behaviors.subject import Subject
from amplifier_sdk.events import MODULE_ON_SESSION_READY_FAILED

MODULE: Final = Suite("module")


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
