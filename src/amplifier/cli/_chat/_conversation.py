"""The chat's conversation: what is typed becomes turns, texts for the running turn, or commands."""

from __future__ import annotations

import math
import traceback
from functools import partial
from typing import Final

import anyio
import attrs
from anyio import to_thread
from anyio.streams.memory import MemoryObjectReceiveStream

from amplifier.app.commands.builtin import AT_ONCE
from amplifier.app.commands.registry import CommandRegistry, Typed, read_line
from amplifier.app.commands.showing import usage_text
from amplifier.app.commands.talk import Talk
from amplifier.app.composition import display_of
from amplifier.app.settings.schema import DisplaySettings
from amplifier.app.settings.settings import load_settings
from amplifier.cli._chat._keys import Board, End, Interrupt, Key, Line
from amplifier.cli._chat._painter import Painter
from amplifier.cli._chat._rendering import Rendering, columns, wrapped
from amplifier.cli._chat._waiting import Prompt, Waiting
from amplifier.cli._exits import describe
from amplifier.cli._interrupts import Interrupts
from amplifier.cli._terminal import OutputClosedError
from amplifier_sdk.commands import CommandAnswer, CommandError, CommandPrompt, SessionCommand
from amplifier_sdk.errors import TurnCancelled
from amplifier_sdk.kit.redaction import SinkRedactor, redactor_of
from amplifier_sdk.kit.terminal import cut, one_line, visible
from amplifier_sdk.streaming import SteeringInjected

__all__ = ["Conversation"]

_TICK: Final = 1.0


