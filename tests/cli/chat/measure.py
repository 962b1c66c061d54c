"""How quick a chat is: from a key to the screen while an answer streams, its start, and its memory after many pages.

`python -m tests.cli.chat.measure` prints the figures.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from amplifier_sdk.jsontypes import JSONValue
from tests.cli.programs import PROGRAM, Terminal, open_terminal

__all__ = [
    "BIG_OUTPUT",
    "chat_of",
    "key_times",
    "paced",
    "resident_bytes",
    "start_seconds",
]

_LETTERS: Final = "QWERTYUPASDFGHJKLZXCVBNM"
"""No answer and no status has them, so that the first one on the screen is the one that was typed."""

_CLEAR: Final = "\x15"
_PAUSE: Final = 0.023
"""Seconds between two keys: no multiple of a frame."""

BIG_OUTPUT: Final = "head -c 2000000 /dev/zero | tr '\\\\0' x | fold -w 79"
"""A command that puts out 2 MB in lines."""

_PAGES: Final = 10_000
_WORD: Final = "word"
_PAGE: Final = (f"{_WORD} " * 15 + "\n") * 23 + "\n"

_MODULE: Final = """\
import anyio
from amplifier_sdk import TextBlock, provider
from amplifier_sdk.chat import ChatResponse, Usage
from amplifier_sdk.providers import BaseProvider
from amplifier_sdk.streaming import TextDelta


@provider
class Paced(BaseProvider):
    name = "paced"

    def __init__(self, config: dict) -> None:
        self.rate, self.count = config["rate"], config["count"]
        self.piece = config["piece"]

    async def deltas(self, request):
        began, sent, parts = anyio.current_time(), 0, []
        while sent < self.count:
            due = min(self.count, int((anyio.current_time() - began) * self.rate) + 1)
            for number in range(sent, due):
                if self.piece:
                    yield TextDelta(text=self.piece)
                    continue
                parts.append("word " if number % 12 else "word.\\n\\n")
                yield TextDelta(text=parts[-1])
            sent = due
            await anyio.sleep(0.001)
        yield ChatResponse(
            content=[TextBlock(text="".join(parts) or "done")],
            usage=Usage(input_tokens=1, output_tokens=1, total_tokens=2),
            finish_reason="stop",
        )
"""


def paced(
    folder: Path, *, rate: int, count: int, piece: str = ""
) -> tuple[Path, Mapping[str, str]]:
    """Write a provider that streams so many deltas a second; return a plan with it, and its environment.

    Args:
        folder: where both are written.
        rate: how many deltas a second.
        count: how many in all.
        piece: the text of each; empty for words in paragraphs.
    """
    root = folder / "modules/amplifier-module-provider-paced"
    package = root / "amplifier_module_provider_paced"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(_MODULE)
    entry = '"provider-paced" = "amplifier_module_provider_paced:Paced"'
    (root / "pyproject.toml").write_text(
        '[project]\nname = "amplifier-module-provider-paced"\nversion = "1"\n'
        f'[project.entry-points."amplifier.modules"]\n{entry}\n'
    )
    config: JSONValue = {"rate": rate, "count": count, "piece": piece}
    plan: JSONValue = {
        "session": {"orchestrator": "loop-streaming", "context": "context-simple"},
        "providers": [{"module": "provider-paced", "config": config}],
        "tools": ["tool-bash"],
    }
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    return path, {"AMPLIFIER_MODULES": str(root.parent), "HOME": str(folder)}


@contextmanager
def chat_of(plan: Path, environment: Mapping[str, str]) -> Iterator[Terminal]:
    """Open a chat that takes keys."""
    command = (*PROGRAM, "chat", "--plan", str(plan), "--no-keep")
    with open_terminal(*command, environment=environment) as terminal:
        terminal.read_prompt()
        yield terminal


def key_times(terminal: Terminal, count: int) -> list[float]:
    """Type so many letters, and return the seconds until each was on the screen, sorted."""
    times = []
    for number in range(count):
        at = number % len(_LETTERS)
        # One fewer than there are: where a letter stood, the same one would not be drawn.
        if number % (len(_LETTERS) - 1) == 0:
            terminal.type(_CLEAR)
        _read_for(terminal, _PAUSE)
        began = time.perf_counter()
        terminal.type(_LETTERS[at])
        terminal.read_until(_LETTERS[at])
        times.append(time.perf_counter() - began)
    return sorted(times)


def start_seconds(plan: Path, environment: Mapping[str, str]) -> float:
    """Return how long a chat takes until it takes keys."""
    began = time.perf_counter()
    with chat_of(plan, environment) as terminal:
        taken = time.perf_counter() - began
        terminal.type("\x04")
        terminal.wait()
    return taken


def resident_bytes(terminal: Terminal) -> int:
    """Return how much memory a chat's process has, on Linux."""
    pages = Path(f"/proc/{terminal.process}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE")


def _read_for(terminal: Terminal, seconds: float) -> None:
    """Read what comes for a while: a terminal that nobody reads would hold the chat up."""
    end = time.perf_counter() + seconds
    while (left := end - time.perf_counter()) > 0:
        if select.select([terminal.descriptor], [], [], left)[0]:
            os.read(terminal.descriptor, 65_536)


def _share(times: list[float], share: float) -> str:
    return f"{times[min(len(times) - 1, int(len(times) * share))] * 1000:.1f} ms"


def _main() -> None:
    with TemporaryDirectory() as folder:
        plan, environment = paced(Path(folder), rate=2_000, count=30_000)
        starts = sorted(start_seconds(plan, environment) for _ in range(7))
        _say(f"start: median {_share(starts, 0.5)}, least {_share(starts, 0)}")
        with chat_of(plan, environment) as terminal:
            idle = key_times(terminal, 200)
            terminal.type(f"{_CLEAR}go\r")
            terminal.read_until("word.")
            busy = key_times(terminal, 300)
        for name, times in (("idle", idle), ("2,000 deltas/s", busy)):
            _print_keys(name, times)
        with chat_of(plan, environment) as terminal:
            terminal.type(f"{_CLEAR}!{BIG_OUTPUT}\r")
            _print_keys("2 MB of output a call", key_times(terminal, 100))
        _print_memory(Path(folder) / "pages")


def _print_memory(folder: Path) -> None:
    """Print what a chat's process holds at its prompt, and while it shows 10,000 pages of one answer."""
    plan, environment = paced(folder, rate=300, count=_PAGES, piece=_PAGE)
    wanted, words = _PAGES * _PAGE.count(_WORD), 0
    with chat_of(plan, environment) as terminal:
        _say(f"memory: {resident_bytes(terminal) / 2**20:.0f} MiB at the prompt")
        terminal.type("go\r")
        marks = [wanted // 100, wanted // 10, wanted * 99 // 100]
        while marks:
            words += os.read(terminal.descriptor, 65_536).count(_WORD.encode())
            if words >= marks[0]:
                pages = marks.pop(0) * _PAGES // wanted
                size = resident_bytes(terminal) / 2**20
                _say(f"memory: {size:.0f} MiB after {pages:,} pages")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _print_keys(name: str, times: list[float]) -> None:
    shares = ", ".join(f"p{at} {_share(times, at / 100)}" for at in (50, 99))
    _say(f"key to screen, {name}: {shares}")


if __name__ == "__main__":
    _main()
