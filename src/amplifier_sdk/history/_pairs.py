"""Which result belongs to which call, which are left over, and the ids that calls get.

Everything is read once, in the order of the messages, and nothing is searched again: a history of any length, with any
number of calls under one id, is paired in linear time.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from amplifier_sdk.content import ToolCallBlock, ToolResultBlock
from amplifier_sdk.messages import Message

__all__ = ["PairedCall", "PairedResult", "Pairing"]

LONGEST_STEM: Final = 48
"""Characters of the old id that a new one begins with: some vendors allow 64 in all."""


@attrs.define(eq=False)
class PairedCall:
    """A call that a message makes; `new_id` is the id that it is known by from now on."""

    index: int
    id: str
    name: str
    new_id: str = ""
    result: PairedResult | None = None


@attrs.define(eq=False)
class PairedResult:
    """A result: a whole message, or the blocks from `start` to `stop` of its content.

    `id` is the one by which its call is looked for; `is_mismatched` that its message and its block name two.
    """

    index: int
    start: int
    stop: int | None
    id: str
    name: str | None
    is_made_up: bool = False
    is_mismatched: bool = False
    call: PairedCall | None = None


class Pairing:
    """The calls and results of a history, by message, paired.

    A result without a call is an orphan, or one of `duplicates`: those whose call has another result.
    """

    def __init__(self, messages: Sequence[Message]) -> None:
        self.calls: list[list[PairedCall]] = []
        self.results: list[list[PairedResult]] = []
        self.duplicates: set[PairedResult] = set()
        self._known: dict[str, list[PairedCall]] = defaultdict(list)
        self._open: dict[str, deque[deque[PairedCall]]] = defaultdict(deque)
        self._left: list[PairedResult] = []
        self._made_up: dict[str, list[PairedCall]] = defaultdict(list)
        self._nameless: list[tuple[PairedResult, list[PairedCall]]] = []
        group: list[PairedCall] = []
        for index, message in enumerate(messages):
            # a result without an id belongs to the latest calls before it
            group = self._read_calls(index, message) or group
            self._read_results(index, message, group)
        self._pair_nameless()
        for result in self._left:
            self._pair_left(result)
        self._number()

    def _read_calls(self, index: int, message: Message) -> list[PairedCall]:
        calls: list[PairedCall] = []
        by_id: dict[str, deque[PairedCall]] = defaultdict(deque)
        if message.role == "assistant" and not isinstance(message.content, str):
            calls = [
                PairedCall(index, block.id, block.name)
                for block in message.content
                if isinstance(block, ToolCallBlock)
            ]
        for call in calls:
            self._known[call.id].append(call)
            by_id[call.id].append(call)
        for call_id, waiting in by_id.items():
            self._open[call_id].append(waiting)
        self.calls.append(calls)
        return calls

    def _read_results(
        self, index: int, message: Message, group: list[PairedCall]
    ) -> None:
        """Give each result to the latest call of its id that waits; one without an id is given to a call at the end."""
        results = list(_results(index, message, self._known))
        for result in results:
            if not result.id:
                self._nameless.append((result, group))
            elif not self._take(result, latest=True):
                self._left.append(result)
        self.results.append(results)

    def _take(self, result: PairedResult, *, latest: bool) -> bool:
        """Give a result to the first waiting call of a message, of the latest message that has one or the earliest."""
        waiting = self._open[result.id]
        while waiting:
            calls = waiting[-1 if latest else 0]
            # What is taken out never waits again: each call is met once, however many
            # have its id.
            while calls:
                call = calls.popleft()
                if call.result is None:
                    self._join(call, result)
                    return True
            waiting.pop() if latest else waiting.popleft()
        return False

    def _pair_nameless(self) -> None:
        """Give each result without an id to the first call before it that waits, of its name if it has one."""
        waiting: dict[int, list[PairedCall]] = {}
        for result, group in self._nameless:
            if id(group) not in waiting:
                waiting[id(group)] = [call for call in group if call.result is None]
            calls = waiting[id(group)]
            at = next(
                (
                    at
                    for at, call in enumerate(calls)
                    if result.name in (None, call.name)
                ),
                None,
            )
            if at is not None:
                self._join(calls.pop(at), result)

    def _pair_left(self, result: PairedResult) -> None:
        """Give a result to a call that stands behind it, or in place of one that was made up."""
        if self._take(result, latest=False) or result.id not in self._known:
            return
        if result.is_made_up or not self._made_up[result.id]:
            self.duplicates.add(result)
            return
        call = self._made_up[result.id].pop()
        assert call.result is not None  # the one that was made up
        call.result.call = None
        self.duplicates.add(call.result)
        self._join(call, result)

    def _join(self, call: PairedCall, result: PairedResult) -> None:
        call.result, result.call = result, call
        if result.is_made_up:
            self._made_up[call.id].append(call)

    def _number(self) -> None:
        """Give each call an id of its own: its own where no earlier call has it."""
        # an id that a later call has already is given to nobody else
        taken = set(self._known)
        used: set[str] = set()
        # a second `a` becomes `a-2`; of calls without any id the first becomes `call-1`
        counts: dict[str, int] = defaultdict(lambda: 1, call=0)
        for call in (call for calls in self.calls for call in calls):
            call.new_id = call.id
            while not call.new_id or call.new_id in used:
                stem = call.id[:LONGEST_STEM] or "call"
                counts[stem] += 1
                new_id = f"{stem}-{counts[stem]}"
                if new_id in taken:
                    call.new_id = ""
                else:
                    call.new_id = new_id
            used.add(call.new_id)


def _results(
    index: int, message: Message, known: Mapping[str, Sequence[PairedCall]]
) -> Iterator[PairedResult]:
    """Yield the results that a message has: those of its blocks, else, in the role `tool`, itself."""
    own, content = message.tool_call_id or "", message.content
    if isinstance(content, str):
        blocks = []
    else:
        blocks = [at for at, b in enumerate(content) if isinstance(b, ToolResultBlock)]
    ids = [
        block.tool_call_id
        for block in message.blocks
        if isinstance(block, ToolResultBlock)
    ]
    made_up = bool(message.metadata and message.metadata.get("synthesized"))
    if message.role != "tool":
        yield from (
            PairedResult(index, at, at + 1, id, None, made_up)
            for at, id in zip(blocks, ids, strict=True)
        )
    elif len(blocks) > 1:  # what stands between two results goes with the first of them
        edges = zip([0, *blocks[1:]], [*blocks[1:], None], ids, strict=True)
        yield from (
            PairedResult(index, start, stop, id, message.name, made_up)
            for start, stop, id in edges
        )
    else:
        inner = own
        if ids:
            inner = ids[0]
        # of two ids the message's own counts, unless only the block's is a call's
        looked_for = own
        if not own or (own not in known and inner != "" and inner in known):
            looked_for = inner
        yield PairedResult(
            index,
            0,
            None,
            looked_for,
            message.name,
            made_up,
            bool(own) and inner != own,
        )
