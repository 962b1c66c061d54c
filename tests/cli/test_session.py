"""Stored sessions at the command line: found, shown, changed, copied, moved, mended and deleted."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner, Result

from amplifier.app.directories import AppDirs
from amplifier.app.doctor.storage import check_sessions
from amplifier.app.store.store import ProjectSessions
from amplifier.cli import main
from amplifier_kit.installation import install_command
from amplifier_sdk.jsontypes import JSONObject
from tests.app.store.talks import HELLO, ROME, interrupt, keep

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def call(*arguments: str, expect: int = 0, **options: str) -> Result:
    result = CliRunner().invoke(main, ["session", *arguments], **options)  # type: ignore[arg-type]  # click's own options
    assert result.exit_code == expect, result.output
    return result


def answer(*arguments: str, expect: int = 0) -> list[JSONObject]:
    data: list[JSONObject] = json.loads(
        call(*arguments, "--json", expect=expect).stdout
    )
    return data


def ids(*arguments: str) -> list[object]:
    return [each["session_id"] for each in answer(*arguments)]


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectSessions:
    """The store of an empty project, the working directory."""
    for name in ("shop", "other"):
        (tmp_path / name / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    return ProjectSessions.of(AppDirs.find())


@pytest.fixture
def talks(store: ProjectSessions) -> ProjectSessions:
    """Two sessions and a child."""

    async def fill() -> None:
        await keep(
            store, "alpha", [HELLO], created=1000.0, prompt="Hello", tags=("food",)
        )
        await keep(
            store,
            "beta",
            [HELLO, ROME],
            created=2000.0,
            prompt="Hello again",
            name="trip",
        )
        await keep(
            store,
            "beta-1_scout",
            [HELLO],
            created=2001.0,
            parent_id="beta",
            agent_name="scout",
        )

    anyio.run(fill)
    return store


def test_there_are_no_sessions() -> None:
    assert "There is no session." in call("list").stderr
    assert "There is no session." in call("tree").stderr
    assert answer("list") == []


def test_sessions_are_listed_with_their_whole_ids(talks: ProjectSessions) -> None:
    lines = call("list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["ID", "beta", "alpha"]
    assert lines[1].endswith("2      trip")
    assert ids("list", "--children") == ["beta-1_scout", "beta", "alpha"]
    assert ids("list", "--tag", "food") == ["alpha"]
    assert ids("list", "--limit", "1") == ["beta"]
    assert "1 more; --limit 2 shows them" in call("list", "--limit", "1").stderr
    assert sorted(answer("list")[0]) == sorted(
        (
            *(
                "agent_name",
                "cost_usd",
                "created",
                "folder",
                "forked_from",
                "instructions",
                "model",
                "name",
                "parent_id",
                "profile",
            ),
            *(
                "prompt",
                "provider",
                "session_id",
                "spending",
                "state",
                "tags",
                "turn_count",
                "updated",
                "usage",
            ),
            *("command", "working_dir"),
        )
    )


def test_sessions_of_other_projects_are_there_when_asked_for(
    talks: ProjectSessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "other")
    assert ids("list") == []
    assert ids("list", "--all-projects") == ["beta", "alpha"]
    assert "/work" in call("list", "--all-projects").stdout
    call("show", "alpha", expect=1)
    call("show", "alpha", "--all-projects")
    call("rename", "alpha", "mine", "--all-projects")
    assert talks.find("mine").record.session_id == "alpha"


@pytest.mark.parametrize("text", [None, "{"], ids=["missing", "damaged"])
def test_a_damaged_session_is_told_beside_the_others(
    talks: ProjectSessions, text: str | None
) -> None:
    file = talks.folder("alpha") / "metadata.json"
    file.unlink() if text is None else file.write_text(text)
    result = call("list")
    assert "beta" in result.stdout
    assert "alpha is damaged" in result.stderr


@pytest.mark.parametrize("name", ["alpha", "alp"])
def test_a_session_whose_transcript_is_gone_is_refused(
    talks: ProjectSessions, name: str
) -> None:
    (talks.folder("alpha") / "transcript.jsonl").unlink()
    remedy = "'amplifier session repair alpha'"
    assert remedy in call("list").stderr
    assert remedy in call("show", name, expect=1).stderr
    resumed = CliRunner().invoke(main, ["resume", name, "Go on"])
    assert (resumed.exit_code, remedy in resumed.stderr) == (1, True)
    remedies = [finding.remedy for finding in check_sessions(AppDirs.find())]
    assert "amplifier session repair alpha --all-projects" in remedies
    assert "turns that were stored: 1" in call("diagnose", name, expect=1).stdout
    assert "It is repaired." in call("repair", name).stderr
    assert "turn_count" not in call("show", name).stdout


def test_a_damaged_line_is_told_where_a_session_is_shown(
    talks: ProjectSessions,
) -> None:
    path = talks.folder("alpha") / "transcript.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Hi.", b"Ho."))
    shown = call("show", "alpha").stderr
    assert "transcript.jsonl is damaged. line 3: the checksum does not fit" in shown
    assert "'amplifier session repair alpha' moves it aside" in shown
    (piece,) = json.loads(call("show", "alpha", "--json").stdout)["damage"]
    assert piece == {
        "file": "transcript.jsonl",
        "problem": "line 3: the checksum does not fit",
    }


def test_a_journal_with_a_broken_header_is_told_and_repaired(
    talks: ProjectSessions,
) -> None:
    path = talks.folder("alpha") / "journal.jsonl"
    path.write_bytes(b"[" + path.read_bytes()[1:])
    assert "(damaged) Hello" in call("list").stdout
    assert "journal.jsonl is damaged" in call("show", "alpha").stderr
    assert "journal.jsonl: line 1" in call("diagnose", "alpha", expect=1).stdout
    call("repair", "alpha")
    assert "(damaged)" not in call("list").stdout


def test_sessions_are_deleted_with_one_look_at_the_others(
    talks: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []
    families = ProjectSessions.families

    def looking(self: ProjectSessions, session_ids: list[str]) -> object:
        looks.append(session_ids)
        return families(self, session_ids)

    monkeypatch.setattr(ProjectSessions, "families", looking)
    monkeypatch.setattr(ProjectSessions, "listing", lambda _: pytest.fail("a listing"))
    output = call("remove", "-y", "alpha", "beta-1_scout", "beta", "trip").stderr
    assert looks == [["alpha", "beta-1_scout", "beta"]]
    deleted = ("alpha", "beta-1_scout", "beta")
    assert output.splitlines() == [f"deleted: {name}" for name in deleted]


def test_a_session_is_shown(talks: ProjectSessions) -> None:
    shown = call("show", "trip").stdout
    assert "turn_count: 2" in shown
    assert re.search(r"^created: \d{4}-", shown, re.MULTILINE)
    assert "assistant:\nRome is warm." in shown
    assert "It is Monday." not in shown
    assert "It is Monday." in call("show", "trip", "--detail").stdout
    assert "Hi." not in call("show", "trip", "--limit", "1").stdout
    data = json.loads(call("show", "beta", "--json").stdout)
    assert [each["turn"] for each in data["messages"]] == ["t1", "t1", "t2", "t2"]
    assert data["interrupted"] is False


def test_what_runs_and_what_was_interrupted_are_told_apart(
    talks: ProjectSessions,
) -> None:
    anyio.run(interrupt, talks, talks.find("alpha"))
    assert "(interrupted) Hello" in call("list").stdout
    assert {each["session_id"]: each["state"] for each in answer("list")} == {
        "beta": "idle",
        "alpha": "interrupted",
    }
    assert "Its last turn was interrupted." in call("show", "alpha").stderr

    async def meanwhile() -> list[str]:
        async with talks.open(talks.find("alpha").record):
            return await anyio.to_thread.run_sync(
                lambda: [
                    call("tree", "alpha").stdout,
                    call("show", "alpha").stderr,
                    call("diagnose").stderr,
                ]
            )

    tree, shown, diagnosed = anyio.run(meanwhile)
    assert tree == "alpha  (open) Hello\n"
    assert "Its last turn runs." in shown
    assert "Nothing is wrong." in diagnosed


def test_what_is_shown_has_no_secrets_and_obeys_no_text(store: ProjectSessions) -> None:
    said = f"My token is {TOKEN} \x1b[31m"

    async def fill() -> None:
        await keep(store, "one", [[{"role": "user", "content": said}]], prompt=said)

    anyio.run(fill)
    for arguments in (
        ["list"],
        ["show", "one"],
        ["search", "token"],
        ["tree"],
        ["export", "one"],
    ):
        result = call(*arguments)
        assert TOKEN not in result.stdout
        assert "\x1b" not in result.stdout
        assert "My token is" in result.stdout
    assert TOKEN in call("export", "one", "--as-is").stdout


def test_a_text_is_found(talks: ProjectSessions) -> None:
    assert "message 5" in call("search", "rome is").stdout
    assert answer("search", "FOOD") == [
        {
            "session_id": "alpha",
            "name": None,
            "place": "tag",
            "message": None,
            "excerpt": "food",
        }
    ]
    assert "Nothing was found." in call("search", "nowhere", expect=1).stderr
    assert answer("search", "nowhere", expect=1) == []
    (talks.folder("alpha") / "transcript.jsonl").write_text("no log\n")
    assert "Not searched" in call("search", "rome is").stderr


def test_a_name_is_given_and_taken_away(talks: ProjectSessions) -> None:
    assert "It is called dinner" in call("rename", "alpha", "dinner").stderr
    assert talks.find("dinner").record.session_id == "alpha"
    assert "alpha has no name" in call("rename", "dinner").stderr
    assert talks.find("alpha").record.name is None


def test_tags_are_given_and_taken_away(talks: ProjectSessions) -> None:
    assert call("tag", "alpha", "wine", "food").stdout == "food\nwine\n"
    assert call("tag", "alpha", "-r", "food").stdout == "wine\n"
    assert call("tag", "alpha").stdout == "wine\n"
    assert talks.find("alpha").record.tags == ("wine",)


def test_a_session_is_forked(talks: ProjectSessions) -> None:
    made = call("fork", "trip", "--turn", "1", "--name", "other").stdout.strip()
    assert talks.find("other").record.session_id == made
    assert json.loads(call("fork", "trip", "--json").stdout)["turn_count"] == 2
    call("fork", "trip", "--turn", "1", "--message", "1", expect=2)
    assert "has 2 turns" in call("fork", "trip", "--turn", "7", expect=1).stderr
    assert f"{made} (from beta)  other" in call("tree").stdout


def test_the_tree_shows_who_made_whom(talks: ProjectSessions) -> None:
    assert call("tree").stdout == "beta  trip\n└─ beta-1_scout [scout]\nalpha  Hello\n"
    assert (
        call("tree", "--limit", "1").stdout == "beta  trip\n└─ beta-1_scout [scout]\n"
    )
    (tree,) = answer("tree", "beta")
    children = tree["children"]
    assert isinstance(children, list)
    assert [child["session_id"] for child in children] == ["beta-1_scout"]


def test_sessions_are_deleted_when_the_person_says_so(talks: ProjectSessions) -> None:
    assert "and 1 that came of it?" in call("remove", "trip", input="n\n").stderr
    assert len(talks.all(children=True)) == 3
    assert "deleted: beta" in call("remove", "trip", input="y\n").stderr
    call("remove", "alpha", "-y")
    assert talks.all(children=True) == []


def test_old_sessions_are_deleted(talks: ProjectSessions) -> None:
    assert call("cleanup", "--older-than", "4w", "--dry-run").stdout == "alpha\n"
    assert json.loads(
        call("cleanup", "--older-than", "12h", "--dry-run", "--json").stdout
    ) == {
        "deleted": [],
        "would_delete": ["alpha"],
        "open": [],
    }
    call("cleanup", "--older-than", "1", input="n\n")
    assert len(talks.all()) == 2
    assert json.loads(call("cleanup", "--older-than", "1d", "-y", "--json").stdout)[
        "deleted"
    ] == ["alpha"]
    assert "There is no such session." in call("cleanup", "--older-than", "1d").stderr
    call("cleanup", "--older-than", "soon", expect=2)


def test_an_open_session_stays(talks: ProjectSessions) -> None:
    def change() -> list[str]:
        return [
            call("rename", "alpha", "x", expect=1).stderr,
            call("cleanup", "--older-than", "1d", "-y").stderr,
        ]

    async def meanwhile() -> list[str]:
        async with talks.open(talks.find("alpha").record):
            return await anyio.to_thread.run_sync(change)

    renamed, cleaned = anyio.run(meanwhile)
    assert "It is being written by this process itself" in renamed
    assert "it is open, and stays: alpha" in cleaned


@pytest.mark.parametrize(
    "name", ["t.md", "t.html", "t.json", "t"], ids=["markdown", "html", "json", "none"]
)
def test_a_session_is_exported_to_a_file(
    talks: ProjectSessions, tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    call("export", "trip", "-o", str(file))
    start = {".md": "# trip\n", ".html": "<!doctype html>"}.get(file.suffix, "{")
    assert file.read_text().startswith(start)
    assert file.stat().st_mode & 0o077 == 0


def test_an_exported_session_is_imported(
    talks: ProjectSessions, tmp_path: Path
) -> None:
    call("export", "trip", "-o", str(tmp_path / "t.json"))
    call("remove", "trip", "-y")
    assert call("import", str(tmp_path / "t.json")).stdout == "beta\n"
    assert "Rome is warm." in call("show", "trip").stdout
    assert (
        json.loads(call("import", str(tmp_path / "t.json"), "--json").stdout)["name"]
        == "trip"
    )
    data = json.loads((tmp_path / "t.json").read_text())
    data["session"]["session_id"] = "half \ud800\x1b[2J"
    (tmp_path / "t.json").write_text(json.dumps(data))
    assert call("import", str(tmp_path / "t.json")).stdout == "half \\ud800\\x1b[2J\n"
    (tmp_path / "t.json").write_text("{}")
    assert (
        "no exported session"
        in call("import", str(tmp_path / "t.json"), expect=1).stderr
    )


def test_what_is_wrong_is_told_and_repaired(talks: ProjectSessions) -> None:
    assert "Nothing is wrong." in call("diagnose").stderr
    assert "Nothing was wrong." in call("repair", "alpha").stderr
    anyio.run(interrupt, talks, talks.find("alpha"))
    path = talks.folder("alpha") / "transcript.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Hi.", b"Ho."))
    (talks.folder("beta") / "metadata.json").write_text("{")
    output = call("diagnose", expect=1).stdout
    assert "alpha:\n" in output
    assert 'may have had their effect, or not: rm {"path": "/tmp/x"}' in output
    assert "were not started: ls" in output
    assert "transcript.jsonl: line 3" in output
    assert "its record: " in output
    assert [each["sound"] for each in answer("diagnose", "alpha", expect=1)] == [False]
    assert "It is repaired." in call("repair", "alpha").stderr
    assert json.loads(call("repair", "beta", "--json").stdout)["record"]
    assert "Nothing is wrong." in call("diagnose").stderr


def test_arguments_of_call_in_doubt_are_told_without_secrets(
    talks: ProjectSessions,
) -> None:
    anyio.run(partial(interrupt, path=f"/tmp/{TOKEN}"), talks, talks.find("alpha"))
    output = call("diagnose", "alpha", expect=1).stdout
    assert 'or not: rm {"path": "/tmp/[REDACTED' in output
    assert TOKEN not in output


def test_sessions_of_folder_that_was_renamed_are_moved_along(
    talks: ProjectSessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anyio.run(
        partial(keep, talks, "here", [HELLO], working_dir=str(tmp_path / "shop/a"))
    )
    old, new = tmp_path / "shop", tmp_path / "store"
    old.rename(new)
    monkeypatch.chdir(new)
    hint = f"'amplifier session move {old}' brings them here"
    assert hint in call("list").stderr
    assert hint in call("show", "here", expect=1).stderr
    resumed = CliRunner().invoke(main, ["continue", "Go on"])
    assert (resumed.exit_code, hint in resumed.stderr) == (1, True)
    assert hint in call("move", str(tmp_path / "nowhere"), expect=1).stderr
    assert "it is this project" in call("move", ".", expect=1).stderr
    store = ProjectSessions.of(AppDirs.find())
    anyio.run(keep, store, "alpha")
    (talks.folder("beta") / "metadata.json").write_text("{")

    async def meanwhile() -> Result:
        async with talks.open(talks.find("beta-1_scout").record):
            return await anyio.to_thread.run_sync(call, "move", str(old))

    moved = anyio.run(meanwhile)
    assert moved.stdout.split() == ["beta", "here"]
    assert "it is open, and stays: beta-1_scout" in moved.stderr
    assert "this project has one of that id, so it stays: alpha" in moved.stderr
    assert store.find("here").record.working_dir == str(new / "a")
    assert not list(store.folder("here").glob("*.lock"))
    assert "'amplifier session repair beta'" in call("show", "beta", expect=1).stderr
    call("remove", "-y", "alpha")
    rest: JSONObject = {"moved": ["alpha", "beta-1_scout"], "open": [], "taken": []}
    assert json.loads(call("move", str(old), "--json").stdout) == rest


def test_another_projects_folder_that_is_gone_is_no_hint(
    talks: ProjectSessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anyio.run(partial(keep, talks, "here", working_dir=str(tmp_path / "shop")))
    (tmp_path / "shop").rename(tmp_path / "elsewhere")
    (tmp_path / "far/away/.git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "far/away")
    assert "session move" not in call("list").stderr


def test_sessions_are_not_changed_without_package_that_locks(
    talks: ProjectSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amplifier.app.sessions.selection.find_spec", lambda _: None)
    for arguments in (
        ["remove", "alpha"],
        ["fork", "alpha"],
        ["rename", "alpha", "x"],
        ["repair", "alpha"],
    ):
        assert install_command("amplifier[cli]") in call(*arguments, expect=1).stderr
    assert "Hello" in call("list").stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "Name either FOLDER, or a store with --to-store"),
        (
            ("/x", "--to-store", "files"),
            "Name either FOLDER, or a store with --to-store",
        ),
        (
            ("/x", "--session", "s1"),
            "--from-store, --session and --namespace go with --to-store",
        ),
        (("--to-store", "files"), "both stores are the same"),
        (("--to-store", "oracle://h/d"), "oracle: no store; known: files"),
    ],
)
def test_a_move_names_what_is_moved_and_where(
    arguments: tuple[str, ...], problem: str
) -> None:
    result = CliRunner().invoke(main, ["session", "move", *arguments])

    assert result.exit_code in (1, 2)
    assert problem in result.stderr
