"""A list over the whole terminal, in which a person searches a session and sees its end."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import attrs
from prompt_toolkit import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    FormattedTextControl,
    HSplit,
    Layout,
    VSplit,
    Window,
)
from prompt_toolkit.output import ColorDepth, Output

from amplifier.app.sessions.choices import SessionChoices
from amplifier.app.store.stored import StoredSession

__all__ = ["SessionPicker"]

_PROMPT: Final = "Search: "
_HELP: Final = "Enter opens, arrow keys choose, Esc goes back"
_ESCAPE_SECONDS: Final = 0.1


@attrs.define(eq=False)
class SessionPicker:
    """Asks for a session; `run` blocks, and the terminal is as it was afterwards.

    Args:
        choices: the sessions.
        input: the terminal's keys.
        output: the terminal.
        has_colour: whether colours are shown.
    """

    choices: SessionChoices
    input: Input
    output: Output
    has_colour: bool
    _found: Sequence[StoredSession] = ()
    _at: int = 0
    _is_closed: bool = False
    _previewed: dict[str, str] = attrs.field(factory=dict)
    _app: Application[str | None] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._found = self.choices.sessions
        query = Buffer(multiline=False, on_text_changed=self._search)
        rule = Window(height=1, char="-")
        line = VSplit(
            [
                Window(FormattedTextControl(_PROMPT), width=len(_PROMPT), height=1),
                Window(BufferControl(query), height=1),
            ]
        )
        rows = [
            line,
            Window(FormattedTextControl(self._rows)),
            rule,
            Window(FormattedTextControl(self._preview), wrap_lines=True),
            Window(FormattedTextControl(_HELP), height=1),
        ]
        self._app = Application(
            Layout(HSplit(rows)),
            key_bindings=self._bindings(),
            full_screen=True,
            input=self.input,
            output=self.output,
            color_depth=None if self.has_colour else ColorDepth.DEPTH_1_BIT,
        )
        self._app.timeoutlen = self._app.ttimeoutlen = _ESCAPE_SECONDS

    def run(self) -> str | None:
        """Return the id of the session that was chosen; `None` where none was."""
        return self._app.run(pre_run=self._leave_if_closed, handle_sigint=False)

    def close(self) -> None:
        """End it from another thread, as if nothing was chosen."""
        # Whichever comes first, this or the start of `run`, one sees the other.
        self._is_closed = True
        loop = self._app.loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop is closed: it has ended already
                loop.call_soon_threadsafe(self._leave_if_closed)

    def _leave_if_closed(self) -> None:
        if self._is_closed and self._app.is_running and not self._app.is_done:
            self._app.exit()

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()

        @bindings.add("up")
        def _up(_: KeyPressEvent) -> None:
            self._at = max(0, self._at - 1)

        @bindings.add("down")
        def _down(_: KeyPressEvent) -> None:
            self._at = max(0, min(len(self._found) - 1, self._at + 1))

        @bindings.add("enter")
        def _choose(event: KeyPressEvent) -> None:
            if self._found:
                event.app.exit(result=self._found[self._at].record.session_id)

        @bindings.add("escape")
        @bindings.add("c-c")
        @bindings.add("c-d")
        def _leave(event: KeyPressEvent) -> None:
            event.app.exit()

        return bindings

    def _search(self, query: Buffer) -> None:
        self._found = self.choices.matching(query.text)
        self._at = 0

    def _rows(self) -> StyleAndTextTuples:
        size = self.output.get_size()
        room = max(1, size.rows // 2 - 2)
        first = max(0, self._at - room + 1)
        rows: StyleAndTextTuples = []
        for number, session in enumerate(self._found[first : first + room], first):
            mark = "> " if number == self._at else "  "
            style = "reverse" if number == self._at and self.has_colour else ""
            row = self.choices.row(session, size.columns - 3)
            rows.append((style, f"{mark}{row}\n"))
        return rows or [("", "  No session has it.")]

    def _preview(self) -> str:
        if not self._found:
            return ""
        session = self._found[self._at]
        name = session.record.session_id
        if name not in self._previewed:
            self._previewed[name] = self.choices.preview(session)
        size = self.output.get_size()
        rows = [
            row
            for line in self._previewed[name].split("\n")
            for row in textwrap.wrap(line, size.columns - 1) or [""]
        ]
        # The end says most, and only a few rows are shown.
        return "\n".join(rows[-max(3, size.rows // 2 - 3) :])
