"""Fetching from repositories: the commit that was meant, its files, and nothing that runs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.sources import git as fetching
from amplifier.app.sources.cache import SourceCache
from amplifier.app.sources.fetch_errors import SourceFetchError
from amplifier.app.sources.git import Git
from amplifier.app.sources.locations import GitLocation
from amplifier.app.sources.parser import read_location
from amplifier_sdk.errors import ConfigError
from tests.app.projects import write
from tests.app.repositories import TOOL_FILES, commit, git

pytestmark = pytest.mark.process


def at(repository: Path, rest: str = "") -> GitLocation:
    location = read_location(f"git+file://{repository}{rest}", Path("/"))
    assert isinstance(location, GitLocation)
    return location


def test_a_branch_a_tag_and_a_commit_are_found(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "tag", "--annotate", "v1", "--message=one")
    second = commit(repository, {"README.md": "two"})
    asked = {
        rest: Git().latest(at(repository, rest))
        for rest in ("", "@main", "@v1", f"@{first}")
    }

    assert asked == {"": second, "@main": second, "@v1": first, f"@{first}": first}


def test_a_ref_that_is_not_there_is_named(repository: Path) -> None:
    with pytest.raises(SourceFetchError, match="no branch or tag 'gone'"):
        Git().latest(at(repository, "@gone"))


def test_a_repository_without_a_commit_says_so(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "empty")
    with pytest.raises(SourceFetchError, match="no commit where its HEAD leads"):
        Git().latest(at(tmp_path / "empty"))


def test_a_repository_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceFetchError, match="cannot be fetched"):
        Git().latest(at(tmp_path / "gone"))


def test_files_of_old_commit_are_fetched_though_branch_moved(
    repository: Path, tmp_path: Path
) -> None:
    first = git(repository, "rev-parse", "HEAD")
    commit(repository, {"README.md": "two"})
    Git().fetch(at(repository, "@main"), first, tmp_path / "out")

    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        TOOL_FILES
    )


def test_a_commit_that_vanished_is_named(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceFetchError, match=r"no commit 0+ any more"):
        Git().fetch(at(repository), "0" * 40, tmp_path / "out")


def test_what_is_no_commit_is_refused(repository: Path, tmp_path: Path) -> None:
    tree = git(repository, "rev-parse", "HEAD^{tree}")

    with pytest.raises(SourceFetchError, match="no commit"):
        Git().fetch(at(repository), tree, tmp_path / "out")


def test_a_subdirectory_is_all_that_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    sha = commit(folder, {"a/x.md": "x", "b/y.md": "y"})
    Git().fetch(at(folder, "#subdirectory=a"), sha, tmp_path / "out")

    assert [path.name for path in (tmp_path / "out").iterdir()] == ["x.md"]
    with pytest.raises(SourceFetchError, match="no folder 'c'"):
        Git().fetch(at(folder, "#subdirectory=c"), sha, tmp_path / "none")


def test_nothing_of_a_repository_runs(repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    template = tmp_path / "home/template/hooks"
    for hook in (
        repository / ".git/hooks/post-checkout",
        template / "post-checkout",
        template / "reference-transaction",
    ):
        hook.parent.mkdir(parents=True, exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    git(repository, "config", "filter.evil.smudge", f"touch {ran}")
    git(repository, "config", "uploadpack.packObjectsHook", f"touch {ran}")
    sha = commit(
        repository,
        {
            ".gitattributes": "* filter=evil\n",
            ".gitmodules": "",
            ".lfsconfig": "[lfs]\nurl=x",
        },
    )
    environ = {
        **os.environ,
        "GIT_TEMPLATE_DIR": str(template.parent),
        "GIT_DIR": "/elsewhere",
    }
    Git(environ=environ).fetch(at(repository), sha, tmp_path / "out")

    assert not ran.exists()
    assert (tmp_path / "out/.gitattributes").is_file()


def test_no_filter_of_the_person_s_own_runs_for_a_repository(
    repository: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    own = tmp_path / "own.gitconfig"
    own.write_text(
        f'[filter "evil"]\n\tsmudge = touch {ran} && cat\n\trequired = true\n[core]\n\teol = crlf\n'
    )
    attributes = "*.md filter=evil text eol=crlf ident working-tree-encoding=UTF-16\n"
    commit(repository, {"a.md": "$Id$\n"})
    (repository / ".gitattributes").write_text(attributes)
    # alone: what is there already does not fit them
    git(repository, "add", ".gitattributes")
    git(repository, "commit", "--quiet", "--message=x")
    sha = git(repository, "rev-parse", "HEAD")
    Git(environ={**os.environ, "GIT_CONFIG_GLOBAL": str(own)}).fetch(
        at(repository), sha, tmp_path / "out"
    )

    assert not ran.exists()
    assert (tmp_path / "out/a.md").read_bytes() == b"$Id$\n"


def test_a_person_who_trusts_no_bare_repository_can_fetch(
    repository: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own.gitconfig"
    own.write_text("[safe]\n\tbareRepository = explicit\n")
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": str(own)}
    Git(environ=environ).fetch(
        at(repository), git(repository, "rev-parse", "HEAD"), tmp_path / "out"
    )

    assert (tmp_path / "out/pyproject.toml").is_file()


def test_a_repository_around_the_temporary_folder_has_no_say(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    around = tmp_path / "around"
    commit(around, {"x": "x"})
    git(around, "config", "url.file:///nowhere/.insteadOf", f"file://{tmp_path}/")
    (around / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(around / "tmp"))

    assert Git().latest(at(repository)) == git(repository, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("files", "reported"),
    [
        ({"A/x": "", "a/X": ""}, "differ in case alone"),
        ({"/".join("d" * 45): ""}, "more than 40 folders deep"),
    ],
    ids=["case", "depth"],
)
def test_names_that_no_folder_can_hold_are_refused(
    repository: Path, tmp_path: Path, files: dict[str, str], reported: str
) -> None:
    sha = commit(repository, files)

    with pytest.raises(SourceFetchError, match=reported):
        Git().fetch(at(repository), sha, tmp_path / "out")


def test_a_submodule_is_refused(repository: Path, tmp_path: Path) -> None:
    sha = git(repository, "rev-parse", "HEAD")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{sha},vendor")
    git(repository, "commit", "--quiet", "--message=x")

    with pytest.raises(SourceFetchError, match="'vendor' is a submodule"):
        Git().fetch(
            at(repository), git(repository, "rev-parse", "HEAD"), tmp_path / "out"
        )


def test_a_link_that_leads_out_is_refused(repository: Path, dirs: AppDirs) -> None:
    (repository / "passwd").symlink_to("/etc/passwd")
    commit(repository, {})

    with pytest.raises(ConfigError, match="leads out"):
        SourceCache.of(dirs).open(at(repository))


@pytest.mark.parametrize("target", ["/etc", "inner", "../tree/inner"])
def test_a_subdirectory_that_is_a_link_is_refused(
    repository: Path, tmp_path: Path, target: str
) -> None:
    (repository / "out").symlink_to(target)
    sha = commit(repository, {"inner/x": "x"})

    with pytest.raises(SourceFetchError, match="no folder 'out'"):
        Git().fetch(at(repository, "#subdirectory=out"), sha, tmp_path / "out")


def test_a_repository_with_too_much_is_refused(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "MAX_BYTES", 10)

    with pytest.raises(SourceFetchError, match="more than 10000 files or 10 bytes"):
        Git().fetch(
            at(repository), git(repository, "rev-parse", "HEAD"), tmp_path / "out"
        )
    monkeypatch.setattr(fetching, "_MAX_OUTPUT", 10)
    with pytest.raises(SourceFetchError, match="more than 10 bytes"):
        Git().latest(at(repository))


def test_a_repository_fills_no_disk(repository: Path, tmp_path: Path) -> None:
    """Its size is told by nothing that comes before what it holds."""
    (repository / "noise").write_bytes(os.urandom(300_000))
    found = commit(repository, {})
    with pytest.raises(SourceFetchError, match="cannot be fetched"):
        Git(max_fetched=100_000).fetch(at(repository), found, tmp_path / "files")
    Git(max_fetched=400_000).fetch(at(repository), found, tmp_path / "files")
    assert (tmp_path / "files/noise").stat().st_size == 300_000
    assert not list(tmp_path.glob(".amplifier-git-*"))


@pytest.mark.parametrize("by", ["option", "environment"])
def test_offline_nothing_is_fetched(repository: Path, by: str) -> None:
    offline = (
        Git(offline=True)
        if by == "option"
        else Git(environ={**os.environ, "AMPLIFIER_OFFLINE": "1"})
    )

    with pytest.raises(SourceFetchError, match="working offline"):
        offline.latest(at(repository))


def test_git_that_is_not_there_or_slow_is_named(
    repository: Path, tmp_path: Path
) -> None:
    with pytest.raises(SourceFetchError, match="git is not installed"):
        Git(environ={"PATH": "/nowhere"}).latest(at(repository))
    slow = tmp_path / "bin/git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    with pytest.raises(SourceFetchError, match=r"longer than 0\.3 s"):
        Git(
            environ={"PATH": f"{slow.parent}:{os.environ['PATH']}"}, timeout=0.3
        ).latest(at(repository))


# -- the cache


def test_a_source_is_pinned_when_it_is_used_first(
    repository: Path, dirs: AppDirs
) -> None:
    cache = SourceCache.of(dirs)
    location = at(repository, "@main")
    first = git(repository, "rev-parse", "HEAD")
    path = cache.open(location)
    commit(repository, {"README.md": "two"})

    assert cache.open(location) == path
    assert not (path / "README.md").exists()
    pin = cache.pins.find(str(location))
    assert pin is not None
    assert pin.commit == first
    assert cache.pins.path.stat().st_mode & 0o777 == 0o600


def test_what_was_fetched_works_offline(repository: Path, dirs: AppDirs) -> None:
    path = SourceCache.of(dirs).open(at(repository))

    assert SourceCache.of(dirs, Git(offline=True)).open(at(repository)) == path


def test_a_changed_cache_is_refused_and_mended(repository: Path, dirs: AppDirs) -> None:
    cache = SourceCache.of(dirs)
    path = cache.open(at(repository))
    (path / "amplifier_module_tool_acme.py").write_text("evil = True\n")
    with pytest.raises(ConfigError, match="not the ones that were pinned"):
        cache.open(at(repository))

    cache.fetch(at(repository))
    assert (
        "evil"
        not in (
            cache.open(at(repository)) / "amplifier_module_tool_acme.py"
        ).read_text()
    )


def test_cache_that_was_cleared_is_filled_with_pinned_commit(
    repository: Path, dirs: AppDirs
) -> None:
    cache = SourceCache.of(dirs)
    path = cache.open(at(repository, "@main"))
    commit(repository, {"README.md": "two"})
    path.rename(dirs.home / "gone")

    assert not (cache.open(at(repository, "@main")) / "README.md").exists()


def test_what_killed_programs_left_is_removed_in_time(
    repository: Path, dirs: AppDirs
) -> None:
    cache = SourceCache.of(dirs)
    old, new = (
        write(cache.folder / name / "tree/x", "x").parents[1]
        for name in (".fetching-old", ".fetching-new")
    )
    os.utime(old, (1, 1))
    cache.open(at(repository))

    assert not old.exists()
    assert new.exists()


def test_what_a_branch_means_now_is_fetched_and_not_pinned(
    repository: Path, dirs: AppDirs
) -> None:
    cache = SourceCache.of(dirs)
    cache.open(at(repository, "@main"))
    second = commit(repository, {"README.md": "two"})

    pin, path = cache.fetch(at(repository, "@main"))
    assert pin.commit == second
    assert (path / "README.md").exists()
    assert not (cache.open(at(repository, "@main")) / "README.md").exists()
    cache.pins.set(pin)
    assert cache.open(at(repository, "@main")) == path


def test_compiled_python_of_a_repository_is_left_out(
    repository: Path, dirs: AppDirs
) -> None:
    commit(
        repository, {"__pycache__/amplifier_module_tool_acme.cpython-311.pyc": "evil"}
    )

    assert not (SourceCache.of(dirs).open(at(repository)) / "__pycache__").exists()


class _Slower(Git):
    """Git in a process that another one overtakes."""

    def __init__(self, dirs: AppDirs) -> None:
        super().__init__()
        object.__setattr__(self, "dirs", dirs)

    def fetch(self, location: GitLocation, commit: str, target: Path) -> None:
        super().fetch(location, commit, target)
        SourceCache.of(self.dirs).open(location)  # type: ignore[attr-defined]  # set above


def test_the_first_of_two_processes_fills_the_cache(
    repository: Path, dirs: AppDirs
) -> None:
    SourceCache.of(dirs).open(at(repository))
    shutil.rmtree(dirs.home / "cache")

    assert SourceCache.of(dirs, _Slower(dirs)).open(at(repository)).is_dir()


def test_a_token_that_git_s_configuration_adds_is_not_told(
    tmp_path: Path, repository: Path
) -> None:
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\necho \"fatal: unable to access 'https://me:s3cret@git.example/x'\" >&2\nexit 128\n"
    )
    program.chmod(0o755)

    with pytest.raises(
        SourceFetchError, match=r"unable to access 'https://\*\*\*@git\.example/x'"
    ):
        Git(environ={"PATH": f"{program.parent}:{os.environ['PATH']}"}).latest(
            at(repository)
        )


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"version": 2, "sources": {}}',
        '{"version": 1, "sources": {"x": {"source": "y", "hash": "z"}}}',
        "{",
    ],
    ids=["list", "version", "entry", "json"],
)
def test_a_damaged_lock_file_is_named(
    repository: Path, dirs: AppDirs, text: str
) -> None:
    (dirs.home / "modules.lock").write_text(text)

    with pytest.raises((ConfigError, OSError), match=r"modules\.lock"):
        SourceCache.of(dirs).open(at(repository))
