"""The chat's conversation: what is typed becomes turns, texts for the running turn, or commands."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import attrs
from anyio import to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from amplifier.app.commands.registry import CommandRegistry, Typed, read_line
from amplifier.app.commands.talk import Talk
from amplifier.app.commands.typed_shell import SHELL_MARK, run_typed
from amplifier.app.projects.paths import branch_of
from amplifier.app.sessions.composition import display_of
from amplifier.app.sessions.live_figures import LiveFigures
from amplifier.app.settings.schema import DisplaySettings
from amplifier.app.settings.settings import load_settings
from amplifier.cli._chat._frames import Frames
from amplifier.cli._chat._keys import (
    EndOfInput,
    EnteredLine,
    Interrupt,
    Key,
    NextMode,
    Shortcut,
    Stop,
)
from amplifier.cli._chat._markdown import columns
from amplifier.cli._chat._outputs import ToolOutputs
from amplifier.cli._chat._painter import Painter
from amplifier.cli._chat._queue import Prompt, PromptQueue
from amplifier.cli._chat._screen import ChatScreen
from amplifier.cli._chat._status import MODE_NAMES, StatusLine
from amplifier.cli._chat._typed_keys import TypedKeys
from amplifier.cli._interrupts import Interrupts
from amplifier.cli._people import plain
from amplifier.cli._terminal import OutputClosedError
from amplifier_kit.commands import (
    CommandError,
    CommandPrompt,
)
from amplifier_kit.terminal import one_line
from amplifier_sdk.errors import TurnCancelled
from amplifier_sdk.streaming import SteeringInjected

if TYPE_CHECKING:
    from amplifier.app.sessions.opened import TurnEvents
    from amplifier.kernel.sessions.session import AmplifierSession

__all__ = ["ChatLoop"]

_TICK: Final = 1.0
_LONG_TURN: Final = 10.0
"""Seconds after which a person may have turned to something else."""
_NOTE_MARK: Final = "#"
_SHELL_LINES: Final = 200
"""How much is shown of what a typed command puts out."""


@attrs.define(eq=False)
class ChatLoop:
    """A conversation at a terminal; `run` holds it.

    Args:
        talk: its session.
        screen: where it is shown and typed.
        interrupts: what Ctrl-C does.
        display: what is shown.
        edit: lets the person edit what is typed in their editor; `None` where that cannot be.
    """

    talk: Talk
    screen: ChatScreen
    interrupts: Interrupts
    display: DisplaySettings
    registry: CommandRegistry = attrs.field(factory=CommandRegistry)
    waiting: PromptQueue = attrs.field(init=False)
    status: StatusLine = attrs.field(init=False)
    frames: Frames = attrs.field(init=False)
    outputs: ToolOutputs = attrs.field(factory=ToolOutputs)
    edit: Callable[[], Awaitable[None]] | None = None
    followed_by: str | None = None
    is_working: bool = False
    _is_over: bool = False
    _may_leave: bool = False
    _shown_background: tuple[AmplifierSession, ...] = ()
    _leaves_next: bool = False
    _is_stopping: bool = False
    _scope: anyio.CancelScope | None = None
    _painter: Painter | None = None
    _scopes: list[anyio.CancelScope] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.waiting = PromptQueue(self.talk.opened)
        figures = LiveFigures.of(self.talk.opened.session, self._figures_changed)
        self.status = StatusLine(self.talk, figures)
        self.frames = Frames(self._renew)

    def ask(self, question: str) -> None:
        """Show what is begun of an answer, so that it stands before a question.

        Args:
            question: what the person reads next.
        """
        if self._painter is not None:
            self._painter.flush()
            self._painter.asked.append(question)

    async def run(self, typed: TypedKeys) -> None:
        """Hold the conversation until its end: `/exit`, Ctrl-D, or the terminal is gone.

        Args:
            typed: what is typed, also before.
        """
        await self._look_for_branch()
        self.interrupts.at_prompt = self._interrupted
        typed.heard.set()
        ask, asked = anyio.create_memory_object_stream[Typed](math.inf)
        try:
            async with ask, asked, anyio.create_task_group() as group:
                self._scope = group.cancel_scope
                group.start_soon(self._hear, typed.received, ask)
                group.start_soon(self._answer_at_once, asked)
                group.start_soon(self._tick)
                group.start_soon(self.frames.run)
                await self._serve()
                group.cancel_scope.cancel()
        except BaseExceptionGroup as failures:
            # The task group wraps it, and whoever ends the command looks for the error
            # itself.
            closed, others = failures.split(OutputClosedError)
            if closed is not None and others is None:
                raise OutputClosedError from closed
            raise
        finally:
            self.interrupts.at_prompt = None

    async def _serve(self) -> None:
        """Take what waits, one after the other."""
        while True:
            if self.waiting:
                self.is_working = True
                self._renew()
                try:
                    await self._take(self.waiting.take())
                finally:
                    self.is_working = False
                await self._look_for_branch()
            elif self._is_over:
                return
            else:
                self._renew()
                await self.waiting.wait()

    async def _hear(
        self, keys: MemoryObjectReceiveStream[Key], ask: MemoryObjectSendStream[Typed]
    ) -> None:
        """Hear the keyboard, also while something runs: nothing here waits, so that Ctrl-C is always heard."""
        async for key in keys:
            self._take_key(key, ask)
            if self.is_working or not self.waiting:
                self._renew()

    def _take_key(self, key: Key, ask: MemoryObjectSendStream[Typed]) -> None:
        if not isinstance(key, Interrupt):
            self._leaves_next = False
        match key:
            case EnteredLine(text=text, shown=shown) if self.is_working:
                self._while_working(Prompt(text=text, placeholder=shown), ask)
            case EnteredLine(text=text, shown=shown):
                self.waiting.add(Prompt(text=text, placeholder=shown))
            case Interrupt():
                self._interrupted()
            case Stop():
                self._stop()
            case NextMode():
                self._choose_next_mode()
            case Shortcut(command=name):
                ask.send_nowait(Typed(name, ""))
            case EndOfInput(is_gone=is_gone):
                self.leave(is_certain=is_gone)
                self.waiting.wake()

    async def _answer_at_once(self, asked: MemoryObjectReceiveStream[Typed]) -> None:
        """Run the commands that need not wait for the end of the turn, one after the other."""
        async for typed in asked:
            made = await self._command(typed)
            if made is not None:
                self.waiting.add(made)
            self._renew()

    async def _tick(self) -> None:
        """Let the clock of a running turn go on, and show what ended in the background."""
        while True:
            await anyio.sleep(_TICK)
            if self.is_working or self.background != self._shown_background:
                self._renew()

    def _interrupted(self) -> None:
        """Stop what runs; pressed again without anything in between, leave."""
        if self._leaves_next and self._scope is not None:
            self._is_over = True
            self._scope.cancel()
            return
        self._leaves_next = True
        if not self._stop() and not self._is_over:
            self.screen.note(
                f"Ctrl-C again ends the chat, as Ctrl-D and /exit do.{self._stopped_with_it}"
            )
            self._renew()

    def _stop(self) -> bool:
        """Stop the running turn and commands at once; return whether there were any."""
        is_turn = self._painter is not None
        if is_turn and not self._is_stopping:
            self._is_stopping = True
            # Now, and not when the turn has ended: what is typed from here on is a new prompt.
            self._drop()
            session = self.talk.opened.session
            # In a task of its own: handlers hear of it, and the next key must not wait for them.
            self.interrupts.group.start_soon(partial(session.cancel, immediate=True))
        for scope in self._scopes:
            scope.cancel()
        return is_turn or bool(self._scopes)

    def _choose_next_mode(self) -> None:
        modes = self.talk.modes
        modes.choose(modes.following)
        if not self.screen.board.has_live:
            self.screen.note(f"Mode: {MODE_NAMES[modes.current]}")

    def _figures_changed(self) -> None:
        retry = self.status.figures.retry
        if retry is not None and not self.screen.board.has_live:
            self.screen.note(plain(retry.text(time.monotonic())))
        self._renew()

    async def _look_for_branch(self) -> None:
        """Read which branch is checked out: what ran may have changed it."""
        root = self.talk.opened.composition.dirs.root
        self.status.branch = await to_thread.run_sync(branch_of, root)

    async def _take(self, prompt: Prompt) -> None:
        """Run a prompt, or a command with the prompt that it makes."""
        if not prompt.text.strip():
            return
        self.screen.echo(prompt.shown)
        if _is_shell(prompt.text) and prompt.command is None:
            command = prompt.text.strip().removeprefix(SHELL_MARK).strip()
            await self._turn(prompt, run_typed(self.talk, command))
            return
        if prompt.command is not None:
            typed = None
        else:
            typed = _read(prompt.text)
        made = prompt if typed is None else await self._command(typed)
        if made is not None:
            await self._turn(made, self._stream(made))

    def _stream(self, prompt: Prompt) -> AbstractAsyncContextManager[TurnEvents]:
        return self.talk.stream(
            prompt.text, prompt.metadata, typed=prompt.typed, written=prompt.written
        )

    def _while_working(
        self, prompt: Prompt, ask: MemoryObjectSendStream[Typed]
    ) -> None:
        """Say a text to the agent that works; a command that need not wait runs, another one waits."""
        text = prompt.text
        typed = _read(text)
        if typed is not None and self.registry.is_at_once(typed.name):
            ask.send_nowait(typed)
        # Only a turn that is not stopping can be steered; while a command works there is none to
        # hear it.
        elif (
            typed is None
            and self._is_steerable
            and text.strip()
            and not _is_shell(text)
        ):
            self.waiting.steer(text)
        elif text.strip():
            self.waiting.add(prompt)

    @property
    def _is_steerable(self) -> bool:
        return self._painter is not None and not self._is_stopping

    async def _command(self, typed: Typed) -> Prompt | None:
        scope = anyio.CancelScope()
        self._scopes.append(scope)
        self.talk.columns = columns() - 1
        try:
            with scope:
                made = await self.registry.find(typed.name).make(typed.arguments)
        except CommandError as error:
            self.screen.complain(str(error))
            return None
        except OutputClosedError:
            raise
        except Exception as error:
            # a command may be foreign code: what it raises ends the command alone
            self.screen.fail(error)
            return None
        finally:
            self._scopes.remove(scope)
        if scope.cancelled_caught:
            self.screen.note("Stopped.")
            return None
        # It may have changed what is shown.
        if typed.name == "config":
            await self._reload()
        if isinstance(made, CommandPrompt):
            line = f"/{typed.name} {typed.arguments}".rstrip()
            return Prompt(
                text=made.text,
                command=line,
                typed=typed.arguments,
                written=made.written,
                metadata=made.metadata,
            )
        if made.text:
            self.screen.answer(made)
        return None

    async def _turn(
        self, prompt: Prompt, made: AbstractAsyncContextManager[TurnEvents]
    ) -> None:
        """Run a turn; what ends it early is reported, and the chat continues."""
        screen = self.screen
        if screen.board.has_live:
            refresh = self.frames.ask
        else:
            refresh = None
        painter = Painter(
            screen.board.write, refresh, screen.rendering, screen.redactor, self.display
        )
        painter.outputs, painter.draw = self.outputs, self._renew
        if _is_shell(prompt.text):
            painter.output_lines = _SHELL_LINES
            # no model is asked, so nothing is used
            painter.display = attrs.evolve(self.display, show_usage=False)
        self._painter, self._is_stopping = painter, False
        self._may_leave = False
        try:
            await self._paint(made, painter)
        except TurnCancelled as cancelled:
            painter.end()
            if cancelled.partial_text:
                screen.note("Stopped. What arrived stays, marked as incomplete.")
            else:
                screen.note("Stopped.")
        except CommandError as error:
            screen.complain(str(error))
        except OutputClosedError:
            raise
        except Exception as error:  # whatever foreign code raised ends its turn alone
            painter.end()
            screen.fail(error)
        finally:
            if painter.seconds > _LONG_TURN:
                screen.call_attention("the answer is there", self.display)
            self._painter = None
            self.waiting.take_back()

    async def _paint(
        self, made: AbstractAsyncContextManager[TurnEvents], painter: Painter
    ) -> None:
        async with made as events:
            async for event in events:
                if isinstance(event, SteeringInjected):
                    # Echoed when the agent reads it, so that the screen shows
                    # it where it entered the conversation.
                    self.waiting.heard(event.text)
                    self.screen.echo(event.text)
                    self._renew()
                painter.paint(event)

    def _drop(self) -> None:
        """Forget what waits, since the person stopped what it was for."""
        self.waiting.take_back()
        for prompt in self.waiting.drop():
            self.screen.note(f"Not sent: {one_line(prompt.shown, 300)}")

    async def _reload(self) -> None:
        """Read again what is shown, since a setting may have changed."""
        opened = self.talk.opened
        if opened.writer is None:
            folder = None
        else:
            folder = opened.writer.folder
        settings = await to_thread.run_sync(
            partial(load_settings, opened.composition.dirs, session=folder)
        )
        self.show(display_of(opened.composition.profile, settings))

    def show(self, display: DisplaySettings) -> None:
        """Choose what is shown, of the running turn as well."""
        self.display = display
        if self._painter is not None:
            self._painter.display = display

    @property
    def background(self) -> tuple[AmplifierSession, ...]:
        """The children that work in the background."""
        children = self.talk.opened.session.family.open_children
        return tuple(child for child in children if child.family.is_detached)

    @property
    def _stopped_with_it(self) -> str:
        """What the end of the chat stops, as the end of a sentence; empty for nothing."""
        count = len(self.background)
        if not count:
            return ""
        who = "1 agent" if count == 1 else f"{count} agents"
        return f" It stops {who} in the background, see /agents."

    def leave(
        self, *, is_certain: bool = False, followed_by: str | None = None
    ) -> bool:
        """End the chat once nothing runs; where that stops agents in the background, only when asked a second time.

        Args:
            is_certain: whether nobody is asked.
            followed_by: as in `end`.

        Returns:
            Whether the chat ends.
        """
        stops = self._stopped_with_it
        if stops and not (is_certain or self._may_leave):
            self._may_leave = True
            self.screen.note(f"Once more ends the chat.{stops}")
            return False
        if followed_by is None:
            self._is_over = True
        else:
            self.end(followed_by=followed_by)
        return True

    def end(self, *, followed_by: str | None = None) -> None:
        """End the chat once nothing runs; what waits is forgotten.

        Args:
            followed_by: the id of the session that the person resumes.
        """
        self._is_over = True
        self.followed_by = followed_by
        self.waiting.drop()

    def _renew(self) -> None:
        self._shown_background = self.background
        self.screen.renew(
            self._painter, self.waiting, self.status, is_working=self.is_working
        )


def _is_shell(text: str) -> bool:
    return len(text.strip()) > 1 and text.lstrip().startswith(SHELL_MARK)


def _read(text: str) -> Typed | None:
    """Return the command of a text; a line for AGENTS.md is one, and headings of a pasted document are none."""
    line = text.strip()
    note = line.removeprefix(_NOTE_MARK).strip()
    if line.startswith(_NOTE_MARK) and "\n" not in line and note.strip("# "):
        return Typed("note", note)
    return read_line(text)
