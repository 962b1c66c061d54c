"""A repository that is read without its configuration, and the output of git in bounded memory.

A repository's configuration names programs: monitors, filters, signers, pagers, helpers. What is unpacked in a project
folder may hold such a repository, so nothing of it is believed. git is asked once where the parts of the repository
are, which runs none of these programs and refuses a repository of another user. Everything else is asked with a
private folder in the place of the repository's own: it has a configuration of two lines, and uses the
repository's objects, index and commit.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import attrs
from anyio import to_thread

from amplifier_kit.processes import (
    Command,
    CommandEnd,
    allowed_environment,
    run_command,
)

__all__ = ["GitError", "Records", "Repository", "open_repository"]

_MAX_RECORD: Final = 4096

_PARTS: Final = (
    "objects",
    "index",
    "shallow",
    "info/exclude",
    "HEAD",
    "packed-refs",
    "refs/remotes/origin/HEAD",
    "refs/heads/main",
    "refs/heads/master",
)
_COMMIT: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})")
_FORMATS: Final = {"sha1": "", "sha256": "[extensions]\n\tobjectFormat = sha256\n"}
_MAX_BYTES: Final = 1 << 18
_MAX_BRANCH: Final = 1024
# Nothing outside the private folder is read, written, fetched or asked.
_CLOSED: Final = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
}
_QUIET: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}
_PLACES: Final = ("objects", "refs", "info")


class GitError(Exception):
    """git cannot tell; the message says why, and `is_slow` whether it took too long."""

    def __init__(self, message: str, *, is_slow: bool = False) -> None:
        self.is_slow = is_slow
        super().__init__(message)


@attrs.frozen(kw_only=True)
class Repository:
    """Where the parts of a repository are, and what its head is.

    Args:
        git: the program.
        root: the folder of its files.
        objects: the folder of its objects.
        index: its index.
        shallow: what says where its history ends; need not exist.
        exclude: what says which files it leaves out; need not exist.
        object_format: how its objects are named.
        branch: the branch that is checked out; `None` when it is a commit.
        main_branch: the branch that others begin from; `None` when none has its name.
        commit: the commit; `None` when there is none yet.
        timeout: seconds that one command may take.
    """

    git: str
    root: Path
    objects: Path
    index: Path
    shallow: Path
    exclude: Path
    object_format: str
    branch: str | None
    main_branch: str | None
    commit: str | None
    timeout: float

    async def ask(self, *arguments: str, limit: int, private: Path) -> Records:
        """Ask git about the repository, by way of a private folder.

        Raises:
            GitError: it failed, or took too long.
        """
        environment = {
            **allowed_environment(of={}),
            **_CLOSED,
            **_QUIET,
            # The system's programs alone: a project may put others on the path.
            "PATH": os.defpath,
            # The person's own configuration names filters and signers, too.
            "HOME": str(private),
            "GIT_DIR": str(private),
            "GIT_WORK_TREE": str(self.root),
            "GIT_INDEX_FILE": str(self.index),
            "GIT_OBJECT_DIRECTORY": str(self.objects),
        }
        found = Records(limit)
        await _run(
            self.git, arguments, self.root, environment, found.write, self.timeout
        )
        return found

    def make_stand_in(self) -> Path:
        """Make the private folder, for this user alone; the caller removes it."""
        folder = Path(mkdtemp(prefix="amplifier-git-"))
        for place in _PLACES:
            (folder / place).mkdir()
        extension = _FORMATS[self.object_format]
        version = 0
        if extension:
            version = 1
        (folder / "config").write_text(
            f"[core]\n\trepositoryformatversion = {version}\n\tbare = false\n{extension}"
        )
        # A commit and no branch: the private folder has no references.
        (folder / "HEAD").write_text(f"{self.commit or 'ref: refs/heads/unborn'}\n")
        for source, name in ((self.shallow, "shallow"), (self.exclude, "info/exclude")):
            if (data := _read(source)) is not None:
                (folder / name).write_bytes(data)
        return folder


async def open_repository(
    git: str, directory: Path, timeout: float
) -> Repository | None:
    """Find the repository that a directory is in; `None` when it is in none.

    Args:
        git: the program.
        directory: where to begin; the folders above are searched as git does.
        timeout: seconds that one command may take.

    Raises:
        GitError: git cannot tell, or will not, as for a repository of another user.
    """
    asked = [
        "rev-parse",
        "--path-format=absolute",
        "--show-object-format",
        "--show-toplevel",
    ]
    for part in _PARTS:
        asked += ["--git-path", part]
    records = Records(len(_PARTS) + 3, b"\n")
    environment = {**allowed_environment(), **_QUIET}
    try:
        await _run(
            git, [*asked, "HEAD"], directory, environment, records.write, timeout
        )
    except GitError as error:
        # The message is stable, since `LC_ALL` is C; the exit code is that of every
        # failure.
        if "not a git repository" in str(error):
            return None
        if (
            records.count < len(_PARTS) + 2
        ):  # else it is the commit alone that is missing
            raise
    lines = records.paths
    if lines[0] not in _FORMATS or records.count > len(_PARTS) + 3:
        raise GitError("its parts are ambiguous")
    # `core.worktree` may name any folder, whose files would then be listed as the
    # project's.
    if Path(lines[1]) != await to_thread.run_sync(_folder_with_git, directory):
        raise GitError("its configuration names another folder for its files")
    root, objects, index, shallow, exclude, head, packed, *mains = map(
        Path, lines[1 : len(_PARTS) + 2]
    )
    commit = None
    if records.count == len(_PARTS) + 3 and _COMMIT.fullmatch(lines[-1]):
        commit = lines[-1]
    return Repository(
        git=git,
        root=root,
        objects=objects,
        index=index,
        shallow=shallow,
        exclude=exclude,
        object_format=lines[0],
        branch=_branch(head, "refs/heads/"),
        main_branch=_main_branch(packed, *mains),
        commit=commit,
        timeout=timeout,
    )


def _folder_with_git(directory: Path) -> Path | None:
    """Return the folder at or above a directory that has a repository in it."""
    real = Path(os.path.realpath(directory))
    return next(
        (
            folder
            for folder in (real, *real.parents)
            if os.path.lexists(folder / ".git")
        ),
        None,
    )


def _branch(head: Path, prefix: str) -> str | None:
    """Return the branch that a reference names; `None` when it is none."""
    text = (_read(head) or b"")[:_MAX_BRANCH].decode("utf-8", "replace").strip()
    name = text.removeprefix("ref:").strip()
    if text.startswith("ref:") and name.startswith(prefix):
        return name.removeprefix(prefix)
    return None


def _main_branch(packed: Path, origin: Path, main: Path, master: Path) -> str | None:
    named = _branch(origin, "refs/remotes/origin/")
    if named is not None:
        return named
    names = (_read(packed) or b"").split()
    known = [
        path.name
        for path in (main, master)
        if _read(path) is not None or b"refs/heads/" + path.name.encode() in names
    ]
    if known:
        return known[0]
    return None


def _read(path: Path) -> bytes | None:
    """Return a small file's content; `None` where there is none, or something else than a file."""
    try:
        handle = os.open(
            path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        )
    except OSError:
        return None
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        if stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_BYTES:
            return file.read()
        return None


