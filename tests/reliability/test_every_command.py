"""Every command in a folder that shadows modules and programs: none of them runs, and nothing is connected to."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

from amplifier_sdk.jsontypes import JSONValue
from tests.cli.programs import open_terminal
from tests.reliability import every_command
from tests.reliability.every_command import COMMANDS, leaves
from tests.reliability.test_hostile_folders import FOLDERS, Trap, write
from tests.reliability.traced import may_trace

MODULES: Final = (
    *(
        "abc",
        "argparse",
        "asyncio",
        "codecs",
        "collections",
        "contextlib",
        "copy",
        "ctypes",
        "dataclasses",
        "email",
    ),
    *(
        "encodings",
        "enum",
        "functools",
        "hashlib",
        "importlib",
        "io",
        "json",
        "logging",
        "os",
        "pathlib",
        "platform",
    ),
    *(
        "random",
        "re",
        "runpy",
        "select",
        "shutil",
        "signal",
        "site",
        "sitecustomize",
        "socket",
        "sqlite3",
        "ssl",
    ),
    *(
        "string",
        "struct",
        "subprocess",
        "tempfile",
        "threading",
        "token",
        "types",
        "typing",
        "usercustomize",
        "uuid",
    ),
    *(
        "anyio",
        "attrs",
        "click",
        "cattrs",
        "filelock",
        "keyring",
        "pip",
        "pluggy",
        "structlog",
        "trio",
        "yaml",
    ),
    *(
        "amplifier",
        "amplifier_kit",
        "amplifier_sdk",
        "amplifier_module_tool_todo",
        "html_to_markdown",
        "xllamacpp",
        "sample",
    ),
)
PROGRAMS: Final = (
    *(
        "bash",
        "bwrap",
        "cat",
        "cc",
        "cp",
        "curl",
        "dirname",
        "env",
        "false",
        "git",
        "git-remote-https",
        "gpg",
        "grep",
    ),
    *(
        "less",
        "ls",
        "make",
        "nano",
        "node",
        "npx",
        "pip",
        "ps",
        "python",
        "python3",
        "rg",
        "sed",
        "sensible-editor",
    ),
    *(
        "sh",
        "ssh",
        "stty",
        "touch",
        "true",
        "tty",
        "uname",
        "uv",
        "vi",
        "vim",
        "which",
        "xdg-open",
    ),
)
"""What the folder has of its own: each file would leave a mark."""

SETTINGS: Final = (
    "pip.conf",
    ".pip/pip.conf",
    "uv.toml",
    ".netrc",
    ".gitconfig",
    ".npmrc",
    ".curlrc",
    "pyvenv.cfg",
)
"""What programs read their settings from where they are started."""


@attrs.frozen(kw_only=True)
class Hostile:
    """The folder, what it would leave marks in, and the files that commands are given."""

    folder: Path
    trap: Trap
    shop: Path


@pytest.fixture
def hostile(tmp_path: Path) -> Hostile:
    folder, shop = tmp_path / "hostile", tmp_path / "shop"
    for made in (
        folder,
        shop,
        tmp_path / "marks",
        tmp_path / "elsewhere",
        tmp_path / "home",
    ):
        made.mkdir()
    trap = Trap(marks=tmp_path / "marks", port=9, elsewhere=tmp_path / "elsewhere")
    for name, make in FOLDERS.items():
        if name != "linked-settings":  # it would take the place of the others' files
            make(folder, trap)
    for name in MODULES:
        write(folder / f"{name}.py", trap.python(f"{name}.py"))
        write(
            folder / "packages" / name / "__init__.py", trap.python(f"{name}-package")
        )
    for name in PROGRAMS:
        for path in (
            folder / name,
            folder / "bin" / name,
            folder / "node_modules" / ".bin" / name,
        ):
            # Only what is of the shell itself: anything else would be found in this folder again.
            write(path, f"#!/bin/sh\n: > {trap.marks / name}\n")
            path.chmod(0o755)
    for name in SETTINGS:
        write(folder / name, f"[global]\nindex-url = {trap.url}\nhome = {folder}\n")
    write(folder / "notes.md", "A note.\n")
    write(
        folder / "pyproject.toml",
        "[project]\nname = 'x'\n[build-system]\nrequires = []\nbuild-backend = 'sample'\n",
    )
    _stock(shop)
    return Hostile(folder=folder, trap=trap, shop=shop)


def _stock(shop: Path) -> None:
    """Make what the commands are given."""
    scripted: JSONValue = {
        "module": "provider-scripted",
        "config": {"responses": ["Done."] * 9},
    }
    tools = ("bash", "filesystem", "mcp", "skills", "task", "todo", "web")
    hooks = (
        "backup",
        "logging",
        "redaction",
        "shell",
        "status-context",
        "todo-reminder",
    )
    plan: JSONValue = {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [scripted],
        "tools": [f"tool-{name}" for name in tools],
        "hooks": [f"hooks-{name}" for name in hooks],
    }
    write(shop / "plan.json", json.dumps(plan))
    write(shop / "bundle.yaml", "bundle:\n  name: shop\n  version: 1.0.0\n")
    collection = shop / "collection"
    write(
        collection / "pyproject.toml",
        "[project]\nname = 'shop'\nversion = '1.0.0'\n[tool.amplifier.collection]\n",
    )
    write(shop / "plugin" / "commands" / "fix.md", "Fix it.\n")
    write(collection / "profiles" / "plain.md", "---\nprofile:\n  name: plain\n---\n")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (
        ("init", "-q"),
        ("add", "."),
        (*identity, "commit", "-q", "-m", "All."),
    ):
        subprocess.run(["git", "-C", str(collection), *words], check=True)


def test_every_command_is_listed() -> None:
    """A new command needs a line in `COMMANDS`."""
    assert {name for name, _, _ in COMMANDS} == set(leaves())
    assert len(set(MODULES)) >= 30
    assert len(set(PROGRAMS)) >= 30


@pytest.mark.process
@pytest.mark.timeout(300)
@pytest.mark.skipif(not may_trace(), reason="needs strace")
def test_no_command_touches_anything_in_hostile_folder(
    hostile: Hostile, tmp_path: Path
) -> None:
    log = tmp_path / "trace"
    done = subprocess.run(
        [
            *(
                "strace",
                "-f",
                "-qq",
                "--seccomp-bpf",
                "-s",
                "400",
                "-e",
                "trace=execve,execveat,connect",
            ),
            *(
                "-o",
                str(log),
                sys.executable,
                "-I",
                every_command.__file__,
                str(hostile.shop),
            ),
        ],
        cwd=hostile.folder,
        env=_environment(tmp_path / "home"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )

    *ended, last = [json.loads(line) for line in done.stdout.splitlines()] or [{}]
    expected = [(name, code) for name, _, code in COMMANDS]
    failed = [
        each
        for each, (_, code) in zip(ended, expected, strict=False)
        if each["code"] != code
    ]
    assert sorted(os.listdir(hostile.trap.marks)) == []
    assert last == {"imported": [], "path": []}, done.stderr[-3000:]
    assert failed == [], "\n".join(map(str, failed))
    assert [(each["command"], each["code"]) for each in ended] == expected
    assert [*_executed(log, hostile.folder)] == []
    assert [*_connected(log)] == []


@pytest.mark.process
@pytest.mark.skipif(not may_trace(), reason="needs strace")
def test_a_chat_runs_nothing_of_a_hostile_folder(
    hostile: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a terminal, started as a person starts it: by the script that was installed."""
    log = tmp_path / "trace"
    monkeypatch.chdir(hostile.folder)
    strace = shutil.which("strace") or "strace"
    traced = (
        strace,
        "-f",
        "-qq",
        "--seccomp-bpf",
        "-e",
        "trace=execve,execveat,connect",
        "-o",
        str(log),
    )
    script = str(Path(sys.executable).with_name("amplifier"))
    command = (*traced, script, "chat", "--plan", str(hostile.shop / "plan.json"))
    with open_terminal(
        *command, environment=_environment(tmp_path / "home")
    ) as terminal:
        terminal.read_prompt()
        terminal.type("Hello.\r")
        terminal.read_until("Done.")
        terminal.read_prompt()
        terminal.type("/exit\r")
        code = terminal.wait()

    assert code == 0
    assert sorted(os.listdir(hostile.trap.marks)) == []
    assert [*_executed(log, hostile.folder)] == []
    assert [*_connected(log)] == []


