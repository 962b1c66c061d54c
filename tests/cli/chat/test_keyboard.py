"""The prompt: what keys do, and how lines that stay get above it."""

from __future__ import annotations

import io
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import anyio
import attrs
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from amplifier.app.commands.registry import CommandRegistry
from amplifier.app.sessions.choices import SessionChoices
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.stored import StoredSession
from amplifier.cli._chat._completion import ChatCompleter
from amplifier.cli._chat._keyboard import Keyboard
from amplifier.cli._chat._keys import (
    EndOfInput,
    EnteredLine,
    Interrupt,
    Key,
    NextMode,
    Shortcut,
    Stop,
)
from amplifier.cli._output import Output
from amplifier.cli._terminal import OutputClosedError
from amplifier_kit.commands import CommandAnswer, SessionCommand


@attrs.define(eq=False)
class Typist:
    """A keyboard with somebody at it."""

    keyboard: Keyboard
    keys: PipeInput
    paper: io.BytesIO
    taken: list[Key] = attrs.field(factory=list)
    is_working: bool = False
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    def take(self, key: Key) -> None:
        self.taken.append(key)
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, count: int) -> list[Key]:
        with anyio.fail_after(10):
            while len(self.taken) < count:
                await self._changed.wait()
        return self.taken


@asynccontextmanager
async def typist(folder: Path, history: History | None = None) -> AsyncIterator[Typist]:
    async def answer(_: str) -> CommandAnswer:
        return CommandAnswer(text="")

    with (
        create_pipe_input() as keys,
        create_app_session(input=keys, output=DummyOutput()),
    ):
        paper = io.BytesIO()
        somebody: list[Typist] = []
        keyboard = Keyboard(
            Output(paper), is_working=lambda: somebody[0].is_working, has_colour=False
        )
        typed = Typist(keyboard, keys, paper)
        somebody.append(typed)
        registry = CommandRegistry()
        registry.add([SessionCommand(name="status", make=answer)])
        keyboard.remember(history or InMemoryHistory())
        keyboard.complete(ChatCompleter(registry, folder))
        async with anyio.create_task_group() as group:
            group.start_soon(keyboard.listen, typed.take)
            yield typed
            group.cancel_scope.cancel()


async def test_enter_submits_and_ctrl_j_or_alt_enter_adds_line(
    tmp_path: Path,
) -> None:
    async with typist(tmp_path) as typed:
        typed.keys.send_text("one\r")
        typed.keys.send_text("two\nthree\x1b\rfour\r")
        assert await typed.until(2) == [
            EnteredLine("one"),
            EnteredLine("two\nthree\nfour"),
        ]


@pytest.mark.parametrize("form", ["{}", "'{}'", "file://{}", "{} "])
async def test_the_pasted_path_of_an_image_is_a_mention(
    tmp_path: Path, form: str
) -> None:
    path = tmp_path / "a dot.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    async with typist(tmp_path) as typed:
        typed.keys.send_text(f"See \x1b[200~{form.format(path)}\x1b[201~\r")

        assert await typed.until(1) == [
            EnteredLine(f'See @"{path}"', "See [Image #1: a dot.png]")
        ]


