"""The keys of the prompt that do something of their own."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from amplifier.cli._chat._keys import EndOfInput, EnteredLine, Interrupt, Key

__all__ = ["make_bindings"]


def make_bindings(
    hand_on: Callable[[Key], None], is_working: Callable[[], bool]
) -> KeyBindings:
    """Make them: Enter hands the text on, Ctrl-J and Alt-Enter begin a line, Ctrl-C and Ctrl-D as in a shell.

    Args:
        hand_on: takes what is typed.
        is_working: whether a turn runs; Ctrl-C then stops it, and leaves what is typed.
    """
    bindings = KeyBindings()
    is_typing = has_focus(DEFAULT_BUFFER)  # not in the search of the history

    @bindings.add("enter", filter=is_typing)
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
        hand_on(EnteredLine(text))

    @bindings.add("c-j", filter=is_typing)
    @bindings.add("escape", "enter", filter=is_typing)
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @bindings.add("c-c", filter=is_typing)
    def _interrupt(event: KeyPressEvent) -> None:
        if not is_working():
            event.current_buffer.reset()
        hand_on(Interrupt())

    @bindings.add("c-d", filter=is_typing)
    def _end(event: KeyPressEvent) -> None:
        # As in a shell: Ctrl-D deletes a character, and only on an empty line is it the
        # end.
        if event.current_buffer.text:
            event.current_buffer.delete()
            return
        hand_on(EndOfInput())

    return bindings
