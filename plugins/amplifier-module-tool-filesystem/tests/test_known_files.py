"""What a session knows of files, while several threads work with it."""

from __future__ import annotations

from pathlib import Path, PurePath

import pytest

from amplifier_kit.files.atomic import FileVersion
from amplifier_module_tool_filesystem.workspace import KnownFiles
from amplifier_sdk.errors import ToolError


class BusyPath(type(Path())):  # type: ignore[misc]  # the class of paths is the platform's
    """A path at whose comparison another thread reads one more file."""

    known: KnownFiles

    def is_relative_to(self, *other: str | PurePath) -> bool:
        self.known.note(
            Path(f"/read/{id(self)}"),
            FileVersion(device=1, inode=2, size=3, modified=4),
        )
        return bool(super().is_relative_to(*other))


def test_files_may_be_read_while_others_are_moved_and_forgotten(tmp_path: Path) -> None:
    status = tmp_path.stat()
    known = KnownFiles(is_required=True)
    for name in ("a", "b"):
        path = BusyPath(f"/here/{name}")
        path.known = known
        known.note(path, FileVersion.of(status))

    known.move(Path("/here"), Path("/moved"))
    known.forget(Path("/moved/a"))

    assert known.check("b", Path("/moved/b"), status) == FileVersion.of(status)
    for gone in ("/here/a", "/here/b", "/moved/a"):
        with pytest.raises(ToolError, match="was not read in this session"):
            known.check(gone, Path(gone), status)
