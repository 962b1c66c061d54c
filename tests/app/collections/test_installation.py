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
from amplifier.app.directories import Places
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
    places: Places, *, local: bool = False, offline: bool = False
) -> CollectionInstaller:
    return CollectionInstaller.of(places, local=local, offline=offline)


def library(places: Places) -> CollectionLibrary:
    return CollectionLibrary(places, ProjectFiles(places))


def states(places: Places) -> dict[str, str]:
    return {verdict.name: verdict.state for verdict in verify(FetchedLock(places.home))}


def offer(places: Places, **sources: Path) -> None:
    """Name collections in the catalogue of the settings."""
    write(
        places.home / "settings.yaml",
        json.dumps(
            {"collections": {"catalogue": {k: str(v) for k, v in sources.items()}}}
        ),
    )


# -- from where


def test_a_folder_is_copied_without_what_tools_keep(
    places: Places, tmp_path: Path
) -> None:
    folder = make(tmp_path / "acme", name="Acme_Inc")
    write(folder / ".git/config", "x")
    write(folder / "modules/x/__pycache__/y.pyc", "x")
    (change,) = installer(places).install(str(folder))

    assert (change.name, change.version, change.before) == ("acme-inc", "1.0", None)
    assert change.path == places.home / "collections/acme-inc"
    assert library(places).require("acme_inc").path == change.path
    assert not list(change.path.rglob(".git"))
    assert not list(change.path.rglob("*.pyc"))
    assert states(places) == {"acme-inc": "sound"}


def test_a_link_in_a_circle_keeps_nothing_from_being_used(
    places: Places, tmp_path: Path
) -> None:
    folder = make(tmp_path / "acme")
    (folder / "profiles/self.md").symlink_to("self.md")
    installer(places).install(str(folder))

    assert [
        path.name for path in library(places).require("acme").resources("profiles")
    ] == ["a.md"]
    assert states(places) == {"acme": "sound"}


def test_an_archive_is_unpacked(places: Places, tmp_path: Path) -> None:
    make(tmp_path / "acme")
    with tarfile.open(tmp_path / "acme.tar.gz", "w:gz") as opened:
        opened.add(tmp_path / "acme", "acme-1.0")
    installer(places).install("../acme.tar.gz")

    assert library(places).require("acme").resources("profiles")
    assert states(places) == {"acme": "sound"}


@pytest.mark.process
def test_a_repository_is_pinned_and_followed_when_asked(
    places: Places, tmp_path: Path
) -> None:
    repository = make(tmp_path / "many/acme").parent
    first = commit(repository, {})
    source = f"git+file://{repository}@main#subdirectory=acme"
    (change,) = installer(places).install(source)
    assert (change.after, change.source) == (first, source)

    second = commit(repository, {"acme/context/new.md": "new"})
    assert library(places).require("acme").find("context/new.md") is None
    (change,) = installer(places).update(check_only=True)
    assert (change.before, change.after, change.is_changed) == (first, second, True)
    assert library(places).require("acme").find("context/new.md") is None
    installer(places).update(["acme"])
    assert library(places).require("acme").find("context/new.md") is not None
    assert not installer(places).update()[0].is_changed
    with pytest.raises(SourceFetchError, match="working offline"):
        installer(places, offline=True).update()
    assert states(places) == {"acme": "sound"}


def test_a_name_of_the_catalogue_brings_what_it_needs(
    places: Places, tmp_path: Path
) -> None:
    make(tmp_path / "low", "low", "1.4")
    make(tmp_path / "mid", "mid", requires='["low>=1,<2"]')
    make(tmp_path / "top", "top", requires='{ mid = "*", foundation = ">=1" }')
    offer(places, low=tmp_path / "low", Mid=tmp_path / "mid", top=tmp_path / "top")
    changes = installer(places).install("top")

    assert [change.name for change in changes] == ["top", "mid", "low"]
    assert [change.source for change in changes] == ["top", "mid", "low"]
    assert states(places) == {"low": "sound", "mid": "sound", "top": "sound"}
    with pytest.raises(ConfigError, match="top needs it"):
        installer(places).remove("mid")
    installer(places).remove("mid", force=True)
    assert states(places) == {"low": "sound", "top": "sound"}


