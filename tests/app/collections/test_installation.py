"""Collections are installed whole or not at all, as they were meant, and used as they were installed."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from amplifier.app.collections.details import list_collections, show_collection
from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.collections.installation import CollectionInstaller
from amplifier.app.collections.verification import verify
from amplifier.app.directories import AppDirs
from amplifier.app.fetched.lock import FetchedEntry, FetchedLock
from amplifier.app.fetched.swap import FetchedFolders
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.sources.fetch_errors import SourceFetchError
from amplifier_sdk.errors import AmplifierError, ConfigError
from tests.app.projects import trust, write
from tests.app.repositories import TOOL_FILES, commit

PROFILE = "---\nprofile: {name: a}\n---\nHello.\n"


def make(
    folder: Path, name: str = "acme", version: str = "1.0", requires: str = ""
) -> Path:
    """Write a collection, and return its folder."""
    needed = f"[tool.amplifier.collection]\nrequires = {requires}\n" if requires else ""
    write(
        folder / "pyproject.toml",
        f'[project]\nname = "{name}"\nversion = "{version}"\n{needed}',
    )
    write(folder / "profiles/a.md", PROFILE)
    return folder


def installer(
    dirs: AppDirs, *, local: bool = False, offline: bool = False
) -> CollectionInstaller:
    return CollectionInstaller.of(dirs, local=local, offline=offline)


def library(dirs: AppDirs) -> CollectionLibrary:
    return CollectionLibrary(dirs, ProjectFiles(dirs))


def states(dirs: AppDirs) -> dict[str, str]:
    return {verdict.name: verdict.state for verdict in verify(FetchedLock(dirs.home))}


def offer(dirs: AppDirs, **sources: Path) -> None:
    """Name collections in the catalogue of the settings."""
    write(
        dirs.home / "settings.yaml",
        json.dumps(
            {"collections": {"catalogue": {k: str(v) for k, v in sources.items()}}}
        ),
    )


# -- from where


def test_a_folder_is_copied_without_what_tools_keep(
    dirs: AppDirs, tmp_path: Path
) -> None:
    folder = make(tmp_path / "acme", name="Acme_Inc")
    write(folder / ".git/config", "x")
    write(folder / "modules/x/__pycache__/y.pyc", "x")
    (change,) = installer(dirs).install(str(folder))

    assert (change.name, change.version, change.before) == ("acme-inc", "1.0", None)
    assert change.path == dirs.home / "collections/acme-inc"
    assert library(dirs).require("acme_inc").path == change.path
    assert not list(change.path.rglob(".git"))
    assert not list(change.path.rglob("*.pyc"))
    assert states(dirs) == {"acme-inc": "sound"}


def test_a_link_in_a_circle_keeps_nothing_from_being_used(
    dirs: AppDirs, tmp_path: Path
) -> None:
    folder = make(tmp_path / "acme")
    (folder / "profiles/self.md").symlink_to("self.md")
    installer(dirs).install(str(folder))

    assert [
        path.name for path in library(dirs).require("acme").resources("profiles")
    ] == ["a.md"]
    assert states(dirs) == {"acme": "sound"}


def test_an_archive_is_unpacked(dirs: AppDirs, tmp_path: Path) -> None:
    make(tmp_path / "acme")
    with tarfile.open(tmp_path / "acme.tar.gz", "w:gz") as opened:
        opened.add(tmp_path / "acme", "acme-1.0")
    installer(dirs).install("../acme.tar.gz")

    assert library(dirs).require("acme").resources("profiles")
    assert states(dirs) == {"acme": "sound"}


@pytest.mark.process
def test_a_repository_is_pinned_and_followed_when_asked(
    dirs: AppDirs, tmp_path: Path
) -> None:
    repository = make(tmp_path / "many/acme").parent
    first = commit(repository, {})
    source = f"git+file://{repository}@main#subdirectory=acme"
    (change,) = installer(dirs).install(source)
    assert (change.after, change.source) == (first, source)

    second = commit(repository, {"acme/context/new.md": "new"})
    assert library(dirs).require("acme").find("context/new.md") is None
    (change,) = installer(dirs).update(check_only=True)
    assert (change.before, change.after, change.is_changed) == (first, second, True)
    assert library(dirs).require("acme").find("context/new.md") is None
    installer(dirs).update(["acme"])
    assert library(dirs).require("acme").find("context/new.md") is not None
    assert not installer(dirs).update()[0].is_changed
    with pytest.raises(SourceFetchError, match="working offline"):
        installer(dirs, offline=True).update()
    assert states(dirs) == {"acme": "sound"}


def test_a_name_of_the_catalogue_brings_what_it_needs(
    dirs: AppDirs, tmp_path: Path
) -> None:
    make(tmp_path / "low", "low", "1.4")
    make(tmp_path / "mid", "mid", requires='["low>=1,<2"]')
    make(tmp_path / "top", "top", requires='{ mid = "*", foundation = ">=1" }')
    offer(dirs, low=tmp_path / "low", Mid=tmp_path / "mid", top=tmp_path / "top")
    changes = installer(dirs).install("top")

    assert [change.name for change in changes] == ["top", "mid", "low"]
    assert [change.source for change in changes] == ["top", "mid", "low"]
    assert states(dirs) == {"low": "sound", "mid": "sound", "top": "sound"}
    with pytest.raises(ConfigError, match="top needs it"):
        installer(dirs).remove("mid")
    installer(dirs).remove("mid", force=True)
    assert states(dirs) == {"low": "sound", "top": "sound"}


def test_folder_of_same_name_replaces_no_unrequested_source(
    dirs: AppDirs, tmp_path: Path
) -> None:
    make(tmp_path / "low", "low", "1.4")
    make(tmp_path / "mid", "mid", requires='["low"]')
    offer(dirs, low=tmp_path / "low", mid=tmp_path / "mid")
    make(dirs.root / "low", "low", "6.6")
    changes = installer(dirs).install("mid")
    assert [(change.name, change.version, change.source) for change in changes] == [
        ("mid", "1.0", "mid"),
        ("low", "1.4", "low"),
    ]

    make(dirs.root / "mid", "mid", "6.6")
    assert not any(change.is_changed for change in installer(dirs).update())
    assert {entry.version for entry in FetchedLock(dirs.home).read().values()} == {
        "1.0",
        "1.4",
    }


def test_an_archive_of_the_catalogue_counts_from_the_settings(
    dirs: AppDirs, tmp_path: Path
) -> None:
    make(tmp_path / "acme")
    with tarfile.open(dirs.home / "acme.tar.gz", "w:gz") as opened:
        opened.add(tmp_path / "acme", "acme-1.0")
    write(dirs.root / "acme.tar.gz", "another")
    write(
        dirs.home / "settings.yaml", "collections: {catalogue: {acme: acme.tar.gz}}\n"
    )
    installer(dirs).install("acme")

    assert states(dirs) == {"acme": "sound"}


def test_an_expertise_comes_along_and_is_installed_by_name(dirs: AppDirs) -> None:
    assert library(dirs).find("developer-expertise") is None
    installer(dirs, offline=True).install("developer-expertise")

    assert (
        library(dirs).require("developer-expertise").find("python/best-practices.md")
        is not None
    )


def test_the_modules_of_a_collection_are_noted(dirs: AppDirs, tmp_path: Path) -> None:
    folder = make(tmp_path / "acme")
    for name, text in TOOL_FILES.items():
        write(folder / "modules/tool-acme" / name, text)
    installer(dirs).install(str(folder))

    assert FetchedLock(dirs.home).read()["acme"].modules == {
        "tool-acme": {"path": "modules/tool-acme", "type": "tool"}
    }


# -- what is refused


def no_metadata(folder: Path) -> None:
    (folder / "pyproject.toml").unlink()


def no_name(folder: Path) -> None:
    write(folder / "pyproject.toml", "[project]\n")


def bad_name(folder: Path) -> None:
    make(folder, name="../x")


def mention_name(folder: Path) -> None:
    make(folder, name="user")


def no_toml(folder: Path) -> None:
    write(folder / "pyproject.toml", "[")


def deep_toml(folder: Path) -> None:
    write(
        folder / "pyproject.toml",
        f'[project]\nname = "acme"\nx = {"[" * 5000}{"]" * 5000}\n',
    )


def dotted_toml(folder: Path) -> None:
    write(
        folder / "pyproject.toml", f'[project]\nname = "acme"\n{"a." * 200_000}a = 1\n'
    )


def deep_module(folder: Path) -> None:
    write(folder / "modules/x/pyproject.toml", f"x = {'[' * 5000}")


def odd_needs(folder: Path) -> None:
    make(folder, requires='["../x"]')


def numeric_needs(folder: Path) -> None:
    make(folder, requires="{ a = 1 }")


def missing_need(folder: Path) -> None:
    make(folder, requires='["nowhere>=1"]')


def newer_need(folder: Path) -> None:
    make(folder, requires='["foundation>=99"]')


def unreadable_versions(folder: Path) -> None:
    make(folder, requires='{ foundation = "new" }')


def needs_itself(folder: Path) -> None:
    make(folder, requires='["acme"]')


def link_out(folder: Path) -> None:
    (folder / "profiles/x.md").symlink_to("/etc/passwd")


def bad_module(folder: Path) -> None:
    write(folder / "modules/x/pyproject.toml", "[")


@pytest.mark.parametrize(
    "spoil",
    [
        no_metadata,
        no_name,
        bad_name,
        mention_name,
        no_toml,
        deep_toml,
        dotted_toml,
        deep_module,
        odd_needs,
        numeric_needs,
        missing_need,
        newer_need,
        unreadable_versions,
        needs_itself,
        link_out,
        bad_module,
    ],
)
def test_unsound_collection_is_refused_without_change(
    dirs: AppDirs, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    folder = make(tmp_path / "acme")
    spoil(folder)

    with pytest.raises(ConfigError):
        installer(dirs).install(str(folder))
    assert not list((dirs.home / "collections").iterdir())
    assert not (dirs.home / "collections.lock").exists()


@pytest.mark.parametrize(
    ("source", "match"),
    [
        ("./gone", "no folder"),
        ("./gone.zip", "no file"),
        ("acme-x", "known: developer-expertise"),
        ("a://b", "is none of"),
    ],
)
def test_a_source_that_is_not_there_is_named(
    dirs: AppDirs, source: str, match: str
) -> None:
    with pytest.raises(ConfigError, match=match):
        installer(dirs).install(source)


def test_a_catalogue_leads_to_no_package(dirs: AppDirs) -> None:
    write(dirs.home / "settings.yaml", "collections: {catalogue: {acme: other}}\n")

    with pytest.raises(ConfigError, match="it is the name of a package"):
        installer(dirs).install("acme")


def test_a_circle_is_named(dirs: AppDirs, tmp_path: Path) -> None:
    for name, needed in (("one", "two"), ("two", "three"), ("three", "one")):
        make(tmp_path / name, name, requires=f'["{needed}"]')
    offer(dirs, one=tmp_path / "one", two=tmp_path / "two", three=tmp_path / "three")

    with pytest.raises(ConfigError, match="one -> two -> three -> one"):
        installer(dirs).install("one")


def test_a_taken_name_is_kept_unless_forced(dirs: AppDirs, tmp_path: Path) -> None:
    installer(dirs).install(str(make(tmp_path / "acme")))
    other = make(tmp_path / "other", version="2.0")
    with pytest.raises(ConfigError, match=r"it is there already, from .*/acme"):
        installer(dirs).install(str(other))
    installer(dirs).install(str(other), force=True)

    assert library(dirs).require("acme").version == "2.0"


def test_a_collection_of_one_s_own_is_not_replaced(
    dirs: AppDirs, tmp_path: Path
) -> None:
    make(dirs.home / "collections/acme", version="9")
    with pytest.raises(ConfigError, match="it is there already, in "):
        installer(dirs).install(str(make(tmp_path / "acme")))

    assert states(dirs) == {"acme": "own"}
    assert library(dirs).require("acme").version == "9"
    installer(dirs).install(str(make(tmp_path / "same", version="9")))
    assert states(dirs) == {"acme": "sound"}


def test_an_update_that_would_break_another_changes_nothing(
    dirs: AppDirs, tmp_path: Path
) -> None:
    low = make(tmp_path / "low", "low", "1.0")
    installer(dirs).install(str(low))
    installer(dirs).install(str(make(tmp_path / "top", "top", requires='["low<2"]')))
    make(low, "low", "2.0")

    with pytest.raises(ConfigError, match="top requires low <2"):
        installer(dirs).update(["low"])
    assert library(dirs).require("low").version == "1.0"
    make(low, "renamed")
    with pytest.raises(ConfigError, match="calls itself renamed now"):
        installer(dirs).update(["low"])


def test_what_is_not_installed_is_named(dirs: AppDirs, tmp_path: Path) -> None:
    assert installer(dirs).update() == []
    installer(dirs).install(str(make(tmp_path / "acme")))
    with pytest.raises(ConfigError, match="did you mean 'acme'"):
        installer(dirs).remove("acmee")
    with pytest.raises(ConfigError, match="no such collection is installed"):
        installer(dirs).update(["foundation"])


# -- the lock is enforced


def edit(folder: Path) -> None:
    write(folder / "profiles/a.md", PROFILE + "Obey me.")


def add_file(folder: Path) -> None:
    write(folder / "agents/x.md", "x")


def take_file(folder: Path) -> None:
    (folder / "profiles/a.md").unlink()


@pytest.mark.parametrize("spoil", [edit, add_file, take_file, link_out])
def test_a_changed_collection_is_not_used_until_it_is_updated(
    dirs: AppDirs, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    path = installer(dirs).install(str(make(tmp_path / "acme")))[0].path
    spoil(path)

    assert states(dirs) == {"acme": "changed"}
    assert "acme" not in library(dirs).all()
    with pytest.raises(ConfigError, match="amplifier collection update acme"):
        library(dirs).require("acme")
    assert show_collection("acme", dirs).state == "changed"
    (change,) = installer(dirs).update(check_only=True)
    assert (change.before == change.after, change.is_restored, change.is_changed) == (
        True,
        True,
        True,
    )
    assert states(dirs) == {"acme": "changed"}
    installer(dirs).update()
    assert library(dirs).require("acme").find("profiles/a.md") is not None


@pytest.mark.parametrize("spoil", [edit, add_file, take_file, link_out])
def test_a_changed_collection_can_be_kept_as_one_s_own(
    dirs: AppDirs, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    path = installer(dirs).install(str(make(tmp_path / "acme")))[0].path
    spoil(path)
    with pytest.raises(ConfigError, match="amplifier collection accept acme"):
        library(dirs).require("acme")
    stored = sorted(path.rglob("*"))

    assert installer(dirs).accept("Acme").source == str(tmp_path / "acme")
    assert library(dirs).require("acme").path == path
    assert states(dirs) == {"acme": "own"}
    assert installer(dirs).update() == []
    assert sorted(path.rglob("*")) == stored
    with pytest.raises(ConfigError, match="give --force to put this one in its place"):
        installer(dirs).install(str(tmp_path / "acme"))
    installer(dirs).install(str(tmp_path / "acme"), force=True)
    assert states(dirs) == {"acme": "sound"}


def test_what_is_as_it_was_installed_or_gone_cannot_be_accepted(
    dirs: AppDirs, tmp_path: Path
) -> None:
    path = installer(dirs).install(str(make(tmp_path / "acme")))[0].path
    with pytest.raises(ConfigError, match="nothing to accept"):
        installer(dirs).accept("acme")
    shutil.rmtree(path)
    with pytest.raises(ConfigError, match="its folder is gone"):
        installer(dirs).accept("acme")
    assert states(dirs) == {"acme": "missing"}


def test_no_weaker_collection_takes_the_place_of_a_changed_one(
    dirs: AppDirs, tmp_path: Path
) -> None:
    path = installer(dirs).install(str(make(tmp_path / "f", "foundation")))[0].path
    edit(path)

    assert "foundation" in library(dirs).refused
    with pytest.raises(ConfigError, match="not the ones that were installed"):
        library(dirs).find("foundation")


def test_a_collection_that_is_gone_is_told_and_comes_back(
    dirs: AppDirs, tmp_path: Path
) -> None:
    path = installer(dirs).install(str(make(tmp_path / "acme")))[0].path
    shutil.rmtree(path)
    assert states(dirs) == {"acme": "missing"}
    installer(dirs).update()

    assert states(dirs) == {"acme": "sound"}
    shutil.rmtree(path)
    installer(dirs).remove("acme")
    assert states(dirs) == {}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"version": "1.1", "collections": {}}',
        '{"version": "1.2", "collections": {"a": {"name": "b"}}}',
        json.dumps(
            {
                "version": "1.2",
                "collections": {
                    "a": {
                        "name": "a",
                        "source": "s",
                        "path": "../x",
                        "installed_at": "t",
                        "hash": "h",
                        "modules": {},
                    }
                },
            }
        ),
    ],
    ids=["json", "list", "version", "entry", "path"],
)
def test_a_damaged_lock_file_is_named_and_stays(
    dirs: AppDirs, tmp_path: Path, text: str
) -> None:
    lock = write(dirs.home / "collections.lock", text)

    with pytest.raises((ConfigError, OSError), match=r"collections\.lock"):
        installer(dirs).install(str(make(tmp_path / "acme")))
    assert lock.read_text() == text


def test_the_lock_file_is_private(dirs: AppDirs, tmp_path: Path) -> None:
    installer(dirs).install(str(make(tmp_path / "acme")))
    lock = dirs.home / "collections.lock"

    assert lock.stat().st_mode & 0o777 == 0o600
    entry = json.loads(lock.read_text())["collections"]["acme"]
    assert sorted(entry) == [
        "commit",
        "hash",
        "installed_at",
        "modules",
        "name",
        "path",
        "source",
        "version",
    ]
    lock.chmod(0o666)
    with pytest.raises(OSError, match="can be written by others"):
        library(dirs).all()


def test_collection_whose_metadata_cannot_be_read_refused_alone(
    dirs: AppDirs,
) -> None:
    write(dirs.home / "collections/broken/pyproject.toml", "[")
    make(dirs.home / "collections/sound", name="sound")

    found = library(dirs)

    assert "sound" in found.all()
    assert "broken" not in found.all()
    with pytest.raises(ConfigError, match=r"broken.*pyproject\.toml"):
        found.find("broken")


# -- switching


def test_a_failure_while_switching_leaves_what_was_there(
    dirs: AppDirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "acme")
    installer(dirs).install(str(folder))
    make(folder, version="2.0")

    def fail(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(FetchedLock, "change", fail)
        for step in (
            installer(dirs).update,
            lambda: installer(dirs).remove("acme"),
        ):
            with pytest.raises(OSError, match="disk is full"):
                step()
    assert library(dirs).require("acme").version == "1.0"
    assert states(dirs) == {"acme": "sound"}
    assert [path.name for path in (dirs.home / "collections").iterdir()] == ["acme"]


class _KilledError(BaseException):
    """Stands for the end of the process: nothing after it runs."""


def kill(patched: pytest.MonkeyPatch, after: int) -> None:
    """Let the program be killed after some renames, at the latest before the lock file is written."""
    rename, left = Path.rename, [after]

    def count(path: Path, target: Path) -> Path:
        if not left[0]:
            raise _KilledError
        left[0] -= 1
        return rename(path, target)

    def killed(*_: object, **__: object) -> None:
        raise _KilledError

    patched.setattr(Path, "rename", count)
    patched.setattr(FetchedLock, "change", killed)


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_program_killed_while_switching_leaves_one_of_both(
    dirs: AppDirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """After none, one or two of the renames, or before the old folder is removed."""
    folder = make(tmp_path / "acme")
    installer(dirs).install(str(folder))
    make(folder, version="2.0")
    renamed = 0
    rename = Path.rename

    def count(path: Path, target: Path) -> Path:
        nonlocal renamed
        if renamed == after:
            raise _KilledError
        renamed += 1
        return rename(path, target)

    def killed(*_: object, **__: object) -> None:
        raise _KilledError

    with monkeypatch.context() as patched, pytest.raises(_KilledError):
        patched.setattr(Path, "rename", count)
        patched.setattr("amplifier.app.fetched.swap._discard", killed)
        if after == 2:
            patched.setattr(FetchedLock, "change", killed)
        installer(dirs).update()

    with FetchedFolders(FetchedLock(dirs.home)).changing():
        pass  # whoever changes collections next puts it right
    assert states(dirs) == {"acme": "sound"}
    assert library(dirs).require("acme").version == ("2.0" if after == 3 else "1.0")
    assert [path.name for path in (dirs.home / "collections").iterdir()] == ["acme"]


@pytest.mark.parametrize("after", [0, 1, 2])
def test_program_that_is_killed_while_installing_leaves_nothing(
    dirs: AppDirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    offer(dirs, low=make(tmp_path / "low", "low"))
    make(tmp_path / "top", "top", requires='["low"]')
    with monkeypatch.context() as patched, pytest.raises(_KilledError):
        kill(patched, after)
        installer(dirs).install(str(tmp_path / "top"))
    with FetchedFolders(FetchedLock(dirs.home)).changing():
        pass

    assert list((dirs.home / "collections").iterdir()) == []
    assert states(dirs) == {}


@pytest.mark.parametrize("after", [1, 2])
def test_modified_collection_survives_kill_during_update(
    dirs: AppDirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    folder = make(tmp_path / "acme")
    installer(dirs).install(str(folder))
    write(dirs.home / "collections/acme/profiles/mine.md", "Mine.")
    make(folder, version="2.0")
    with monkeypatch.context() as patched, pytest.raises(_KilledError):
        kill(patched, after)
        installer(dirs).update()
    with FetchedFolders(FetchedLock(dirs.home)).changing():
        pass

    assert (dirs.home / "collections/acme/profiles/mine.md").read_text() == "Mine."
    assert [path.name for path in (dirs.home / "collections").iterdir()] == ["acme"]


@pytest.mark.parametrize("after", [1, 2])
def test_own_collection_survives_kill_during_update(
    dirs: AppDirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    make(dirs.home / "collections/acme", version="9")
    shelf = FetchedFolders(FetchedLock(dirs.home))
    with monkeypatch.context() as patched, pytest.raises(_KilledError):
        kill(patched, after)
        installer(dirs).install(str(make(tmp_path / "acme")), force=True)
    with shelf.changing():
        pass

    assert library(dirs).require("acme").version == "9"


@pytest.mark.parametrize("noted", [False, True])
def test_program_that_is_killed_while_removing_leaves_it_or_not(
    dirs: AppDirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noted: bool
) -> None:
    installer(dirs).install(str(make(tmp_path / "acme")))

    def killed(*_: object, **__: object) -> None:
        raise _KilledError

    with monkeypatch.context() as patched, pytest.raises(_KilledError):
        if noted:
            patched.setattr("amplifier.app.fetched.swap._discard", killed)
        else:
            patched.setattr(FetchedLock, "change", killed)
        installer(dirs).remove("acme")
    with FetchedFolders(FetchedLock(dirs.home)).changing():
        pass

    assert states(dirs) == ({} if noted else {"acme": "sound"})
    assert len(list((dirs.home / "collections").iterdir())) == (0 if noted else 1)


def test_what_a_killed_program_left_is_removed(dirs: AppDirs) -> None:
    write(dirs.home / "collections/.staged-1/0/x", "x")
    write(dirs.home / "collections/.removed-00000001-gone/x", "x")
    (dirs.home / "collections/.removed-00000002-gone").symlink_to("/etc")
    with FetchedFolders(FetchedLock(dirs.home)).changing():
        pass

    assert not list((dirs.home / "collections").iterdir())
    assert Path("/etc").is_dir()


@pytest.mark.parametrize(
    "name",
    [".old-acme", ".old-1-x", ".removed-acme", ".old-00000000-..", ".old-00000000-"],
)
def test_folder_that_person_put_aside_stays_and_harms_nothing(
    dirs: AppDirs, tmp_path: Path, name: str
) -> None:
    installer(dirs).install(str(make(tmp_path / "acme")))
    mine = write(dirs.home / "collections" / name / "notes.md", "Mine.")
    with FetchedFolders(FetchedLock(dirs.home)).changing():
        pass

    assert mine.read_text() == "Mine."
    assert states(dirs) == {"acme": "sound"}


# -- a project's own


def test_a_project_has_collections_of_its_own(dirs: AppDirs, tmp_path: Path) -> None:
    installer(dirs).install(str(make(tmp_path / "user", version="1.0")))
    (change,) = installer(dirs, local=True).install(
        str(make(tmp_path / "local", version="2.0"))
    )

    assert change.path == dirs.root / ".amplifier/collections/acme"
    assert library(dirs).require("acme").version == "2.0"
    assert [
        found.version for found in list_collections(dirs) if found.name == "acme"
    ] == ["2.0", "1.0"]
    edit(change.path)
    trust(dirs, "profiles")
    with pytest.raises(ConfigError, match="accept acme --scope project"):
        library(dirs).require("acme")
    installer(dirs, local=True).remove("acme")
    assert library(dirs).require("acme").version == "1.0"


def test_untrusted_collections_are_neither_used_nor_changed(
    dirs: AppDirs, tmp_path: Path
) -> None:
    make(dirs.root / ".amplifier/collections/evil", "foundation", "99")

    with pytest.raises(ConfigError, match="is not trusted"):
        library(dirs).require("foundation")
    assert library(dirs).all()["foundation"].level == "bundled"
    with pytest.raises(AmplifierError, match="run 'amplifier trust'"):
        installer(dirs, local=True).install(str(make(tmp_path / "acme")))


def test_what_others_changed_meanwhile_is_not_trusted(
    dirs: AppDirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer(dirs, local=True).install(str(make(tmp_path / "acme")))
    put = FetchedFolders.put

    def pulled(
        shelf: FetchedFolders,
        waiting: Mapping[str, Path],
        entries: Mapping[str, FetchedEntry],
    ) -> None:
        put(shelf, waiting, entries)
        write(dirs.root / ".amplifier/profiles/theirs.md", PROFILE)

    monkeypatch.setattr(FetchedFolders, "put", pulled)
    installer(dirs, local=True).install(str(make(tmp_path / "other", "other")))
    decision = ProjectFiles(dirs).evaluate("profiles")

    assert decision is not None
    assert not decision.trusted
    assert ".amplifier/profiles/theirs.md" in decision.changed


def test_a_lock_file_that_others_changed_has_to_be_looked_at(
    dirs: AppDirs, tmp_path: Path
) -> None:
    installer(dirs, local=True).install(str(make(tmp_path / "acme")))
    lock = dirs.root / ".amplifier/collections.lock"
    noted = json.loads(lock.read_text())
    noted["collections"]["acme"]["source"] = str(tmp_path / "evil")
    lock.write_text(json.dumps(noted))

    with pytest.raises(AmplifierError, match=r"collections\.lock"):
        installer(dirs, local=True).update()


def test_the_catalogue_of_settings_counts_from_their_file(
    dirs: AppDirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(dirs.root / "shared/low", "low")
    make(tmp_path / "far/mid", "mid")
    monkeypatch.setenv("FAR", str(tmp_path / "far"))
    write(
        dirs.root / ".amplifier/settings.yaml",
        "collections: {catalogue: {low: ./shared/low, mid: '${FAR}/mid'}}\n",
    )
    trust(dirs, "settings")
    changes = [*installer(dirs).install("low"), *installer(dirs).install("mid")]

    assert [(change.name, change.source) for change in changes] == [
        ("low", "low"),
        ("mid", "mid"),
    ]


def test_without_a_project_there_is_no_place(dirs: AppDirs) -> None:
    with pytest.raises(AmplifierError, match="leave --scope project away"):
        installer(AppDirs.find(dirs.home.parent), local=True)


def test_two_installers_do_not_meet(
    dirs: AppDirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amplifier.app.fetched.swap._TIMEOUT", 0.05)
    with (
        FetchedFolders(FetchedLock(dirs.home)).changing(),
        pytest.raises(OSError, match="being written by"),
    ):
        installer(dirs).install(str(make(tmp_path / "acme")))
    assert os.listdir(dirs.home / "collections") == []
