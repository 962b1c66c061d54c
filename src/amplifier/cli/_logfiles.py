"""Which logs a person means, and what is reported of damage: the same for lines and for pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from amplifier.cli._terminal import notice

if TYPE_CHECKING:
    from amplifier.app.logs.library import LogLibrary, SessionLogFiles

__all__ = ["choose_logs", "report_damage"]


def choose_logs(
    library: LogLibrary,
    names: Sequence[str],
    files: Sequence[Path],
    *,
    tree: bool = False,
) -> list[SessionLogFiles]:
    """Return the logs that a person means; default the newest of the project.

    Raises:
        ConfigError: one of them is not there.
    """
    from amplifier.app.logs.library import SessionLogFiles

    chosen = [*map(library.find, names), *map(SessionLogFiles.of_file, files)]
    chosen = chosen or [library.newest()]
    if tree:
        chosen = [member for log in chosen for member in library.family(log)]
    # A session and its family may name the same log twice.
    return list({log.path: log for log in chosen}.values())


def report_damage(count: int) -> None:
    """Tell how many lines could not be read."""
    if count:
        notice(
            f"{count} damaged {'line was' if count == 1 else 'lines were'} passed over."
        )
