"""The store: outside the project, by content, and nothing trusted that is not certain."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from amplifier_kit import trust
from amplifier_kit.files.private import PrivateFile
from amplifier_kit.trust import PROJECT_FILES, DeclaredItem, TrustStore
from amplifier_sdk.jsontypes import JSONValue


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with one script."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "run.sh").write_text("echo hi\n")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    """Return an empty store."""
    return TrustStore(PrivateFile(tmp_path / "home" / "trust" / "projects.json"))


def test_what_is_used_is_what_was_judged(project: Path, store: TrustStore) -> None:
    decision = store.require(project, "hooks", ["run.sh"])
    (project / "run.sh").write_text("rm -rf /\n")
    assert decision.contents == {"run.sh": b"echo hi\n"}
    store.grant(decision)
    assert not store.require(project, "hooks", ["run.sh"]).trusted


def test_where_nothing_is_there_is_nothing_to_trust(
    project: Path, store: TrustStore
) -> None:
    decision = store.require(project, "mcp", [*PROJECT_FILES["mcp"], "deep/er/x"])
    assert decision.trusted
    assert decision.contents == {}


def test_a_file_that_appears_is_a_change(project: Path, store: TrustStore) -> None:
    items = ["run.sh", "deep/later.sh"]
    store.grant(store.require(project, "hooks", items))
    (project / "deep").mkdir()
    assert store.require(project, "hooks", items).trusted
    (project / "deep" / "later.sh").touch()
    assert store.require(project, "hooks", items).changed == ("deep/later.sh",)


def test_what_is_declared_counts(project: Path, store: TrustStore) -> None:
    def trusted(url: JSONValue) -> bool:
        return store.require(
            project, "mcp", [DeclaredItem(name="url", value=url)]
        ).trusted

    store.grant(
        store.require(
            project, "mcp", [DeclaredItem(name="url", value={"a": 1, "b": 2})]
        )
    )
    assert trusted({"b": 2, "a": 1})
    assert not trusted({"a": 1, "b": 3})
    assert not trusted("https://evil.example")


def test_an_item_more_is_a_change_unless_it_is_not_there(
    project: Path, store: TrustStore
) -> None:
    (project / "b.sh").touch()
    store.grant(store.require(project, "hooks", ["run.sh"]))
    assert store.require(project, "hooks", ["run.sh", "b.sh"]).changed == ("b.sh",)
    assert store.require(project, "hooks", ["run.sh", "c.sh"]).trusted


def test_a_part_of_what_was_trusted_is_trusted(
    project: Path, store: TrustStore
) -> None:
    (project / "deep").mkdir()
    (project / "deep" / "b.sh").touch()
    items = ["run.sh", "deep"]
    store.grant(store.require(project, "hooks", items))
    for item in items:
        assert store.require(project, "hooks", [item]).trusted
    (project / "deep" / "b.sh").unlink()
    assert store.require(project, "hooks", ["deep"]).changed == ("deep/b.sh",)
    assert store.require(project, "hooks", ["run.sh"]).trusted


def test_a_second_name_of_a_file_is_no_way_round(
    project: Path, store: TrustStore, tmp_path: Path
) -> None:
    os.link(project / "run.sh", tmp_path / "second")
    store.grant(store.require(project, "hooks", ["run.sh"]))
    assert store.require(project, "hooks", ["run.sh"]).trusted
    (tmp_path / "second").write_text("rm -rf /\n")
    assert not store.require(project, "hooks", ["run.sh"]).trusted


def test_a_folder_is_known_by_where_it_really_is(
    project: Path, store: TrustStore, tmp_path: Path
) -> None:
    store.grant(store.require(project, "hooks", ["run.sh"]))
    (tmp_path / "alias").symlink_to(project)
    assert store.require(tmp_path / "alias", "hooks", ["run.sh"]).trusted


@pytest.mark.parametrize(
    "name",
    ["", "/etc/passwd", "../x", "a/../../x", "./run.sh", "a//b", "a\0b", "run.sh/"],
)
def test_an_item_is_a_plain_path_below_the_folder(
    name: str, project: Path, store: TrustStore
) -> None:
    decision = store.require(project, "hooks", [name])
    assert not decision.trusted
    assert not decision.can_be_trusted
    assert "no path below the folder" in decision.reason


def test_what_is_no_file_is_not_waited_for(project: Path, store: TrustStore) -> None:
    os.mkfifo(project / "pipe")
    decision = store.require(project, "hooks", ["pipe"])
    assert "no plain file" in decision.reason
    assert not decision.can_be_trusted


def test_a_file_in_a_folders_place_is_no_folder(
    project: Path, store: TrustStore
) -> None:
    assert "link" in store.require(project, "hooks", ["run.sh/x"]).reason


def test_a_name_that_the_system_refuses_is_not_trusted(
    project: Path, store: TrustStore
) -> None:
    assert "cannot be read" in store.require(project, "hooks", ["x" * 300]).reason


def test_names_are_shown_harmlessly(project: Path, store: TrustStore) -> None:
    name = "\x1b[2J"
    (project / name).touch()
    store.grant(store.require(project, "hooks", [name]))
    (project / name).write_text("x")
    assert store.require(project, "hooks", [name]).reason.isprintable()


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ("_MAX_FILES", "2 files"),
        ("_MAX_BYTES", "2 bytes"),
        ("_MAX_DEPTH", "2 folders deep"),
    ],
)
def test_what_is_too_much_is_not_trusted(
    limit: str,
    reason: str,
    project: Path,
    store: TrustStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from amplifier_kit.trust import fingerprints

    deep = project / "x" / "x" / "x" / "x"
    deep.mkdir(parents=True)
    (project / "x" / "a").write_text("abc")
    monkeypatch.setattr(fingerprints, limit, 2)
    decision = store.require(project, "hooks", ["x"])
    assert reason in decision.reason
    assert not decision.can_be_trusted


def test_a_file_that_changes_while_it_is_read_is_not_trusted(
    project: Path, store: TrustStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = os.read

    def changing(handle: int, count: int) -> bytes:
        with (project / "run.sh").open("a") as file:
            file.write("x" if (project / "run.sh").stat().st_size < 20 else "")
        return read(handle, count)

    monkeypatch.setattr(os, "read", changing)
    assert (
        "changed while it was read"
        in store.require(project, "hooks", ["run.sh"]).reason
    )


def test_a_project_that_holds_the_store_is_not_trusted(project: Path) -> None:
    store = TrustStore(PrivateFile(project / ".amplifier" / "trust.json"))
    decision = store.require(project, "hooks", ["run.sh"])
    assert "lies in the project" in decision.reason
    assert not decision.can_be_trusted
    # as in `/`: it brings nothing along
    assert store.require(project, "hooks", ["none.sh"]).trusted


def test_a_folder_that_is_missing_is_not_trusted(
    store: TrustStore, tmp_path: Path
) -> None:
    assert not store.require(tmp_path / "nowhere", "hooks", ["x"]).trusted


def test_what_is_declared_is_json(store: TrustStore, project: Path) -> None:
    value: JSONValue = {1, 2}  # type: ignore[assignment]  # what JSON lacks
    assert not store.require(
        project, "mcp", [DeclaredItem(name="x", value=value)]
    ).can_be_trusted


DAMAGED = {
    "torn": "{",
    "list": "[]",
    "folder": '{"FOLDER": 3}',
    "kind": '{"FOLDER": {"hooks": 3}}',
    "items": '{"FOLDER": {"hooks": {"granted": 1}}}',
    "time": '{"FOLDER": {"hooks": {"items": {}}}}',
}


@pytest.mark.parametrize("damage", sorted(DAMAGED))
def test_a_damaged_store_trusts_nothing(
    damage: str, store: TrustStore, project: Path
) -> None:
    store.grant(store.require(project, "hooks", ["run.sh"]))
    store.file.path.write_text(DAMAGED[damage].replace("FOLDER", str(project)))
    assert (
        "what was trusted cannot be read"
        in store.require(project, "hooks", ["run.sh"]).reason
    )
    with pytest.raises((OSError, ValueError)):
        store.list()


def test_what_was_trusted_and_is_other_now_is_lost(
    project: Path, store: TrustStore
) -> None:
    before = store.require(project, "mcp", ["a.json"])
    assert store.lost(before) == ""
    (project / "a.json").write_text("1")
    new = store.require(project, "mcp", ["a.json"])
    assert store.lost(new) == "", "nobody trusted any of it"
    store.grant(new)
    assert store.lost(store.require(project, "mcp", ["a.json"])) == ""
    assert store.lost(before) == "", "it has come since it was looked for"

    (project / "a.json").write_text("2")
    assert "it changed since it was trusted" in store.lost(
        store.require(project, "mcp", ["a.json"])
    )
    (project / "a.json").unlink()
    assert (
        store.lost(store.require(project, "mcp", ["a.json"]))
        == "it was trusted, and is gone: 'a.json'"
    )

    (project / "a.json").write_text("3")
    store.file.path.write_text("{")
    assert "what was trusted cannot be read" in store.lost(
        store.require(project, "mcp", ["a.json"])
    )
    assert store.lost(before) == ""


def test_trust_is_listed_and_taken_back(store: TrustStore, project: Path) -> None:
    assert store.list() == ()
    assert not store.revoke(project)
    for kind in ("hooks", "mcp", "agents"):
        store.grant(store.require(project, kind, ["run.sh"]))
    first, *others = store.list()
    assert (first.folder, first.kind, sorted(first.items)) == (
        str(project),
        "agents",
        ["run.sh"],
    )
    assert first.granted > 0
    assert [grant.kind for grant in others] == ["hooks", "mcp"]
    assert store.revoke(project, "mcp")
    assert not store.revoke(project, "mcp")
    assert [grant.kind for grant in store.list()] == ["agents", "hooks"]
    assert store.revoke(project)
    assert store.list() == ()
    assert not store.require(project, "hooks", ["run.sh"]).trusted


@pytest.mark.parametrize("moved", [True, False])
def test_the_persons_own_store_is_in_their_home(
    moved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "x") if moved else "")
    home = tmp_path / ("x" if moved else ".amplifier")
    assert TrustStore.in_home().file.path == home / "trust" / "projects.json"


def test_public_names_are_listed() -> None:
    assert dir(trust) == sorted(trust.__all__)
    assert all(getattr(trust, name) is not None for name in trust.__all__)
