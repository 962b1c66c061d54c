"""Modules that break what holds of all types: each entry fails at least the behaviour it stands under."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import IO, Final, TypeAlias

import anyio
import anyio.lowlevel
import attrs

from amplifier import ModuleCoordinator
from amplifier.validation.behaviors import Samples, Subject, ToolSamples
from amplifier_sdk import Coordinator, ToolResult
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.threads import run_blocking
from tests.validation.behaviors.sound import SAMPLE, Echo, Notebook, mounting
from tests.validation.faulty import unready

__all__ = ["FAULTY", "LEAKED", "RELEASED", "running", "subject"]

Mount: TypeAlias = Callable[[Coordinator, Mapping[str, JSONValue]], Awaitable[object]]
Execute: TypeAlias = Callable[[JSONObject], Awaitable[ToolResult]]

LEAKED: Final[list[IO[str]]] = []
"""Files that faulty modules left open, for the tests to close."""
RELEASED: Final = threading.Event()
"""Ends the threads that faulty modules left running."""

ONE_CALL: Final = ToolSamples(arguments={"echo": (SAMPLE,)})


def subject(
    mount: Mount,
    config: Mapping[str, JSONValue] | None = None,
    samples: Samples | None = ONE_CALL,
) -> Subject:
    """Make a subject of a tool's `mount` function."""
    return Subject(kind="tool", module=mount, config=config or {}, samples=samples)


@attrs.define(eq=False, slots=False)
class Running(Echo):
    """The sound tool with another `execute`."""

    run: Execute | None = None

    async def execute(self, input: JSONObject, /) -> ToolResult:
        assert self.run is not None
        return await self.run(input)


def running(run: Execute, samples: Samples | None = ONE_CALL) -> Subject:
    """Make a subject of a tool that runs a function."""
    return Subject(
        kind="tool", module=mounting(lambda: Running(run=run)), samples=samples
    )


def _mounting_then(step: Callable[[Coordinator], object]) -> Subject:
    """Make a tool whose mount does something besides."""

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        step(coordinator)
        return Echo()

    return subject(mount)


def _changing(change: Callable[[], object], restore: Callable[[], object]) -> Subject:
    """Make a tool that changes something of the process while it is mounted."""

    def step(coordinator: Coordinator) -> None:
        change()
        coordinator.register_cleanup(restore)

    return _mounting_then(step)


def _releasing(cleanup: Callable[[Running], object]) -> Subject:
    """Make a tool with a clean-up, which is given the tool; the tool's description says whether it was used."""

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        tool = Running()

        async def run(input: JSONObject) -> ToolResult:
            tool.description = "used"
            return ToolResult(output="x")

        tool.run = run
        coordinator.register_cleanup(lambda: cleanup(tool))
        return tool

    return subject(mount)


def _raise(*_: object) -> None:
    raise OSError("cannot do that")


def _raise_when(condition: Callable[[Coordinator], object]) -> Subject:
    return _mounting_then(
        lambda coordinator: _raise() if condition(coordinator) else None
    )


def _session_is_resumed(coordinator: Coordinator) -> bool:
    assert isinstance(coordinator, ModuleCoordinator)
    return coordinator.session is not None and coordinator.session.is_resumed


def _once() -> Subject:
    used: list[bool] = []

    def step(coordinator: Coordinator) -> None:
        if used:
            _raise()
        used.append(True)

    return _mounting_then(step)


class Shared(Notebook):
    """A context whose clean-up closes what all its instances share."""

    closed = False

    def __init__(self, coordinator: Coordinator) -> None:
        super().__init__(coordinator)
        Shared.closed = False

    async def add_message(self, message: MessageDict, /) -> None:
        if Shared.closed:
            _raise()
        await super().add_message(message)

    async def aclose(self) -> None:
        """Close the shared thing."""
        Shared.closed = True


