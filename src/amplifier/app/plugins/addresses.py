"""Where a plugin comes from, as people write it: OWNER/REPO, a path, an address, or a repository."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import unquote

from amplifier.app.sources.locations import (
    ARCHIVES,
    ArchiveLocation,
    Location,
    PackageLocation,
    PathLocation,
)
from amplifier.app.sources.parser import read_archive, read_location
from amplifier_sdk.errors import ConfigError

__all__ = ["read_address"]

_ON_GITHUB: Final = re.compile(
    r"(?P<owner>[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)/(?P<repo>[A-Za-z0-9_-][A-Za-z0-9._-]*)(?:@(?P<ref>.+))?"
)
_GITHUB_PAGE: Final = re.compile(
    r"https://github\.com/(?P<owner>[^/]+)/(?P<repo>[^/]+)(?:/tree/(?P<ref>[^/]+)(?P<folder>/.+)?)?"
)
_PATHS: Final = (".", "/", "~", "file:")
_FORMS: Final = "OWNER/REPO on GitHub, a path that begins with './', '~' or '/', an https address, or git+https://host/path@ref"


def read_address(text: str, base: Path) -> Location | ArchiveLocation:
    """Return what an address means; OWNER/REPO is never a folder, so that none takes its place.

    Args:
        text: what a person typed.
        base: what a relative path is relative to.

    Raises:
        ConfigError: it is none, or may not be used; says why, and shows no credentials.
    """
    named = _ON_GITHUB.fullmatch(text)
    if named and not text.startswith(_PATHS):
        return _repository(named["owner"], named["repo"], named["ref"])
    if text.startswith("https://"):
        return _at_address(text.rstrip("/"), base)
    if not text.startswith((*_PATHS, "git+", "http://")):
        _refuse(text, f"it is none of {_FORMS}")
    location = read_archive(text) or read_location(text, base)
    if isinstance(location, PackageLocation):
        _refuse(text, f"it is none of {_FORMS}")
    if isinstance(location, PathLocation):
        # It is noted, and read from any folder.
        return PathLocation(path=Path(os.path.normpath(location.path)))
    return location


def _at_address(text: str, base: Path) -> Location | ArchiveLocation:
    if text.lower().endswith(ARCHIVES) and (archive := read_archive(text)):
        return archive
    # The address of a folder as a browser shows it names its branch and its place.
    page = _GITHUB_PAGE.fullmatch(text)
    if page and page["ref"]:
        folder = unquote((page["folder"] or "").strip("/"))
        return _repository(page["owner"], page["repo"], page["ref"], folder)
    return read_location(f"git+{text}", base)


def _repository(
    owner: str, repo: str, ref: str | None, folder: str = ""
) -> Location | ArchiveLocation:
    source = {"type": "git", "url": f"https://github.com/{owner}/{repo}"}
    if ref:
        source["ref"] = ref
    if folder:
        source["subdirectory"] = folder
    return read_location(source, Path("/"))


def _refuse(text: str, problem: str) -> NoReturn:
    raise ConfigError.of(ascii(text[:300]), problem, subject="source")
