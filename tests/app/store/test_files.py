"""The files of sessions: no id leads elsewhere, damage costs what it hits, others read nothing, secrets stay out."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio
import attrs
import pytest

from amplifier.app.store.store import ProjectSessions
from amplifier_kit.files.appendlog import LogFormatError, encode_line
from amplifier_sdk.errors import AmplifierError, ConfigError
from amplifier_sdk.journal import CallFinished, CallStarted, MessageWritten, TurnStarted
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.stores import LogEntry
from tests.app.store.talks import HELLO, record

NOBODY: Final = 65534


async def test_files_are_their_owners_alone(store: ProjectSessions) -> None:
    async with store.open(record()) as stored:
        await stored.note_turn(HELLO)
        assert stat.S_IMODE(stored.folder.stat().st_mode) == 0o700
        await stored.describe("It is made of this.\n")
        assert {
            stat.S_IMODE(file.stat().st_mode) for file in stored.folder.iterdir()
        } == {0o600}
        above = (store.sessions, store.root, store.root.parent)
        assert {stat.S_IMODE(folder.stat().st_mode) for folder in above} == {0o700}
    stored.folder.chmod(0o755)
    async with store.open(record()):
        assert stat.S_IMODE(stored.folder.stat().st_mode) == 0o700


async def test_what_a_killed_writer_left_behind_is_removed(
    store: ProjectSessions,
) -> None:
    async with store.open(record()) as stored:
        old, new = (stored.folder / f".amplifier-{name}.tmp" for name in ("old", "new"))
    old.touch()
    new.touch()
    os.utime(old, (1.0, 1.0))
    async with store.open(record()):
        assert not old.exists()
        assert new.exists()


async def test_a_folder_of_another_session_is_refused(store: ProjectSessions) -> None:
    async with store.open(record("s1")):
        pass
    store.folder("s1").rename(store.folder("s2"))
    with pytest.raises(AmplifierError, match="is that of session 's1'"):
        async with store.open(record("s2")):
            raise AssertionError


async def test_session_with_foreign_transcript_file_is_released(
    store: ProjectSessions,
) -> None:
    async with store.open(record()) as stored:
        await stored.note_turn(HELLO)
    (stored.folder / "transcript.jsonl").write_text("shopping list\n")
    for _ in range(2):
        with pytest.raises(LogFormatError):
            async with store.open(record()):
                raise AssertionError


@pytest.mark.parametrize(
    "forged",
    [
        {"kind": "message", "data": {"at": "0", "turn": "t", "message": {}}},
        {"kind": "note", "data": {}},
    ],
    ids=["message", "kind"],
)
async def test_a_record_that_is_no_message_is_damage(
    store: ProjectSessions, forged: JSONObject
) -> None:
    async with store.open(record()) as stored:
        await stored.note_turn(HELLO)
    path = stored.folder / "transcript.jsonl"
    line = encode_line(LogEntry(kind=str(forged["kind"]), data=forged["data"], at=1.0))
    path.write_bytes(path.read_bytes() + line + b"\n")
    async with store.open(record()) as stored:
        assert stored.messages == HELLO
        assert len(stored.damage) == 1


HOSTILE = [
    *(
        "../x",
        "..",
        ".",
        "...",
        "../../etc/passwd",
        "/etc/passwd",
        "//",
        "a/b",
        "a/../b",
        "./a",
        "a/",
        "/a",
        "~",
        "~root",
    ),
    *(
        "..\\x",
        "C:\\x",
        "\\\\host\\share",
        "a\\b",
        "%2e%2e",
        "%2e%2e%2f",
        "..%2fx",
        "..%c0%afx",
        "\u2025/x",
        "\uff0e\uff0e/x",
    ),
    *(
        "a\x00b",
        "\x00",
        "a\nb",
        "a\rb",
        "\t",
        " ",
        "a ",
        " a",
        "a.",
        "\x1b[2J",
        "\x7f",
        "\u202egnp",
        "\ufeffa",
        "\u200b",
    ),
    *(
        "",
        "-rf",
        "--",
        "*",
        "?",
        "a*",
        "[a]",
        "$HOME",
        "`id`",
        "$(id)",
        "a;id",
        "a|b",
        "a>b",
        "'a'",
        '"a"',
        "!x",
        "#x",
    ),
    *(
        "CON",
        "nul",
        "com1",
        "lpt9.txt",
        "A",
        "a",
        "\xfc",
        "u\u0308",
        "\u0130",
        "\ud800",
        "\U0001f600",
        "x" * 300,
        "\xfc" * 200,
    ),
    *(
        "metadata.json",
        "sessions",
        "deleted",
        "journal.jsonl.lock",
        ".git",
        "=a-0",
        "a" * 100,
        "a" * 101,
    ),
]


def test_no_id_leads_elsewhere_and_each_comes_back_whole(
    store: ProjectSessions,
) -> None:
    folders = set()

    async def make() -> None:
        for session_id in HOSTILE:
            async with store.open(record(session_id)) as stored:
                assert stored.folder.parent == store.sessions
                assert (
                    stored.folder.resolve()
                    == store.sessions.resolve() / stored.folder.name
                )
                folders.add(stored.folder.name.casefold())

    anyio.run(make)
    assert len(HOSTILE) > 60
    assert len(folders) == len(set(HOSTILE)) == len(HOSTILE)
    assert {found.record.session_id for found in store.all()} == set(HOSTILE)
    for session_id in HOSTILE:
        assert store.find(session_id).record.session_id == session_id
    assert [path.name for path in store.root.iterdir()] == ["sessions"]


async def test_what_another_version_knows_of_a_session_stays(
    store: ProjectSessions,
) -> None:
    async with store.open(record()):
        pass
    file = store.folder("s1") / "metadata.json"
    file.write_text(
        json.dumps({**json.loads(file.read_text()), "mood": {"now": "fine"}})
    )
    async with store.open(record()) as stored:
        await stored.write(attrs.evolve(stored.record, name="mine"))
    data = json.loads(file.read_text())
    assert (data["mood"], data["name"], data["version"]) == ({"now": "fine"}, "mine", 1)


async def test_a_damaged_record_hides_no_other_session(store: ProjectSessions) -> None:
    for name in ("good", "bad", "newer"):
        async with store.open(record(name)):
            pass
    (store.folder("bad") / "metadata.json").write_text("{")
    newer = json.loads((store.folder("newer") / "metadata.json").read_text())
    (store.folder("newer") / "metadata.json").write_text(
        json.dumps({**newer, "version": 99})
    )
    (store.sessions / "log-only").mkdir()
    assert [found.record.session_id for found in store.all()] == ["good"]
    assert {folder.name for folder, _ in store.damaged()} == {"bad", "newer"}
    with pytest.raises(ConfigError, match="Update amplifier"):
        async with store.open(record("newer")):
            raise AssertionError


@pytest.fixture
def others() -> Iterator[ProjectSessions]:
    """A store of the superuser's in a folder of somebody who is none, and whom the tests are."""
    root = Path(tempfile.mkdtemp())
    is_superuser = os.geteuid() == 0
    if is_superuser:
        os.chown(root, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    yield ProjectSessions(root)
    for folder in (root, root / "sessions", root / "sessions" / "closed"):
        folder.chmod(0o700)
    if is_superuser:
        os.seteuid(0)
    shutil.rmtree(root)


async def test_a_folder_that_cannot_be_read_hides_no_other_session(
    others: ProjectSessions,
) -> None:
    for name in ("good", "closed"):
        async with others.open(record(name)):
            pass
    others.folder("closed").chmod(0)
    assert [found.record.session_id for found in others.all()] == ["good"]
    assert [
        (folder.name, "Permission denied" in problem)
        for folder, problem in others.damaged()
    ] == [("closed", True)]
    with pytest.raises(ConfigError, match="Permission denied"):
        async with others.open(record("closed")):
            raise AssertionError
    for folder in (others.sessions, others.root):
        folder.chmod(0)
        assert others.all() == []
        assert [folder for folder, _ in others.damaged()] == [others.sessions]


async def test_a_damaged_line_loses_itself_alone(store: ProjectSessions) -> None:
    async with store.open(record()) as stored:
        for _ in range(3):
            await stored.note_turn([*stored.messages, *HELLO])
        path = stored.folder / "transcript.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"Hi", b"Ho")
    path.write_bytes(b"".join(lines))
    async with store.open(record()) as stored:
        assert len(stored.damage) == 1
        assert len(stored.messages) == 5


async def test_what_is_written_can_be_cleaned(store: ProjectSessions) -> None:
    def clean(data: JSONObject) -> JSONObject:
        written: JSONObject = json.loads(json.dumps(data).replace("s3cret", "***"))
        return written

    said: list[MessageDict] = [{"role": "user", "content": "s3cret"}]
    async with store.open(record()) as stored:
        stored.clean_with(clean)
        await stored.note_prompt("s3cret")
        await stored.journal.append(TurnStarted(turn_id="t1", prompt="s3cret"))
        await stored.journal.append(
            MessageWritten(
                turn_id="t1", message={"role": "assistant", "content": "s3cret"}
            )
        )
        await stored.journal.append(
            CallStarted(turn_id="t1", call_id="c0", tool_name="a")
        )
        await stored.journal.append(
            CallFinished(turn_id="t1", call_id="c0", success=True, output="s3cret")
        )
        assert b"s3cret" not in b"".join(
            file.read_bytes() for file in stored.folder.iterdir()
        )
        await stored.note_turn(said)
        assert b"s3cret" not in b"".join(
            file.read_bytes() for file in stored.folder.iterdir()
        )
        assert stored.messages == said
