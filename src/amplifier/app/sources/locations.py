"""Where something comes from: a folder, an archive, a repository, or a package."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import unquote, urlsplit

import attrs

from amplifier_kit.installation import install_command
from amplifier_sdk.errors import AmplifierError

__all__ = [
    "ARCHIVES",
    "ArchiveLocation",
    "GitLocation",
    "Location",
    "PackageLocation",
    "PathLocation",
    "canonical_name",
    "hide_credentials",
    "is_bare_name",
    "path_of",
    "satisfies",
]

ARCHIVES: Final = (".tar.gz", ".tgz", ".zip")
"""How the names of archives end."""

_NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_PACKAGE: Final = re.compile(
    rf"({_NAME})(?:\[[A-Za-z0-9._, -]*\])? *([<>=!~][A-Za-z0-9.,<>=!~*+ -]*)?"
)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def canonical_name(name: str) -> str:
    """Return the one form of a name: lower case, with single dashes."""
    return re.sub(r"[-_.]+", "-", name).lower()


def satisfies(version: str, versions: str) -> bool:
    """Tell whether a version is among some, such as `>=1.2,<2`; nothing and `*` stand for all.

    Raises:
        ValueError: the versions, or the version, cannot be read.
        AmplifierError: the package that compares versions is not installed.
    """
    if versions.strip() in ("", "*"):
        return True
    try:
        # an extra, and only where somebody asks for versions
        from packaging.specifiers import SpecifierSet
        from packaging.version import Version
    except ImportError as error:
        raise AmplifierError(
            f"To compare versions, packaging is needed: {install_command('amplifier[cli]')}"
        ) from error
    # What is installed already was somebody's choice, a prerelease as well.
    return SpecifierSet(versions).contains(Version(version), prereleases=True)


@attrs.frozen(kw_only=True)
class PathLocation:
    """A folder or an archive on this machine."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def is_archive(self) -> bool:
        """Whether it is named like an archive and is no folder."""
        return self.path.name.lower().endswith(ARCHIVES) and not self.path.is_dir()


@attrs.frozen(kw_only=True)
class ArchiveLocation:
    """An archive on a web server."""

    url: str

    def __str__(self) -> str:
        return self.url


@attrs.frozen(kw_only=True)
class GitLocation:
    """A repository.

    Args:
        url: what git is given.
        ref: a branch, a tag or a whole commit; `None` is the repository's own choice.
        subdirectory: the folder within it.
    """

    url: str
    ref: str | None = None
    subdirectory: str | None = None

    def __str__(self) -> str:
        text = f"git+{self.url}"
        if self.ref:
            text += f"@{self.ref}"
        if self.subdirectory:
            text += f"#subdirectory={self.subdirectory}"
        return text

    @property
    def scheme(self) -> str:
        """How it is reached: `https`, `ssh` or `file`."""
        return self.url.partition(":")[0]

    @property
    def commit(self) -> str | None:
        """The ref, where it is a whole commit."""
        if self.ref and _COMMIT.fullmatch(self.ref):
            return self.ref
        return None


@attrs.frozen(kw_only=True)
class PackageLocation:
    """A package that an installer knows, with the versions that will do."""

    requirement: str

    def __str__(self) -> str:
        return self.requirement

    @property
    def name(self) -> str:
        """The name of the distribution, as indexes compare it."""
        return canonical_name(self._parts[0])

    @property
    def versions(self) -> str:
        """The versions that will do, as in a requirement; empty for any."""
        return self._parts[1]

    @property
    def _parts(self) -> tuple[str, str]:
        found = _PACKAGE.fullmatch(self.requirement)
        if found:
            return found[1], found[2] or ""
        return self.requirement, ""


Location: TypeAlias = PathLocation | GitLocation | PackageLocation


def path_of(source: object) -> Path | None:
    """Return the path that a source is; a URL of another scheme is none."""
    if isinstance(source, os.PathLike):
        return Path(source)
    if not isinstance(source, str) or not source:
        return None
    if source.startswith("file:"):
        try:
            url = urlsplit(source)
        except ValueError:  # brackets that hold no address
            return None
        if url.netloc in ("", "localhost"):
            return Path(unquote(url.path))
        return None
    if "://" in source or "::" in source or source.startswith(("git@", "git+", "-")):
        return None
    # where there is no such person, a name stays as it is
    return Path(os.path.expanduser(source))


def is_bare_name(source: object) -> bool:
    """Whether a source is written as the name of a package is, with its versions."""
    return isinstance(source, str) and _PACKAGE.fullmatch(source) is not None


def hide_credentials(text: str) -> str:
    """Return a text without what stands before the host of a URL in it."""
    return re.sub(r"//[^/\s'\"]*@", "//***@", text)
