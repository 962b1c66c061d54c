"""No variable of the person's environment is in a process that a module starts, unless a setting lists it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import anyio
import pytest

from amplifier.testing import answer, call, wait_for
from tests.reliability.stage import AppDirs, Site, session

pytestmark = [pytest.mark.anyio, pytest.mark.process]

CANARIES: Final = (
    "ANTHROPIC_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "BASH_ENV",
    "DATABASE_URL",
    "GIT_SSH_COMMAND",
    "GITHUB_TOKEN",
    "HTTPS_PROXY",
    "NPM_TOKEN",
    "PYTHONSTARTUP",
    "SHOP_SECRET",
)
STUB: Final = Path(__file__).with_name("stub_server.py")


async def test_no_child_process_has_a_canary(
    dirs: AppDirs, web_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in CANARIES:
        monkeypatch.setenv(name, f"canary-{name}")
    monkeypatch.setenv("LISTED_ONE", "listed")
    put_git(dirs, monkeypatch)

    def dump(who: str) -> str:
        return f"env > {dirs.project / who}.env"

    server = {
        "command": "sh",
        "args": ["-c", f"{dump('mcp')}; exec {sys.executable} {STUB} 1"],
    }
    put_python(dirs, monkeypatch)
    (dirs.project / "notes.txt").write_text("one\n")
    web_site.pages["/page"] = b"<p>one</p>"
    web_site.types["/page"] = "text/html"
    made = session(
        dirs,
        answer(
            "",
            call("bash", {"command": dump("bash")}, id="c1"),
            call(
                "bash",
                {"command": dump("background"), "run_in_background": True},
                id="c2",
            ),
            call("grep", {"pattern": "o.e"}, id="c3"),
            call("web_fetch", {"url": web_site.url("/page")}, id="c4"),
        ),
        answer("Done."),
        tools=["tool-bash", "tool-filesystem", "tool-mcp", "tool-web"],
        hooks=["hooks-shell", "hooks-status-context"],
        configs={
            "tool-bash": {
                "sandbox": "none",
                "unlisted": "allow",
                "env_allow": ["LISTED_*"],
            },
            "tool-web": {"allowed_addresses": [f"127.0.0.1:{web_site.port}"]},
            "tool-mcp": {"servers": {"stub": server}},
            "hooks-shell": {"hooks": [{"event": "tool:pre", "command": dump("hook")}]},
        },
    )
    async with made:
        await made.execute("Begin.")
        with anyio.fail_after(20):
            await wait_for(lambda: len(dumped(dirs)) == 8, 20)

    assert sorted(dumped(dirs)) == [
        "background",
        "bash",
        "git",
        "hook",
        "keeper",
        "mcp",
        "page",
        "search",
    ]
    reported = dumped(dirs)
    assert {who for who, text in reported.items() if "canary" in text} == set()
    assert {who for who, text in reported.items() if "LISTED_ONE" in text} == {
        "background",
        "bash",
    }


def dumped(dirs: AppDirs) -> dict[str, str]:
    """Return what each process noted."""
    return {
        path.stem: text
        for path in dirs.project.glob("*.env")
        if (text := path.read_text())
    }


def put_git(dirs: AppDirs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program before `git` that notes its variables, and make the project a repository."""
    programs = dirs.home / "bin"
    programs.mkdir()
    git = programs / "git"
    git.write_text(f"#!/bin/sh\nenv > {dirs.project}/git.env\nexit 1\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    (dirs.project / ".git").mkdir()
    (dirs.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


def put_python(dirs: AppDirs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program in the place of Python that notes its variables: the modules' own helpers run there."""
    python = dirs.home / "python"
    who = 'case "$*" in *_match_lines.py*) who=search;; *_convert.py*) who=page;; *) who=keeper;; esac'
    python.write_text(
        f'#!/bin/sh\n{who}\nenv >> "{dirs.project}/$who.env"\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
