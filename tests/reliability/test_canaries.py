"""No secret that a session meets is in a file that the session writes, and every such file is its user's alone.

Counted is what modules write by themselves: log, transcript, records of approvals, what they keep for later and for a
moment. What a person or a model asks to be written to a file of their own is what they asked for. The long output of a
command is the model's to read while the session is open: it is its user's alone, and gone with the session. A backup is
the person's own file as it was.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from amplifier.testing import ScriptedProvider, answer, call
from amplifier_sdk import tool
from amplifier_sdk.jsontypes import JSONObject
from tests.reliability.stage import HOOKS, TOOLS, AppDirs, Site, files_below, session

pytestmark = [pytest.mark.anyio, pytest.mark.process]

CANARIES: Final[Mapping[str, str]] = {
    "environment": "zq-env-7Kd93mXw0PvLr2",
    "environment-known": "swordfish-in-a-bottle",
    "config": "Zc0nf-8Lw2Qx5Vt9Rm4",
    "prompt": "ghp_Cn4ryPr0mptAb3dE5fG7hJ9kL1mN3pQ5rS7t",
    "output": "sk_live_Cn4ry0utputB2d4F6h8J0kL2",
    "page": "AKIAC4N4RYP4G3XQ2W7Z",
    "file": "xoxb-123456789012-123456789012-Cn4ryF1leA1b2C3d4E5f6G7h",
    "error": "npm_Cn4ryErr0rA1b2C3d4E5f6G7h8J9k0L1m2N3",
    "argument": "glpat-Cn4ryArgum3ntA1b2C3d4",
    "answer": "hf_CnAryAnswerAbCdEfGhIjKlMnOpQrStUvWx",
}
"""Where each secret comes from, and the secret."""


async def test_no_canary_is_in_a_file_that_modules_write(
    dirs: AppDirs,
    web_site: Site,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", CANARIES["environment"])
    monkeypatch.setenv("SHOP_PASSWORD", CANARIES["environment-known"])
    web_site.pages["/page"] = f"The key is {CANARIES['page']}.\n".encode()
    (dirs.project / "notes.txt").write_text(f"token = {CANARIES['file']}\n")
    given = {path: path.read_bytes() for path in files_below(*dirs.roots)}

    @tool
    async def fail() -> str:
        """Fail, and tell why in a chain of errors."""
        try:
            raise ValueError(CANARIES["error"])
        except ValueError as error:
            raise RuntimeError(f"refused: {CANARIES['error']}") from error

    during: list[str] = []

    @tool
    async def look() -> str:
        """Look at the files while the session is open."""
        found = [*leaks(given, dirs), *open_to_others(dirs)]
        # what the command gave the model
        during.extend(leak for leak in found if "/output/call-" not in leak)
        return "seen"

    shown = f"echo {CANARIES['output']}; echo {CANARIES['environment-known']}; echo $SHOP_API_KEY"
    calls = (
        call("bash", {"command": shown}, id="c1"),
        call(
            "bash",
            {"command": f"for i in 1 2 3 4 5 6 7 8 9; do {shown}; done"},
            id="c2",
        ),
        call("read_file", {"file_path": "notes.txt"}, id="c3"),
        call("web_fetch", {"url": web_site.url("/page")}, id="c4"),
        call("fail", {}, id="c5"),
        call("bash", {"command": f"true --token {CANARIES['argument']}"}, id="c6"),
        call(
            "todo",
            {"action": "create", "todos": [_item(CANARIES["argument"])]},
            id="c7",
        ),
        call(
            "edit_file",
            {
                "file_path": "notes.txt",
                "old_string": "token",
                "new_string": "old token",
            },
            id="c8",
        ),
        call("nothing_here", {"password": CANARIES["config"]}, id="c9"),
    )
    provider = ScriptedProvider(
        answer("I look.", *calls),
        answer("And again.", call("look", {})),
        answer(f"It is {CANARIES['answer']}."),
    )
    made = session(
        dirs,
        provider=provider,
        extra_tools=[fail, look],
        configs={
            "tool-web": {
                "allowed_addresses": [f"127.0.0.1:{web_site.port}"],
                "api_key": CANARIES["config"],
                "search_engine": "brave",
            },
            "tool-bash": {"max_output_bytes": 200, "env_allow": ["SHOP_*"]},
        },
    )
    async with made:
        await made.execute(f"Use {CANARIES['prompt']} please.")

    text = str(list(provider.requests[-1].messages))
    met = (
        "environment",
        "environment-known",
        "output",
        "page",
        "file",
        "error",
        "argument",
    )
    # the model met them
    assert [name for name in met if CANARIES[name] not in text] == []
    assert during == []
    assert leaks(given, dirs) == []
    output = capfd.readouterr()
    assert [
        name for name, secret in CANARIES.items() if secret in output.out + output.err
    ] == []
    assert open_to_others(dirs) == []


def _item(secret: str) -> JSONObject:
    return {
        "content": f"Rotate {secret}",
        "status": "pending",
        "activeForm": "Rotating",
    }


def leaks(given: Mapping[Path, bytes], dirs: AppDirs) -> list[str]:
    """Return which canary is in which file that was not there before."""
    own = {dirs.project / "notes.txt"}  # what the model was asked to change
    return [
        f"{name} in {path.relative_to(dirs.home.parent)}"
        for path in files_below(*dirs.roots)
        if path not in own and given.get(path) != path.read_bytes()
        for name, secret in CANARIES.items()
        if secret.encode() in path.read_bytes()
        and not (name == "file" and "backups" in path.parts)
    ]


def open_to_others(dirs: AppDirs) -> list[str]:
    """Return what modules wrote that others may read: no folder of theirs above it keeps others out."""
    return [
        str(path.relative_to(dirs.home.parent))
        for root in (dirs.home, dirs.temporary)
        for path in root.rglob("*")
        if all(
            stat.S_IMODE(part.lstat().st_mode) & 0o077
            for part in (path, *_between(path, root))
        )
    ]


def _between(path: Path, root: Path) -> list[Path]:
    return [parent for parent in path.parents if root in parent.parents]


def test_every_acting_module_is_a_row() -> None:
    assert len({*TOOLS, *HOOKS}) == len(TOOLS) + len(HOOKS)
