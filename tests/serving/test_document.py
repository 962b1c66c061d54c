"""The OpenAPI document says what the server does; a tool that reads it tries everything that it allows and forbids."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest

from amplifier import Agent
from amplifier.serving import ServerLimits, Token
from tests.doubles import ScriptedProvider
from tests.sample import size
from tests.serving.client import ALICE, Caller, serving
from tests.serving.test_servers import uvicorn_at

READER = Token(name="reader", secret="reader-secret-0123", may_read_metrics=True)
PLENTY = Token(
    name="tests",
    secret="tests-secret-0123456789",
    max_requests=1_000_000,
    max_sessions=100_000,
    max_turns=100_000,
    may_read_metrics=True,
)
SAMPLE = re.compile(r"amplifier_server_\w+(\{\w+=\"[\w.+]+\"\})? \d+(\.\d+)?")


async def test_the_metrics_count_what_happened() -> None:
    provider = ScriptedProvider("One.", ValueError("no"))
    async with serving(Agent(provider), tokens=(ALICE, READER)) as alice:
        session = await alice.begin()
        await alice.events(await alice.turn(session))
        await alice.events(await alice.turn(session))
        refused = await alice.get("/metrics")
        read = await Caller(alice.app, READER.secret).get("/metrics")

    lines = read.body.decode().splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert refused.status == 403
    assert read.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert all(map(SAMPLE.fullmatch, samples)), samples
    for wanted in (
        'amplifier_server_turns_total{state="finished"} 1',
        'amplifier_server_turns_total{state="failed"} 1',
        "amplifier_server_sessions_open 1",
        "amplifier_server_sessions_total 1",
        "amplifier_server_turns_running 0",
        "amplifier_server_streams_open 0",
        "amplifier_server_turn_duration_seconds_count 2",
        'amplifier_server_requests_total{status="403"} 1',
    ):
        assert wanted in samples
    assert 'kind="output"} 0' not in read.body.decode()
    described = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    named = {re.split(r"[{ ]", line)[0] for line in samples}
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in named} == described


async def test_the_document_names_every_address() -> None:
    async with serving(Agent(ScriptedProvider(), name="clerk")) as alice:
        document = (await Caller(alice.app, None).get("/openapi.json")).json

    assert document["info"]["title"] == "clerk"
    assert "/sessions/{session_id}/turns/{turn_id}/events" in document["paths"]
    names = [
        operation["operationId"]
        for path in document["paths"].values()
        for operation in path.values()
    ]
    assert len(names) == len(set(names))
    for path in document["paths"].values():
        for operation in path.values():
            assert operation["summary"]
            for answer in operation["responses"].values():
                for kind in answer.get("content", {}).values():
                    jsonschema_rs.meta.validate(kind["schema"])


# no JSON Schema says that the last message of a list is the user's
CONFIGURATION = """
[[operations]]
include-path-regex = "^/(v1/|ag-ui)"
checks.positive_data_acceptance.enabled = false

[[operations]]
include-path-regex = "/turns$"
# 415: whether bytes are an image, no schema can say
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 415, 429, "5xx"]
"""


@pytest.mark.process
@pytest.mark.timeout(300)
def test_nothing_that_the_document_allows_or_forbids_breaks_the_server(
    tmp_path: Path,
) -> None:
    """Its cases come from the document: fitting and unfitting requests, other methods, no token, chains of requests."""
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    provider = ScriptedProvider("Fine.", repeat=True)
    limits = ServerLimits(max_sessions=100_000)
    with uvicorn_at(Agent(provider).asgi(tokens=[PLENTY], limits=limits)) as url:
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run"),
                f"{url}/openapi.json",
                *("--header", f"Authorization: Bearer {PLENTY.secret}"),
                *("--max-examples", str(size(6, 20)), "--seed", "1", "--no-color"),
            ],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )

    assert ran.returncode == 0, ran.stdout
