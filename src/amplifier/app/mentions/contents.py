"""Reading what a mention names, bounded: files as text or media, folders as a listing."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs

from amplifier.app.mentions.resolver import MentionTarget
from amplifier.app.mentions.scanner import LineRange
from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.path_errors import PathError, PathMissingError
from amplifier_kit.files.path_rules import SECRET_NAMES
from amplifier_kit.files.paths import ConfinedPaths
from amplifier_kit.files.product import ProductFiles
from amplifier_kit.files.resolved import ResolvedPath, printable
from amplifier_kit.files.text import FileText, UndecodableTextError
from amplifier_kit.media.files import media_data, most_bytes
from amplifier_sdk.errors import MediaError
from amplifier_sdk.media import MEDIA_HEAD, MediaBlock, kind_of, media_type

__all__ = ["SHOWN", "PlaceContents", "Status", "read_place"]

Status: TypeAlias = Literal[
    "loaded",
    "directory",
    "image",
    "media",
    "duplicate",
    "missing",
    "too_large",
    "binary",
    "denied",
    "cycle",
    "depth",
]
"""What became of a mention."""

SHOWN: Final = frozenset[Status]({"loaded", "directory", "image", "media"})
"""Where there is something to show."""

_MAX_ENTRIES: Final = 200


@attrs.frozen(kw_only=True)
class PlaceContents:
    """What a place holds.

    Args:
        status: what became of it.
        path: where it is, links resolved.
        content: the text; empty where there is none to show.
        media: an image, a PDF and the like in place of a text.
        note: why nothing, or not all, is shown.
        looked_at: how many bytes were read for it.
    """

    status: Status
    path: Path
    content: str = attrs.field(default="", repr=False)
    media: MediaBlock | None = attrs.field(default=None, repr=False)
    note: str = ""
    looked_at: int = 0

    @property
    def is_shown(self) -> bool:
        """Whether there is something to show."""
        return self.status in SHOWN


def read_place(
    place: MentionTarget, lines: LineRange | None, max_bytes: int, files: ProductFiles
) -> PlaceContents:
    """Read a file or list a folder; this blocks, but waits for no pipe and no device.

    Args:
        place: the path, and the folders that it must not leave.
        lines: the lines that are wanted.
        max_bytes: how much of a file is shown.
        files: the product's own, which are not shown.
    """
    missing = PlaceContents(status="missing", path=place.path, note="not found")
    if not os.path.lexists(place.path):  # most of the places that are searched
        return missing
    try:
        confined = ConfinedPaths(
            place.roots,
            base=place.roots[0],
            denied_names=SECRET_NAMES,
            denied_paths=place.closed,
            product=files,
        )
        with confined.locate(str(place.path)) as resolved:
            return _read_resolved(resolved, lines, max_bytes)
    except PathMissingError:
        return missing
    except (PathError, OSError) as error:
        return PlaceContents(status="denied", path=place.path, note=str(error))


def _read_resolved(
    resolved: ResolvedPath, lines: LineRange | None, max_bytes: int
) -> PlaceContents:
    status = resolved.existing()
    if stat.S_ISDIR(status.st_mode):
        return _list(resolved)
    with resolved.open_file() as file:
        # By content, since names lie; a file that is no image is read once all the
        # same.
        head = file.read(MEDIA_HEAD)
        found = media_type(head)
        if found is not None and lines is None:
            limit = most_bytes(kind_of(found))
            return _media(resolved, kind_of(found), head + file.read(limit + 1))
        # Lines far down are looked for in a bounded part of the file.
        wanted = max_bytes
        if lines is not None:
            wanted = max(max_bytes, 16_000_000)
        # One byte more than wanted shows that there is more.
        data = head + file.read(max(0, wanted + 1 - len(head)))
    return _text(resolved, data, status.st_size, lines, max_bytes)


def _media(resolved: ResolvedPath, kind: str, data: bytes) -> PlaceContents:
    found = PlaceContents(status="too_large", path=resolved.path, looked_at=len(data))
    if len(data) > most_bytes(kind):
        article = "an" if kind[0] in "aei" else "a"
        note = f"{article} {kind} of more than {most_bytes(kind)} bytes"
        return attrs.evolve(found, note=note)
    try:
        block = media_data(data, resolved.path.name)
    except MediaError as error:
        return attrs.evolve(found, note=str(error))
    if kind == "image":
        return attrs.evolve(found, status="image", media=block)
    return attrs.evolve(found, status="media", media=block)


def _text(
    resolved: ResolvedPath,
    data: bytes,
    size: int,
    lines: LineRange | None,
    max_bytes: int,
) -> PlaceContents:
    is_cut = len(data) < size
    found = PlaceContents(status="loaded", path=resolved.path, looked_at=len(data))
    try:
        text = _decoded(data, is_cut=is_cut)
    except UndecodableTextError as error:
        return attrs.evolve(found, status="binary", note=str(error))
    note = what = ""
    if lines is not None:
        text, what = _chosen(text, lines, read=len(data) if is_cut else None)
        # The part that is shown is complete, though the file was not read to its end.
        note, is_cut = what, False
    encoded = text.encode()
    if len(encoded) > max_bytes:
        # A character at the cut is dropped, not replaced: the file has no such
        # character.
        text = encoded[:max_bytes].decode(errors="ignore")
        is_cut = True
    if is_cut:
        note = f"the first {max_bytes} of {size} bytes"
        if lines is not None:
            note = f"the first {max_bytes} bytes of {what}"
        text += f"\n[cut here: {note}]"
    return attrs.evolve(found, content=text, note=note)


def _chosen(text: str, lines: LineRange, read: int | None) -> tuple[str, str]:
    """Return the lines that are wanted and what they are; `read` is how many bytes were read of a larger file."""
    every, reach = text.removesuffix("\n").split("\n"), ""
    if read is not None:
        del every[-1]  # the end of it was not read
        reach = f" in its first {read} bytes, and no more is read"
    chosen = every[lines.first - 1 : lines.last]
    if not chosen:
        size = f"has {len(every)} lines{reach}"
        return f"[it {size}]", size
    last = lines.first + len(chosen) - 1
    what = f"lines {lines.first} to {last}"
    if last < lines.last:
        what += reach
    return "\n".join(chosen), what


def _decoded(data: bytes, *, is_cut: bool) -> str:
    """Decode a text; one that was cut may end within a character."""
    missing = 3 if is_cut else 0
    for back in range(missing):
        with suppress(UndecodableTextError):
            return FileText.decode(data[: len(data) - back]).unified
    return FileText.decode(data[: len(data) - missing]).unified


def _list(resolved: ResolvedPath) -> PlaceContents:
    with (
        closing_handle(resolved.open_directory()) as handle,
        os.scandir(handle) as entries,
    ):
        # A link is listed as a file: following it could leave the folders that may
        # be read.
        names = [
            ("DIR" if entry.is_dir(follow_symlinks=False) else "FILE", entry.name)
            for entry in entries
        ]
    names.sort(key=lambda entry: (entry[0] != "DIR", entry[1].casefold()))
    lines = [f"{kind:<4} {printable(name)}" for kind, name in names[:_MAX_ENTRIES]]
    note = ""
    if left := len(names) - len(lines):
        note = f"{left} more entries are not shown"
        lines.append(f"[{note}]")
    return PlaceContents(
        status="directory", path=resolved.path, content="\n".join(lines), note=note
    )
