"""What the page says of running and restoring a server: files that programs accept, and backups that hold all."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

import anyio
import click
import psycopg
import pytest
from psycopg import sql

from amplifier.app.settings.schema import SettingsSchema
from amplifier.app.store.choice import open_named_store
from amplifier.cli import main
from amplifier.testing.postgres import PASSWORD, find_programs, running_server
from amplifier_kit.files.documents import parse_yaml
from amplifier_sdk.configuration import read_config
from amplifier_sdk.stores import LogEntry, StoredQuestion
from tests.server.serving import Site
from tests.server.test_processes import PAGE

TEXT: Final = PAGE.read_text("utf-8")
ODD: Final = "\u2028 \U0001f600 a\u0301 \x7f '; DROP TABLE amplifier.sessions; --"


def block(kind: str, begin: str = "") -> str:
    """Return the first block of a kind that begins so."""
    pattern = rf"^```{kind}\n({begin}.*?)^```$"
    found = re.search(pattern, TEXT, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def check_command(words: list[str]) -> None:
    """Have the command line parse what a file runs, without running it."""
    context: click.Context | None = None
    command: click.Command = main
    words = words[1:]
    while isinstance(command, click.Group):
        name = words.pop(0)
        found = command.get_command(click.Context(command), name)
        assert found is not None, name
        command = found
    context = command.make_context("amplifier", words)
    assert context.params


@pytest.mark.process
@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd is not installed"
)
def test_the_unit_is_one_that_systemd_accepts(tmp_path: Path) -> None:
    unit = block("ini")
    (start,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    check_command(shlex.split(start))
    program = tmp_path / "amplifier"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    file = tmp_path / "amplifier.service"
    file.write_text(unit.replace("/srv/venv/bin/amplifier", str(program)))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"},
    )
    # what it says of other units of this machine is theirs
    reported = [
        line for line in checked.stderr.splitlines() if "amplifier.service" in line
    ]

    assert reported == []


def test_the_limits_are_ones_that_a_server_reads() -> None:
    data = parse_yaml(block("yaml", "server:"))
    assert isinstance(data, dict)
    limits = read_config(SettingsSchema, data, subject="page").server.limits
    acme = limits.of_tenant("acme")

    assert (str(acme.cost_usd.day), str(acme.cost_usd.month)) == ("50", "100")
    assert str(acme.tokens.day) == "2000000"
    assert limits.of_provider("provider-anthropic").requests == 20


def test_the_services_hold_together() -> None:
    data = parse_yaml(block("yaml", "services:"))
    assert isinstance(data, dict)
    services, volumes = data["services"], data["volumes"]
    assert isinstance(services, dict)
    assert isinstance(volumes, dict)
    used: set[str] = set()
    for service in services.values():
        assert isinstance(service, dict)
        mounted, secrets = service["volumes"], service["secrets"]
        assert isinstance(mounted, list)
        assert isinstance(secrets, list)
        used |= {str(one).partition(":")[0] for one in mounted}
        assert {*map(str, secrets)} <= {*map(str, data["secrets"])}
    server = services["server"]
    assert isinstance(server, dict)
    shell, _, script = shlex.split(str(server["command"]))
    check = server["healthcheck"]
    assert isinstance(check, dict)
    assert isinstance(check["test"], list)

    assert shell == "sh"
    check_command(shlex.split(script.partition(" exec ")[2]))
    check_command([str(word) for word in check["test"][1:]])
    assert used == {*volumes}
    # all that a server writes is on its volume: home, folder, folders of tenants
    assert server["volumes"] == ["server:/srv"]
    assert server["environment"] == {"AMPLIFIER_HOME": "/srv/amplifier"}


async def _fill(url: str, site: Site) -> None:
    store = await open_named_store(url, site.dirs, namespace="default")
    lease = await store.acquire("s1", owner="test", period=60)
    await store.write_record(lease, {"version": 1, "session_id": "s1", "name": ODD})
    entries = [
        LogEntry(kind="text", data={"n": number, "text": ODD}, at=number / 7)
        for number in range(100)
    ]
    await store.append(lease, "events", entries)
    await store.write_document(lease, "own.bin", bytes(range(256)))
    question = StoredQuestion(
        question_id="q1", session_id="s1", prompt=ODD, options=("yes", "no")
    )
    await store.ask(lease, question)
    await store.aclose()


def dumped(url: str) -> dict[str, bytes]:
    """Return every table as the database writes it, and where its sequences stand."""
    found: dict[str, bytes] = {}
    with psycopg.connect(url) as connection:
        names = connection.execute(
            "SELECT relname, relkind FROM pg_class WHERE relnamespace ="
            " 'amplifier'::regnamespace AND relkind IN ('r', 'S')"
        ).fetchall()
        for name, kind in names:
            table = sql.Identifier("amplifier", name)
            query = sql.SQL("SELECT * FROM {} AS one ORDER BY one::text").format(table)
            if kind in ("S", b"S"):
                query = sql.SQL("SELECT last_value FROM {}").format(table)
            copy = sql.SQL("COPY ({}) TO STDOUT").format(query)
            with connection.cursor().copy(copy) as rows:
                found[name] = b"".join(bytes(row) for row in rows)
    return found


@pytest.mark.process
@pytest.mark.timeout(120)
def test_a_restored_database_is_the_same_bytes(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = find_programs()
    if programs is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    marker = "<!-- database backup -->\n"
    commands = block_after(marker)
    with running_server(programs) as database:
        place = f"postgres@127.0.0.1:{database.port}"
        commands = commands.replace("amplifier@db.example", place)
        commands = commands.replace(f"{place}/amplifier", f"{place}/postgres")
        anyio.run(_fill, database.url(), site)
        before = dumped(database.url())
        subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=site.folder,
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
            check=True,
        )
        after = dumped(database.url("restored"))

    assert {"sessions", "questions", "documents", "lease_tokens"} <= {*before}
    assert after == before


def block_after(marker: str) -> str:
    _, found, rest = TEXT.partition(marker)
    assert found
    return rest.partition("```bash\n")[2].partition("```")[0]
