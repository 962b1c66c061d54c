"""The commands that are about one chat: how it shows things, what it opens, and how it ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import attrs
from anyio import to_thread

from amplifier.app.commands.inspection_commands import InspectionCommands
from amplifier.app.instructions.files import AGENTS_FILE, add_note
from amplifier.app.sessions.choices import SessionChoices
from amplifier.app.store.store import ProjectSessions
from amplifier.cli._chat._children import ChildSessions
from amplifier.cli._chat._conversation import ChatLoop
from amplifier_kit.commands import CommandAnswer, CommandError, SessionCommand
from amplifier_kit.terminal import one_line
from amplifier_sdk.errors import AmplifierError

__all__ = ["ChatCommands", "PickSession"]

PickSession = Callable[[SessionChoices], Awaitable[str | None]]
"""Lets the person choose a session; returns its id, or `None`."""

_LISTED: Final = 20
_WIDTH: Final = 79


@attrs.frozen(eq=False)
class ChatCommands:
    """The commands of one chat.

    Args:
        chat: the chat.
        pick: lets the person choose a session; `None` where the terminal shows whole lines alone.
    """

    chat: ChatLoop
    pick: PickSession | None = None

    def waiting(self) -> list[SessionCommand]:
        """Return the commands that wait for the end of a turn."""
        return [
            SessionCommand(name="exit", make=self._exit, description="End the chat", aliases=("quit",)),
            SessionCommand(name="resume", make=self._resume, argument_hint="[SESSION]",
                           description="Choose another session of this project and resume it"),
        ]  # fmt: skip

    def at_once(self) -> list[SessionCommand]:
        """Return those that run at once."""
        return [
            SessionCommand(name="think", make=self._think, argument_hint="[on|off]",
                           description="Show or hide what the model thinks"),
            SessionCommand(name="note", make=self._note, argument_hint="TEXT",
                           description=f"Add a line to {AGENTS_FILE}, as # TEXT does"),
            SessionCommand(name="expand", make=self._expand, argument_hint="[N]",
                           description="Show all that the last tool put out, or the Nth from the end"),
            SessionCommand(name="editor", make=self._editor, description="Write the prompt in your editor"),
            SessionCommand(name="agents", make=self._agents, argument_hint="[N | stop N]",
                           description="List the agents at work and those that there are, open one, or stop it"),
        ]  # fmt: skip

    async def _exit(self, _: str) -> CommandAnswer:
        if self.chat.leave():
            self.chat.end()
        return CommandAnswer(text="")

    async def _resume(self, arguments: str) -> CommandAnswer:
        opened = self.chat.talk.opened
        store = opened.store or ProjectSessions.of(opened.composition.dirs)
        store = store.apart()
        own = opened.session.session_id
        try:
            if arguments:
                found = await to_thread.run_sync(store.find, arguments)
                chosen: str | None = found.record.session_id
            else:
                choices = await to_thread.run_sync(
                    partial(SessionChoices.of, store, without=own)
                )
                if not choices.sessions:
                    raise CommandError("This project has no other stored session")
                if self.pick is None:
                    return _listing(choices)
                chosen = await self.pick(choices)
        except (AmplifierError, OSError) as error:
            raise CommandError(str(error)) from error
        if chosen is None:
            return CommandAnswer(text="")
        if chosen == own:
            raise CommandError("This is the session that is open")
        if not self.chat.leave(followed_by=chosen):
            return CommandAnswer(text="")
        return CommandAnswer(text=f"On to session {chosen}.")

    async def _think(self, arguments: str) -> CommandAnswer:
        if arguments not in ("", "on", "off"):
            raise CommandError(f"/think takes on or off; got {arguments!r:.40}")
        display = self.chat.display
        if not arguments:
            on = not display.show_thinking_stream
        else:
            on = arguments == "on"
        self.chat.show(attrs.evolve(display, show_thinking_stream=on))
        return CommandAnswer(
            text=f"What the model thinks is {'shown' if on else 'hidden'}."
        )

    async def _note(self, arguments: str) -> CommandAnswer:
        if not arguments:
            raise CommandError("A text is missing: /note TEXT")
        dirs = self.chat.talk.opened.composition.dirs
        try:
            path = await to_thread.run_sync(add_note, dirs, arguments)
        except AmplifierError as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            message = error.strerror or "it is no file"
            raise CommandError(
                f"{error.filename} cannot be written: {message}"
            ) from error
        return CommandAnswer(text=f"Added to {path}")

    async def _expand(self, arguments: str) -> CommandAnswer:
        outputs = self.chat.outputs
        number = _number(arguments or "1")
        if not 0 < number <= len(outputs):
            raise CommandError(f"Outputs of tools that are there: {len(outputs)}")
        output = outputs.latest(number)
        redactor = self.chat.screen.redactor
        text = await to_thread.run_sync(output.text, redactor)
        return CommandAnswer(text=text, is_diff=output.has_diff)

    async def _editor(self, _: str) -> CommandAnswer:
        if self.chat.edit is None:
            raise CommandError("This terminal shows whole lines alone: type the text")
        await self.chat.edit()
        return CommandAnswer(text="")

    async def _agents(self, arguments: str) -> CommandAnswer:
        children = ChildSessions(self.chat.talk, self.chat.display)
        verb, _, number = arguments.partition(" ")
        if verb == "stop":
            return await children.stop(_number(number.strip()))
        if arguments:
            return await children.show(_number(arguments))
        at_work = await children.listing()
        there_are = await InspectionCommands(self.chat.talk).agents("")
        if not at_work.text:
            return there_are
        return CommandAnswer(
            text=f"{at_work.text}\n\nWork can be given to:\n{there_are.text}"
        )


def _listing(choices: SessionChoices) -> CommandAnswer:
    lines = [
        one_line(
            f"{session.record.session_id[:8]}  {choices.row(session, _WIDTH)}", _WIDTH
        )
        for session in choices.sessions[:_LISTED]
    ]
    return CommandAnswer(text="\n".join([*lines, "/resume SESSION opens one."]))


def _number(text: str) -> int:
    # Python refuses to read numbers of thousands of digits with an error of its own.
    if not (text.isascii() and text.isdecimal()) or len(text) > 6:
        raise CommandError(f"Expected a number; got {text!r:.40}")
    return int(text)
