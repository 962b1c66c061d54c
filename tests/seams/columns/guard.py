"""What every column is: what guards a session, what is tried, and what must be true then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, TypeAlias

from tests.seams.modules import LAST_WORDS, Call, Turns
from tests.seams.stage import PROFILE, Made, Outcome, Stage
from tests.seams.starts import MOVED, STARTS, EmbeddedStart, Start

__all__ = [
    "COMMANDS",
    "DELETE",
    "EDIT",
    "EMBEDDED",
    "NEW",
    "PLANS",
    "TALLY",
    "Calls",
    "Guard",
    "KeepsNotes",
    "Reasons",
    "results_of",
]

Calls: TypeAlias = tuple[Call, ...]

Reasons: TypeAlias = Mapping[str, str]
"""Starts by name, each with the reason why it is listed."""

TALLY: Final = Call("tally")
DELETE: Final = Call("delete", {"path": "notes.txt"})
EDIT: Final = Call("bash", {"command": "sed -i s/milk/rum/ notes.txt"})

PLANS: Final = [
    start.name
    for start in STARTS
    if isinstance(start, EmbeddedStart) and not start.by_profile
]
"""The starts of which a program's plan says everything."""

COMMANDS: Final = [
    start.name for start in (*STARTS, *MOVED) if not isinstance(start, EmbeddedStart)
]
EMBEDDED: Final = [start.name for start in STARTS if isinstance(start, EmbeddedStart)]
NEW: Final = [start.name for start in STARTS if not start.is_resumed]


class Guard:
    """What guards a session.

    Args:
        name: what it is called in the table.
        by_profile: whether it stands in a profile or in the settings, so that no plan file is used.
        profile: the profile in which it stands, or to which it is added; `None` is a session that has none.
        begin: what is tried in the turn before, where the start has one.
        calls: what is tried in the turn that counts.
        without: the starts for which it means nothing, each with the reason.
        runs_programs: whether it, or what it guards, is a program.
    """

    name: ClassVar[str]
    by_profile: ClassVar[bool] = False
    profile: ClassVar[str | None] = PROFILE
    begin: ClassVar[Calls] = (TALLY,)
    calls: ClassVar[Calls] = (DELETE,)
    without: ClassVar[Reasons] = {}
    runs_programs: ClassVar[bool] = False

    def made(self) -> Made:
        """Return what a session is made of, so that it is guarded."""
        return Made()

    def turns(self) -> Turns:
        """Return what is tried besides: in the turns of agents, by their prompts."""
        return {}

    def prepare(self, stage: Stage) -> None:
        """Prepare the stage before anything is begun."""

    def tighten(self, stage: Stage, start: Start) -> None:
        """Do what happens between the turn before and the one that counts; where there is none before, at once."""

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        """Assert that it did what it is for; of a start that was refused as well."""
        raise NotImplementedError

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        """Assert that the turn that counts had its answer, and how the guard shows in it."""
        assert outcome.code == 0, outcome.text
        assert (
            LAST_WORDS in outcome.shown
            or isinstance(start, EmbeddedStart)
            or not outcome.asked
        )


class KeepsNotes(Guard):
    """A guard that denies that the notes are deleted; `reason` is in what the model, or the person, reads of it."""

    reason: ClassVar[str] = "Denied"

    def holds(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        assert stage.notes.exists(), f"the file was deleted; {outcome.text}"

    def plays(self, stage: Stage, start: Start, outcome: Outcome) -> None:
        if start.name == "tool-invoke":
            assert outcome.code == 1
            assert self.reason in outcome.text
            return
        super().plays(stage, start, outcome)
        assert self.reason in results_of(outcome)


def results_of(outcome: Outcome) -> str:
    """Return what the models read of the calls of a turn."""
    return "\n".join(result for asked in outcome.asked for result in asked.results)