@attrs.define(eq=False)
class Conversation:
    """A conversation at a terminal; `run` holds it.

    Args:
        talk: its session.
        board: keyboard and screen.
        rendering: lays text out.
        interrupts: what Ctrl-C does.
        display: what is shown.
        debug: show tracebacks.
    """

    talk: Talk
    board: Board
    rendering: Rendering
    interrupts: Interrupts
    display: DisplaySettings
    debug: bool = False
    registry: CommandRegistry = attrs.field(factory=CommandRegistry)
    waiting: Waiting = attrs.field(init=False)
    is_working: bool = False
    _is_turning: bool = False
    _is_over: bool = False
    _painter: Painter | None = None
    _scope: anyio.CancelScope | None = None

    def __attrs_post_init__(self) -> None:
        self.waiting = Waiting(self.talk.opened)

    def own_commands(self) -> list[SessionCommand]:
        """Return the commands that are about this chat alone."""
        return [
            SessionCommand(name="exit", make=self._exit, description="End the chat", aliases=("quit",)),
            SessionCommand(
                name="think",
                make=self._think,
                argument_hint="[on|off]",
                description="Show or hide what the model thinks",
            ),
        ]

    def finish(self) -> None:
        """Show what is begun of an answer."""
        if self._painter is not None:
            self._painter.flush()

    async def run(self) -> None:
        """Hold the conversation until its end: `/exit`, Ctrl-D, or the terminal is gone."""
        self.interrupts.at_prompt = self._interrupted
        try:
            send, keys = anyio.create_memory_object_stream[Key](math.inf)
            async with send, keys, anyio.create_task_group() as group:
                group.start_soon(self.board.listen, send.send_nowait)
                group.start_soon(self._hear, keys)
                group.start_soon(self._tick)
                await self._serve()
                group.cancel_scope.cancel()
        except BaseExceptionGroup as failures:
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
            elif self._is_over:
                return
            else:
                self._renew()
                await self.waiting.wait()

    async def _hear(self, keys: MemoryObjectReceiveStream[Key]) -> None:
        """Hear the keyboard, also while something runs."""
        async for key in keys:
            match key:
                case Line(text=text) if self.is_working:
                    await self._while_working(text)
                case Line(text=text):
                    self.waiting.add(Prompt(text=text))
                case Interrupt():
                    self._interrupted()
                case End():
                    self._is_over = True
                    self.waiting.wake()
            if self.is_working or not self.waiting:
                self._renew()

    async def _tick(self) -> None:
        """Let the clock of a running turn go on."""
        while True:
            await anyio.sleep(_TICK)
            if self.is_working:
                self._renew()

    def _interrupted(self) -> None:
        if self._is_turning:
            self.interrupts.press()
        elif self._scope is not None:
            self._scope.cancel()
        elif not self.is_working and not self._is_over:
            self._note("Ctrl-D or /exit ends the chat.")
            self._renew()

    async def _take(self, prompt: Prompt) -> None:
        """Run a prompt, or a command with the prompt that it makes."""
        typed = None if prompt.is_made else read_line(prompt.text)
        if typed is not None:
            self._echo(prompt.shown)
            made = await self._command(typed)
            if made is not None:
                await self._turn(made)
        elif prompt.text.strip():
            self._echo(prompt.shown)
            await self._turn(prompt)

    async def _while_working(self, text: str) -> None:
        """Say a text to the agent that works; a command that need not wait runs, another one waits."""
        typed = read_line(text)
        if typed is not None and typed.name in AT_ONCE:
            made = await self._command(typed)
            if made is not None:
                self.waiting.add(made)
        elif typed is not None or not self._is_turning:
            if text.strip():
                self.waiting.add(Prompt(text=text))
        elif text.strip():
            await self.waiting.steer(text)

    async def _command(self, typed: Typed) -> Prompt | None:
        """Run a command; return the prompt that it made."""
        try:
            with anyio.CancelScope() as scope:
                self._scope = scope
                made = await self.registry.find(typed.name or "help").make(typed.arguments)
        except CommandError as error:
            self._complain(str(error))
            return None
        except OutputClosedError:
            raise
        except Exception as error:  # a command may be foreign code: what it raises ends the command alone
            self._fail(error)
            return None
        finally:
            self._scope = None
        if scope.cancelled_caught:
            self._note("Cancelled.")
            return None
        if typed.name == "config":
            await self._reload()
        if isinstance(made, CommandPrompt):
            line = f"/{typed.name} {typed.arguments}".rstrip()
            return Prompt(text=made.text, typed=line, metadata=made.metadata, is_made=True)
        if made.text:
            self.board.write(wrapped(visible(self._redactor.redact_text(made.text))) + "\n")
        return None

    async def _turn(self, prompt: Prompt) -> None:
        """Take a turn; what ends it early is told, and the chat goes on."""
        refresh = self._renew if self.board.has_live else None
        painter = Painter(self.board.write, refresh, self.rendering, self._redactor, self.display)
        self._painter, self._is_turning = painter, True
        try:
            with self.interrupts.turn(self.talk.opened.session):
                async with self.talk.stream(prompt.text, prompt.metadata) as events:
                    async for event in events:
                        if isinstance(event, SteeringInjected):
                            self._echo(self.waiting.heard(event.text))
                        painter.paint(event)
        except TurnCancelled:
            painter.end()
            self._note("Cancelled.")
            self._drop()
        except OutputClosedError:
            raise
        except Exception as error:  # whatever foreign code raised ends its turn alone
            painter.end()
            self._fail(error)
        finally:
            self._painter, self._is_turning = None, False
            self.waiting.take_back()

    def _drop(self) -> None:
        """Forget the prompts that wait, since the person stopped what they were for."""
        for prompt in self.waiting.drop():
            self._note(f"Not sent: {one_line(prompt.shown, 300)}")

    async def _exit(self, _: str) -> CommandAnswer:
        self._is_over = True
        self.waiting.drop()
        return CommandAnswer(text="")

    async def _think(self, arguments: str) -> CommandAnswer:
        if arguments not in ("", "on", "off"):
            raise CommandError(f"/think takes on or off; got {arguments!r:.40}")
        on = not self.display.show_thinking_stream if not arguments else arguments == "on"
        self.display = attrs.evolve(self.display, show_thinking_stream=on)
        return CommandAnswer(text=f"What the model thinks is {'shown' if on else 'hidden'}.")

    async def _reload(self) -> None:
        """Read again what is shown, since a setting may have changed."""
        opened = self.talk.opened
        folder = None if opened.kept is None else opened.kept.folder
        settings = await to_thread.run_sync(partial(load_settings, opened.composition.places, session=folder))
        self.display = display_of(opened.composition.profile, settings)

    @property
    def _redactor(self) -> SinkRedactor:
        return redactor_of(self.talk.opened.session.coordinator)

    def _echo(self, text: str) -> None:
        """Show what was typed, where the prompt took it away."""
        if self.board.has_live:
            first, *rest = visible(text.strip("\n")).split("\n")
            self.board.write(self.rendering.line("\n".join([f"> {first}", *(f"  {line}" for line in rest)]), "bold"))

    def _note(self, text: str) -> None:
        self.board.write(self.rendering.line(visible(text), "dim"))

    def _complain(self, text: str) -> None:
        self.board.write(self.rendering.line(visible(self._redactor.redact_text(text)), "red"))

    def _fail(self, error: Exception) -> None:
        if self.debug:
            self._complain("".join(traceback.format_exception(error)).rstrip())
        self._complain(f"Error: {describe(error)}")

    def _renew(self) -> None:
        """Show what is not whole yet, what waits, and how things stand."""
        width = columns() - 1
        painter = self._painter
        rows = [] if painter is None else [painter.live(width)]
        rows += self.waiting.rows(width)
        self.board.show("\n".join(filter(None, rows)), cut(self._status(), width))

    def _status(self) -> str:
        talk = self.talk
        parts = []
        if self._painter is not None:
            parts.append(f"working {self._painter.seconds:.0f} s, Ctrl-C stops")
        elif self.is_working:
            parts.append("working")
        if talk.mode.is_on:
            parts.append("plan mode")
        parts += [f"{talk.provider or ''}{'/' if talk.provider and talk.model else ''}{talk.model or ''}"]
        usage = talk.opened.session.spending.usage
        if usage is not None:
            parts.append(usage_text(usage))
        return " | ".join(filter(None, parts)) or "/help lists the commands"
