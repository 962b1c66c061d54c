"""A store that refuses: every command that uses one says so in one line, and nothing is half done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import psycopg
import pytest

from amplifier.testing.postgres import (
    PASSWORD,
    PostgresServer,
    find_programs,
    running_server,
    small_disk,
)
from tests.cli.programs import call, write_plan

COMMANDS: Final[dict[str, Sequence[str]]] = {
    "run": ("run", "--plan", "PLAN", "hello"),
    "continue": ("continue", "hello"),
    "session list": ("session", "list"),
    "session show": ("session", "show", "s1"),
    "session search": ("session", "search", "milk"),
    "session cleanup": ("session", "cleanup", "--older-than", "1h", "--yes"),
    "questions": ("questions",),
    "answer": ("answer", "q1", "allow"),
    "serve": ("serve", "--port", "0", "--plan", "PLAN"),
    "worker": ("worker", "--engine", "dbos+sqlite:///ENGINE", "--plan", "PLAN"),
    "token add": ("token", "add", "laptop"),
    "token list": ("token", "list"),
    "token remove": ("token", "remove", "laptop"),
}
ALL: Final = pytest.mark.parametrize("name", COMMANDS)

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    programs = find_programs()
    if programs is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    with running_server(programs) as running:
        yield running


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)


def refused(name: str, folder: Path, url: str) -> str:
    """Run a command with a store that refuses; return the one line that it says."""
    known = {"PLAN": str(write_plan(folder, ["Milk."]))}
    known["dbos+sqlite:///ENGINE"] = f"dbos+sqlite:///{folder}/engine.db"
    words = [known.get(word, word) for word in COMMANDS[name]]
    result = call(*words, "--store", url, expect=1)
    (line,) = result.output.splitlines()
    assert line.startswith("Error: "), line
    assert PASSWORD not in line
    return line


@ALL
def test_no_server_is_said(name: str, tmp_path: Path) -> None:
    line = refused(name, tmp_path, "postgresql://postgres@127.0.0.1:1/postgres")

    assert "127.0.0.1:1" in line
    assert line.endswith("Check that the server runs, and try again")


@ALL
def test_a_wrong_password_is_said_and_not_repeated(
    name: str, tmp_path: Path, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "wrong-one")
    line = refused(name, tmp_path, server.url())

    assert line.endswith("Check the user and the password")
    assert "wrong-one" not in line


@pytest.fixture(scope="module")
def newer(server: PostgresServer) -> str:
    """A database whose tables a newer version made."""
    with psycopg.connect(server.url(), autocommit=True, password=PASSWORD) as one:
        one.execute("CREATE DATABASE newer")
    with psycopg.connect(server.url("newer"), password=PASSWORD) as one:
        one.execute("CREATE SCHEMA amplifier")
        one.execute("CREATE TABLE amplifier.schema_version AS SELECT 99 AS version")
    return server.url("newer")


@ALL
def test_a_newer_schema_is_left_as_it_is(name: str, tmp_path: Path, newer: str) -> None:
    line = refused(name, tmp_path, newer)
    with psycopg.connect(newer) as connection:
        found = connection.execute(
            "SELECT relname FROM pg_class"
            " WHERE relnamespace = 'amplifier'::regnamespace"
        )
        tables = found.fetchall()
        versions = connection.execute("SELECT version FROM amplifier.schema_version")
        version = versions.fetchall()

    assert "has version 99" in line
    assert line.endswith("Update amplifier-module-store-postgres")
    assert (tables, version) == ([("schema_version",)], [(99,)])


@pytest.mark.parametrize("engine", ["127.0.0.1:1", "SERVER"])
def test_an_engine_that_refuses_is_one_line(
    engine: str,
    tmp_path: Path,
    server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGPASSWORD", "wrong-one")
    place = engine.replace("SERVER", f"127.0.0.1:{server.port}")
    url = f"dbos+postgresql://postgres@{place}/postgres"
    plan = str(write_plan(tmp_path, ["Milk."]))
    for command in (("worker",), ("serve", "--port", "0")):
        result = call(*command, "--engine", url, "--plan", plan, expect=1)
        (line,) = result.output.splitlines()

        assert place in line
        assert "wrong-one" not in line


def test_an_older_schema_is_brought_up_to_date(
    tmp_path: Path, server: PostgresServer
) -> None:
    """By whichever command comes first."""
    from amplifier_module_store_postgres._schema import MIGRATIONS, migrate

    with psycopg.connect(server.url(), autocommit=True) as one:
        one.execute("CREATE DATABASE older")
    url = server.url("older")
    with psycopg.connect(url, autocommit=True) as one:
        migrate(one, MIGRATIONS[:1])
    plan = str(write_plan(tmp_path, ["Milk."]))
    call("run", "--plan", plan, "--store", url, "hello")

    assert "hello" in call("session", "list", "--store", url).output
    with psycopg.connect(url) as one:
        versions = one.execute("SELECT version FROM amplifier.schema_version")
        assert versions.fetchall() == [(len(MIGRATIONS),)]


def test_a_full_disk_takes_nothing_by_halves(
    tmp_path: Path, server: PostgresServer
) -> None:
    with small_disk(server) as disk:
        if disk is None:
            pytest.skip("needs the right to mount a file system")
        listed = call("token", "list", "--store", disk.url)  # which makes the tables
        disk.fill()
        lines = [refused(name, tmp_path, disk.url) for name in ("run", "token add")]
        tokens = call("token", "list", "--store", disk.url)
        sessions = call("session", "list", "--store", disk.url)
        disk.make_room()
        call(*COMMANDS["token add"], "--store", disk.url)
        later = call("token", "list", "--store", disk.url)

    for line in lines:
        assert line.endswith("Make room on the server's disk")
    assert listed.output == tokens.output == ""
    assert "hello" not in sessions.output
    assert later.output.startswith("laptop")
