"""The status of a repository: branch, changed files, commits; what can be set."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import attrs
from anyio import to_thread

from amplifier_kit.processes import find_program
from amplifier_kit.terminal import one_line
from amplifier_module_hooks_status_context._repository import (
    GitError,
    Records,
    Repository,
    open_repository,
)
from amplifier_sdk.bounds import amount, seconds
from amplifier_sdk.results import InjectionRole

__all__ = ["GitStatus", "StatusContextConfig", "read_status"]

_MAX_TEXT: Final = 200


@attrs.frozen(kw_only=True)
class GitStatus:
    """What is known: `answer` is this module's own word, `text` holds what the repository says.

    `is_slow` says that git took too long, so that it is not used again.
    """

    answer: str
    text: str = ""
    is_slow: bool = False


async def read_status(directory: Path, config: StatusContextConfig) -> GitStatus:
    """Ask git about the repository that a directory is in."""
    git = find_program("git", directory=directory)
    if git is None:
        return GitStatus(answer="not known: there is no git")
    try:
        repository = await open_repository(git, directory, config.git_timeout)
        if repository is None:
            return GitStatus(answer="no")
        return GitStatus(answer="yes", text="\n".join(await _lines(repository, config)))
    except GitError as error:
        return GitStatus(
            answer=f"not known: {one_line(str(error), _MAX_TEXT)}",
            is_slow=error.is_slow,
        )


async def _lines(repository: Repository, config: StatusContextConfig) -> list[str]:
    private = await to_thread.run_sync(repository.make_stand_in)
    try:
        changes, commits = await _ask_both(repository, config, private)
    finally:
        # The folder is removed also when the turn is cancelled while git runs.
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(
                partial(shutil.rmtree, private, ignore_errors=True)
            )
    return [
        *_branches(repository, config),
        *_changes(changes, config),
        *_commits(commits),
    ]


async def _ask_both(
    repository: Repository, config: StatusContextConfig, private: Path
) -> tuple[Records, Records]:
    """Ask for what changed and for the last commits, beside each other."""
    found = {"status": Records(0), "log": Records(0)}
    failures: list[GitError] = []

    async def ask(command: str, *arguments: str, limit: int) -> None:
        try:
            found[command] = await repository.ask(
                command, "-z", *arguments, limit=limit, private=private
            )
        except GitError as error:
            failures.append(error)

    async with anyio.create_task_group() as group:
        if config.git_include_status:
            untracked = f"--untracked-files={'normal' if config.git_status_include_untracked else 'no'}"
            flags = (
                "--porcelain=v1",
                # Finding renames compares contents, which in a large repository takes
                # longer than the turn.
                "--no-renames",
                # A submodule has a configuration of its own, which the private folder
                # does not replace.
                "--ignore-submodules=all",
                untracked,
            )
            group.start_soon(
                partial(ask, "status", *flags, limit=config.git_status_max_lines)
            )
        if config.git_include_commits and repository.commit is not None:
            flags = (
                "--format=%h %s",
                # Each would run a program or read what the repository says of how
                # commits are shown.
                "--no-show-signature",
                "--no-decorate",
                "--no-notes",
            )
            count = f"--max-count={config.git_include_commits}"
            group.start_soon(
                partial(ask, "log", count, *flags, limit=config.git_include_commits)
            )
    if failures:
        raise failures[0]
    return found["status"], found["log"]


def _branches(repository: Repository, config: StatusContextConfig) -> Iterator[str]:
    if config.git_include_branch:
        yield (
            f"Branch: {_shown(repository.branch)}"
            if repository.branch
            else f"Commit: {repository.commit}, no branch"
        )
    if config.git_include_main_branch and (main := repository.main_branch):
        yield f"Main branch: {_shown(main)}"


def _changes(changes: Records, config: StatusContextConfig) -> Iterator[str]:
    if not config.git_include_status:
        return
    shown = changes.texts
    yield f"Changed files: {changes.count}" if changes.count else "Changed files: none"
    yield from (f"  {record[:2]} {_shown(record[3:])}" for record in shown)
    if changes.count > len(shown):
        yield f"  ... and {changes.count - len(shown)} more"


def _commits(commits: Records) -> Iterator[str]:
    if commits.count:
        yield "Last commits:"
        yield from (f"  {_shown(record)}" for record in commits.texts)


def _shown(text: str | None) -> str:
    return one_line(text or "", _MAX_TEXT)


@attrs.frozen(kw_only=True)
class StatusContextConfig:
    """The configuration; the module's README describes each key."""

    working_dir: str | None = None
    include_git: bool = True
    git_include_branch: bool = True
    git_include_main_branch: bool = True
    git_include_status: bool = True
    git_status_include_untracked: bool = True
    git_status_max_lines: int = attrs.field(default=50, validator=amount)
    git_include_commits: int = attrs.field(default=5, validator=amount)
    git_timeout: float = attrs.field(default=5.0, validator=seconds)
    include_datetime: bool = True
    datetime_include_timezone: bool = False
    include_session: bool = True
    inject_role: InjectionRole = "user"
    priority: int = 0