async def _write_into_the_table(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> None:
    assert isinstance(coordinator, ModuleCoordinator)
    coordinator.tools["echo"] = Echo()


async def _accept_everything(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> object:
    return Echo()


async def _register_before_reading(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> object:
    # handlers and what it mounts the kernel takes back
    coordinator.register_capability("echo.early", 1)
    if config:
        raise ValueError(f"unknown settings: {', '.join(config)}")
    return Echo()


def _hear(event: str, data: dict[str, object]) -> None:
    """Hear nothing."""


async def _change_the_config(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> object:
    options = config["options"]
    assert isinstance(options, dict)
    options["seen"] = True
    return Echo()


@attrs.define(eq=False, slots=False)
class Indiscreet(Echo):
    """A tool that shows its key."""

    api_key: str = ""


async def _show_the_key(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> object:
    return Indiscreet(api_key=str(config["api_key"]))


async def _tell_the_key(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> object:
    if set(config) - {"api_key"}:
        raise ValueError(f"cannot use {dict(config)}")
    return Echo()


def _emitting(event: str) -> Subject:
    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        async def run(input: JSONObject) -> ToolResult:
            await coordinator.hooks.emit(event, {"unrelated": 1})
            return ToolResult(output="x")

        return Running(run=run)

    return subject(mount)


async def _print(input: JSONObject) -> ToolResult:
    print("here I am")  # noqa: T201
    return ToolResult(output="x")


async def _block(input: JSONObject) -> ToolResult:
    time.sleep(0.4)
    return ToolResult(output="x")


async def _leak(input: JSONObject) -> ToolResult:
    LEAKED.append(open(os.devnull))  # noqa: SIM115
    return ToolResult(output="x")


async def _leave_a_thread(input: JSONObject) -> ToolResult:
    with anyio.move_on_after(0.2):
        await run_blocking(RELEASED.wait, name="left")
    return ToolResult(output="x")


async def _leak_when_cancelled(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> object:
    file = open(os.devnull)  # noqa: SIM115
    LEAKED.append(file)
    for _ in range(10):
        await anyio.lowlevel.checkpoint()
    file.close()
    return Echo()


async def _open_for_ever(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> object:
    LEAKED.append(open(os.devnull))  # noqa: SIM115
    return Echo()


def _second_time() -> Callable[[Running], None]:
    calls: list[Running] = []

    def cleanup(tool: Running) -> None:
        calls.append(tool)
        if calls.count(tool) > 1:
            _raise()

    return cleanup


def _slow_once() -> Callable[[Running], Awaitable[None]]:
    async def cleanup(tool: Running) -> None:
        if tool.name == "echo":
            tool.name = "closing"
            await anyio.sleep(5)

    return cleanup


async def _look_itself_up(
    coordinator: Coordinator, config: Mapping[str, JSONValue]
) -> object:
    def cleanup() -> None:
        if coordinator.get("tools", "echo") is None:
            _raise()

    coordinator.register_cleanup(cleanup)
    return Echo()


FOLDER: Final = Path.cwd()
SECRET: Final[JSONObject] = {"api_key": "sk-not-for-everybody"}

FAULTY: Final[Mapping[str, Subject]] = {
    "module.mounts": Subject(kind="tool", module=mounting(lambda: None)),
    "module.mounts-again-after-its-session-ended": _once(),
    "module.serves-two-sessions-at-once": Subject(kind="context", module=Shared),
    "module.mounts-under-two-names": subject(_write_into_the_table),
    "module.mounts-in-a-child-session": _raise_when(
        lambda coordinator: coordinator.parent_id
    ),
    "module.mounts-in-a-resumed-session": _raise_when(_session_is_resumed),
    "module.mounts-without-capabilities": _raise_when(
        lambda c: c.get_capability("session.working_dir") is None
    ),
    "module.gets-ready-without-failing": Subject(kind="tool", module=unready),
    "module.refuses-unknown-settings": subject(_accept_everything),
    "module.refuses-a-bad-configuration": subject(
        _accept_everything, None, ToolSamples(bad_config={"size": -1})
    ),
    "module.leaves-nothing-when-its-configuration-is-refused": subject(
        _register_before_reading
    ),
    "module.leaves-its-configuration-alone": subject(
        _change_the_config, {"options": {}}
    ),
    "module.hides-secrets-from-repr": subject(_show_the_key, SECRET),
    "module.hides-secrets-from-errors": subject(_tell_the_key, SECRET),
    "module.declares-events-by-name": _mounting_then(
        lambda c: c.register_contributor(
            "observability.events", "echo", lambda: ["started"]
        )
    ),
    "module.emits-only-declared-events": _emitting("echo:ran"),
    "module.emits-canonical-events-whole": _emitting("artifact:write"),
    "module.prints-nothing": running(_print),
    "module.keeps-the-working-directory": _changing(
        lambda: os.chdir("/"), lambda: os.chdir(FOLDER)
    ),
    "module.keeps-the-environment": _changing(
        lambda: os.environ.update(FAULTY_MODULE="1"),
        lambda: os.environ.pop("FAULTY_MODULE", None),
    ),
    "module.keeps-the-import-path": _changing(
        lambda: sys.path.append("/nowhere"), sys.path.pop
    ),
    "module.keeps-signal-handlers": _changing(
        lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
        lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL),
    ),
    "module.keeps-the-root-logger": _changing(
        lambda: logging.getLogger().setLevel(5),
        lambda: logging.getLogger().setLevel(logging.WARNING),
    ),
    "module.does-not-hold-the-event-loop": running(_block),
    "module.cleans-up-without-failing": _releasing(_raise),
    "module.cleans-up-unused": _releasing(
        lambda tool: None if tool.description == "used" else _raise()
    ),
    "module.cleans-up-twice": _releasing(_second_time()),
    "module.cleans-up-soon": _releasing(_slow_once()),
    "module.cleans-up-after-it-was-unmounted": subject(_look_itself_up),
    "module.leaves-no-handlers": _mounting_then(
        lambda c: c.hooks.register("tool:pre", _hear, name="for ever")
    ),
    "module.leaves-nothing-open": running(_leak),
    "module.leaves-nothing-open-when-unused": subject(_open_for_ever),
    "module.leaves-nothing-open-when-cancelled": running(_leak),
    "module.may-be-cancelled-while-it-mounts": subject(_leak_when_cancelled),
    "module.leaves-no-thread-running": running(_leave_a_thread),
}
