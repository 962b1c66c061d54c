"""Asking git for a commit and its files. Nothing that a repository holds runs: no hook, no submodule, and no filter.

A filter is a program that the person's own configuration names; a repository may only ask for it, in its
attributes, and these are overruled.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import attrs

from amplifier.app.sources.fetch_errors import OFFLINE, SourceFetchError, offline_error
from amplifier.app.sources.locations import GitLocation, hide_credentials
from amplifier.app.sources.trees import MAX_BYTES, MAX_DEPTH, MAX_FILES

if TYPE_CHECKING:
    from amplifier_kit.processes import Command

__all__ = ["Git"]

T = TypeVar("T")

_TIMEOUT: Final = 120.0
_MAX_OUTPUT: Final = 8_000_000
_MAX_FETCHED: Final = 512_000_000
"""Bytes of what is fetched in one piece, in which more may be than in the files of one commit."""

_BOUNDED: Final = ("/bin/sh", "-c", 'ulimit -f "$0" && exec "$@"')
"""Runs a program that writes no file of more than so many blocks of 512 bytes."""

_BLOCK: Final = 512
_VARIABLES: Final = (
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "SSH_AUTH_SOCK",
    "SSL_CERT_*",
    "*_PROXY",
    "*_proxy",
    "XDG_CONFIG_HOME",
    "TMPDIR",
)
# Each closes a way by which a repository, or a configuration made for interactive use,
# could run a program, ask for a password or change bytes.
_SETTINGS: Final[Mapping[str, str]] = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.attributesFile": os.devnull,
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "core.autocrlf": "false",
    "credential.interactive": "false",
    "gc.auto": "0",
    "init.templateDir": "",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
}
_ENVIRONMENT: Final[Mapping[str, str]] = {
    "GIT_ASKPASS": "false",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oPermitLocalCommand=no",
    "GIT_TERMINAL_PROMPT": "0",
    "GCM_INTERACTIVE": "never",
    "LC_ALL": "C",
    "SSH_ASKPASS": "false",
}
_ATTRIBUTES: Final = "* !crlf !eol !filter !ident !text !working-tree-encoding\n"
"""What no file has, whatever the repository's own attributes say: files are written byte for byte."""


