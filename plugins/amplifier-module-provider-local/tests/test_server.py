"""The model's process: how its start can fail, and that it never stays behind."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from amplifier_module_provider_local import LocalConfig
from amplifier_module_provider_local._server_child import serve
from amplifier_module_provider_local.engine import ServerProcess, StillWaiting
from amplifier_module_provider_local.server import ModelServer
from amplifier_module_provider_local.weights import Release
from amplifier_sdk.errors import ConfigurationError, LLMError, ProviderUnavailableError

pytestmark = pytest.mark.process


async def ready(engine: ServerProcess) -> ModelServer:
    async with aclosing(engine.ready()) as steps:
        async for step in steps:
            if isinstance(step, ModelServer):
                return step
    raise AssertionError("no server")


def engine_of(model: Path, *, start_timeout: float = 30.0) -> ServerProcess:
    return ServerProcess(
        LocalConfig(model_path=str(model), start_timeout=start_timeout)
    )


@pytest.mark.parametrize(
    ("mode", "error", "words"),
    [
        (
            "error",
            ConfigurationError,
            "does not take the model '.*tiny.gguf': Failed to init server",
        ),
        ("exit", ProviderUnavailableError, "ended with status 3 before it was ready"),
    ],
)
async def test_a_start_that_fails_says_why_and_leaves_no_process(
    fake_llama: Path,
    monkeypatch: pytest.MonkeyPatch,
    children: Callable[[int | None], list[int]],
    mode: str,
    error: type[LLMError],
    words: str,
) -> None:
    monkeypatch.setenv("AMPLIFIER_FAKE_LLAMA", mode)

    with pytest.raises(error, match=words):
        await ready(engine_of(fake_llama))

    assert children(None) == []


async def test_a_start_that_takes_too_long_is_given_up(
    fake_llama: Path,
    monkeypatch: pytest.MonkeyPatch,
    children: Callable[[int | None], list[int]],
) -> None:
    monkeypatch.setenv("AMPLIFIER_FAKE_LLAMA", "hang")

    with pytest.raises(
        ProviderUnavailableError,
        match=r"not loaded within 0.5 s; raise `start_timeout`",
    ):
        await ready(engine_of(fake_llama, start_timeout=0.5))

    assert children(None) == []


async def test_a_cancelled_start_leaves_no_process(
    fake_llama: Path,
    monkeypatch: pytest.MonkeyPatch,
    children: Callable[[int | None], list[int]],
) -> None:
    monkeypatch.setenv("AMPLIFIER_FAKE_LLAMA", "hang")

    with anyio.move_on_after(0.5) as scope:
        await ready(engine_of(fake_llama))

    assert scope.cancelled_caught
    assert children(None) == []


async def test_a_llama_that_cannot_be_imported_is_named(fake_llama: Path) -> None:
    (fake_llama.parent / "fake" / "xllamacpp.py").write_text(
        "raise ImportError('no such CPU')"
    )

    with pytest.raises(
        ConfigurationError,
        match=r"xllamacpp .* cannot be imported by .*: no such CPU. Install",
    ):
        await ready(engine_of(fake_llama))


async def test_one_server_serves_all_requests(
    fake_llama: Path, children: Callable[[int | None], list[int]]
) -> None:
    engine = engine_of(fake_llama)
    servers: list[ModelServer] = []

    async def one() -> None:
        servers.append(await ready(engine))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(one)
    running = len(children(None))
    await engine.aclose()

    assert (running, len({id(server) for server in servers})) == (1, 1)
    assert children(None) == []


async def test_a_server_that_died_is_started_anew(
    fake_llama: Path, children: Callable[[int | None], list[int]]
) -> None:
    engine = engine_of(fake_llama)
    first = await ready(engine)
    os.kill(first.process.pid, signal.SIGKILL)
    with anyio.fail_after(20):
        await first.process.wait()

    second = await ready(engine)
    running = children(None)
    await engine.aclose()

    assert second is not first
    assert running == [second.process.pid]
    assert not first.is_running


async def test_a_closed_provider_starts_nothing(
    fake_llama: Path, children: Callable[[int | None], list[int]]
) -> None:
    engine = engine_of(fake_llama)
    await engine.aclose()

    with pytest.raises(ProviderUnavailableError, match="was closed"):
        await ready(engine)

    assert children(None) == []


async def test_closing_while_the_server_starts_leaves_no_process(
    fake_llama: Path, children: Callable[[int | None], list[int]]
) -> None:
    engine = engine_of(fake_llama)

    async def start() -> None:
        with pytest.raises(ProviderUnavailableError, match="was closed"):
            await ready(engine)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        with anyio.fail_after(20):
            while not children(None):
                await anyio.lowlevel.checkpoint()
        await engine.aclose()

    assert children(None) == []


async def test_closing_works_while_everything_is_cancelled(
    fake_llama: Path, children: Callable[[int | None], list[int]]
) -> None:
    engine = engine_of(fake_llama)
    await ready(engine)

    with anyio.CancelScope() as scope:
        scope.cancel()
        await engine.aclose()

    assert children(None) == []


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
async def test_the_servers_secret_is_not_in_its_arguments(fake_llama: Path) -> None:
    engine = engine_of(fake_llama)
    server = await ready(engine)
    arguments = Path(f"/proc/{server.process.pid}/cmdline").read_text()
    secret = server.wire.headers["Authorization"].removeprefix("Bearer ")
    await engine.aclose()

    assert len(secret) > 30
    assert secret not in arguments


async def test_waiting_for_the_server_gives_signs_of_life(
    fake_llama: Path,
    monkeypatch: pytest.MonkeyPatch,
    children: Callable[[int | None], list[int]],
) -> None:
    monkeypatch.setenv("AMPLIFIER_FAKE_LLAMA", "wait")
    monkeypatch.setattr("amplifier_kit.vendors.slots.SIGN_OF_LIFE", 0.05)
    engine = engine_of(fake_llama)
    waits = 0

    async def one() -> None:
        nonlocal waits
        async with aclosing(engine.ready()) as steps:
            async for step in steps:
                if isinstance(step, StillWaiting):
                    waits += 1
                    fake_llama.with_name("tiny.gguf.go").touch()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one)
            tasks.start_soon(one)
    running = len(children(None))
    await engine.aclose()

    assert waits >= 1
    assert running == 1


async def test_fetching_the_weights_gives_signs_of_life(
    fake_llama: Path,
    release: Release,
    index: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("amplifier_module_provider_local.engine.SIGN_OF_LIFE", 0.01)
    engine = ServerProcess(LocalConfig(cache_dir=str(tmp_path / "cache")), release)
    waits = 0

    with anyio.fail_after(40):
        async with aclosing(engine.ready()) as steps:
            async for step in steps:
                waits += isinstance(step, StillWaiting)
    await engine.aclose()

    assert waits >= 1
    assert (tmp_path / "cache" / "tiny.gguf").exists()


@pytest.fixture
def program(
    fake_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], dict[str, str]]:
    """Run the program of the child process here, with an order and then the end of its input."""
    # its folder is on the path already; put there twice, one would stay behind
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)

    def run() -> dict[str, str]:
        order = {
            "path": str(fake_llama),
            "n_ctx": 2048,
            "n_parallel": 2,
            "threads": 1,
            "secret": "s",
        }
        report = io.BytesIO()
        serve(io.BytesIO(json.dumps(order).encode() + b"\n"), report)
        answer: dict[str, str] = json.loads(report.getvalue())
        return answer

    return run


def test_the_program_says_the_address_and_ends_with_its_input(
    program: Callable[[], dict[str, str]],
) -> None:
    assert program() == {"address": "http://127.0.0.1:9"}


def test_the_program_says_what_went_wrong(
    program: Callable[[], dict[str, str]],
    fake_llama: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AMPLIFIER_FAKE_LLAMA", "error")
    refused = program()
    (fake_llama.parent / "fake" / "xllamacpp.py").write_text(
        "raise ImportError('no such CPU')"
    )
    monkeypatch.delitem(sys.modules, "xllamacpp")
    missing = program()

    assert refused == {"error": "Failed to init server"}
    assert missing == {"missing": "no such CPU"}