def test_folder_of_same_name_replaces_no_unrequested_source(
    places: Places, tmp_path: Path
) -> None:
    make(tmp_path / "low", "low", "1.4")
    make(tmp_path / "mid", "mid", requires='["low"]')
    offer(places, low=tmp_path / "low", mid=tmp_path / "mid")
    make(places.root / "low", "low", "6.6")
    changes = installer(places).install("mid")
    assert [(change.name, change.version, change.source) for change in changes] == [
        ("mid", "1.0", "mid"),
        ("low", "1.4", "low"),
    ]

    make(places.root / "mid", "mid", "6.6")
    assert not any(change.is_changed for change in installer(places).update())
    assert {entry.version for entry in FetchedLock(places.home).read().values()} == {
        "1.0",
        "1.4",
    }


def test_an_archive_of_the_catalogue_counts_from_the_settings(
    places: Places, tmp_path: Path
) -> None:
    make(tmp_path / "acme")
    with tarfile.open(places.home / "acme.tar.gz", "w:gz") as opened:
        opened.add(tmp_path / "acme", "acme-1.0")
    write(places.root / "acme.tar.gz", "another")
    write(
        places.home / "settings.yaml", "collections: {catalogue: {acme: acme.tar.gz}}\n"
    )
    installer(places).install("acme")

    assert states(places) == {"acme": "sound"}


def test_an_expertise_comes_along_and_is_installed_by_name(places: Places) -> None:
    assert library(places).find("developer-expertise") is None
    installer(places, offline=True).install("developer-expertise")

    assert (
        library(places).require("developer-expertise").find("python/best-practices.md")
        is not None
    )


def test_the_modules_of_a_collection_are_noted(places: Places, tmp_path: Path) -> None:
    folder = make(tmp_path / "acme")
    for name, text in TOOL_FILES.items():
        write(folder / "modules/tool-acme" / name, text)
    installer(places).install(str(folder))

    assert FetchedLock(places.home).read()["acme"].modules == {
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
    places: Places, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    folder = make(tmp_path / "acme")
    spoil(folder)

    with pytest.raises(ConfigError):
        installer(places).install(str(folder))
    assert not list((places.home / "collections").iterdir())
    assert not (places.home / "collections.lock").exists()


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
    places: Places, source: str, match: str
) -> None:
    with pytest.raises(ConfigError, match=match):
        installer(places).install(source)


def test_a_catalogue_leads_to_no_package(places: Places) -> None:
    write(places.home / "settings.yaml", "collections: {catalogue: {acme: other}}\n")

    with pytest.raises(ConfigError, match="it is the name of a package"):
        installer(places).install("acme")


def test_a_circle_is_named(places: Places, tmp_path: Path) -> None:
    for name, needed in (("one", "two"), ("two", "three"), ("three", "one")):
        make(tmp_path / name, name, requires=f'["{needed}"]')
    offer(places, one=tmp_path / "one", two=tmp_path / "two", three=tmp_path / "three")

    with pytest.raises(ConfigError, match="one -> two -> three -> one"):
        installer(places).install("one")


def test_a_taken_name_is_kept_unless_forced(places: Places, tmp_path: Path) -> None:
    installer(places).install(str(make(tmp_path / "acme")))
    other = make(tmp_path / "other", version="2.0")
    with pytest.raises(ConfigError, match=r"it is there already, from .*/acme"):
        installer(places).install(str(other))
    installer(places).install(str(other), force=True)

    assert library(places).require("acme").version == "2.0"


def test_a_collection_of_one_s_own_is_not_replaced(
    places: Places, tmp_path: Path
) -> None:
    make(places.home / "collections/acme", version="9")
    with pytest.raises(ConfigError, match="it is there already, in "):
        installer(places).install(str(make(tmp_path / "acme")))

    assert states(places) == {"acme": "own"}
    assert library(places).require("acme").version == "9"
    installer(places).install(str(make(tmp_path / "same", version="9")))
    assert states(places) == {"acme": "sound"}


def test_an_update_that_would_break_another_changes_nothing(
    places: Places, tmp_path: Path
) -> None:
    low = make(tmp_path / "low", "low", "1.0")
    installer(places).install(str(low))
    installer(places).install(str(make(tmp_path / "top", "top", requires='["low<2"]')))
    make(low, "low", "2.0")

    with pytest.raises(ConfigError, match="top requires low <2"):
        installer(places).update(["low"])
    assert library(places).require("low").version == "1.0"
    make(low, "renamed")
    with pytest.raises(ConfigError, match="calls itself renamed now"):
        installer(places).update(["low"])


