"""Repositories that want something to run, and surroundings that want git to be something else."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import pytest

from amplifier.testing import TestCoordinator
from amplifier_module_hooks_status_context import mount
from amplifier_sdk.jsontypes import JSONObject

pytestmark = [pytest.mark.anyio, pytest.mark.process]
ONE_BACKEND: Final = pytest.mark.parametrize(
    "anyio_backend", ["asyncio"], scope="session"
)
GIT: Final = shutil.which("git")


class Git(Protocol):
    """Runs git in a folder."""

    def __call__(self, folder: Path, *arguments: str) -> str: ...


async def reported(folder: Path, config: JSONObject | None = None) -> str:
    """Return what a model is told in a folder."""
    coordinator = TestCoordinator()
    coordinator.register_capability("session.working_dir", str(folder))
    async with coordinator:
        await mount(coordinator, config or {})
        emission = await coordinator.hooks.emit(
            "provider:request", {"provider": "p", "model": None}
        )
    return emission.context_injection or ""


@pytest.fixture
def fired(tmp_path: Path) -> Path:
    """A folder in which every program of `trap` leaves a file of its name."""
    folder = tmp_path / "fired"
    folder.mkdir()
    return folder


@pytest.fixture
def trap(tmp_path: Path, fired: Path) -> Callable[[str], str]:
    """Make a program that tells that it ran."""

    def trap(name: str) -> str:
        # git runs most of what a configuration names through a shell
        return shlex.quote(
            script(tmp_path / "traps" / name, f'touch "{fired}/{name}"\ncat\n')
        )

    return trap


def script(path: Path, text: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def stale(path: Path) -> None:
    """Let a file look changed, so that git has to read it."""
    path.write_text(path.read_text())
    os.utime(path, (1, 1))


@pytest.fixture
def mined(
    repository: Path, tmp_path: Path, git: Git, trap: Callable[[str], str]
) -> Path:
    """A repository whose configuration, attributes and hooks all name programs."""
    programs = {
        "core.fsmonitor": "fsmonitor",
        "core.sshCommand": "ssh",
        "core.pager": "pager",
        "core.editor": "editor",
        "core.askPass": "askpass",
        "core.alternateRefsCommand": "alternates",
        "pager.status": "pager-status",
        "pager.log": "pager-log",
        "diff.external": "external",
        "diff.mine.textconv": "textconv",
        "diff.mine.command": "diff-command",
        "merge.mine.driver": "merge",
        "filter.mine.clean": "clean",
        "filter.mine.smudge": "smudge",
        "filter.other.process": "process",
        "gpg.program": "gpg",
        "gpg.ssh.program": "gpg-ssh",
        "credential.helper": "credential",
        "uploadpack.packObjectsHook": "pack",
        "remote.origin.uploadpack": "uploadpack",
        "remote.origin.vcs": "vcs",
        "trace2.eventTarget": "trace",
    }
    for key, name in programs.items():
        git(repository, "config", key, trap(name))
    for key, value in (
        ("alias.status", f"!{trap('alias')}"),
        ("log.showSignature", "true"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", f"ext::{trap('ext')}"),
        ("protocol.ext.allow", "always"),
        ("extensions.partialClone", "origin"),
        ("core.hooksPath", str(tmp_path / "traps")),
        ("include.path", str(tmp_path / "included")),
        ("submodule.recurse", "true"),
    ):
        git(repository, "config", key, value)
    (tmp_path / "included").write_text(f"[core]\n\tfsmonitor = {trap('included')}\n")
    for hook in (
        "post-index-change",
        "pre-commit",
        "fsmonitor-watchman",
        "post-checkout",
        "reference-transaction",
    ):
        trap(hook)
        script(
            repository / ".git" / "hooks" / hook,
            (tmp_path / "traps" / hook).read_text(),
        )
    (repository / ".gitattributes").write_text(
        "kept.txt filter=mine diff=mine merge=mine\nchanged.txt filter=other\n"
    )
    stale(repository / "kept.txt")
    stale(repository / "changed.txt")
    return repository


async def test_nothing_that_a_repository_names_is_run(
    mined: Path, git: Git, fired: Path
) -> None:
    text = await reported(mined)

    assert sorted(os.listdir(fired)) == []
    assert "Git repository: yes" in text
    assert "\nBranch: main\n" in text

    git(mined, "status")
    assert {"clean", "process"} <= set(os.listdir(fired))  # git itself does run them


@ONE_BACKEND
async def test_a_submodule_is_not_entered(
    repository: Path, git: Git, fired: Path, trap: Callable[[str], str]
) -> None:
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "--quiet")
    git(inner, "commit", "--allow-empty", "--quiet", "--message", "Inner")
    git(repository, "add", "inner")
    git(repository, "commit", "--quiet", "--message", "Outer")
    git(inner, "config", "core.fsmonitor", trap("inner"))
    (inner / "x").touch()

    assert "Git repository: yes" in await reported(repository)
    assert os.listdir(fired) == []

    git(repository, "status")
    assert os.listdir(fired) == ["inner"]


@ONE_BACKEND
async def test_repository_put_into_folder_itself_names_nothing_either(
    tmp_path: Path, git: Git, fired: Path, trap: Callable[[str], str]
) -> None:
    folder = tmp_path / "unpacked"
    git(tmp_path, "init", "--quiet", "--bare", "unpacked")
    git(folder, "config", "core.bare", "false")
    git(folder, "config", "core.worktree", ".")
    git(folder, "config", "core.fsmonitor", trap("bare"))

    await reported(folder)
    assert os.listdir(fired) == []

    git(folder, "status")
    assert os.listdir(fired) == ["bare"]


@ONE_BACKEND
async def test_an_object_that_is_missing_is_not_fetched(
    mined: Path, git: Git, fired: Path
) -> None:
    tree = git(mined, "rev-parse", "HEAD^{tree}").strip()
    (mined / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    for name in os.listdir(fired):
        (fired / name).unlink()

    text = await reported(mined)

    assert os.listdir(fired) == []
    assert "Git repository: not known: " in text


@ONE_BACKEND
async def test_a_configuration_that_never_ends_is_given_up_on(
    repository: Path, git: Git, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "fifo")
    with (repository / ".git" / "config").open("a") as file:
        file.write(f"[include]\n\tpath = {tmp_path / 'fifo'}\n")

    coordinator = TestCoordinator()
    coordinator.register_capability("session.working_dir", str(repository))
    async with coordinator:
        await mount(coordinator, {"git_timeout": 0.3})
        first = await coordinator.hooks.emit(
            "provider:request", {"provider": "p", "model": None, "turn_id": "1"}
        )
        (tmp_path / "fifo").unlink()  # from now on it would answer
        second = await coordinator.hooks.emit(
            "provider:request", {"provider": "p", "model": None, "turn_id": "2"}
        )

    assert "Git repository: not known: git took longer than 0.3 s\n" in str(
        first.context_injection
    )
    assert "Git repository: not known: git took longer than 0.3 s\n" in str(
        second.context_injection
    )


@ONE_BACKEND
@pytest.mark.parametrize(
    "named", ["/etc", "/", "../.."], ids=["another", "root", "above"]
)
async def test_files_of_another_folder_are_not_named(
    repository: Path, tmp_path: Path, git: Git, named: str
) -> None:
    (tmp_path / "private.txt").touch()
    git(repository, "config", "core.worktree", named)

    text = await reported(repository)

    assert (
        "Git repository: not known: its configuration names another folder for its files\n"
        in text
    )
    assert "Changed files" not in text


@ONE_BACKEND
async def test_a_git_of_the_project_is_not_used(
    repository: Path,
    fired: Path,
    trap: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trap("git")
    (repository / "bin").mkdir()
    for folder in (repository, repository / "bin"):
        script(folder / "git", f'touch "{fired}/git"\n')
    link = repository.with_name("link")
    link.symlink_to(repository)
    monkeypatch.chdir(repository)
    monkeypatch.setenv(
        "PATH",
        os.pathsep.join(["", ".", "bin", str(repository / "bin"), os.environ["PATH"]]),
    )

    for folder in (repository, link):
        assert "Git repository: yes" in await reported(folder)
    assert os.listdir(fired) == []


@ONE_BACKEND
async def test_git_knows_nothing_of_the_sessions_secrets(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "GIT_DIR",
        "GIT_SSH_COMMAND",
        "SSH_AUTH_SOCK",
    ):
        monkeypatch.setenv(name, f"canary-{name}")
    script(
        tmp_path / "seen" / "git",
        f'env >> "{tmp_path}/seen/environment"\nexec "{GIT}" "$@"\n',
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'seen'}{os.pathsep}{os.environ['PATH']}")

    text = await reported(repository)

    seen = (tmp_path / "seen" / "environment").read_text()
    assert "\nBranch: main\n" in text
    assert seen.count("GIT_OPTIONAL_LOCKS=0") == 3
    assert "canary" not in seen


@ONE_BACKEND
async def test_without_git_the_rest_is_told(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    nowhere = await reported(repository)
    monkeypatch.setenv("PATH", "relative")
    relative = await reported(repository)

    assert "Git repository: not known: there is no git\nPlatform: " in nowhere
    assert "Git repository: not known: there is no git\nPlatform: " in relative


@ONE_BACKEND
async def test_a_git_that_answers_nonsense_is_not_believed(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    script(
        tmp_path / "other" / "git",
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do echo $i; done\n",
    )
    lines = await reported(repository)
    script(tmp_path / "other" / "git", "exit 3\n")
    silent = await reported(repository)
    (tmp_path / "other" / "git").write_text("#!/nowhere\n")
    broken = await reported(repository)

    assert "not known: its parts are ambiguous" in lines
    assert "not known: git ended with 3" in silent
    assert "Git repository: not known: " in broken


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@ONE_BACKEND
async def test_repository_of_somebody_else_read_where_person_said_so(
    repository: Path, home: Path
) -> None:
    os.chown(repository, 12345, 12345)
    os.chown(repository / ".git", 12345, 12345)

    refused = await reported(repository)
    with (home / ".gitconfig").open("a") as file:
        file.write(f"[safe]\n\tdirectory = {repository}\n")
    allowed = await reported(repository)

    assert "not known: fatal: detected dubious ownership" in refused
    assert "\nBranch: main\n" in allowed


@ONE_BACKEND
async def test_heads_and_lists_no_small_files_are_passed_over(
    repository: Path,
) -> None:
    git_folder = repository / ".git"
    (git_folder / "info" / "exclude").unlink()
    os.mkfifo(git_folder / "info" / "exclude")
    (git_folder / "packed-refs").write_text("x" * (1 << 19))

    assert "\nBranch: main\n" in await reported(repository)


@ONE_BACKEND
async def test_much_that_git_puts_out_takes_little_memory(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        'case "$*" in *status*) exec "$PYTHON" -c "import sys; sys.stdout.write(\'x\' * 30_000_000)";;'
        f' *) exec "{GIT}" "$@";; esac\n'
    ).replace("$PYTHON", sys.executable)
    script(tmp_path / "large" / "git", program)
    monkeypatch.setenv("PATH", f"{tmp_path / 'large'}{os.pathsep}{os.environ['PATH']}")

    assert len(await reported(repository, {"git_timeout": 20})) < 2000
