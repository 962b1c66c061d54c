"""Diagnosis and repair of histories, for resume and for requests: calls and results that lost each other."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from amplifier_sdk.history._calls import OpenCall, closing_message
from amplifier_sdk.history._edits import (
    part_of,
    readable,
    with_call_ids,
    with_result_ids,
    without_results,
)
from amplifier_sdk.history._findings import HistoryFinding, HistoryProblem
from amplifier_sdk.history._pairs import PairedCall, PairedResult, Pairing
from amplifier_sdk.history._soundness import has_content, is_sound, read_quickly
from amplifier_sdk.messages import Message, MessageDict
from amplifier_sdk.values import Value

__all__ = ["Repair", "Sendable", "diagnose", "repair", "sendable"]

NO_RESULT = "no result of this call was recorded; it may have run or not"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Repair(Value):
    """A history that vendors accept, and what was wrong with the one it was made of; nothing where it was sound."""

    messages: Sequence[MessageDict]
    findings: tuple[HistoryFinding, ...] = ()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Sendable(Value):
    """The messages of a request that vendors accept, and what was wrong with those given; nothing in sound ones."""

    messages: Sequence[Message]
    findings: tuple[HistoryFinding, ...] = ()


def diagnose(messages: Sequence[MessageDict]) -> tuple[HistoryFinding, ...]:
    """Say what vendors would refuse in a history, in the order of its messages; nothing is changed.

    The time it takes grows with the history's length and no faster.
    """
    return repair(messages).findings


def repair(messages: Sequence[MessageDict]) -> Repair:
    """Make a history that vendors accept: each call has an id of its own and its result directly behind it, in order.

    A call without a result is answered with a note whose metadata has `synthesized`; results that answer no call and
    answers without any content are left out; what a person said always stays. Messages that need no change are the
    given objects, a sound history is returned as it is, and repairing a repaired one changes nothing.
    """
    try:
        if is_sound(read_quickly(messages)):
            return Repair(messages=messages)
    except ValueError:
        pass  # a message cannot be read: the repair names it
    return _Mending(messages).repair


def sendable(messages: Sequence[Message]) -> Sendable:
    """Make the messages of a request acceptable; the same as `repair` for those who send typed messages.

    A sound sequence, as almost every one is, costs one walk over roles and ids and is returned itself.
    """
    if is_sound(messages):
        return Sendable(messages=messages)
    stored = [message.to_dict() for message in messages]
    # what needs no change comes back as the very object and is not read again
    given = {id(data): message for data, message in zip(stored, messages, strict=True)}
    mended = repair(stored)
    sent = [given.get(id(data)) or Message.from_dict(data) for data in mended.messages]
    return Sendable(messages=sent, findings=mended.findings)


class _Mending:
    """One repair: what is read of the history, what was found, what comes out."""

    def __init__(self, messages: Sequence[MessageDict]) -> None:
        self._findings: list[HistoryFinding] = []
        self._given: list[MessageDict] = []
        self._read: list[Message] = []
        for index, message in enumerate(messages):
            self._read_message(index, message)
        # Paired first: whether a message stays depends on what it has besides results.
        self._pairing = Pairing(self._read)
        self._is_kept = [self._keeps(index) for index in range(len(self._read))]
        self._places = self._number()
        self._made: list[MessageDict] = []
        for index in range(len(self._read)):
            self._report_results(index)
            if self._is_kept[index]:
                self._write(index)
        self.repair = Repair(
            messages=tuple(self._made),
            # results are met where their calls stand, which is another order
            findings=tuple(sorted(self._findings, key=lambda finding: finding.index)),
        )

    def _find(
        self,
        problem: HistoryProblem,
        index: int,
        call_id: str | None = None,
        name: str | None = None,
    ) -> None:
        self._findings.append(
            HistoryFinding(
                problem=problem, index=index, call_id=call_id or None, name=name or None
            )
        )

    def _read_message(self, index: int, message: MessageDict) -> None:
        try:
            read = Message.from_dict(message)
        except ValueError:
            self._find("unreadable_message", index)
            message = readable(message)
            read = Message.from_dict(message)
        self._given.append(message)
        self._read.append(read)

    def _keeps(self, index: int) -> bool:
        """Tell whether a message that is no result itself stays; its results may be all that it had."""
        message = self._read[index]
        if message.role == "tool":
            return False
        return has_content(message) or not (
            message.role == "assistant" or self._pairing.results[index]
        )

    def _number(self) -> dict[int | PairedResult, int]:
        """Count what stays, in its order: messages by their index, and the results of the role `tool`."""
        places: dict[int | PairedResult, int] = {}
        for index, results in enumerate(self._pairing.results):
            if self._is_kept[index]:
                places[index] = len(places)
            elif self._read[index].role == "tool":
                places.update(
                    {
                        result: len(places) + n
                        for n, result in enumerate(r for r in results if r.call)
                    }
                )
        return places

    def _report_results(self, index: int) -> None:
        """Say what is wrong with a message's results, or that it has nothing at all."""
        results = self._pairing.results[index]
        if not results and not self._is_kept[index]:
            self._find("empty_answer", index)
        for result in results:
            if result.call is None:
                is_second = result in self._pairing.duplicates
                self._find(
                    "duplicate_result" if is_second else "orphan_result",
                    index,
                    result.id,
                    result.name,
                )
                continue
            if result.is_mismatched:
                self._find("mismatched_id", index, result.id, result.name)
            if not result.id:
                self._find("missing_id", index, None, result.name)

    def _write(self, index: int) -> None:
        """Write a message and behind it the results of its calls."""
        message, calls = self._given[index], self._pairing.calls[index]
        if self._pairing.results[index]:
            message = without_results(message)
        if any(call.new_id != call.id for call in calls):
            message = with_call_ids(message, calls)
        self._made.append(message)
        place = self._places[index]
        for call in calls:
            if call.new_id != call.id:
                self._find(
                    "duplicate_call" if call.id else "missing_id",
                    index,
                    call.id,
                    call.name,
                )
            if call.result is None:
                self._find("unanswered_call", index, call.id, call.name)
                continue
            place += 1
            if self._places.get(call.result) != place:
                self._find("misplaced_result", call.result.index, call.id, call.name)
        self._write_results(calls)

    def _write_results(self, calls: Sequence[PairedCall]) -> None:
        at = 0
        while at < len(calls):
            result = calls[at].result
            if result is None:
                self._made.append(
                    closing_message(
                        OpenCall(calls[at].new_id, calls[at].name), NO_RESULT
                    )
                )
                at += 1
                continue
            together = self._pairing.results[result.index]
            # a message may hold the results of several calls: it stays as it is where
            # they follow each other as the calls do
            if together[0] is result:
                group = calls[at : at + len(together)]
            else:
                group = calls[at : at + 1]
            if (
                self._read[result.index].role == "tool"
                and [call.result for call in group] == together
            ):
                self._made.append(self._whole(result.index, group))
                at += len(group)
            else:
                self._made.append(self._part(result, calls[at].new_id))
                at += 1

    def _whole(self, index: int, calls: Sequence[PairedCall]) -> MessageDict:
        """Return a message of results as it is, or with the ids that its calls have now."""
        results = self._pairing.results[index]
        same = all(
            call.new_id == result.id
            for call, result in zip(calls, results, strict=True)
        )
        if same and not results[0].is_mismatched:
            return self._given[index]
        return with_result_ids(self._given[index], [call.new_id for call in calls])

    def _part(self, result: PairedResult, call_id: str) -> MessageDict:
        """Return one of several results, or one of a message of another role, as a message of its own."""
        alone = self._read[result.index].role != "tool"
        return part_of(
            self._given[result.index], result.start, result.stop, call_id, alone=alone
        )