def _environment(home: Path) -> dict[str, str]:
    """Return an environment whose search path leads into the working directory, in each spelling there is."""
    python = os.path.dirname(shutil.which("python3") or "/usr/bin/python3")
    return {
        "PATH": os.pathsep.join(
            (".", "", "bin", "./node_modules/.bin", python, os.environ["PATH"], ".")
        ),
        "HOME": str(home),
        "AMPLIFIER_HOME": str(home / ".amplifier"),
        "LANG": "C.UTF-8",
        "SHOP_KEY": "a-key-of-the-shop",
        "EDITOR": "true",
        "SHELL": "/bin/sh",
    }


def _executed(log: Path, folder: Path) -> Iterator[str]:
    """Yield each program of the folder that was started, or found by a path that is not absolute."""
    for line in log.read_text("utf-8", "replace").splitlines():
        called = re.search(r'exec\w+\((?:\w+, )?"(?P<program>[^"]*)".*= 0$', line)
        if called and (
            not os.path.isabs(called["program"])
            or called["program"].startswith(f"{folder}/")
        ):
            yield line


def _connected(log: Path) -> Iterator[str]:
    """Yield each connection to a network."""
    return (
        line
        for line in log.read_text("utf-8", "replace").splitlines()
        if re.search(r"connect\(.*AF_INET", line)
    )
