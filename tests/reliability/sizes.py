"""Huge things on their way through a session, and what the process grew by: one line of JSON for each.

    python -m tests.reliability.sizes BACKEND FOLDER URL SIZE ROW...

URL is that of a server which has `/long/BYTES` and `/packed/BYTES`. Each row first does its work in a small size, so
that what it imports is not counted.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import anyio
import attrs

from amplifier.testing import EventRecorder, ScriptedProvider, answer, call
from amplifier_sdk import ContextManager, ToolResult
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.jsontypes import JSONObject
from tests.reliability.stage import AppDirs, session

__all__ = ["ROWS", "messages_of"]

HOOKS: Final = ("hooks-redaction", "hooks-logging")
STUB: Final = Path(__file__).with_name("stub_server.py")
STATUS: Final = Path("/proc/self/status")


@attrs.frozen
class Ground:
    """Where the rows find what they need."""

    dirs: AppDirs
    url: str

    def places_of(self, name: str) -> AppDirs:
        """Make folders that one session has for itself."""
        dirs = attrs.evolve(self.dirs, home=self.dirs.home / name)
        dirs.home.mkdir(mode=0o700)
        return dirs

    async def result_of(
        self, name: str, asked: ToolCall, tool: str, config: JSONObject
    ) -> str:
        """Let a model make one call; return the result as the model reads it."""
        recorder = EventRecorder()
        made = session(
            self.places_of(name),
            answer("", asked),
            answer("Done."),
            tools=[tool],
            hooks=HOOKS,
            extra_hooks=[recorder],
            configs={tool: config},
        )
        async with made:
            await made.execute("Begin.")
        (result,) = [
            data["result"] for event, data in recorder.events if event == "tool:post"
        ]
        assert isinstance(result, ToolResult)
        return result.get_serialized_output()

    async def shell(self, name: str, command: str) -> str:
        config: JSONObject = {"sandbox": "none", "unlisted": "allow"}
        return await self.result_of(
            name, call("bash", {"command": command}), "tool-bash", config
        )

    async def page(self, name: str, path: str) -> str:
        config: JSONObject = {
            "allowed_addresses": [urlsplit(self.url).netloc],
            "max_limit": 1000,
        }
        return await self.result_of(
            name, call("web_fetch", {"url": f"{self.url}{path}"}), "tool-web", config
        )

    async def lines(self, name: str, offset: int) -> str:
        asked = call(
            "read_file",
            {
                "file_path": str(self.dirs.project / name),
                "offset": offset,
                "limit": 5,
            },
        )
        return await self.result_of(name, asked, "tool-filesystem", {})


async def bash_lines(ground: Ground, name: str, size: int) -> str:
    return await ground.shell(name, f"yes | head -c {size}")


async def bash_one_line(ground: Ground, name: str, size: int) -> str:
    return await ground.shell(name, f"head -c {size} /dev/zero | tr '\\0' x")


async def web_long(ground: Ground, name: str, size: int) -> str:
    return await ground.page(name, f"/long/{size}")


async def web_packed(ground: Ground, name: str, size: int) -> str:
    return await ground.page(name, f"/packed/{size}")


async def file_first_lines(ground: Ground, name: str, size: int) -> str:
    with (ground.dirs.project / name).open("wb") as file:
        file.write(b"".join(b"line %d\n" % number for number in range(10)))
        file.truncate(size)
    return await ground.lines(name, 1)


async def file_last_lines(ground: Ground, name: str, size: int) -> str:
    block = b"".join(b"%-99d\n" % number for number in range(10_000))
    blocks = max(1, size // len(block))
    with (ground.dirs.project / name).open("wb") as file:
        for _ in range(blocks):
            file.write(block)
    try:
        return await ground.lines(name, blocks * 10_000 - 4)
    finally:
        (ground.dirs.project / name).unlink()


async def mcp_message(ground: Ground, name: str, size: int) -> str:
    server: JSONObject = {"command": sys.executable, "args": [str(STUB), "1"]}
    asked = call("mcp__stub__long", {"bytes": size})
    return await ground.result_of(
        name, asked, "tool-mcp", {"servers": {"stub": server}}
    )


async def many_messages(ground: Ground, name: str, size: int) -> str:
    """Put messages of a hundredth of the size in all into a context, close it, and go on with it."""
    dirs, number = ground.places_of(name), messages_of(size)
    text = "What is it?\n" * (size // 100 // number // 12)
    async with session(dirs, tools=[], hooks=HOOKS) as first:
        context = first.coordinator.get("context")
        assert isinstance(context, ContextManager)
        for _ in range(number // 2):
            await context.add_message({"role": "user", "content": text})
            await context.add_message({"role": "assistant", "content": text[::-1]})
    provider = ScriptedProvider(answer("Done."))
    async with session(dirs, provider=provider, tools=[], hooks=HOOKS) as second:
        await second.execute("And now?")
        stored = second.coordinator.get("context")
        assert isinstance(stored, ContextManager)
        return f"{len(await stored.get_messages())} messages"


ROWS: Final[Mapping[str, Callable[[Ground, str, int], Awaitable[str]]]] = {
    made.__name__.replace("_", "-"): made
    for made in (
        bash_lines,
        bash_one_line,
        web_long,
        web_packed,
        file_first_lines,
        file_last_lines,
        mcp_message,
        many_messages,
    )
}


def messages_of(size: int) -> int:
    """Return how many messages there are in a size: 10,000 in a gigabyte."""
    return max(10, size // 100_000)


def size_of_process(name: str) -> int:
    """Return how many kilobytes the process has (`VmRSS`), or had at most (`VmHWM`).

    `getrusage` would not do where there is `/proc`: a process inherits the most of the one that started it.
    """
    if not STATUS.exists():
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most // 1024 if sys.platform == "darwin" else most
    (line,) = [
        line for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:")
    ]
    return int(line.split()[1])


def forget_the_most() -> None:
    """Let the most that the process had be what it has."""
    gc.collect()
    if STATUS.exists():
        Path("/proc/self/clear_refs").write_text("5")


async def main(ground: Ground, size: int, rows: list[str]) -> None:
    for name in rows:
        await ROWS[name](ground, f"small-{name}", 1000)
        forget_the_most()
        before = size_of_process("VmRSS")
        reported = await ROWS[name](ground, name, size)
        grown = size_of_process("VmHWM") - before
        sys.stdout.write(
            json.dumps({"row": name, "grown": grown, "told": reported}) + "\n"
        )


if __name__ == "__main__":
    backend, folder, url, size, *rows = sys.argv[1:]
    parts = {part: Path(folder) / part for part in ("home", "temporary", "project")}
    for part in parts.values():
        part.mkdir(mode=0o700, exist_ok=True)
    anyio.run(main, Ground(AppDirs(**parts), url), int(size), rows, backend=backend)
