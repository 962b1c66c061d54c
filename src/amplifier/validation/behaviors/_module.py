"""What is true of every good module, whatever its type."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from typing import Final

from amplifier.validation.behaviors import _module_expectations as it
from amplifier.validation.behaviors import _module_scenarios as given
from amplifier.validation.behaviors.behavior import Behavior, promise
from amplifier.validation.behaviors.harness import SessionSetup, session


def _signal_handlers() -> object:
    return [signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)]


def _root_logger() -> object:
    root = logging.getLogger()
    return root.level, list(root.handlers)


# A row: what is done and what must hold; what that promises; what the author does when it does not hold.
# fmt: off
MODULE: Final[tuple[Behavior, ...]] = (
    # -- its mount
    promise("module.mounts", session(), it.is_there,
        says="A session that names the module starts with something of it mounted or registered.",
        fix="Return the instance from mount, mount it on the coordinator, or register handlers."),
    promise("module.mounts-again-after-its-session-ended", given.two_sessions,
        says="A second session in the same process works like the first, after that one has ended.",
        fix="Keep no session's state in the package; build a new instance in each mount."),
    promise("module.serves-two-sessions-at-once", given.overlapping_sessions,
        says="Of two open sessions each continues to work when the other has ended.",
        fix="Keep no session's state in the package; what a clean-up closes belongs to one instance."),
    promise("module.mounts-under-two-names", given.two_names, it.has_both_names,
        says="A plan may list the module twice, each entry with an instance_id of its own.",
        fix="Take everything that makes an instance from its configuration and coordinator."),
    promise("module.mounts-in-a-child-session", given.used(SessionSetup(parent_id="parent-session")),
        says="A session that is the child of another starts and works with the module.",
        fix="Take what a parent gives from the coordinator; a child has mount points of its own."),
    promise("module.mounts-in-a-resumed-session", given.used(SessionSetup(is_resumed=True)),
        says="A session that resumes a stored one starts and works with the module.",
        fix="Treat a resumed session like a new one unless the module has stored something itself."),
    promise("module.mounts-without-capabilities", session(SessionSetup(is_bare=True)), it.is_there,
        says="The module mounts although the application offers no working directory and no session directory.",
        fix="Give capabilities defaults: get_capability returns None for what the application lacks."),
    promise("module.gets-ready-without-failing", session(), it.got_ready,
        says="Its on_session_ready, if it has one, does not fail.",
        fix="Make on_session_ready an async function of the coordinator that does not raise."),
    # -- its configuration: complete, left alone, and secret
    promise("module.refuses-unknown-settings", given.subject_itself, it.refuses_an_unknown_key,
        says="A key of the configuration that the module does not know is an error that names the key.",
        fix="Describe the configuration by an attrs class or dataclass and let the SDK read it."),
    promise("module.refuses-a-bad-configuration", given.subject_itself, it.refuses_the_bad_sample,
        says="The configuration that the author names as bad is refused when the module is mounted.",
        fix="Check every value when the module is mounted and raise ConfigError with its path."),
    promise("module.leaves-nothing-when-its-configuration-is-refused", given.refused_configuration, it.left_nothing,
        says="When the configuration is refused no handler, mounted instance or capability of the module is left.",
        fix="Read the whole configuration before anything is mounted or registered."),
    promise("module.leaves-its-configuration-alone", given.configuration, it.is_unchanged,
        says="Mounting and using the module changes nothing in the mapping that it was configured with.",
        fix="Copy the configuration before changing it."),
    promise("module.hides-secrets-from-repr", given.subject_with_secrets, it.hides_secrets_from_repr,
        says="No secret of the configuration stands in the text form of what is mounted.",
        fix="Keep secrets out of repr: leave their fields out of it, or use the SDK's secret type."),
    promise("module.hides-secrets-from-errors", given.subject_with_secrets, it.hides_secrets_from_errors,
        says="An error about the configuration does not repeat the secrets in it.",
        fix="Name the key, not the value, in errors about settings that may hold a secret."),
    # -- the process that it shares
    promise("module.declares-events-by-name", session(), it.declares_names,
        says="What it contributes to observability.events are lists of names with a colon in them.",
        fix="Return names such as 'my-module:started' from the contributor of observability.events."),
    promise("module.emits-only-declared-events", given.used(), it.declares_what_it_emits,
        says="Every event that is heard while it works is canonical or declared.",
        fix="Register a contributor for 'observability.events' that lists the events the module emits."),
    promise("module.emits-canonical-events-whole", given.ended_session, it.emits_complete_events,
        says="A canonical event that is heard while it works carries the keys its readers rely on.",
        fix="Emit canonical events with their payload's constructor, such as ToolPre(tool_name=…)."),
    promise("module.prints-nothing", given.captured_output, it.is_empty,
        says="Nothing is written to standard output, which belongs to the application.",
        fix="Write to a logger or emit an event; standard output belongs to the application."),
    promise("module.keeps-the-working-directory", given.before_during_after(Path.cwd),
        it.unchanged("The working directory"),
        says="The process's working directory stays what it was.",
        fix="Use absolute paths instead of os.chdir."),
    promise("module.keeps-the-environment", given.before_during_after(lambda: dict(os.environ)),
        it.unchanged("The environment"),
        says="The process's environment variables stay what they were.",
        fix="Pass settings as arguments, and to child processes in an environment of their own."),
    promise("module.keeps-the-import-path", given.before_during_after(lambda: list(sys.path)),
        it.unchanged("sys.path"),
        says="The list of folders from which Python imports stays what it was.",
        fix="Import by name; leave sys.path to the application."),
    promise("module.keeps-signal-handlers", given.before_during_after(_signal_handlers),
        it.unchanged("A signal handler"),
        says="The process's handlers for interrupts and termination stay what they were.",
        fix="Leave signals to the application; learn of a cancellation from the coordinator."),
    promise("module.keeps-the-root-logger", given.before_during_after(_root_logger),
        it.unchanged("The root logger"),
        says="The root logger's level and handlers stay what they were.",
        fix="Log to a logger of the module's own name; leave handlers and levels to the application."),
    promise("module.does-not-hold-the-event-loop", given.heartbeat, it.is_short, is_timed=True,
        says="Other tasks run while the module is mounted and used.",
        fix="Await, or run what blocks in a worker thread with amplifier_sdk.threads.run_blocking."),
    # -- its release: nothing is left, however its session ended
    promise("module.cleans-up-without-failing", given.cleanups(), it.cleans_up,
        says="Its clean-ups raise nothing after the module was used.",
        fix="Let the clean-up expect whatever state the module is in."),
    promise("module.cleans-up-unused", given.cleanups(is_used=False), it.cleans_up,
        says="Its clean-ups raise nothing when the module was never used.",
        fix="Let the clean-up expect a module that was mounted and never used."),
    promise("module.cleans-up-twice", given.cleanups(), it.cleans_up, it.cleans_up,
        says="Its clean-ups may run a second time and then do nothing.",
        fix="Remember that everything is released, and return at once the second time."),
    promise("module.cleans-up-soon", given.cleanups(), it.cleans_up_soon, is_timed=True,
        says="Its clean-ups end within two seconds.",
        fix="Close without waiting for others; end processes with a short grace and then kill them."),
    promise("module.cleans-up-after-it-was-unmounted", given.cleanups(), it.is_unmounted, it.cleans_up,
        says="Its clean-ups raise nothing when the application has unmounted it before.",
        fix="Let the clean-up close what the instance holds instead of looking it up by its mount point."),
    promise("module.leaves-no-handlers", given.ended_session, it.has_no_handlers,
        says="When its session has ended none of its handlers is registered any more.",
        fix="Keep what register returns and call it in the clean-up, or mark methods with @on."),
    promise("module.leaves-nothing-open", given.leftovers(), it.is_released, is_timed=True,
        says="When its session has ended no file, thread, task or process of it is left.",
        fix="Close in the clean-up what the module opened: files, sockets, clients, processes, threads."),
    promise("module.leaves-nothing-open-when-unused", given.leftovers(is_used=False), it.is_released,
        is_timed=True,
        says="A session that mounts it and does nothing leaves no file, thread, task or process behind.",
        fix="Open what the module needs when it is first used, and close it in the clean-up."),
    promise("module.leaves-nothing-open-when-cancelled", given.leftovers_of_a_cancelled_session, it.is_released,
        is_timed=True,
        says="When the task that holds its session is cancelled no file, thread, task or process of it is left.",
        fix="Release in 'finally' or in a registered clean-up, both of which run under a cancellation."),
    promise("module.may-be-cancelled-while-it-mounts", given.leftovers_of_a_cancelled_mount, it.is_released,
        is_timed=True,
        says="When mounting is cancelled, at whatever step, it ends at once and leaves nothing.",
        fix="Release what mount has opened so far when it is cancelled, and raise the cancellation on."),
    promise("module.leaves-no-thread-running", given.running_threads, it.has_ended,
        says="No worker thread still runs when its session has ended.",
        fix="Let blocking work end by itself soon after its call is cancelled."),
)
