"""What is wrong with a stored session, and making it whole again."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
from anyio import to_thread

from amplifier.app.plans.base_plans import provider_and_model
from amplifier.app.store.charges import charge_cut_off
from amplifier.app.store.fork import with_turns
from amplifier.app.store.interrupted import InterruptedTurn
from amplifier.app.store.journal import EXPECTED as JOURNAL_LOG
from amplifier.app.store.reader import read_history, turns_of, words_of
from amplifier.app.store.recorded import read_recorded
from amplifier.app.store.records import NewerRecordError, SessionRecord, beginning_of
from amplifier.app.store.states import holder_of
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import read_metadata, read_record
from amplifier.app.store.transcript import EXPECTED as TRANSCRIPT_LOG
from amplifier.app.store.writer import JOURNAL, METADATA, TRANSCRIPT, write_record
from amplifier_kit.files.appendlog import AppendLogFile
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.history import HistoryFinding
from amplifier_sdk.history import diagnose as find_problems
from amplifier_sdk.history import repair as mend
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["Diagnosis", "diagnose", "diagnose_all", "repair"]


@attrs.frozen(kw_only=True)
class Diagnosis:
    """What is wrong with a session; nothing where it is sound.

    Args:
        session_id: which one.
        record: what is wrong with who it is.
        damage: what could not be read, as text, by the name of its file.
        interrupted: the turn that did not come to its end.
        findings: what vendors would refuse in its history.
        is_open: a process has it open: a turn may run, and a line may be half written.
    """

    session_id: str
    record: str | None = None
    damage: tuple[tuple[str, str], ...] = ()
    interrupted: InterruptedTurn | None = None
    findings: tuple[HistoryFinding, ...] = ()
    is_open: bool = False

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return (
            self.record is None
            and not self.damage
            and not self.findings
            and self.interrupted is None
        )

    def to_dict(self) -> JSONObject:
        """Write it as JSON data."""
        turn = self.interrupted
        interrupted: JSONObject | None = None
        if turn is not None:
            interrupted = {
                "prompt": turn.prompt,
                "in_doubt": [*turn.in_doubt],
                "not_started": [*turn.not_started],
            }
        return {
            "session_id": self.session_id,
            "sound": self.is_sound,
            "open": self.is_open,
            "record": self.record,
            "damage": [
                {"file": file, "problem": problem} for file, problem in self.damage
            ],
            "interrupted": interrupted,
            "findings": [finding.to_dict() for finding in self.findings],
        }


def diagnose(store: ProjectSessions, session_id: str) -> Diagnosis:
    """Say what is wrong with a session; nothing is changed. It blocks: call it in a thread.

    Raises:
        OSError: the system refuses.
    """
    folder = store.folder(session_id)
    found = Diagnosis(
        session_id=session_id,
        record=_record_problem(folder),
        is_open=holder_of(folder) is not None,
    )
    try:
        history = read_history(folder)
    except ConfigError as error:
        problem = error.in_one_line
        return attrs.evolve(found, damage=((folder.name, problem),))
    return attrs.evolve(
        found,
        damage=history.problems(is_open=found.is_open),
        interrupted=None if found.is_open else history.interrupted,
        findings=find_problems(history.messages),
    )


def diagnose_all(store: ProjectSessions) -> list[Diagnosis]:
    """Say of every session of a store what is wrong with it. It blocks: call it in a thread.

    The id of a session whose record cannot be read is the name of its folder.

    Raises:
        OSError: the system refuses.
    """
    listing = store.listing()
    found = [diagnose(store, session.record.session_id) for session in listing.sessions]
    return [
        *found,
        *(
            Diagnosis(session_id=folder.name, record=problem)
            for folder, problem in listing.damaged
        ),
    ]


async def repair(store: ProjectSessions, session_id: str) -> Diagnosis:
    """Make a session whole as far as can be, and return what was wrong.

    What is damaged is moved aside, the turn that was interrupted is closed, and the history becomes one that vendors
    accept. A record that cannot be read is made anew of what was said.

    Raises:
        LockedError: it is open.
        ConfigError: a newer version wrote it.
        OSError: the system refuses.
    """
    found = await to_thread.run_sync(diagnose, store, session_id)
    # An open one goes further, to the lock: it is refused there by whoever has it open.
    if found.is_sound and not found.is_open:
        return found
    await to_thread.run_sync(_restore_files, store.folder(session_id), session_id)
    async with store.open(SessionRecord(session_id=session_id)) as writer:
        await charge_cut_off(store, writer)
        await writer.settle()
        lines = writer.transcript.lines
        mended = mend([line.message for line in lines])
        if mended.findings:
            await writer.transcript.put(with_turns(mended.messages, lines))
    return found


def _record_problem(folder: Path) -> str | None:
    try:
        if read_record(folder) is not None:
            return None
        return "it is missing"
    except ConfigError as error:
        return error.in_one_line


def _restore_files(folder: Path, session_id: str) -> None:
    """Leave files that can be opened: logs that are logs, and a record that fits them.

    Raises:
        NewerRecordError: the record can be read, by a newer version.
    """
    from amplifier_kit.files.locks import WriterLock

    for name, expected in ((JOURNAL, JOURNAL_LOG), (TRANSCRIPT, TRANSCRIPT_LOG)):
        if (folder / name).exists():
            AppendLogFile.open(
                folder / name, attrs.evolve(expected, is_named=True)
            ).close()
    folder.stat()  # the lock would make one that is not there
    with WriterLock.take(folder / JOURNAL):
        if _record_problem(folder) is not None:
            _renew(folder, session_id)


def _renew(folder: Path, session_id: str) -> None:
    """Make a record that fits what was said.

    One that can be read but for what was said has its turns counted anew. Another stays
    beside its successor, which is made of the history and the recorded composition.

    Raises:
        NewerRecordError: it can be read, by a newer version.
    """
    history = read_history(folder)
    running = len(history.interrupted.messages) if history.interrupted else 0
    # The turns of the journal are counted when they are moved to the transcript.
    turn_count = len(turns_of(history.lines[: len(history.lines) - running]))
    try:
        stored = read_metadata(folder)
    except NewerRecordError:
        raise
    except ConfigError:
        stored = None
    if stored is not None:
        write_record(folder, attrs.evolve(stored, turn_count=turn_count))
        return
    file = folder / METADATA
    said = (line.message for line in history.lines)
    first = next((each for each in said if each.get("role") == "user"), {})
    record = SessionRecord(
        session_id=session_id,
        created=max(0.0, folder.stat().st_mtime),
        prompt=beginning_of(words_of(first)),
        turn_count=turn_count,
        # where it is lost as well, nothing else may stand in for it unasked
        has_composition=True,
        is_renewed=True,
    )
    if file.exists():
        # The damaged record stays: a person may yet read from it what no program can.
        os.replace(file, file.with_name(f"{METADATA}.damaged"))
    write_record(folder, _with_composition(folder, record))


def _with_composition(folder: Path, record: SessionRecord) -> SessionRecord:
    """Say in a record who answers, as far as the recorded composition can be read."""
    try:
        recorded = read_recorded(folder)
    except ConfigError:
        return record
    if recorded is None:
        return record
    provider, model = provider_and_model(recorded.plan)
    return attrs.evolve(
        record, profile=recorded.profile, provider=provider, model=model
    )