@attrs.frozen(kw_only=True)
class Git:
    """Git with the person's own configuration, and nothing of the repository's.

    Args:
        offline: whether nothing may be fetched; default what the environment says.
        environ: the environment that variables are taken from.
        timeout: seconds that one step may take.
        max_fetched: bytes that may be fetched of one repository; git itself takes all that a server sends.
    """

    offline: bool = False
    environ: Mapping[str, str] = attrs.field(factory=lambda: os.environ, repr=False)
    timeout: float = _TIMEOUT
    max_fetched: int = _MAX_FETCHED

    @property
    def is_offline(self) -> bool:
        """Whether nothing may be fetched."""
        return self.offline or self.environ.get(OFFLINE, "0") not in ("", "0")

    def latest(self, location: GitLocation) -> str:
        """Return the commit that a location means now; the function blocks.

        Raises:
            FetchError: the repository cannot be asked, or has no such branch or tag.
        """
        # A commit is what it is; no server has to be asked.
        if location.commit is not None:
            return location.commit
        with tempfile.TemporaryDirectory(prefix="amplifier-git-") as folder:
            return _wait(partial(self._latest, location, Path(folder)))

    def fetch(self, location: GitLocation, commit: str, target: Path) -> None:
        """Put the files of a commit into a folder, which is made; the function blocks.

        Args:
            location: the repository, and the folder in it that is wanted.
            commit: the whole commit.
            target: where the files go; nothing is there yet.

        Raises:
            FetchError: the repository cannot be asked, lacks the commit or the folder, or holds what is refused.
            OSError: the files cannot be written.
        """
        with tempfile.TemporaryDirectory(
            prefix=".amplifier-git-", dir=target.parent
        ) as folder:
            _wait(partial(self._fetch, location, commit, Path(folder)))
            tree = Path(folder).resolve() / "tree"
            wanted = tree / (location.subdirectory or "")
            # A link would lead elsewhere once it is moved.
            if os.path.realpath(wanted) != str(wanted) or not wanted.is_dir():
                problem = f"it has no folder {location.subdirectory!r}"
                raise SourceFetchError(location, problem)
            wanted.rename(target)

    async def _latest(self, location: GitLocation, folder: Path) -> str:
        ref = location.ref or "HEAD"
        names = [ref]
        if location.ref:
            # The commit that an annotated tag points at comes before the tag's own object.
            tag = f"refs/tags/{ref}"
            names = [f"{tag}^{{}}", tag, f"refs/heads/{ref}", ref]
        text = await self._remote(
            location, folder, "ls-remote", "--", location.url, *names
        )
        found: dict[str, str] = {}
        for line in text.splitlines():
            commit, _, name = line.partition("\t")
            found[name] = commit
        latest = next((found[name] for name in names if name in found), "")
        if not re.fullmatch(r"[0-9a-f]{40,64}", latest):
            lacks = "commit where its HEAD leads; name a branch or a tag behind '@'"
            if location.ref:
                lacks = f"branch or tag {ref!r}; a commit is written whole"
            raise SourceFetchError(location, f"it has no {lacks}")
        return latest

    async def _fetch(self, location: GitLocation, commit: str, folder: Path) -> None:
        store, tree = folder / "objects.git", folder / "tree"
        await self._run(
            location, folder, "init", "--quiet", "--bare", "--template=", store.name
        )
        (store / "info").mkdir(exist_ok=True)
        (store / "info" / "attributes").write_text(_ATTRIBUTES, "utf-8")
        tree.mkdir()
        own = (f"--git-dir={store}", f"--work-tree={tree}")
        fetch = (*own, "fetch", "--quiet", *_FETCH)
        try:
            await self._remote(
                location, folder, *fetch, "--depth=1", "--", location.url, commit
            )
        except SourceFetchError:
            # Some servers give no commit by its name; among all branches and tags it may be.
            await self._remote(
                location, folder, *fetch, "--", location.url, *_EVERYTHING
            )
        lost = f"it has no commit {commit} any more"
        listing = ("ls-tree", "-r", "-z", "-l", "--full-tree", f"{commit}^{{commit}}")
        # Checked by its list before the checkout: what is refused is never written.
        _require_sound(
            location, await self._run(location, folder, *own, *listing, problem=lost)
        )
        await self._run(
            location, folder, *own, "checkout", "--quiet", "--force", "--detach", commit
        )

    async def _remote(
        self, location: GitLocation, folder: Path, *arguments: str
    ) -> str:
        if self.is_offline:
            raise offline_error(location)
        return await self._run(location, folder, *arguments)

    async def _run(
        self,
        location: GitLocation,
        folder: Path,
        *arguments: str,
        problem: str | None = None,
    ) -> str:
        from amplifier_kit.processes import run_command  # only who fetches

        command = self._command(location, folder, arguments)
        output, complaint = _Bounded(_MAX_OUTPUT), _Bounded(2000)
        try:
            ending = await run_command(
                command,
                stdout=output.take,
                stderr=complaint.take,
                timeout=self.timeout,
            )
        except OSError as error:
            message = f"git cannot be run: {error.strerror}"
            raise SourceFetchError(location, message) from error
        if ending.timed_out:
            raise SourceFetchError(location, f"git took longer than {self.timeout:g} s")
        if ending.code:
            text = complaint.text().strip() or ending.error
            message = " ".join((text or f"git ended with {ending.code}").split())
            # The person's own configuration of git may have put a token into the address.
            raise SourceFetchError(location, problem or hide_credentials(message))
        if output.is_full:
            message = f"git wrote more than {_MAX_OUTPUT} bytes: it has too many files or branches"
            raise SourceFetchError(location, message)
        return output.text()

    def _command(
        self, location: GitLocation, folder: Path, arguments: Sequence[str]
    ) -> Command:
        """Return git's command, with what nothing that a repository holds can change."""
        from amplifier_kit.processes import (  # only who fetches
            Command,
            allowed_environment,
            find_program,
        )

        git = find_program("git", environ=self.environ)
        if git is None:
            raise SourceFetchError(location, "git is not installed; install it")
        # What the person's own 'insteadOf' rewrites may change between these two, and no further.
        protocols = ("file",) if location.scheme == "file" else ("https", "ssh")
        allowed = {f"protocol.{name}.allow": "always" for name in protocols}
        options = [
            part
            for name, value in {**_SETTINGS, **allowed}.items()
            for part in ("-c", f"{name}={value}")
        ]
        added = {
            **_ENVIRONMENT,
            "GIT_ALLOW_PROTOCOL": ":".join(protocols),
            # A repository that the temporary folder happens to lie in has no say.
            "GIT_CEILING_DIRECTORIES": str(folder.parent),
        }
        blocks = str(self.max_fetched // _BLOCK)
        return Command(
            argv=(*_BOUNDED, blocks, git, *options, *arguments),
            directory=str(folder),
            environment=allowed_environment(_VARIABLES, added, of=self.environ),
        )


_FETCH: Final = (
    "--no-tags",
    "--no-recurse-submodules",
    "--no-write-fetch-head",
    "--no-auto-gc",
)
_EVERYTHING: Final = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")


class _Bounded:
    """Takes the first bytes of an output."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self.is_full = False

    def take(self, data: bytes) -> None:
        room = self._limit - len(self._data)
        self._data += data[:room]
        self.is_full = self.is_full or len(data) > room

    def text(self) -> str:
        return self._data.decode("utf-8", "replace")


def _require_sound(location: GitLocation, listing: str) -> None:
    """Refuse a commit by its list of files, before any of them is written."""
    size = 0
    seen: set[str] = set()
    for entry in filter(None, listing.split("\0")):
        head, _, name = entry.partition("\t")
        mode, _, _, length = head.split()
        own = f"{location.subdirectory}/" if location.subdirectory else ""
        inside = f"{name}/".startswith(own)
        message = ""
        if mode == "160000" and inside:
            message = f"{name!a} is a submodule, and submodules are not fetched"
        elif name.count("/") > MAX_DEPTH:
            message = f"{name[:200]!a} lies more than {MAX_DEPTH} folders deep"
        elif name.casefold() in seen:
            message = f"it holds two names that differ in case alone: {name!a}"
        if message:
            raise SourceFetchError(location, message)
        seen.add(name.casefold())
        size += int(length) if length.isdigit() else 0
    if len(seen) > MAX_FILES or size > MAX_BYTES:
        message = f"it has more than {MAX_FILES} files or {MAX_BYTES} bytes"
        raise SourceFetchError(location, message)


def _wait(step: Callable[[], Awaitable[T]]) -> T:
    """Run a step to its end on an event loop of its own; the thread that calls has none."""
    return anyio.run(step)
