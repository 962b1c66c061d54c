"""Bringing the files of a source into a folder: from a repository, an archive, or another folder."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from amplifier.app.sources.archives import unpack
from amplifier.app.sources.downloads import download
from amplifier.app.sources.git import Git
from amplifier.app.sources.locations import (
    ArchiveLocation,
    GitLocation,
    Location,
    PackageLocation,
    PathLocation,
)
from amplifier.app.sources.trees import clean_tree, copy_tree
from amplifier_sdk.errors import ConfigError

__all__ = ["bring"]


def bring(
    location: Location | ArchiveLocation, folder: Path, *, source: str, git: Git
) -> str | None:
    """Bring what a source holds now into a folder, which is made; return the commit of a repository. Blocks.

    Args:
        location: from where it comes.
        folder: where it goes; nothing is there yet.
        source: as it was asked for.
        git: fetches repositories, and knows whether anything may be fetched.

    Raises:
        FetchError: it cannot be fetched.
        ConfigError: there is nothing, or it holds what is refused.
        OSError: it cannot be read or written.
    """
    commit: str | None = None
    match location:
        case GitLocation():
            # The commit is asked for first: what is noted is then exactly what is
            # fetched, whatever is pushed meanwhile.
            commit = git.latest(location)
            git.fetch(location, commit, folder)
        case ArchiveLocation():
            archive = folder.with_name(
                # The ending says which kind of archive it is.
                f"{folder.name}.{location.url.rpartition('/')[2]}"
            )
            download(location, archive, offline=git.is_offline)
            unpack(archive, folder)
            archive.unlink()
        case PathLocation(is_archive=True):
            if not location.path.is_file():
                _refuse(source, f"there is no file {str(location.path)!r}")
            unpack(location.path, folder)
        case PathLocation():
            if not location.path.is_dir():
                _refuse(source, f"there is no folder {str(location.path)!r}")
            copy_tree(location.path, folder)
        case PackageLocation():
            _refuse(source, "it is the name of a package, and no folder")
    # Before anything is hashed: compiled files would run in place of the source.
    clean_tree(folder)
    return commit


def _refuse(source: str, problem: str) -> NoReturn:
    raise ConfigError.of(source, problem, subject="source")