async def _run(
    git: str,
    arguments: Sequence[str],
    directory: Path,
    environment: dict[str, str],
    take: Callable[[bytes], object],
    timeout: float,
) -> CommandEnd:
    complaint = bytearray()

    def complain(data: bytes) -> None:
        # As much as a message shows; the rest is still read, or git would wait for its
        # pipe.
        complaint.extend(data[: 1000 - len(complaint)])

    command = Command(
        argv=(git, "--no-pager", *arguments),
        directory=str(directory),
        environment=environment,
    )
    try:
        ending = await run_command(
            command, stdout=take, stderr=complain, timeout=timeout
        )
    except OSError as error:
        raise GitError(f"git cannot be run: {error.strerror}") from error
    if ending.timed_out:
        raise GitError(f"git took longer than {timeout:g} s", is_slow=True)
    if ending.code:
        raise GitError(
            ending.error
            or complaint.decode("utf-8", "replace").strip()
            or f"git ended with {ending.code}"
        )
    return ending


class Records:
    """Takes output as it comes; keeps the first records, each up to 4,096 bytes, and counts all.

    Args:
        most: how many are stored.
        end: the byte that ends one.
    """

    def __init__(self, limit: int, end: bytes = b"\0") -> None:
        self.count: int = 0
        self._limit = limit
        self._end = end
        self._first: list[bytes] = []
        self._open = b""

    def write(self, data: bytes) -> None:
        """Take a piece of output."""
        *ended, rest = data.split(self._end)
        for piece in ended:
            self.count += 1
            if len(self._first) < self._limit:
                self._first.append((self._open + piece)[:_MAX_RECORD])
            self._open = b""
        # A record without an end must not grow in memory.
        self._open = (self._open + rest)[:_MAX_RECORD]

    @property
    def texts(self) -> list[str]:
        """The stored records; bytes that are no UTF-8 are replaced."""
        return [record.decode("utf-8", "replace") for record in self._first]

    @property
    def paths(self) -> list[str]:
        """The stored records, as paths to be opened."""
        return [record.decode("utf-8", "surrogateescape") for record in self._first]
