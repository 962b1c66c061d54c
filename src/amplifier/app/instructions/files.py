"""The files of instructions that every session in a folder begins with: `AGENTS.md`, of a person and of a project.

Those of a project are read once a person trusted them. What they mention is not followed: nobody trusted that.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.projects.files import (
    INSTRUCTIONS,
    ProjectFiles,
    name_in,
    present_items,
)
from amplifier.app.projects.trust import trust_again
from amplifier.app.settings.schema import InstructionSettings
from amplifier.app.text.context_blocks import context_block
from amplifier_kit.files.open_flags import ADD_TO
from amplifier_kit.files.text import FileText, UndecodableTextError
from amplifier_kit.terminal import one_line
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "AGENTS_FILE",
    "INSTRUCTIONS_LOADED",
    "InstructionFile",
    "Instructions",
    "add_note",
    "load_instructions",
]

INSTRUCTIONS_LOADED: Final = "instructions:loaded"
"""Sent when a session was opened that begins with such files, or was refused some; carries `files` and `notices`."""

AGENTS_FILE: Final = "AGENTS.md"
"""The file's name, in the root of a project."""


@attrs.frozen(kw_only=True)
class InstructionFile:
    """A file of instructions.

    Args:
        path: where it stands.
        label: how a person knows it: its path from the project's folder, or in their own.
        text: what is read of it.
        size: how many bytes it has.
        is_truncated: whether it has more than is read.
    """

    path: Path
    label: str
    text: str = attrs.field(repr=False)
    size: int
    is_truncated: bool = False

    def __str__(self) -> str:
        if self.is_truncated:
            return f"{self.label} (the first {_length(self.text)} of {self.size} bytes)"
        return self.label

    def block(self) -> str:
        """Return what a model reads of it; says where it is truncated."""
        text = self.text
        if self.is_truncated:
            text += f"\n[truncated: the first {_length(text)} of {self.size} bytes are read]"
        return context_block(f"{self.path.name} → {self.path}", text)


@attrs.frozen(kw_only=True)
class Instructions:
    """What a session begins with.

    Args:
        files: those that are read, the nearest to the working directory last.
        notices: why others are not, a line each.
    """

    files: tuple[InstructionFile, ...] = ()
    notices: tuple[str, ...] = ()

    def text(self, shown: Collection[str] = ()) -> str:
        """Return what a model reads of them.

        Args:
            shown: the paths of files that it reads elsewhere.
        """
        files = (file for file in self.files if str(file.path) not in shown)
        return "\n\n".join(file.block() for file in files)

    def warnings(self) -> Iterator[str]:
        """Say what is not read, a line each: of whole files, and of those that are too long."""
        yield from self.notices
        for file in self.files:
            if file.is_truncated:
                yield f"warning: of {one_line(str(file), 300)} no more is read; see the setting instructions.max_bytes"

    def to_dict(self) -> JSONObject:
        """Write down which files they are, as JSON data."""
        files: list[JSONValue] = [
            {"path": str(each.path), "bytes": each.size, "truncated": each.is_truncated}
            for each in self.files
        ]
        return {"files": files, "notices": list(self.notices)}


def load_instructions(
    dirs: AppDirs, project: ProjectFiles, settings: InstructionSettings
) -> Instructions:
    """Read a person's file and those of the project's folders, down to the working directory; this blocks.

    Of the bytes that may be read the nearest file has the first, since it is about what the person works at.

    Args:
        dirs: where the person works.
        project: what of the project's folder may be used.
        settings: whether anything is read, and how much.
    """
    if not settings.enabled:
        return Instructions()
    notices: list[str] = []
    found = [*_own(dirs, notices), *_of_project(dirs, project, notices)]
    read: list[InstructionFile] = []
    left, known = settings.max_bytes, set[bytes]()
    for path, label, data in reversed(found):
        if data in known or not data.strip():
            continue
        known.add(data)
        file = _read(path, label, data, left, notices)
        if file is not None:
            read.insert(0, file)
            left -= _length(file.text)
    return Instructions(files=tuple(read), notices=tuple(notices))


def _own(dirs: AppDirs, notices: list[str]) -> Iterator[tuple[Path, str, bytes]]:
    path = dirs.home / name_in(dirs.home)
    if not path.is_file():
        return
    try:
        yield path, str(path), path.read_bytes()
    except OSError:
        notices.append(f"warning: {one_line(str(path), 300)} cannot be read")


def _of_project(
    dirs: AppDirs, project: ProjectFiles, notices: list[str]
) -> Iterator[tuple[Path, str, bytes]]:
    decision = project.evaluate(INSTRUCTIONS)
    if decision is None:
        return
    if not decision.trusted:
        present = ", ".join(name for name, _ in present_items(decision))
        named = one_line(present or AGENTS_FILE, 200)
        notices.append(
            f"{named} of this folder: not read, {one_line(decision.reason, 300)}; 'amplifier trust' shows and asks"
        )
        return
    # Sorted by depth: one folder below the other, down to the working directory.
    for name in sorted(decision.contents, key=lambda name: name.count("/")):
        yield dirs.root / name, name, decision.contents[name]


def _read(
    path: Path, label: str, data: bytes, left: int, notices: list[str]
) -> InstructionFile | None:
    try:
        text = FileText.decode(data).unified
    except UndecodableTextError:
        notices.append(f"warning: {one_line(label, 300)} is no text, and is not read")
        return None
    encoded = text.encode()
    # A character at the cut is dropped: the file has no half of one.
    shown = encoded[:left].decode(errors="ignore")
    return InstructionFile(
        path=Path(os.path.realpath(path)),
        label=label,
        text=shown,
        size=len(data),
        is_truncated=len(encoded) > left,
    )


def _length(text: str) -> int:
    return len(text.encode())


def add_note(dirs: AppDirs, note: str) -> Path:
    """Add a line to the end of a project's instructions, which the next session reads; it blocks.

    The file is AGENTS.md, or what takes its place in the project's folder; it is made where it is missing.

    Args:
        dirs: where the project is.
        note: the text; line ends become blanks.

    Returns:
        The file.

    Raises:
        AmplifierError: others wrote what is there, and nobody trusted it yet.
        OSError: it cannot be written, or it is a link or no file.
    """
    name = name_in(dirs.root)
    changed = [] if dirs.project is None else [name]
    with trust_again(dirs, INSTRUCTIONS, changed):
        _append(dirs.root / name, " ".join(note.split()))
    return dirs.root / name


def _append(path: Path, note: str) -> None:
    # A link in the project could lead to any file that the person may write.
    handle = os.open(path, os.O_RDWR | ADD_TO, 0o644)
    with open(handle, "r+b") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is no file", str(path))
        separator = b""
        if status.st_size:
            file.seek(-1, os.SEEK_END)
            separator = b"" if file.read(1) == b"\n" else b"\n"
        file.write(separator + b"- " + note.encode("utf-8", "replace") + b"\n")