def test_what_is_not_installed_is_named(places: Places, tmp_path: Path) -> None:
    assert installer(places).update() == []
    installer(places).install(str(make(tmp_path / "acme")))
    with pytest.raises(ConfigError, match="did you mean 'acme'"):
        installer(places).remove("acmee")
    with pytest.raises(ConfigError, match="no such collection is installed"):
        installer(places).update(["foundation"])


# -- the lock is enforced


def edit(folder: Path) -> None:
    write(folder / "profiles/a.md", PROFILE + "Obey me.")


def add_file(folder: Path) -> None:
    write(folder / "agents/x.md", "x")


def take_file(folder: Path) -> None:
    (folder / "profiles/a.md").unlink()


@pytest.mark.parametrize("spoil", [edit, add_file, take_file, link_out])
def test_a_changed_collection_is_not_used_until_it_is_updated(
    places: Places, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    path = installer(places).install(str(make(tmp_path / "acme")))[0].path
    spoil(path)

    assert states(places) == {"acme": "changed"}
    assert "acme" not in library(places).all()
    with pytest.raises(ConfigError, match="amplifier collection update acme"):
        library(places).require("acme")
    assert show_collection("acme", places).state == "changed"
    (change,) = installer(places).update(check_only=True)
    assert (change.before == change.after, change.is_restored, change.is_changed) == (
        True,
        True,
        True,
    )
    assert states(places) == {"acme": "changed"}
    installer(places).update()
    assert library(places).require("acme").find("profiles/a.md") is not None


@pytest.mark.parametrize("spoil", [edit, add_file, take_file, link_out])
def test_a_changed_collection_can_be_kept_as_one_s_own(
    places: Places, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    path = installer(places).install(str(make(tmp_path / "acme")))[0].path
    spoil(path)
    with pytest.raises(ConfigError, match="amplifier collection accept acme"):
        library(places).require("acme")
    kept = sorted(path.rglob("*"))

    assert installer(places).accept("Acme").source == str(tmp_path / "acme")
    assert library(places).require("acme").path == path
    assert states(places) == {"acme": "own"}
    assert installer(places).update() == []
    assert sorted(path.rglob("*")) == kept
    with pytest.raises(ConfigError, match="give --force to put this one in its place"):
        installer(places).install(str(tmp_path / "acme"))
    installer(places).install(str(tmp_path / "acme"), force=True)
    assert states(places) == {"acme": "sound"}


def test_what_is_as_it_was_installed_or_gone_cannot_be_accepted(
    places: Places, tmp_path: Path
) -> None:
    path = installer(places).install(str(make(tmp_path / "acme")))[0].path
    with pytest.raises(ConfigError, match="nothing to accept"):
        installer(places).accept("acme")
    shutil.rmtree(path)
    with pytest.raises(ConfigError, match="its folder is gone"):
        installer(places).accept("acme")
    assert states(places) == {"acme": "missing"}


def test_no_weaker_collection_takes_the_place_of_a_changed_one(
    places: Places, tmp_path: Path
) -> None:
    path = installer(places).install(str(make(tmp_path / "f", "foundation")))[0].path
    edit(path)

    assert "foundation" in library(places).refused
    with pytest.raises(ConfigError, match="not the ones that were installed"):
        library(places).find("foundation")


def test_a_collection_that_is_gone_is_told_and_comes_back(
    places: Places, tmp_path: Path
) -> None:
    path = installer(places).install(str(make(tmp_path / "acme")))[0].path
    shutil.rmtree(path)
    assert states(places) == {"acme": "missing"}
    installer(places).update()

    assert states(places) == {"acme": "sound"}
    shutil.rmtree(path)
    installer(places).remove("acme")
    assert states(places) == {}


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
    places: Places, tmp_path: Path, text: str
) -> None:
    lock = write(places.home / "collections.lock", text)

    with pytest.raises((ConfigError, OSError), match=r"collections\.lock"):
        installer(places).install(str(make(tmp_path / "acme")))
    assert lock.read_text() == text


def test_the_lock_file_is_private(places: Places, tmp_path: Path) -> None:
    installer(places).install(str(make(tmp_path / "acme")))
    lock = places.home / "collections.lock"

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
        library(places).all()


def test_collection_whose_metadata_cannot_be_read_refused_alone(
    places: Places,
) -> None:
    write(places.home / "collections/broken/pyproject.toml", "[")
    make(places.home / "collections/sound", name="sound")

    found = library(places)

    assert "sound" in found.all()
    assert "broken" not in found.all()
    with pytest.raises(ConfigError, match=r"broken.*pyproject\.toml"):
        found.find("broken")


# -- switching


def test_a_failure_while_switching_leaves_what_was_there(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "acme")
    installer(places).install(str(folder))
    make(folder, version="2.0")

    def fail(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(FetchedLock, "change", fail)
        for step in (
            installer(places).update,
            lambda: installer(places).remove("acme"),
        ):
            with pytest.raises(OSError, match="disk is full"):
                step()
    assert library(places).require("acme").version == "1.0"
    assert states(places) == {"acme": "sound"}
    assert [path.name for path in (places.home / "collections").iterdir()] == ["acme"]


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
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """After none, one or two of the renames, or before the old folder is removed."""
    folder = make(tmp_path / "acme")
    installer(places).install(str(folder))
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
        installer(places).update()

    with FetchedFolders(FetchedLock(places.home)).changing():
        pass  # whoever changes collections next puts it right
    assert states(places) == {"acme": "sound"}
    assert library(places).require("acme").version == ("2.0" if after == 3 else "1.0")
    assert [path.name for path in (places.home / "collections").iterdir()] == ["acme"]


@pytest.mark.parametrize("after", [0, 1, 2])
def test_program_that_is_killed_while_installing_leaves_nothing(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    offer(places, low=make(tmp_path / "low", "low"))
    make(tmp_path / "top", "top", requires='["low"]')
    with monkeypatch.context() as patched, pytest.raises(_KilledError):
        kill(patched, after)
        installer(places).install(str(tmp_path / "top"))
    with FetchedFolders(FetchedLock(places.home)).changing():
        pass

    assert list((places.home / "collections").iterdir()) == []
    assert states(places) == {}


@pytest.mark.parametrize("after", [1, 2])
def test_modified_collection_survives_kill_during_update(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    folder = make(tmp_path / "acme")
    installer(places).install(str(folder))
    write(places.home / "collections/acme/profiles/mine.md", "Mine.")
    make(folder, version="2.0")
    with monkeypatch.context() as patched, pytest.raises(_KilledError):
        kill(patched, after)
        installer(places).update()
    with FetchedFolders(FetchedLock(places.home)).changing():
        pass

    assert (places.home / "collections/acme/profiles/mine.md").read_text() == "Mine."
    assert [path.name for path in (places.home / "collections").iterdir()] == ["acme"]


@pytest.mark.parametrize("after", [1, 2])
def test_own_collection_survives_kill_during_update(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    make(places.home / "collections/acme", version="9")
    shelf = FetchedFolders(FetchedLock(places.home))
    with monkeypatch.context() as patched, pytest.raises(_KilledError):
        kill(patched, after)
        installer(places).install(str(make(tmp_path / "acme")), force=True)
    with shelf.changing():
        pass

    assert library(places).require("acme").version == "9"


@pytest.mark.parametrize("noted", [False, True])
def test_program_that_is_killed_while_removing_leaves_it_or_not(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noted: bool
) -> None:
    installer(places).install(str(make(tmp_path / "acme")))

    def killed(*_: object, **__: object) -> None:
        raise _KilledError

    with monkeypatch.context() as patched, pytest.raises(_KilledError):
        if noted:
            patched.setattr("amplifier.app.fetched.swap._discard", killed)
        else:
            patched.setattr(FetchedLock, "change", killed)
        installer(places).remove("acme")
    with FetchedFolders(FetchedLock(places.home)).changing():
        pass

    assert states(places) == ({} if noted else {"acme": "sound"})
    assert len(list((places.home / "collections").iterdir())) == (0 if noted else 1)


def test_what_a_killed_program_left_is_removed(places: Places) -> None:
    write(places.home / "collections/.staged-1/0/x", "x")
    write(places.home / "collections/.removed-00000001-gone/x", "x")
    (places.home / "collections/.removed-00000002-gone").symlink_to("/etc")
    with FetchedFolders(FetchedLock(places.home)).changing():
        pass

    assert not list((places.home / "collections").iterdir())
    assert Path("/etc").is_dir()


@pytest.mark.parametrize(
    "name",
    [".old-acme", ".old-1-x", ".removed-acme", ".old-00000000-..", ".old-00000000-"],
)
def test_folder_that_person_put_aside_stays_and_harms_nothing(
    places: Places, tmp_path: Path, name: str
) -> None:
    installer(places).install(str(make(tmp_path / "acme")))
    mine = write(places.home / "collections" / name / "notes.md", "Mine.")
    with FetchedFolders(FetchedLock(places.home)).changing():
        pass

    assert mine.read_text() == "Mine."
    assert states(places) == {"acme": "sound"}


# -- a project's own


def test_a_project_has_collections_of_its_own(places: Places, tmp_path: Path) -> None:
    installer(places).install(str(make(tmp_path / "user", version="1.0")))
    (change,) = installer(places, local=True).install(
        str(make(tmp_path / "local", version="2.0"))
    )

    assert change.path == places.root / ".amplifier/collections/acme"
    assert library(places).require("acme").version == "2.0"
    assert [
        found.version for found in list_collections(places) if found.name == "acme"
    ] == ["2.0", "1.0"]
    edit(change.path)
    trust(places, "profiles")
    with pytest.raises(ConfigError, match="accept acme --scope project"):
        library(places).require("acme")
    installer(places, local=True).remove("acme")
    assert library(places).require("acme").version == "1.0"


def test_untrusted_collections_are_neither_used_nor_changed(
    places: Places, tmp_path: Path
) -> None:
    make(places.root / ".amplifier/collections/evil", "foundation", "99")

    with pytest.raises(ConfigError, match="is not trusted"):
        library(places).require("foundation")
    assert library(places).all()["foundation"].level == "bundled"
    with pytest.raises(AmplifierError, match="run 'amplifier trust'"):
        installer(places, local=True).install(str(make(tmp_path / "acme")))


def test_what_others_changed_meanwhile_is_not_trusted(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer(places, local=True).install(str(make(tmp_path / "acme")))
    put = FetchedFolders.put

    def pulled(
        shelf: FetchedFolders,
        waiting: Mapping[str, Path],
        entries: Mapping[str, FetchedEntry],
    ) -> None:
        put(shelf, waiting, entries)
        write(places.root / ".amplifier/profiles/theirs.md", PROFILE)

    monkeypatch.setattr(FetchedFolders, "put", pulled)
    installer(places, local=True).install(str(make(tmp_path / "other", "other")))
    decision = ProjectFiles(places).judge("profiles")

    assert decision is not None
    assert not decision.trusted
    assert ".amplifier/profiles/theirs.md" in decision.changed


def test_a_lock_file_that_others_changed_has_to_be_looked_at(
    places: Places, tmp_path: Path
) -> None:
    installer(places, local=True).install(str(make(tmp_path / "acme")))
    lock = places.root / ".amplifier/collections.lock"
    noted = json.loads(lock.read_text())
    noted["collections"]["acme"]["source"] = str(tmp_path / "evil")
    lock.write_text(json.dumps(noted))

    with pytest.raises(AmplifierError, match=r"collections\.lock"):
        installer(places, local=True).update()


def test_the_catalogue_of_settings_counts_from_their_file(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(places.root / "shared/low", "low")
    make(tmp_path / "far/mid", "mid")
    monkeypatch.setenv("FAR", str(tmp_path / "far"))
    write(
        places.root / ".amplifier/settings.yaml",
        "collections: {catalogue: {low: ./shared/low, mid: '${FAR}/mid'}}\n",
    )
    trust(places, "settings")
    changes = [*installer(places).install("low"), *installer(places).install("mid")]

    assert [(change.name, change.source) for change in changes] == [
        ("low", "low"),
        ("mid", "mid"),
    ]


def test_without_a_project_there_is_no_place(places: Places) -> None:
    with pytest.raises(AmplifierError, match="leave --scope project away"):
        installer(Places.find(places.home.parent), local=True)


def test_two_installers_do_not_meet(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amplifier.app.fetched.swap._PATIENCE", 0.05)
    with (
        FetchedFolders(FetchedLock(places.home)).changing(),
        pytest.raises(OSError, match="being written by"),
    ):
        installer(places).install(str(make(tmp_path / "acme")))
    assert os.listdir(places.home / "collections") == []
