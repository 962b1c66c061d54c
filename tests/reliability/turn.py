"""One turn with three calls, two of them at once, in a session that keeps its history in a file.

    python -m tests.reliability.turn FOLDER BACKEND DURABILITY LOOP PROMPT

Every message that the context acknowledged stands in FOLDER/acknowledged, and every effect of a tool in
FOLDER/effects, so that whoever killed the process can see what it had promised and done.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from anyio import CapacityLimiter, to_thread

from amplifier import AmplifierSession, ModuleLoader
from amplifier.testing import ScriptedProvider, answer, call, mounting
from amplifier_module_context_persistent import PersistentContext, mount
from amplifier_module_loop_basic import BasicLoop
from amplifier_module_loop_events import EventsLoop
from amplifier_module_loop_streaming import StreamingLoop
from amplifier_sdk import Loop, MessageDict, tool

LOOPS: Final[Mapping[str, type[Loop]]] = {
    "basic": BasicLoop,
    "streaming": StreamingLoop,
    "events": EventsLoop,
}
STEPS: Final = (
    answer("I look.", call("act", {"name": "one"}, id="c1")),
    answer(
        "And both.",
        call("act", {"name": "two"}, id="c2"),
        call("act", {"name": "three"}, id="c3"),
    ),
    "Done.",
)


def note(path: Path, text: str) -> None:
    """Add a line in one write, which no kill cuts in two."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{text}\n".encode())
    os.close(handle)


def use_one_thread() -> None:
    """Let one thread do what is done in threads: then the n-th call of a thread is the same in every run."""
    run_sync, limiter = to_thread.run_sync, CapacityLimiter(1)

    async def run(  # type: ignore[explicit-any]  # whatever the function takes
        function: Callable[..., object],
        *arguments: object,
        **options: object,
    ) -> object:
        return await run_sync(
            partial(function, *arguments),
            **(options | {"limiter": limiter}),  # type: ignore[arg-type]
        )

    to_thread.run_sync = run  # type: ignore[assignment]  # each log has a limiter of its own


class Acknowledging(PersistentContext):
    """Notes what it has promised to keep."""

    acknowledged: Path

    async def add_message(self, message: MessageDict, /) -> None:
        await super().add_message(message)
        note(self.acknowledged, json.dumps(message))


def session(
    folder: Path,
    provider: ScriptedProvider,
    durability: str,
    loop: str,
    *,
    is_resumed: bool = False,
) -> AmplifierSession:
    """Make the session; the second one of a folder goes on where the first one stopped."""

    @tool
    async def act(name: str) -> str:
        """Have an effect."""
        note(folder / "effects", name)
        return f"did {name}"

    plan: dict[str, object] = {
        "session": {
            "orchestrator": "loop",
            "context": {"module": "memory", "config": {"durability": durability}},
        },
        "providers": ["provider"],
        "tools": ["act"],
    }
    modules = {
        "loop": LOOPS[loop],
        "memory": mount,
        "provider": mounting(provider),
        "act": act,
    }
    made = AmplifierSession(
        plan, ModuleLoader(modules=modules), "kept", is_resumed=is_resumed
    )
    made.coordinator.register_capability("session.dir", str(folder))
    return made


async def main(folder: Path, durability: str, loop: str, prompt: str) -> None:
    Acknowledging.acknowledged = folder / "acknowledged"
    use_one_thread()
    PersistentContext.open = Acknowledging.open  # type: ignore[method-assign]  # the module mounts what it knows
    async with session(folder, ScriptedProvider(*STEPS), durability, loop) as opened:
        sys.stdout.write(f"{await opened.execute(prompt)}\n")


if __name__ == "__main__":
    anyio.run(
        main,
        Path(sys.argv[1]),
        sys.argv[3],
        sys.argv[4],
        sys.argv[5],
        backend=sys.argv[2],
    )
