"""What whoever runs a server sees: request ids, traces, metrics, and records of a log that a program reads."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache

import anyio
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from amplifier_kit.trace_context import TraceParent
from tests.server.serving import Site, ended, write_call
from tests.server.test_sessions import events_until
from tests.serving.client import Caller

pytestmark = pytest.mark.timeout(60)

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.integers(0, 255))
def test_a_place_in_a_trace_is_read_as_written(
    trace_id: int, span_id: int, flags: int
) -> None:
    written = f"00-{trace_id:032x}-{span_id:016x}-{flags:02x}"

    assert str(TraceParent.parse(written)) == written


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n00",
    ],
)
def test_no_place_in_a_trace_is_made_of_anything_else(text: str) -> None:
    assert TraceParent.parse(text) is None


def test_a_later_version_may_say_more() -> None:
    assert TraceParent.parse(f"01-{TRACE}-{SPAN}-01-more") is not None


@cache
def exporting() -> InMemorySpanExporter:
    # the process has one provider, whoever sets it first: a page's example may have
    exporter, provider = InMemorySpanExporter(), trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider(shutdown_on_exit=False)
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


async def test_one_trace_leads_from_a_request_to_a_tool(site: Site) -> None:
    exporter = exporting()
    exporter.clear()
    secret = await site.token()
    called = write_call()
    plan = site.plan(called, "Written.")
    assert plan.file is not None
    composed = json.loads(plan.file.read_text())
    composed["hooks"] = [{"module": "hooks-redaction"}, {"module": "hooks-otel"}]
    async with site.serving(called, "Written.") as server:
        plan.file.write_text(json.dumps(composed))
        caller = Caller(server, secret)
        session = await caller.begin()
        headers = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
        path = f"/sessions/{session}/turns"
        answer = await caller.post(path, {"prompt": "Write"}, headers)
        await ended(caller, session, answer.json["turn_id"])
        await events_until(caller, session, "turn_result")
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert "execute_tool write_file" in spans, list(spans)
    turn = next(span for name, span in spans.items() if name.startswith("invoke_agent"))
    tool = spans["execute_tool write_file"]

    assert turn.parent is not None
    assert tool.context is not None
    assert (turn.parent.trace_id, turn.parent.span_id) == (
        int(TRACE, 16),
        int(SPAN, 16),
    )
    assert tool.context.trace_id == int(TRACE, 16)


async def test_an_answer_says_what_its_request_is_called(site: Site) -> None:
    async with site.serving() as server:
        caller = Caller(server, None)
        named = await caller.get("/healthz", {"x-request-id": "proxy-17.a_B"})
        odd = await caller.get("/me", {"x-request-id": "a b\x1b[31m"})
        others = [await caller.get("/healthz") for _ in range(2)]
    ids = [answer.headers["x-request-id"] for answer in (odd, *others)]

    assert named.headers["x-request-id"] == "proxy-17.a_B"
    assert all(len(id_) == 32 and id_.isalnum() for id_ in ids)
    assert len(set(ids)) == 3


async def test_the_metrics_say_how_long_it_took(site: Site) -> None:
    secret = await site.token()
    async with site.serving() as server:
        caller = Caller(server, secret)
        session = await caller.begin()
        path = f"/sessions/{session}/turns"
        turn = (await caller.post(path, {"prompt": "x"})).json["turn_id"]
        await ended(caller, session, turn)
        text = (await caller.get("/metrics")).body.decode()
    read = {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if not line.startswith("#")
    }
    name = "amplifier_server_request_duration_seconds"
    classes = [value for key, value in read.items() if key.startswith(f"{name}_bucket")]

    assert classes == sorted(classes)
    assert classes[-1] == read[f"{name}_count"] >= 3
    assert read["amplifier_server_turn_duration_seconds_count"] == 1
    assert read["amplifier_server_store_failures_total"] == 0
    assert read["amplifier_server_start_time_seconds"] > 1.7e9


@pytest.mark.process
def test_a_log_of_requests_is_json_without_tokens(site: Site) -> None:
    secret = anyio.run(site.token)
    file = site.plan("Fine.").file
    command = [sys.executable, "-m", "amplifier", "serve", "--port", "0"]
    with subprocess.Popen(
        [*command, "--plan", str(file), "--json-logs"],
        cwd=site.folder,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        url = process.stderr.readline().removeprefix("Serving at ").strip()
        headers = {"Authorization": f"Bearer {secret}", "X-Request-ID": "r1"}
        with httpx2.Client(base_url=url, headers=headers) as client:
            client.get(f"/sessions?search={secret}")
            client.get("/nowhere")
        process.terminate()
        log = process.stderr.read()
    records = [json.loads(line) for line in log.splitlines()]
    reported = [(one["event"], one["request"], one["status"]) for one in records]

    assert secret not in log
    assert reported == [("server.request", "r1", 200), ("server.request", "r1", 404)]
