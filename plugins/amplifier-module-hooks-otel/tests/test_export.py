"""What the environment asks for where the application has set up no SDK: exported, or said to be missing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import attrs
import pytest
from opentelemetry import trace

from amplifier.testing import answer, create_test_session
from amplifier_kit.installation import install_command
from amplifier_module_hooks_otel import mount
from amplifier_module_hooks_otel._export import _open

pytestmark = pytest.mark.anyio

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@attrs.define(eq=False)
class Receiver:
    """An OTLP receiver on loopback: the bodies by path, and the status that it answers with."""

    status: int = 200
    bodies: list[tuple[str, bytes]] = attrs.field(factory=list)
    url: str = ""

    def paths(self) -> set[str]:
        """The paths that something was posted to."""
        return {path for path, _ in self.bodies}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Serve a receiver."""
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the server calls it so
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.bodies.append((self.path, body))
            self.send_response(found.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield found
        end_export()  # it has a last word to say
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin without an SDK and without variables, and end what was set up."""
    for name in ("ENDPOINT", "TRACES_ENDPOINT", "METRICS_ENDPOINT", "PROTOCOL"):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{name}", raising=False)
    monkeypatch.delenv("OTEL_SDK_DISABLED", raising=False)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    _open.cache_clear()
    yield
    end_export()


def end_export() -> None:
    """End what was set up, if anything was."""
    if _open.cache_info().currsize:
        export = _open()
        export.tracers.shutdown()
        export.meters.shutdown()
        _open.cache_clear()


async def a_turn() -> list[str]:
    """Run a turn, and a child's; return what the person was notified of."""
    notes: list[str] = []
    session = create_test_session(answer("Noon."), answer("One."), hooks=[mount])
    session.coordinator.hooks.register(
        "user:notification",
        lambda _, data: notes.append(str(data["message"])),
        name="screen",
    )
    async with session:
        await session.execute("What time is it?")
        await session.spawn(agent_name="self", instruction="And now?")
    return notes


@pytest.fixture
def exporter() -> None:
    """Need what the extra `otlp` brings."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")


@pytest.mark.usefixtures("exporter")
async def test_what_the_environment_names_gets_spans_and_metrics(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINT, receiver.url)

    notified = await a_turn()

    assert notified == []
    assert receiver.paths() == {"/v1/traces", "/v1/metrics"}
    sent = b"".join(body for path, body in receiver.bodies if path == "/v1/traces")
    assert b"invoke_agent" in sent
    assert b"gen_ai.conversation.id" in sent


@pytest.mark.usefixtures("exporter")
async def test_spans_that_the_endpoint_refuses_are_reported(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.status = 400
    monkeypatch.setenv(ENDPOINT, receiver.url)

    notified = await a_turn()

    assert len(receiver.bodies) > 0
    assert any("Spans missing in the session's telemetry" in text for text in notified)


@pytest.mark.usefixtures("exporter")
@pytest.mark.parametrize("disabled", ["true", " True "])
async def test_nothing_is_exported_where_the_sdk_is_disabled(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, disabled: str
) -> None:
    monkeypatch.setenv(ENDPOINT, receiver.url)
    monkeypatch.setenv("OTEL_SDK_DISABLED", disabled)

    assert await a_turn() == []
    assert receiver.bodies == []


async def test_a_missing_exporter_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:4318")
    name = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
    monkeypatch.setitem(sys.modules, name, None)

    (notified,) = await a_turn()

    assert f"No telemetry is exported: {ENDPOINT} is set, but " in notified
    assert install_command("amplifier-module-hooks-otel[otlp]") in notified


async def test_a_protocol_that_is_not_spoken_is_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:4317")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")

    (notified,) = await a_turn()

    assert "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc'" in notified


async def test_without_an_endpoint_nothing_is_said() -> None:
    assert await a_turn() == []
