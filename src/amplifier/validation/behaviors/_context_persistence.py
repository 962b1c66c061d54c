"""A context that keeps its history beyond the session: through kills, torn writes, damage and second writers.

What holds of such contexts alone is skipped for one that begins empty where another session of its id ended.
"""

from __future__ import annotations

import shutil
import stat
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs

from amplifier.validation.behaviors._context_storage import fill, fresh, holds
from amplifier.validation.behaviors._messages import MESSAGES, exchange, numbered
from amplifier.validation.behaviors._stage import Setting, Stage, open_stage, skip_unless
from amplifier.validation.behaviors.behavior import BehaviorFailed, Suite, require
from amplifier.validation.behaviors.subject import Samples, Subject
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.messages import MessageDict

CONTEXT: Final = Suite("context")

SESSION: Final = "kept-session"
LONGEST_REFUSAL: Final = 2.0
"""Seconds in which a second writer is refused."""

LONGEST_OPENING: Final = 1.0
"""Seconds in which a session with a thousand messages opens."""

_NOT_KEPT: Final = "its history ends with its session"
_NO_LINES: Final = "it keeps no text of lines in the session's folders"


@attrs.frozen(kw_only=True)
class Kept:
    """A place in which sessions of one id follow each other."""

    subject: Subject
    folder: Path

    def open(self) -> AbstractAsyncContextManager[Stage]:
        """Open a session there."""
        return open_stage(self.subject, Setting(directory=self.folder, session_id=SESSION))

    def copy(self, name: str) -> Kept:
        """Take the files as they are now, as a kill at this moment would leave them."""
        folder = self.folder.with_name(name)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder, folder)
        return attrs.evolve(self, folder=folder)

    @property
    def files(self) -> list[Path]:
        """What the context has written."""
        given = {self.folder / name for name in self.subject.told(Samples).files}
        return sorted(path for path in self.folder.rglob("*") if path.is_file() and path not in given)

    @property
    def lines(self) -> Path:
        """The largest file, when it is text.

        Raises:
            NotApplicable: there is none.
        """
        skip_unless(self.files, _NO_LINES)
        largest = max(self.files, key=lambda path: path.stat().st_size)
        data = largest.read_bytes()
        skip_unless(data.count(b"\n") > 3 and b"\0" not in data, _NO_LINES)
        return largest


@asynccontextmanager
async def kept(subject: Subject, messages: Sequence[MessageDict]) -> AsyncIterator[tuple[Kept, list[MessageDict]]]:
    """Let a session end with these messages; yield its place and its whole history.

    Raises:
        NotApplicable: the next session begins without them.
    """
    with TemporaryDirectory(prefix="amplifier-behavior-") as home:
        place = Kept(subject=subject, folder=Path(home) / "first")
        place.folder.mkdir()
        async with place.open() as stage:
            start = await fresh(stage.context)
            await fill(stage.context, messages)
        async with place.copy("probe").open() as stage:
            skip_unless(len(await stage.context.get_messages()) > len(start), _NOT_KEPT)
        yield place, [*start, *messages]


async def resumes(place: Kept, wanted: Sequence[MessageDict]) -> None:
    """Go on when the next session has exactly this history."""
    async with place.open() as stage:
        await holds(stage.context, wanted)


@CONTEXT.behavior(fix="Write messages as plain JSON data and read them back as they are, vendors' fields included.")
async def goes_on_where_its_session_ended(subject: Subject) -> None:
    """The next session of the same id has the same history, message for message."""
    async with kept(subject, [message for _, message in MESSAGES.values()]) as (place, history):
        await resumes(place, history)


@CONTEXT.behavior(fix="Append to what was loaded; never begin the file anew.")
async def goes_on_adding_after_a_resume(subject: Subject) -> None:
    """What each of three sessions adds stands behind what the ones before it added."""
    async with kept(subject, exchange(1)) as (place, history):
        for number in (2, 3):
            async with place.open() as stage:
                await fill(stage.context, exchange(number))
            history.extend(exchange(number))
        await resumes(place, history)


@CONTEXT.behavior(fix="Write each message before add_message returns.")
async def survives_a_kill(subject: Subject) -> None:
    """A message is kept as soon as add_message has returned, whatever becomes of the process."""
    async with kept(subject, exchange(1)) as (place, history), place.open() as stage:
        for number, message in enumerate(exchange(2)):
            await fill(stage.context, [message])
            history.append(message)
            await resumes(place.copy(f"killed-{number}"), history)


@CONTEXT.behavior(fix="Write what set_messages is given as one record, so that it is kept whole or not at all.")
async def keeps_a_given_history_for_the_next_session(subject: Subject) -> None:
    """What set_messages gave a new session is what the next one begins with."""
    async with kept(subject, numbered(2)) as (place, _):
        fresh_place = attrs.evolve(place, folder=place.folder.with_name("given"))
        fresh_place.folder.mkdir()
        async with fresh_place.open() as stage:
            await stage.context.set_messages(exchange(1))
        await resumes(fresh_place, exchange(1))


