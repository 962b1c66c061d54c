"""Where paths of a shell text lead: into the folders that may be written, to secrets, or elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from glob import iglob
from itertools import islice
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.files.executed import is_in_repository
from amplifier_kit.files.generated import is_generated
from amplifier_kit.files.path_rules import SECRET_NAMES, PathRules
from amplifier_kit.files.product import ProductFiles
from amplifier_kit.shell.scripts import HOLE, Word

__all__ = ["PathPolicy", "may_find_secret"]

_OF_SYSTEMS: Final = (
    "gcloud", "shadow", "shadow-", "gshadow", "sudoers", "sudoers.d", "kcore", "secrets.*", "id_*.pub",
)  # fmt: skip
"""What a shell text does not read either, besides the names of secrets: it reaches beyond the session's folders."""

_OF_PROCESSES: Final = frozenset({"mem", "environ"})
_DEVICES: Final = frozenset({
    "/dev/null", "/dev/zero", "/dev/full", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/random",
    "/dev/urandom",
})  # fmt: skip
_ENDLESS: Final = frozenset(
    {"/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
)
_MAX_ENTRIES: Final = 20_000
"""So many entries of a folder are checked before it counts as one that may hold anything."""

_MAX_MATCHES: Final = 2_000
_HOMES: Final = ("/root", "/home", "/Users")
_OF_THE_SYSTEM: Final = (
    "/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/proc", "/run", "/sbin", "/sys",
    "/tmp",  # noqa: S108  # it is looked for, not used
    "/usr", "/var",
    "/Applications", "/Library", "/System", "/private/etc", "/private/tmp", "/private/var",
)  # fmt: skip
"""Folders outside that hold what programs come with; what lies elsewhere is somebody's."""

_GUARDED: Final = ("/etc", "/proc", "/sys", "/dev", "/var", "/run", "/boot")
_EXAMPLES: Final = (
    ".ssh", ".aws", ".env", ".netrc", ".npmrc", ".gnupg", ".git-credentials", ".bash_history", ".kube", "id_rsa",
    "id_ed25519", "shadow",
)  # fmt: skip
_MOUNTED_SECRETS: Final = ("/run/secrets", "/var/run/secrets")
_BRACKETS: Final = r"\[[!^]?\]?(?:\[:\w+:\]|[^]])*\]"


def may_find_secret(pattern: str) -> bool:
    """Whether a pattern of a search, which finds hidden names as well, may fit the name of a secret."""
    name = pattern.lower().rpartition("/")[2]
    return any(fnmatchcase(example, name) for example in _EXAMPLES)


@attrs.frozen(kw_only=True)
class PathPolicy:
    """The folders that a text's paths are evaluated by; all are absolute, with links resolved.

    Args:
        directory: where relative paths start; `None` when the text leaves it for a place that is not known.
        writable: folders in which everything may be changed but what is protected.
        protected: names or paths, relative to any folder, that stay as they are, such as `.git/hooks`.
        home: the person's home folder.
        has_sandbox: whether what runs is confined to the writable folders.
        is_changing: whether the text gives files other names before it uses them: what is there now says nothing then.
    """

    directory: str | None
    writable: tuple[str, ...]
    protected: tuple[str, ...] = ()
    home: str = "/"
    has_sandbox: bool = True
    is_changing: bool = False

    @property
    def is_inside(self) -> bool:
        """Whether relative paths certainly start in a writable folder or below, and not in what belongs to git."""
        if self.directory is None:
            return False
        # resolved now, not when the policy was made: a link may lead elsewhere
        # meanwhile
        real = os.path.realpath(self.directory)
        root = self._root_of(real)
        return root is not None and not _is_of_git(
            os.path.relpath(real, root).split("/")
        )

    def may_write(self, word: Word) -> bool:
        """Whether a path certainly lies in a writable folder, is none itself, and is not protected."""
        return all(map(self._is_inside, word.values)) and not self._empties_folder(word)

    def may_use(self, word: Word) -> bool:
        """Whether a path certainly lies in a writable folder or is one, for programs that work in it."""
        return all(self._is_inside(value, or_root=True) for value in word.values)

    def may_read(self, word: Word) -> bool:
        """Whether a path certainly leads to no secret and to nobody's home."""
        return not any(self._is_private(value, word) for value in word.values)

    def exists(self, value: str) -> bool:
        """Whether something may be at a path."""
        real = self.real(value)
        # what cannot be known counts as there: whoever asks wants to protect it
        return real is None or self.is_changing or os.path.lexists(real)

    def holds_work(self, value: str) -> bool:
        """Whether something may be at a path that nothing makes again."""
        return any(map(self.may_lose, {value, *self.paths_in(value)}))

    def may_lose(self, path: str) -> bool:
        """Whether something may be lost where a path is written over."""
        real = self.real(path)
        if real is None:
            return True
        if not self.is_lasting(path):
            return False
        return self.is_changing or "/**" in path or os.path.lexists(real)

    def is_lasting(self, path: str) -> bool:
        """Whether what is at a path is to stay: no device, and nothing that is made again."""
        is_device = path.startswith("/dev/") or self.real(path) in _DEVICES
        return not (is_device or self.has_scrap_name(path))

    def is_endless(self, value: str) -> bool:
        """Whether reading a path may never end."""
        return any(self.real(path) in _ENDLESS for path in self.paths_in(value))

    def is_scrap(self, value: str) -> bool:
        """Whether nothing is lost where a path is removed: nothing is there, or what its name says is made again."""
        real = self.real(value)
        if real is None or self.is_changing:
            return False
        if not ("/**" in value or os.path.lexists(real)):
            return True
        return self.has_scrap_name(value)

    def has_scrap_name(self, value: str) -> bool:
        """Whether the name of a path says that what is there can be made again."""
        real = self.real(value)
        if real is None:
            return False
        root = self._root_of(real)
        return root is not None and any(
            map(is_generated, os.path.relpath(real, root).split("/"))
        )

    def holds_repository(self, value: str) -> bool:
        """Whether a path is part of what git keeps, or the folder of a repository."""
        real = self.real(value)
        return (
            real is None
            or ".git" in real.split("/")
            or os.path.lexists(os.path.join(real, ".git"))
        )

    def holds_secret(self, value: str, *, hidden: bool = True) -> bool:
        """Whether a folder may hold a secret, at any depth; one with too many entries to check may.

        Args:
            value: the path.
            hidden: whether names that begin with a dot count.
        """
        return self.is_changing or any(
            self._has_secret_below(path, "*", hidden=hidden)
            for path in self.paths_in(value)
        )

    def matches(self, word: Word) -> tuple[str, ...] | None:
        """Return the names that a pattern stands for now; `None` when that is not known, or there are too many."""
        if self.directory is None or self.is_changing or not word.is_known:
            return None
        found: list[str] = []
        for value in word.values:
            # `glob` knows neither `[^…]` nor classes of POSIX; a `?` in the place
            # of a class finds more names and misses none
            pattern = re.sub(r"\[\^", "[!", re.sub(r"\[[!^]?\[:\w+:\]\]", "?", value))
            found += islice(iglob(pattern, root_dir=self.directory), _MAX_MATCHES)
        if len(found) < _MAX_MATCHES:
            return tuple(found)
        return None

    def is_secret(self, value: str) -> bool:
        """Whether a part of a path has the name of a secret."""
        # a secret may stand behind `file=`, `host:` or the `@` of an argument as
        # well
        parts = [part for part in re.split(r"[/=:@]", value) if part]
        if value.startswith(("/proc", "/dev")) and not _OF_PROCESSES.isdisjoint(parts):
            return True
        secrets = _secrets()
        if value.startswith("/") and ProductFiles().may_not_read(Path(value)):
            return True
        return (
            _below(value, _MOUNTED_SECRETS)
            or any(secrets.name_rule(part) is not None for part in parts)
            or any(
                _may_name(part, example)
                for part in parts
                if _wild(part)
                for example in _EXAMPLES
            )
        )

    def _has_secret_below(
        self, path: str, pattern: str, *, hidden: bool = True
    ) -> bool:
        """Whether a file below a path, whose name fits a pattern, may be a secret or lead out of the folders."""
        start = self.real(path)
        if start is None or self.is_secret(start):
            return True
        left = _MAX_ENTRIES
        for folder, folders, files in os.walk(start):
            # the walk is pruned in place, so that it never enters what it leaves
            # out
            folders[:] = [
                name
                for name in folders
                if name != ".git" and (hidden or not name.startswith("."))
            ]
            names = [
                name
                for name in (*folders, *files)
                if hidden or not name.startswith(".")
            ]
            # A tree that is too large to check may hold anything: that answer is
            # safe, and a walk without a bound would block the session.
            left -= len(names)
            is_secret = self.is_secret(os.path.relpath(folder, start))
            fitting = [name for name in names if fnmatchcase(name, pattern)]
            if left < 0 or any(is_secret or self.is_secret(name) for name in fitting):
                return True
            links = (
                f"{folder}/{name}"
                for name in fitting
                if os.path.islink(f"{folder}/{name}")
            )
            # a program that follows links would leave the folders through it
            if any(self._root_of(os.path.realpath(link)) is None for link in links):
                return True
        return False

    def _is_private(self, value: str, word: Word) -> bool:
        if self.is_secret(value):
            return True
        start, is_deep, name = value.partition("/**")
        # `**` is what `find` and recursive options reach, so the tree itself is
        # searched
        if is_deep and self._has_secret_below(start or "/", name.lstrip("/") or "*"):
            return True
        for path in self.paths_in(value):
            real = self.real(path)
            if real is None:
                return True
            # a harmless name may be a link to a secret
            if self.is_secret(real):
                return True
            if (
                real in _DEVICES
                or real.startswith("/dev/fd/")
                or self._root_of(real) is not None
            ):
                continue
            # neither the session's nor the system's: somebody's, and so private
            if real != "/" and not _below(real, _OF_THE_SYSTEM):
                return True
            if _below(real, (*_HOMES, self.home, "/dev")) or (
                word.is_pattern and self._may_reach(real)
            ):
                return True
        return HOLE in value

    def _may_reach(self, pattern: str) -> bool:
        """Whether a pattern may lead to where the system keeps what is not for everybody, or to a home."""
        start = re.split(r"[*?\[]", pattern, maxsplit=1)[0].rpartition("/")[0] or "/"
        return _below(start, _GUARDED) or any(
            _below(place, (start,)) for place in (*_GUARDED, *_HOMES, self.home)
        )

    def _is_inside(self, value: str, *, or_root: bool = False) -> bool:
        for path in self.paths_in(value):
            real = self.real(path)
            if real is None:
                return False
            # what is written to the terminal would reach the person as if we had
            # said it
            if real in _DEVICES and real != "/dev/tty":
                continue
            root = self._root_of(real)
            if root is None or (real == root and not or_root):
                return False
            # protected names count below the root alone: a project may itself lie
            # in a folder that is called like one
            relative = os.path.relpath(real, root)
            if real != root and (
                self._is_protected(relative)
                or is_in_repository([root], relative.split("/"))
            ):
                return False
        return HOLE not in value

    def _empties_folder(self, word: Word) -> bool:
        """Whether a pattern takes in all that a writable folder holds."""
        if not word.is_pattern:
            return False
        for value in word.values:
            parts = value.split("/")
            first = next(
                (
                    index
                    for index, part in enumerate(parts)
                    if re.search(r"[*?\[]", part)
                ),
                len(parts),
            )
            # `*` names each file of the folder, and all of them together are the
            # folder
            if all(map(_takes_all, parts[first:])):
                folder = "/".join(parts[:first])
                real = self.real(folder or ("/" if value.startswith("/") else "."))
                if real is None or real in self.writable:
                    return True
        return False

    def _is_protected(self, relative: str) -> bool:
        parts = relative.casefold().split("/")
        if _is_of_git(parts):
            return True
        for entry in self.protected:
            wanted = entry.casefold().strip("/").split("/")
            for start in range(len(parts)):
                # A folder above a protected path holds it: to move or to empty it changes it too.
                here = parts[start : start + len(wanted)]
                if all(map(_may_name, here, wanted)) and (
                    start + len(here) == len(parts) or len(here) == len(wanted)
                ):
                    return True
        return False

    def paths_in(self, value: str) -> Iterator[str]:
        """Yield what may be a path in a word: the word itself, or what an option or assignment in it holds."""
        # Every shape of a word in which a program may see a path: `of=x`,
        # `--out=x`, `-I/x`, `-ofile`. One too many costs a question, one missed a
        # file.
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

    def real(self, path: str) -> str | None:
        """Resolve a path and every link in it; `None` when it is not known, or starts at an unknown place."""
        if HOLE in path:
            return None
        if path.startswith("/"):
            return os.path.realpath(path)
        if self.directory is None:
            return None
        return os.path.realpath(os.path.join(self.directory, path))

    def _root_of(self, real: str) -> str | None:
        return max(
            (root for root in self.writable if _below(real, (root,))),
            key=len,
            default=None,
        )


@cache
def _secrets() -> PathRules:
    # not on import: it compiles each name
    return PathRules((*SECRET_NAMES, *_OF_SYSTEMS))


def _is_of_git(parts: Sequence[str]) -> bool:
    """Whether a path leads to what git keeps for itself, which decides what git runs."""
    return any(_may_name(part.casefold(), ".git") for part in parts)


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
    return any(
        path == folder or path.startswith(f"{folder.rstrip('/')}/")
        for folder in folders
    )