@pytest.mark.parametrize("text", ["{}/a.txt", "{}/none.png", "{}", "{}/pipe", "a\nb"])
async def test_other_pasted_paths_stay_as_they_are(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_text("a text")
    os.mkfifo(tmp_path / "pipe")
    pasted = text.format(tmp_path)
    async with typist(tmp_path) as typed:
        typed.keys.send_text(f"\x1b[200~{pasted}\x1b[201~\r")

        assert await typed.until(1) == [EnteredLine(pasted)]


async def test_a_pasted_text_is_one_text(tmp_path: Path) -> None:
    async with typist(tmp_path) as typed:
        typed.keys.send_text("\x1b[200~one\ntwo\n\x1b[201~\r")
        assert await typed.until(1) == [EnteredLine("one\ntwo\n")]


async def test_a_long_paste_is_a_placeholder(tmp_path: Path) -> None:
    async with typist(tmp_path) as typed:
        lines = "line\n" * 20
        typed.keys.send_text(f"see \x1b[200~{lines}\x1b[201~ please\r")
        assert await typed.until(1) == [
            EnteredLine(f"see {lines} please", "see [Pasted #1: 21 lines] please")
        ]


async def test_ctrl_c_drops_the_text_unless_something_works(tmp_path: Path) -> None:
    async with typist(tmp_path) as typed:
        typed.keys.send_text("dropped\x03\x03kept")
        await typed.until(1)
        typed.is_working = True
        typed.keys.send_text("\x03\r")
        assert await typed.until(3) == [Interrupt(), Interrupt(), EnteredLine("kept")]


async def test_esc_stops_what_works_and_shift_tab_is_a_mode(tmp_path: Path) -> None:
    async with typist(tmp_path) as typed:
        typed.keys.send_text("\x1b[Z")
        await typed.until(1)
        typed.is_working = True
        typed.keys.send_text("draft\x1b")
        await typed.until(2)
        typed.keys.send_text("\r")
        assert await typed.until(3) == [NextMode(), Stop(), EnteredLine("draft")]


async def test_ctrl_d_is_the_end_where_nothing_is_typed(tmp_path: Path) -> None:
    async with typist(tmp_path) as typed:
        typed.keys.send_text("ab\x01\x04\r\x04")
        assert await typed.until(2) == [EnteredLine("b"), EndOfInput()]


class ToldHistory(InMemoryHistory):
    """Tells when the prompt has read all that is remembered, which it does in a loop of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._readings: SimpleQueue[None] = SimpleQueue()

    async def load(self) -> AsyncGenerator[str, None]:
        async for text in super().load():
            yield text
        self._readings.put(None)

    async def read(self) -> None:
        await anyio.to_thread.run_sync(partial(self._readings.get, timeout=10))


async def test_the_arrow_keys_bring_back_what_was_typed(tmp_path: Path) -> None:
    history = ToldHistory()
    async with typist(tmp_path, history) as typed:
        await history.read()
        typed.keys.send_text("one\r")
        await history.read()
        typed.keys.send_text("\x1b[A\r")
        assert await typed.until(2) == [EnteredLine("one"), EnteredLine("one")]


async def test_lines_that_stay_are_written_in_order_from_any_thread(
    tmp_path: Path,
) -> None:
    async with typist(tmp_path) as typed:
        typed.keys.send_text("x\r")
        await typed.until(1)
        for number in range(5):
            typed.keyboard.write(f"{number}\n")
            await anyio.to_thread.run_sync(typed.keyboard.write, f"{number} again\n")
        typed.keyboard.show("above", "below")
    typed.keyboard.write("afterwards\n")
    said = [line for number in range(5) for line in (f"{number}", f"{number} again")]
    assert (
        typed.paper.getvalue().decode().split()
        == " ".join([*said, "afterwards"]).split()
    )


async def test_prompt_makes_way_and_comes_back_with_what_was_typed(
    tmp_path: Path,
) -> None:
    async with typist(tmp_path) as typed:
        typed.keys.send_text("first\rhalf")
        await typed.until(1)
        async with typed.keyboard.away():
            typed.keyboard.write("waits\n")
            assert b"waits" not in typed.paper.getvalue()
        typed.keys.send_text(" and more\r")
        assert await typed.until(2) == [
            EnteredLine("first"),
            EnteredLine("half and more"),
        ]
    assert b"waits" in typed.paper.getvalue()


async def test_the_prompt_may_make_way_before_it_is_there(tmp_path: Path) -> None:
    with (
        create_pipe_input() as keys,
        create_app_session(input=keys, output=DummyOutput()),
    ):
        keyboard = Keyboard(
            Output(io.BytesIO()), is_working=lambda: False, has_colour=True
        )
        async with keyboard.away():
            pass


async def test_a_reader_that_is_gone_is_told_to_whoever_writes_next(
    tmp_path: Path,
) -> None:
    class Closed(io.BytesIO):
        def write(self, _: object, /) -> int:
            raise BrokenPipeError

    with (
        create_pipe_input() as keys,
        create_app_session(input=keys, output=DummyOutput()),
    ):
        keyboard = Keyboard(
            Output(Closed()), is_working=lambda: False, has_colour=False
        )
        keyboard.write("lost\n")
        with pytest.raises(OutputClosedError):
            keyboard.write("lost\n")


async def test_an_editor_gets_the_draft_and_gives_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edit(text: str, extension: str) -> str:
        return f"{text} edited{extension}\n"

    monkeypatch.setattr("click.edit", edit)
    async with typist(tmp_path) as typed:
        typed.keys.send_text("draft\x07")
        assert await typed.until(1) == [Shortcut("editor")]
        with anyio.fail_after(10):
            await typed.keyboard.edit()
        typed.keys.send_text("\r")
        assert (await typed.until(2))[-1] == EnteredLine("draft edited.md")


def _stored(folder: Path, number: int) -> StoredSession:
    record = SessionRecord(session_id=f"s{number}", prompt=f"prompt {number}")
    return StoredSession(folder=folder / f"s{number}", record=record)


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [("\r", "s0"), ("\x1b[B\r", "s1"), ("prompt 2\r", "s2"), ("\x1b", None)],
    ids=["first", "down", "search", "back"],
)
async def test_a_session_is_picked_over_the_whole_terminal(
    tmp_path: Path, keys: str, chosen: str | None
) -> None:
    choices = SessionChoices([_stored(tmp_path, number) for number in range(3)])
    async with typist(tmp_path) as typed:
        typed.keys.send_text(keys)
        with anyio.fail_after(10):
            assert await typed.keyboard.pick_session(choices) == chosen


async def test_a_picker_ends_when_the_chat_does(tmp_path: Path) -> None:
    choices = SessionChoices([_stored(tmp_path, 1)])
    async with typist(tmp_path) as typed:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(typed.keyboard.pick_session, choices)
                await anyio.wait_all_tasks_blocked()
                group.cancel_scope.cancel()
        typed.keys.send_text("here again\r")
        assert await typed.until(1) == [EnteredLine("here again")]
