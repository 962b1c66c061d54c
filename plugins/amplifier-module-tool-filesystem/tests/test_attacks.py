"""Requests that try to reach what is outside or protected: none does, and each ends with a result."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest

from amplifier_module_tool_filesystem import Filesystem
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.tools import tools_of

pytestmark = pytest.mark.process

Mount = Callable[[Mapping[str, JSONValue]], Filesystem]

PATHS = [
    "sub/hop/hop/hop/../../../../outside/secret",
    "sub/./hop/../hop/out/secret",
    "{root}/sub/../../outside/secret",
    "{root}/./../outside/./secret",
    "{root}//..//outside//secret",
    "/proc/self/cwd/../outside/secret",
    "/proc/self/root{outside}/secret",
    "/proc/self/fd/0",
    "/dev/fd/0",
    "/dev/stdin",
    "/dev/tty",
    "fd",
    "procroot{outside}/secret",
    "out/../outside/secret",
    "out\n/secret",
    "out/secret\n",
    "late/out/secret",
    "longlink",
    "ends-in-slash/",
    "secret-link/",
    "secret-link/.",
    "secret-link/..",
    "hard/../secret-link",
    "~/../..{outside}/secret",
    "~+/secret",
    "${{HOME}}/secret",
    "`pwd`/../outside/secret",
    "\u2025/outside/secret",
    "..\u2215outside\u2215secret",
    "\uff0e\uff0e/outside/secret",
    ".\u200b./outside/secret",
    "..%c0%af../secret",
    "....//....//secret",
    "sub/" * 1000 + "x",
    "../" * 1300 + "etc/passwd",
    "a" * 256,
    "é" * 128,
    "\udcff\udcfe",
    "\x1b[2J",
    "-rf",
    "--help",
    "*",
    "con",
    "C:\\Windows\\win.ini",
    "\\\\server\\share",
    "file:secret",
    ".git/config",
    ".Git/config",
    "sub/.GIT/hooks/x",
    ".gi\u200dt/config",
    "gitlink/config",
    ".env",
    ".EnV",
    "envlink",
    "sub/../.env",
]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("top secret\n")
    return outside


@pytest.fixture
def maze(root: Path, outside: Path) -> Path:
    for directory in ("sub", "late", ".git", "hard"):
        (root / directory).mkdir()
    for link, target in {
        "sub/hop": ".",
        "sub/out": str(outside),
        "out": "../outside",
        "out\n": "../outside",
        "late/out": "../sub/out",
        "fd": "/proc/self/fd",
        "procroot": "/proc/self/root",
        "longlink": "./" * 1000 + "../outside/secret",
        "ends-in-slash": f"{outside}/",
        "secret-link": f"{outside}/secret",
        "gitlink": ".git",
        "envlink": ".env",
    }.items():
        (root / link).symlink_to(target)
    (root / ".git" / "config").write_text("[core]\n")
    (root / ".env").write_text("top secret\n")
    (root / "mine.txt").write_text("mine\n")
    return root


def arguments(tool: str, path: str) -> list[JSONObject]:
    """Every way to give a tool a path."""
    given: dict[str, list[JSONObject]] = {
        "read_file": [
            {"file_path": path},
            {"file_path": path, "raw": True, "offset": 1, "limit": 1},
        ],
        "write_file": [
            {"file_path": path, "content": "written"},
            {"file_path": f"{path}/new", "content": "written"},
        ],
        "edit_file": [
            {"file_path": path, "old_string": "top", "new_string": "written"}
        ],
        "move": [
            {"source": path, "destination": "taken"},
            {"source": "mine.txt", "destination": path},
        ],
        "delete": [{"path": path}, {"path": path, "recursive": True}],
        "list_directory": [{"path": path, "depth": 3}],
        "glob": [
            {"pattern": "**/secret", "path": path},
            {"pattern": path.strip("/") or "x"},
        ],
        "grep": [
            {"pattern": "top", "path": path, "include_ignored": True},
            {"pattern": "top", "glob": path},
        ],
    }
    return given[tool]


@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
async def test_no_request_reaches_what_is_outside_or_protected(
    mount: Mount, maze: Path, outside: Path, path: str
) -> None:
    files = mount(
        {
            "read_before_write": False,
            "denied_write_paths": [".git", ".amplifier", ".env"],
        }
    )
    given = path.format(root=maze, outside=outside) if "{" in path else path
    stored = {
        place: place.read_text()
        for place in (outside / "secret", maze / ".git" / "config", maze / ".env")
    }

    with anyio.fail_after(20):
        for tool in tools_of(files):
            for input in arguments(tool.name, given):
                (maze / "mine.txt").write_text("mine\n")
                result = await tool.execute(input)
                assert "top secret" not in result.get_serialized_output()
                assert "top secret" not in str(result.content)

    assert {place: place.read_text() for place in stored} == stored
    assert os.listdir(outside) == ["secret"]
    assert sorted(os.listdir(outside.parent)) == [
        "outside",
        "secret.txt",
        "work",
        "work-evil",
    ]
