"""Where paths of a shell text lead: into the folders that may be written, to secrets, or elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Final

import attrs

from amplifier_sdk.kit.path_rules import SECRET_NAMES, PathRules
from amplifier_sdk.kit.product_files import ProductFiles
from amplifier_sdk.kit.shell.scripts import HOLE, Word

__all__ = ["Places"]

_OF_SYSTEMS: Final = (
    "gcloud", "shadow", "shadow-", "gshadow", "sudoers", "sudoers.d", "kcore", "secrets.*", "id_*.pub",
)  # fmt: skip
"""What a shell text does not read either, besides the names of secrets: it reaches beyond the session's folders."""

_OF_PROCESSES: Final = frozenset({"mem", "environ"})
_DEVICES: Final = frozenset({
    "/dev/null", "/dev/zero", "/dev/full", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/random",
    "/dev/urandom",
})  # fmt: skip
_HOMES: Final = ("/root", "/home", "/Users")
_GUARDED: Final = ("/etc", "/proc", "/sys", "/dev", "/var", "/run", "/boot")
_EXAMPLES: Final = (
    ".ssh", ".aws", ".env", ".netrc", ".npmrc", ".gnupg", ".git-credentials", ".bash_history", ".kube", "id_rsa",
    "id_ed25519", "shadow",
)  # fmt: skip
_MOUNTED_SECRETS: Final = ("/run/secrets", "/var/run/secrets")
_BRACKETS: Final = r"\[[!^]?\]?(?:\[:\w+:\]|[^]])*\]"


@attrs.frozen(kw_only=True)
class Places:
    """The folders that a text's paths are judged by; all are absolute, with links resolved.

    Args:
        directory: where relative paths start; `None` when the text leaves it for a place that is not known.
        writable: folders in which everything may be changed but what is protected.
        protected: names or paths, relative to any folder, that stay as they are, such as `.git/hooks`.
        home: the person's home folder.
    """

    directory: str | None
    writable: tuple[str, ...]
    protected: tuple[str, ...] = ()
    home: str = "/"

    @property
    def is_inside(self) -> bool:
        """Whether relative paths certainly start in a writable folder or below."""
        return self.directory is not None and self._root_of(os.path.realpath(self.directory)) is not None

    def may_write(self, word: Word) -> bool:
        """Whether a path certainly lies in a writable folder, is none itself, and is not protected."""
        return all(map(self._is_inside, word.values)) and not self._empties_folder(word)

    def may_use(self, word: Word) -> bool:
        """Whether a path certainly lies in a writable folder or is one, for programs that work in it."""
        return all(self._is_inside(value, or_root=True) for value in word.values)

    def may_read(self, word: Word) -> bool:
        """Whether a path certainly leads to no secret and to nobody's home."""
        return not any(self._is_private(value, word) for value in word.values)

    def is_secret(self, value: str) -> bool:
        """Whether a part of a path has the name of a secret."""
        parts = [part for part in re.split(r"[/=:@]", value) if part]
        if value.startswith(("/proc", "/dev")) and not _OF_PROCESSES.isdisjoint(parts):
            return True
        secrets = _secrets()
        if value.startswith("/") and ProductFiles().may_not_read(Path(value)):
            return True
        return (
            _below(value, _MOUNTED_SECRETS)
            or any(secrets.name_rule(part) is not None for part in parts)
            or any(_may_name(part, example) for part in parts if _wild(part) for example in _EXAMPLES)
        )

    def _is_private(self, value: str, word: Word) -> bool:
        if self.is_secret(value):
            return True
        for path in self._paths(value):
            if HOLE in path:
                return True
            real = self._real(path)
            if real is None:
                return path.startswith("..") or "/.." in path
            if self.is_secret(real):
                return True
            if real in _DEVICES or real.startswith("/dev/fd/") or self._root_of(real) is not None:
                continue
            if _below(real, (*_HOMES, self.home, "/dev")) or (word.is_pattern and self._may_reach(real)):
                return True
        return HOLE in value

    def _may_reach(self, pattern: str) -> bool:
        """Whether a pattern may lead to where the system keeps what is not for everybody, or to a home."""
        start = re.split(r"[*?\[]", pattern, maxsplit=1)[0].rpartition("/")[0] or "/"
        return _below(start, _GUARDED) or any(_below(place, (start,)) for place in (*_GUARDED, *_HOMES, self.home))

    def _is_inside(self, value: str, *, or_root: bool = False) -> bool:
        for path in self._paths(value):
            real = None if HOLE in path else self._real(path)
            if real is None:
                return False
            if real in _DEVICES and real != "/dev/tty":
                continue
            root = self._root_of(real)
            if root is None or (real == root and not or_root):
                return False
            if real != root and self._is_protected(os.path.relpath(real, root)):
                return False
        return HOLE not in value

    def _empties_folder(self, word: Word) -> bool:
        """Whether a pattern takes in all that a writable folder holds."""
        if not word.is_pattern:
            return False
        for value in word.values:
            parts = value.split("/")
            first = next((index for index, part in enumerate(parts) if re.search(r"[*?\[]", part)), len(parts))
            if all(map(_takes_all, parts[first:])):
                folder = "/".join(parts[:first])
                real = self._real(folder or ("/" if value.startswith("/") else "."))
                if real is None or real in self.writable:
                    return True
        return False

    def _is_protected(self, relative: str) -> bool:
        parts = relative.casefold().split("/")
        for entry in self.protected:
            wanted = entry.casefold().strip("/").split("/")
            for start in range(len(parts)):
                # A folder above a protected path holds it: to move or to empty it changes it too.
                here = parts[start : start + len(wanted)]
                if all(map(_may_name, here, wanted)) and (start + len(here) == len(parts) or len(here) == len(wanted)):
                    return True
        return False

    def _paths(self, value: str) -> Iterator[str]:
        """Yield what may be a path in a word: the word itself, or what an option or assignment in it holds."""
        if not value.startswith("-"):
            yield value.partition("=")[2] if re.match(r"\w+=[/~.]", value) else value
        elif "=" in value:
            yield value.partition("=")[2]
        elif "/" in value:
            yield value[value.index("/") :]
        elif ".." in value:
            yield value[value.index("..") :]
        elif not value.startswith("--") and len(value) > 2:
            yield value[2:]

    def _real(self, path: str) -> str | None:
        """Resolve a path and every link in it; `None` when it starts at an unknown place."""
        if path.startswith("/"):
            return os.path.realpath(path)
        return None if self.directory is None else os.path.realpath(os.path.join(self.directory, path))

    def _root_of(self, real: str) -> str | None:
        return max((root for root in self.writable if _below(real, (root,))), key=len, default=None)


@cache
def _secrets() -> PathRules:
    return PathRules((*SECRET_NAMES, *_OF_SYSTEMS))  # not on import: it compiles each name


def _takes_all(part: str) -> bool:
    """Whether a part of a pattern has nothing but wildcards."""
    return not re.sub(rf"{_BRACKETS}|[*?.]", "", part)


def _wild(part: str) -> bool:
    """Whether a part has wildcards, and says enough besides to mean some names rather than all."""
    fixed = re.sub(rf"{_BRACKETS}|[*?]", "", part)
    return fixed != part and len(fixed) > (1 if part.startswith(".") else 2)


def _may_name(part: str, name: str) -> bool:
    """Whether a part of a path may lead to a name; a wildcard does not stand for a leading dot."""
    if name.startswith(".") and not part.startswith("."):
        return False
    return part == name or fnmatchcase(name, re.sub(_BRACKETS, "?", part))


def _below(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)
