"""A terminal that can only print lines, at a pseudo terminal of this process."""

from __future__ import annotations

import io
import os
import pty
import sys
from collections.abc import Iterator

import anyio
import attrs
import pytest

from amplifier.cli._chat._keys import EndOfInput, EnteredLine, Key
from amplifier.cli._chat._plain import PlainKeyboard
from amplifier.cli._output import Output


@attrs.define(eq=False)
class Typist:
    """A keyboard with somebody at it: `typing` is their side of the terminal, `paper` what is printed."""

    typing: int
    paper: io.BytesIO = attrs.field(factory=io.BytesIO)
    taken: list[Key] = attrs.field(factory=list)
    is_working: bool = False
    keyboard: PlainKeyboard = attrs.field(init=False)
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    def __attrs_post_init__(self) -> None:
        self.keyboard = PlainKeyboard(
            Output(self.paper), is_working=lambda: self.is_working
        )

    @property
    def printed(self) -> str:
        return self.paper.getvalue().decode()

    def type(self, keys: str) -> None:
        os.write(self.typing, keys.encode())

    def take(self, key: Key) -> None:
        self.taken.append(key)
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, count: int) -> list[Key]:
        with anyio.fail_after(10):
            while len(self.taken) < count:
                await self._changed.wait()
        return self.taken


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A pseudo terminal as standard input; returns the descriptor of whoever types."""
    typing, ours = pty.openpty()
    with open(ours) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield typing
    os.close(typing)


async def test_lines_are_handed_on_until_their_end(terminal: int) -> None:
    typist = Typist(terminal)
    typist.type("one\n\ntwo words\n\x04")
    with anyio.fail_after(10):
        await typist.keyboard.listen(typist.take)
    assert typist.taken == [
        EnteredLine("one"),
        EnteredLine(""),
        EnteredLine("two words"),
        EndOfInput(is_gone=True),
    ]


async def test_the_prompt_stands_where_the_next_line_is_one(terminal: int) -> None:
    typist = Typist(terminal, is_working=True)
    typist.keyboard.show("not whole", "status")
    assert typist.printed == ""
    typist.is_working = False
    typist.keyboard.show("", "")
    typist.keyboard.show("", "")
    assert typist.printed == "> "
    typist.keyboard.write("a message\n")
    typist.keyboard.show("", "")
    assert typist.printed == "> \na message\n> "
    async with anyio.create_task_group() as group:
        group.start_soon(typist.keyboard.listen, typist.take)
        typist.type("hello\n")
        await typist.until(1)
        typist.keyboard.write("answer\n")
        group.cancel_scope.cancel()
    assert typist.printed == "> \na message\n> answer\n"


async def test_what_is_typed_while_somebody_else_asks_is_theirs(terminal: int) -> None:
    typist = Typist(terminal)
    async with anyio.create_task_group() as group:
        group.start_soon(typist.keyboard.listen, typist.take)
        typist.type("one\n")
        await typist.until(1)
        async with typist.keyboard.away():
            await anyio.wait_all_tasks_blocked()
            typist.type("1\n")
            assert await anyio.to_thread.run_sync(sys.stdin.readline) == "1\n"
        typist.type("two\n")
        assert await typist.until(2) == [EnteredLine("one"), EnteredLine("two")]
        group.cancel_scope.cancel()
