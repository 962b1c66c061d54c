"""What of its parent's conversation an agent begins with: whole turns, of each the texts or more.

Each message keeps its role, so that what a tool returned does not become a person's word. A call that has no result
yet, such as the one that delegates, is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import attrs

from amplifier_kit.compaction.pieces import TurnSpan, is_prompt, split
from amplifier_module_tool_task.forms import Form
from amplifier_sdk.content import ToolCallBlock
from amplifier_sdk.history import open_calls, repair
from amplifier_sdk.messages import Message, MessageDict

__all__ = ["Depth", "inherited", "system_message"]

Depth: TypeAlias = Literal["none", "recent", "all"]
"""How much of the conversation is inherited."""

_Shown: TypeAlias = list[MessageDict]


def inherited(
    messages: Sequence[MessageDict], form: Form, *, turns: int | None, limit: int
) -> _Shown:
    """Return the messages that an agent begins with, a note of what they are on top; none where there is nothing.

    Whole turns are inherited, the newest first; of a newest turn that is too long by itself the prompt and the last
    steps.

    Args:
        messages: the parent's history.
        form: how much of each message.
        turns: how many of the last turns; `None` is all.
        limit: characters in all.
    """
    start = 0
    if turns is not None:
        start = _start_of(messages, turns)
    # calls are answered by their results alone; a cut may have parted the two
    history = repair(_without_open_calls(messages[start:])).messages
    there = split(history)
    retained: list[_Turn] = []
    left = limit
    # The newest first: they are the nearest to what the agent is asked for.
    for found in reversed(there):
        whole = _read(history, found, form)
        turn = whole
        if not retained:
            turn = whole.within(left)
        # whole turns only: half of an earlier one would read as if it were all
        if retained and turn.size > left:
            break
        retained.append(turn)
        left -= turn.size
    # steps that were left out may have held the call of a result
    shown = repair(
        [message for turn in reversed(retained) for message in turn.messages]
    ).messages
    if not shown:
        return []
    # without this note the agent would take what it sees for the beginning
    left_out = len(there) - len(retained) + sum(map(is_prompt, messages[:start]))
    return [
        _note(len(shown), len(retained), left_out, sum(turn.lost for turn in retained)),
        *shown,
    ]


def system_message(messages: Sequence[MessageDict]) -> _Shown:
    """Return the system message that a history begins with, for a child that is a copy of its parent."""
    if messages and messages[0].get("role") == "system":
        return [messages[0]]
    return []


@attrs.frozen
class _Turn:
    """A turn as it is inherited: what was asked, what was done, and how many steps are left out."""

    prompts: _Shown
    steps: tuple[_Shown, ...]
    lost: int = 0

    @property
    def messages(self) -> _Shown:
        return [*self.prompts, *(message for step in self.steps for message in step)]

    @property
    def size(self) -> int:
        return sum(len(str(message["content"])) for message in self.messages)

    def within(self, limit: int) -> _Turn:
        """Leave out the first steps until the rest fits."""
        size, lost = self.size, 0
        sizes = [
            sum(len(str(message["content"])) for message in step) for step in self.steps
        ]
        # the last steps are the nearest to what the agent is asked for
        while size > limit and lost < len(self.steps):
            size -= sizes[lost]
            lost += 1
        return _Turn(self.prompts, self.steps[lost:], lost)


def _read(history: Sequence[MessageDict], turn: TurnSpan, form: Form) -> _Turn:
    asked = (history[place] for place in turn.prompts if is_prompt(history[place]))
    prompts = [
        shown for message in asked for shown in form.prompt(Message.from_dict(message))
    ]
    steps = (
        list(form.step([Message.from_dict(history[place]) for place in places]))
        for places in turn.steps
    )
    return _Turn(prompts, tuple(step for step in steps if step))


def _start_of(messages: Sequence[MessageDict], turns: int) -> int:
    """Return where the last so many turns begin."""
    for place in range(len(messages) - 1, -1, -1):
        # Only prompts of a person begin a turn; a message that a hook put in does not.
        turns -= messages[place].get("role") == "user" and is_prompt(messages[place])
        if not turns:
            return place
    return 0


def _without_open_calls(messages: Sequence[MessageDict]) -> Sequence[MessageDict]:
    """Take away the calls that have no result yet; all of them are in the last answer."""
    waiting = {call.id for call in open_calls(messages)}
    if not waiting:
        return messages
    place = max(
        place
        for place, message in enumerate(messages)
        if message.get("role") == "assistant"
    )
    answer = Message.from_dict(messages[place])
    blocks = [
        block
        for block in answer.blocks
        if not (isinstance(block, ToolCallBlock) and block.id in waiting)
    ]
    return [
        *messages[:place],
        attrs.evolve(answer, content=blocks).to_dict(),
        *messages[place + 1 :],
    ]


def _note(messages: int, turns: int, left_out: int, lost_steps: int) -> MessageDict:
    """Say what the messages behind it are; it is the agent's first message."""
    of = "the last turn"
    if turns != 1:
        of = f"the last {turns} turns"
    parts = [
        f"[Background: the next {messages} messages are {of} of the session that delegates to you.",
        f"{left_out} turns before them are left out." if left_out else "",
        f"{lost_steps} steps at the beginning of the first are left out."
        if lost_steps
        else "",
        "They are no task of yours; that comes behind them.]",
    ]
    return {"role": "user", "content": " ".join(filter(None, parts))}
