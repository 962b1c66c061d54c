"""The commands as processes: what the page of the documentation runs, slow callers, and a process that is killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import anyio
import httpx2
import pytest

from amplifier.testing.postgres import PASSWORD, find_programs, running_server
from tests.server.serving import Site, write_call
from tests.server.test_page import served

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs/how-to/from-one-machine-to-many.md"
STEP: Final = re.compile(
    r"<!-- (?P<kind>(?:database )?step) -->\n```bash\n(?P<commands>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]


def steps_of(kind: str) -> str:
    """Return the commands of the page that are marked so, with ports that are free."""
    steps = "\n".join(
        each["commands"]
        for each in STEP.finditer(PAGE.read_text())
        if each["kind"] == kind
    )
    for port in ("8000", "8001", "8003", "8443"):
        with socket.create_server(("127.0.0.1", 0)) as free:
            steps = steps.replace(port, str(free.getsockname()[1]))
    return steps


def run_steps(site: Site, steps: str) -> tuple[str, str]:
    """Run commands of the page with a model of the test's own; return what they said."""
    home = site.home / ".amplifier"
    home.mkdir()
    file = site.plan("Milk and rum.").file
    steps = steps.replace("amplifier serve", f"amplifier serve --plan {file}")
    steps = steps.replace("amplifier worker", f"amplifier worker --plan {file}")
    environment = {**os.environ, "HOME": str(site.home), "AMPLIFIER_HOME": str(home)}
    environment["PATH"] = (
        f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    )
    # a step that fails ends none of those in the background, and they hold no pipe of
    # ours; their database is there until they have ended
    steps = f"trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n{steps}"
    out, err = site.folder / "out", site.folder / "err"
    with out.open("w") as reported, err.open("w") as said:
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", steps],
            cwd=site.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=reported,
            stderr=said,
            check=False,
            timeout=150,
        )
    stdout, stderr = out.read_text(), err.read_text()
    assert ran.returncode == 0, stdout + stderr
    assert "Traceback" not in stderr
    return stdout, stderr


def test_every_command_of_the_page_works(site: Site) -> None:
    stdout, _ = run_steps(site, steps_of("step"))

    assert '"output":"Milk and rum."' in (site.folder / "events").read_text()
    assert stdout.count("laptop  owner  default") == 2
    assert stdout.count('{"status":"ready"}') == 3


def test_a_server_and_two_workers_run_as_the_page_says(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = find_programs()
    if programs is None or shutil.which("openssl") is None:
        pytest.skip("needs a PostgreSQL server, and openssl")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    steps = steps_of("database step")
    with running_server(programs) as server:
        url = "postgresql://amplifier@db.example/amplifier"
        assert url in steps
        stdout, stderr = run_steps(site, steps.replace(url, server.url()))

    assert '{"status":"ready"}' in stdout
    assert len(re.findall("^Worker .* takes turns$", stderr, re.MULTILINE)) == 2


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_caller_that_sends_a_head_slowly_holds_nothing(
    site: Site, backend: str
) -> None:
    anyio.run(site.token)
    file = site.plan("Fine.").file
    with served(site, "--plan", str(file), "--backend", backend) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as slow:
            slow.sendall(b"GET /sessions HTTP/1.1\r\nHost: x\r\nX-A: ")
            slow.settimeout(30)
            # it is closed, or told so, without the rest of it
            answered = slow.recv(1000)
        with socket.create_connection((host, int(port))) as long:
            long.settimeout(30)
            long.sendall(b"GET /sessions HTTP/1.1\r\nHost: x\r\nX-A: " + b"x" * 60_000)
            refused = long.recv(1000)

    assert answered == b"" or answered.startswith(b"HTTP/1.1 4")
    assert refused == b"" or refused.startswith(b"HTTP/1.1 4")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_no_connection_is_held_by_another_protocol(site: Site, backend: str) -> None:
    anyio.run(site.token)
    file = site.plan("Fine.").file
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: "
    with served(site, "--plan", str(file), "--backend", backend) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as begun:
            begun.settimeout(30)
            begun.sendall(preface)
            text = b"".join(iter(lambda: begun.recv(1000), b""))
        with socket.create_connection((host, int(port))) as asked:
            asked.settimeout(30)
            asked.sendall(
                b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + upgrade + b"\r\n\r\n"
            )
            answered = asked.recv(1000)

    # an answer of HTTP/1, and the end of the connection
    assert text.startswith(b"HTTP/1.1 4")
    assert answered.startswith(b"HTTP/1.1 200")


def test_a_process_that_is_killed_loses_nothing_that_was_shown(site: Site) -> None:
    secret = anyio.run(site.token)
    headers = {"Authorization": f"Bearer {secret}"}
    file = site.plan(write_call(), "Written.").file
    command = [sys.executable, "-m", "amplifier", "serve", "--port", "0"]
    with subprocess.Popen(
        [*command, "--plan", str(file)],
        cwd=site.folder,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        url = process.stderr.readline().removeprefix("Serving at ").strip()
        with httpx2.Client(base_url=url, headers=headers) as client:
            session = client.post("/sessions").json()["session_id"]
            client.post(f"/sessions/{session}/turns", json={"prompt": "Write"})
            before = read_until(client, session, "approval_requested")
        process.kill()
    with (
        served(site, "--plan", str(file)) as url,
        httpx2.Client(base_url=url, headers=headers, timeout=60) as client,
    ):
        open_ = client.get("/questions").json()["questions"]
        path = f"/sessions/{session}/approvals/{before[-1]['approval_id']}"
        answered = client.post(path, json={"option": "Allow once"})
        after = read_until(client, session, "turn_result")

    assert answered.status_code == 204
    assert [each["approval_id"] for each in open_] == [before[-1]["approval_id"]]
    assert after[: len(before)] == before
    assert after[-1]["output"] == "Written."
    assert (site.folder / "notes.txt").read_text() == "hello"


def read_until(
    client: httpx2.Client, session: str, kind: str, after: int = 0
) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    path = f"/sessions/{session}/events"
    with client.stream("GET", path, headers={"Last-Event-ID": str(after)}) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
                if found[-1]["type"] == kind:
                    break
    return found


CHECKS: Final = """
[[operations]]
include-path-regex = "^/sessions/.*/events$"
enabled = false
"""


@pytest.mark.timeout(300)
def test_nothing_that_the_document_allows_or_forbids_breaks_the_server(
    site: Site,
) -> None:
    secret = anyio.run(site.token)
    file = site.plan("Fine.").file
    (site.folder / "schemathesis.toml").write_text(CHECKS)
    with served(site, "--plan", str(file)) as url:
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run"),
                f"{url}/openapi.json",
                *("--header", f"Authorization: Bearer {secret}"),
                *("--max-examples", "8", "--seed", "1", "--no-color"),
                *("--rate-limit", "500/m", "--checks", "not_a_server_error"),
            ],
            check=False,
            capture_output=True,
            text=True,
            cwd=site.folder,
        )

    assert ran.returncode == 0, ran.stdout
