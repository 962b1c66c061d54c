"""Modules that the commands' tests mount, and a log that is left as it was."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest
import structlog

from amplifier_sdk import threads
from tests.app.installing import module_site  # noqa: F401  # a fixture of the tests here

MODULES: Final = '''
    """Modules that behave in ways that a command must cope with."""

    import threading
    from pathlib import Path

    import anyio

    from amplifier_sdk import HookResult, ToolContext, hook, on, provider, tool, toolset


    @toolset
    class Trials:
        @tool
        async def wait(self) -> str:
            """Wait for ever."""
            await anyio.sleep_forever()
            return ""

        @tool
        def block(self) -> str:
            """Block a thread for ever."""
            print("blocking", flush=True)
            threading.Event().wait()
            return ""

        @tool
        def receive(self, path: str) -> str:
            """Wait until somebody writes into a named pipe."""
            return Path(path).read_text()

        @tool
        def speak(self) -> str:
            """Print on standard output."""
            print("printed by a tool")
            return "said"

        @tool
        def fail(self) -> str:
            """Fail."""
            raise RuntimeError("the \\x1b[31mdisk\\nis full")


    async def mount_forever(coordinator, config):
        print("mounting", flush=True)
        await anyio.sleep_forever()


    async def mount_broken(coordinator, config):
        raise BrokenPipeError("a pipe of the module's own")


    @tool(asks_first=True)
    async def inquire(context: ToolContext) -> str:
        """Ask for a name and a colour."""
        name = await context.ask("Which name?")
        colour = await context.ask("Which colour?", options=["red", "blue"])
        print(f"asked {name} {colour}")
        return "said"


    @tool
    async def linger(context: ToolContext) -> str:
        """Ask, and wait for the answer."""
        print("began")
        wanted = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
        answer = await context.ask("Which size?", schema=wanted)
        print(f"heard {answer}")
        return "said"


    @tool
    async def pick(context: ToolContext) -> str:
        """Ask for one of two doors, and wait for the answer."""
        door = await context.ask("Which door?", options=["left", "right"])
        print(f"picked {door}")
        return f"through {door}"


    @hook
    class Denies:
        @on("prompt:submit")
        async def deny(self, event, data):
            return HookResult.deny("not today")


    @hook
    class Asks:
        @on("tool:pre")
        async def ask(self, event, data):
            return HookResult.ask("Shall it?", options=["Allow once", "Allow always", "Deny"], timeout=20)


    @hook
    class Tells:
        @on("prompt:submit")
        async def tell(self, event, data):
            return HookResult(action="continue", user_message="hello \\x1b[1m you", user_message_level="warning")


    @hook
    class Fails:
        @on("prompt:complete")
        async def fail(self, event, data):
            raise RuntimeError("an observer failed")
'''

ENTRY_POINTS: Final = """
    [amplifier.modules]
    tool-trials = cli_trials:Trials
    tool-inquire = cli_trials:inquire
    tool-linger = cli_trials:linger
    tool-pick = cli_trials:pick
    provider-forever = cli_trials:mount_forever
    provider-broken = cli_trials:mount_broken
    hooks-denies = cli_trials:Denies
    hooks-asks = cli_trials:Asks
    hooks-tells = cli_trials:Tells
    hooks-fails = cli_trials:Fails
"""


@pytest.fixture(autouse=True)
def trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the trial modules for this process and for those it starts."""
    site = tmp_path / "site"
    metadata = site / "cli_trials-1.0.dist-info"
    metadata.mkdir(parents=True)
    (site / "cli_trials.py").write_text(dedent(MODULES), "utf-8")
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: cli-trials\nVersion: 1.0\n", "utf-8"
    )
    (metadata / "entry_points.txt").write_text(dedent(ENTRY_POINTS), "utf-8")
    monkeypatch.syspath_prepend(site)
    # the one of the test before lies elsewhere
    monkeypatch.delitem(sys.modules, "cli_trials", raising=False)
    inherited = os.environ.get("PYTHONPATH")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(site), *([inherited] if inherited else [])])
    )
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "own"))
    monkeypatch.delenv("AMPLIFIER_DEBUG", raising=False)


@pytest.fixture(autouse=True)
def threads_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget threads that other tests abandoned in this process: a command ends the process beside its own."""
    abandoned, before = threads.abandoned, threads.abandoned()
    monkeypatch.setattr(
        threads,
        "abandoned",
        lambda: tuple(thread for thread in abandoned() if thread not in before),
    )


@pytest.fixture(autouse=True)
def untouched_log() -> Iterator[None]:
    """Undo what a command did to the log of this process."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> Iterator[None]:
    """Hear signals, so that the commands do: what a script starts in the background inherits its deafness."""
    ignored = [
        name
        for name in (signal.SIGINT, signal.SIGHUP)
        if signal.getsignal(name) is signal.SIG_IGN
    ]
    for name in ignored:
        signal.signal(
            name,
            signal.default_int_handler if name is signal.SIGINT else signal.SIG_DFL,
        )
    yield
    for name in ignored:
        signal.signal(name, signal.SIG_IGN)
