"""The keys of the prompt that do something of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, completion_is_selected, has_focus
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from amplifier.cli._chat._keys import (
    EndOfInput,
    EnteredLine,
    Interrupt,
    Key,
    NextMode,
    Shortcut,
    Stop,
)
from amplifier.cli._chat._pastes import Pastes

__all__ = ["make_bindings"]

_IS_TYPING: Final = has_focus(DEFAULT_BUFFER)
"""Typing is in the prompt itself, and not in the search of the history."""


def make_bindings(
    hand_on: Callable[[Key], None], is_working: Callable[[], bool]
) -> KeyBindings:
    """Make them: Enter hands the text on, Ctrl-J and Alt-Enter begin a line, Ctrl-C and Ctrl-D as in a shell.

    Esc stops what runs, and Shift-Tab chooses the next mode.

    Args:
        hand_on: takes what is typed.
        is_working: whether a turn runs; Ctrl-C then stops it, and leaves what is typed.
    """
    bindings = KeyBindings()
    _bind_text(bindings, hand_on, Pastes())
    _bind_control(bindings, hand_on, is_working)
    return bindings


def _bind_text(
    bindings: KeyBindings, hand_on: Callable[[Key], None], pastes: Pastes
) -> None:
    @bindings.add(Keys.BracketedPaste, filter=_IS_TYPING)
    def _paste(event: KeyPressEvent) -> None:
        # Terminals paste line ends as the Enter key.
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        event.current_buffer.insert_text(pastes.collapse(text))

    @bindings.add("enter", filter=_IS_TYPING)
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if (
            # The first Enter takes the completion that is marked, as in other shells;
            # the second sends.
            buffer.complete_state is not None
            and buffer.complete_state.current_completion is not None
        ):
            buffer.complete_state = None
            return
        text = buffer.text
        if text.strip():
            buffer.append_to_history()
        buffer.reset()
        whole = pastes.expand(text)
        hand_on(EnteredLine(whole, None if whole == text else text))

    @bindings.add("c-j", filter=_IS_TYPING)
    @bindings.add("escape", "enter", filter=_IS_TYPING)
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")


def _bind_control(
    bindings: KeyBindings,
    hand_on: Callable[[Key], None],
    is_working: Callable[[], bool],
) -> None:
    @bindings.add("c-c", filter=_IS_TYPING)
    def _interrupt(event: KeyPressEvent) -> None:
        # As in a shell: what is typed is dropped first, and only an empty line is left.
        if event.current_buffer.text and not is_working():
            event.current_buffer.reset()
            return
        hand_on(Interrupt())

    @bindings.add("escape", filter=_IS_TYPING & Condition(is_working))
    def _stop(_: KeyPressEvent) -> None:
        hand_on(Stop())

    @bindings.add("c-o", filter=_IS_TYPING)
    def _expand(_: KeyPressEvent) -> None:
        hand_on(Shortcut("expand"))

    @bindings.add("c-g", filter=_IS_TYPING)
    def _edit(_: KeyPressEvent) -> None:
        hand_on(Shortcut("editor"))

    # In the list of completions Shift-Tab goes back, as in other shells.
    @bindings.add("s-tab", filter=_IS_TYPING & ~completion_is_selected)
    def _next_mode(_: KeyPressEvent) -> None:
        hand_on(NextMode())

    @bindings.add("c-d", filter=_IS_TYPING)
    def _end(event: KeyPressEvent) -> None:
        # As in a shell: Ctrl-D deletes a character, and only on an empty line is it the
        # end.
        if event.current_buffer.text:
            event.current_buffer.delete()
            return
        hand_on(EndOfInput())