@CONTEXT.behavior(fix="Ignore set_messages once the history was read from the context's own file.")
async def keeps_its_history_before_a_transcript(subject: Subject) -> None:
    """An application that gives a resumed context a part of its history takes nothing away."""
    history = [MESSAGES["instructions"][1], *exchange(1)]
    async with kept(subject, history) as (place, whole):
        async with place.open() as stage:
            await stage.context.set_messages([m for m in whole if m.get("role") != "system"])
            await holds(stage.context, whole)
        await resumes(place, whole)


@CONTEXT.behavior(fix="Write that the history begins anew.")
async def stays_cleared(subject: Subject) -> None:
    """What was cleared does not come back with the next session."""
    async with kept(subject, exchange(1)) as (place, history):
        start = history[: -len(exchange(1))]
        async with place.open() as stage:
            await stage.context.clear()
            await fill(stage.context, numbered(1))
        await resumes(place, [*start, *numbered(1)])


async def survives(place: Kept, history: Sequence[MessageDict], lost: int) -> None:
    """Go on when a session opens on damaged files, lost so many messages at most, and keeps what it adds."""
    added = exchange(9)
    async with place.open() as stage:
        found = list(await stage.context.get_messages())
        await fill(stage.context, added)
    strange = [message for message in found if message not in history]
    require(not strange, f"The history has a message that never went in: {strange!r:.300}")
    require(len(found) >= len(history) - lost, f"{len(history) - len(found)} messages are lost; {lost} were damaged")
    await resumes(place, [*found, *added])


@CONTEXT.behavior(fix="Cut the file back to its last whole line before the first append; keep the rest aside.")
async def survives_a_torn_write(subject: Subject) -> None:
    """A file whose last line was cut anywhere costs that message alone, and the next one is whole."""
    async with kept(subject, exchange(1)) as (place, history):
        data = place.lines.read_bytes()
        last = len(data) - data.rstrip(b"\n").rfind(b"\n") - 1
        for missing in sorted({1, 2, 3, last // 2, last - 1}):
            torn = place.copy("torn")
            torn.lines.write_bytes(data[:-missing])
            await survives(torn, history, 1)


@CONTEXT.behavior(fix="Treat a tail that is no whole line as torn, whatever it consists of.")
async def survives_a_tail_of_zeros(subject: Subject) -> None:
    """Zeros at the end of a file, as a power failure leaves them, cost nothing."""
    async with kept(subject, exchange(1)) as (place, history):
        data = place.lines.read_bytes()
        for tail in (b"\0", b"\0" * 512, b"\0" * 64 + b"\n"):
            torn = place.copy("zeros")
            torn.lines.write_bytes(data + tail)
            await survives(torn, history, 0)


@CONTEXT.behavior(fix="Give each line a checksum; set a damaged line aside and read the others.")
async def survives_a_flipped_bit(subject: Subject) -> None:
    """A flipped bit in a line costs the message in it at most, and nothing that was not added comes back."""
    async with kept(subject, exchange(1)) as (place, history):
        data = place.lines.read_bytes()
        begin = data.rstrip(b"\n").rfind(b"\n") + 1
        for part in (0.1, 0.5, 0.9):
            flipped = bytearray(data)
            flipped[begin + int((len(data) - begin) * part)] ^= 1
            hit = place.copy("flipped")
            hit.lines.write_bytes(bytes(flipped))
            await survives(hit, history, 1)


@CONTEXT.behavior(
    fix="Hold a lock on the file while the session is open; fail the mount, naming the owner.", is_timed=True
)
async def refuses_a_second_writer(subject: Subject) -> None:
    """While a session is open another one of its id is refused within two seconds, and the first goes on."""
    async with kept(subject, exchange(1)) as (place, history):
        async with place.open() as stage:
            began = time.perf_counter()
            await _is_refused(place)
            took = time.perf_counter() - began
            await fill(stage.context, numbered(1))
        require(took < LONGEST_REFUSAL, f"The second session was refused after {took:.1f} s")
        await resumes(place, [*history, *numbered(1)])


async def _is_refused(place: Kept) -> None:
    try:
        async with place.open():
            pass
    except AmplifierError:
        return
    raise BehaviorFailed("Two sessions had the same history open for writing")


@CONTEXT.behavior(fix="Create files with the mode 0600 and folders with 0700.")
async def keeps_its_files_private(subject: Subject) -> None:
    """Nobody but the user can read the files and folders that it makes."""
    async with kept(subject, exchange(1)) as (place, _):
        skip_unless(place.files, _NO_LINES)
        folders = {folder for path in place.files for folder in path.parents if place.folder in folder.parents}
        for path in (*place.files, *sorted(folders)):
            mode = stat.S_IMODE(path.stat().st_mode)
            require(not mode & 0o077, f"{path.relative_to(place.folder)} has the mode {mode:04o}")


@CONTEXT.behavior(fix="Read the file once, line by line, and convert nothing that nobody asks for.", is_timed=True)
async def opens_a_long_history_at_once(subject: Subject) -> None:
    """A session with a thousand messages opens within a second."""
    async with kept(subject, numbered(1000, length=500)) as (place, history):
        began = time.perf_counter()
        async with place.open() as stage:
            took = time.perf_counter() - began
            await holds(stage.context, history)
    require(took < LONGEST_OPENING, f"It took {took:.2f} s")
