"""Reading what a `source` says; what is none of the forms that may be used is refused.

The text of a source comes from settings, profiles and collections of others, so it is read by what is allowed and
not by what is known to do harm.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import SplitResult, unquote, urlsplit

import attrs

from amplifier.app.sources.locations import (
    ARCHIVES,
    ArchiveLocation,
    GitLocation,
    Location,
    PackageLocation,
    PathLocation,
    is_bare_name,
    path_of,
)
from amplifier_sdk.errors import ConfigError

__all__ = ["read_archive", "read_location"]

_SCHEMES: Final = ("https", "ssh", "file")
_HOST: Final = re.compile(
    r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\]"
)
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_PATH: Final = re.compile(r"/[A-Za-z0-9._~+=,/ -]*")
_OWN_PATH: Final = re.compile(r"/[\w.~+=,/ -]*")
"""A path on this machine, whose folders a person may have named in their language."""
_LOOPBACK: Final = ("127.0.0.1", "[::1]", "localhost")
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+-]*")
_PART: Final = re.compile(r"[A-Za-z0-9._+ -]+")
_REPOSITORY: Final = "'git+https://host/path@ref#subdirectory=folder'"
_FORMS: Final = f"a folder, {_REPOSITORY}, 'git+ssh://…', or the name of a package"
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "git": ("url", "ref", "subdirectory"),
    "file": ("path",),
    "package": ("name",),
}


def read_location(source: object, base: Path) -> Location:
    """Read a source.

    Args:
        source: text, a path object, or a mapping whose `type` is `git`, `file` or `package`.
        base: what a relative path is relative to.

    Raises:
        ConfigError: it is none that may be used; says why, and shows no credentials.
    """
    if isinstance(source, Mapping):
        return _read_mapping(source, base)
    if isinstance(source, str):
        if not source.isprintable() or source != source.strip() or not source:
            _refuse(source, "it has characters that no source has, or is empty")
        if source.startswith("git+"):
            return _read_git(source)
        if (
            is_bare_name(source)
            and not (base / source).exists()
            and not source.lower().endswith(ARCHIVES)
        ):
            return PackageLocation(requirement=source)
    path = path_of(source)
    if path is None:
        _refuse(source, f"it is none of {_FORMS}")
    if "\0" in str(path):
        _refuse(source, "it has characters that no path has")
    return PathLocation(path=base / path)


def read_archive(source: str) -> ArchiveLocation | None:
    """Read the address of an archive on a web server; `None` where a source is none.

    Raises:
        ConfigError: it may not be used; says why, and shows no credentials.
    """
    if not source.isprintable() or not source.startswith(("http://", "https://")):
        return None
    try:
        url = urlsplit(source)
        port = url.port
    except ValueError:
        _refuse(source, "it is no URL")
    host = _checked_host(source, url, port)
    if url.scheme != "https" and host.removesuffix(f":{port}") not in _LOOPBACK:
        _refuse(source, "an archive is fetched by https")
    if "?" in source or "#" in source or not url.path.lower().endswith(ARCHIVES):
        _refuse(
            source,
            f"the address of an archive ends with {', '.join(ARCHIVES)}; a repository is written as {_REPOSITORY}",
        )
    if not _PATH.fullmatch(url.path) or ".." in url.path.split("/"):
        _refuse(source, "its path has characters or parts that are not allowed")
    return ArchiveLocation(url=f"{url.scheme}://{host}{url.path}")


def _read_mapping(source: Mapping[object, object], base: Path) -> Location:
    kind, values = _checked_values(source)
    if kind == "git":
        return _read_git_mapping(values)
    if kind == "file":
        if not values.get("path"):
            _refuse(kind, "it has no path")
        return PathLocation(path=base / os.path.expanduser(values["path"]))
    if not is_bare_name(values.get("name")):
        _refuse(values.get("name"), "it is no name of a package")
    return PackageLocation(requirement=values["name"])


def _checked_values(source: Mapping[object, object]) -> tuple[str, dict[str, str]]:
    kind = source.get("type")
    if not isinstance(kind, str) or kind not in _KEYS:
        _refuse(kind, f"its 'type' is none of {', '.join(_KEYS)}")
    known = _KEYS[kind]
    values: dict[str, str] = {}
    for key, value in source.items():
        if key == "type":
            continue
        if key not in known or not isinstance(value, str):
            _refuse(kind, f"{key!r} is no text among {', '.join(known)}")
        if not value.isprintable():
            _refuse(value, f"{key!r} has characters that no source has")
        values[str(key)] = value
    return kind, values


def _read_git_mapping(values: Mapping[str, str]) -> GitLocation:
    url = values.get("url", "").removeprefix("git+")
    if "#" in url:
        _refuse(url, "a mapping names the folder as 'subdirectory'")
    location = _read_git(f"git+{url}")
    ref, folder = values.get("ref"), values.get("subdirectory")
    return attrs.evolve(
        location,
        ref=location.ref if ref is None else _checked_ref(ref),
        subdirectory=None if folder is None else _checked_folder(folder),
    )


def _read_git(source: str) -> GitLocation:
    """Read `git+SCHEME://[USER@]HOST/PATH[@REF][#subdirectory=FOLDER]`."""
    text, _, fragment = source.removeprefix("git+").partition("#")
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        _refuse(source, "it is no URL")
    if url.scheme not in _SCHEMES or not text.startswith(f"{url.scheme}://"):
        schemes = ", ".join(f"git+{scheme}" for scheme in _SCHEMES)
        _refuse(source, f"git is asked by {schemes} alone")
    if "?" in text:
        _refuse(source, "a URL of a repository has no '?'")
    host = _checked_host(source, url, port)
    # A user stands before the host: only what follows the last '@' of the path is a ref.
    path, at, ref = url.path, "", ""
    if "@" in path:
        path, at, ref = path.rpartition("@")
    plain = _PATH
    if url.scheme == "file":
        path, plain = unquote(path), _OWN_PATH
    if (
        not plain.fullmatch(path)
        or ".." in path.split("/")
        or path.startswith(("//", "/-"))
        or path == "/"
    ):
        _refuse(
            source,
            "the path of its repository has characters or parts that are not allowed",
        )
    return GitLocation(
        url=f"{url.scheme}://{host}{path}",
        ref=_checked_ref(ref) if at else None,
        subdirectory=_read_fragment(source, fragment) if "#" in source else None,
    )


def _checked_host(source: str, url: SplitResult, port: int | None) -> str:
    user, at, _ = url.netloc.rpartition("@")
    if (
        url.password is not None
        or (at and url.scheme != "ssh")
        or (at and not _USER.fullmatch(user))
    ):
        _refuse(
            source,
            "it holds credentials; let git's own credential helper or an SSH key have them",
        )
    if url.scheme == "file":
        if url.netloc:
            _refuse(
                source, "a repository on this machine is written as git+file:///path"
            )
        return ""
    host = name = url.netloc.rpartition("@")[2]
    if port is not None:
        name = host.rpartition(":")[0]
    if not _HOST.fullmatch(name):
        _refuse(source, "its host is no name of a host")
    return f"{user}{at}{host}"


def _checked_ref(ref: str) -> str:
    # Git's own rules for names, so that a ref is never an option or an expression.
    bad = ".." in ref or "//" in ref or ref.endswith((".lock", "/", ".")) or "/." in ref
    if bad or len(ref) > 200 or not _REF.fullmatch(ref):
        _refuse(ref, "it is no name of a branch, a tag or a commit")
    return ref


def _read_fragment(source: str, fragment: str) -> str:
    key, equals, value = fragment.partition("=")
    if key != "subdirectory" or not equals:
        _refuse(source, "what follows '#' is not subdirectory=FOLDER")
    return _checked_folder(value)


def _checked_folder(folder: str) -> str:
    parts = folder.strip("/").split("/")
    if folder.startswith("/") or any(
        not _PART.fullmatch(part) or part.lower() in (".", "..", ".git")
        for part in parts
    ):
        _refuse(folder, "the subdirectory is no plain path below the repository")
    return "/".join(parts)


def _refuse(source: object, problem: str) -> NoReturn:
    raise ConfigError.of(_shown(source), problem, subject="source")


def _shown(source: object) -> str:
    """Show a source without what may be secret in it: the part before the host, and what follows a '?'."""
    text = source if isinstance(source, str) else repr(source)
    authority = text.partition("//")[2].partition("/")[0] or text
    if "@" in authority or ":" in authority:
        text = re.sub(r"(//|^).*@", r"\1***@", text, flags=re.DOTALL)
    return ascii(re.sub(r"\?.*", "?***", text, flags=re.DOTALL)[:300])
