"""What people read when something is wrong: what happened, to what, what to type next, and nothing for programmers."""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from amplifier.cli._exits import describe
from amplifier.cli._people import plain, system_text
from tests.cli.programs import call, write_plan

TECHNICAL = re.compile(
    r"\[Errno|\b[A-Z]\w*(?:Error|Exception)\b|Traceback|<class|\bNone\b|codec can't"
    r"|PosixPath|\('|frozenset|got (?:NoneType|dict|str)\b"
)
"""What nobody but a programmer can read."""


def reported(*arguments: str) -> str:
    """Run a command that fails, and return what is said of it once it was read as a person reads it."""
    text = call(*arguments, expect=1).stderr
    assert not TECHNICAL.search(text), text
    return text


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, beside the person's own folder."""
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "own"))
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def _file_for_home(shop: Path) -> tuple[str, ...]:
    os.environ["AMPLIFIER_HOME"] = str(_written(shop / "file", "x"))
    return ("run", "hi", "--plan", str(write_plan(shop, ["Hi."])))


def _folder_for_settings(shop: Path) -> tuple[str, ...]:
    Path(os.environ["AMPLIFIER_HOME"], "settings.yaml").mkdir(parents=True)
    return ("run", "hi")


def _broken_settings(shop: Path) -> tuple[str, ...]:
    _written(Path(os.environ["AMPLIFIER_HOME"], "settings.yaml"), "a: [1,\n")
    return ("run", "hi")


def _binary_plan(shop: Path) -> tuple[str, ...]:
    (shop / "plan.yaml").write_bytes(b"\x80\x81")
    return ("run", "hi", "--plan", "plan.yaml")


def _binary_import(shop: Path) -> tuple[str, ...]:
    (shop / "session.json").write_bytes(b"\x80\x81")
    return ("session", "import", "session.json")


def _folder_for_text(shop: Path) -> tuple[str, ...]:
    plan = write_plan(shop, ["Hi."])
    return ("run", "hi", "--plan", str(plan), "--system", "@.git")


def _missing_text(shop: Path) -> tuple[str, ...]:
    plan = write_plan(shop, ["Hi."])
    return ("run", "hi", "--plan", str(plan), "--system", "@none.md")


def _empty_plan(shop: Path) -> tuple[str, ...]:
    _written(shop / "plan.yaml", "")
    return ("run", "hi", "--plan", "plan.yaml")


def _odd_plan(shop: Path) -> tuple[str, ...]:
    _written(shop / "plan.yaml", "session: 3\nproviders: {a: 1}\ntools: x\n")
    return ("tool", "list", "--plan", "plan.yaml")


def _device_as_plan(_: Path) -> tuple[str, ...]:
    return ("run", "hi", "--plan", "/dev/zero")


def _no_session(_: Path) -> tuple[str, ...]:
    return ("session", "export", "nope")


def _no_profile(_: Path) -> tuple[str, ...]:
    return ("profile", "use", "nope")


def _misspelt_provider(_: Path) -> tuple[str, ...]:
    return ("run", "hi", "-p", "opnai")


def _no_folder(shop: Path) -> tuple[str, ...]:
    return ("module", "add", "tool-x", "--source", str(shop / "none"))


def _no_server(shop: Path) -> tuple[str, ...]:
    plan = shop / "plan.json"
    plan.write_text(
        '{"session": {"orchestrator": "loop-basic", "context": "context-simple"}, "providers": [{"module":'
        ' "provider-ollama", "config": {"host": "http://127.0.0.1:9", "max_retries": 1, "min_retry_delay": 0}}]}'
    )
    return ("run", "hi", "--plan", str(plan))


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (_file_for_home, "a part of its path is a file"),
        (_folder_for_settings, "settings.yaml"),
        (_broken_settings, "line 2, column 1"),
        (_binary_plan, "save it as UTF-8"),
        (_binary_import, "save it as UTF-8"),
        (_empty_plan, "a mapping; got nothing"),
        (_odd_plan, "a list of modules; got a mapping"),
        (_device_as_plan, "no regular file"),
        (_folder_for_text, ".git"),
        (_missing_text, "none.md"),
        (_no_session, "'amplifier session list' shows them"),
        (_no_profile, "known: foundation:base"),
        (_misspelt_provider, "did you mean 'provider-openai'?"),
        (_no_folder, "does not hold it"),
        (_no_server, "retrying in 0 s, 1 of 1"),
    ],
)
def test_a_mistake_is_explained(
    shop: Path, prepare: Callable[[Path], tuple[str, ...]], says: str
) -> None:
    assert says in reported(*prepare(shop))


def test_nobody_is_sent_to_a_package_that_is_not_ours(shop: Path) -> None:
    text = reported("run", "hi", "-p", "opnai")

    assert "amplifier-module-provider-opnai" not in text
    assert "'amplifier module add provider-opnai --source FOLDER'" in text


def test_a_full_disk_at_the_start_is_explained(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = write_plan(shop, ["Hi."])

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "record.json")

    monkeypatch.setattr("amplifier_kit.files.atomic._write", full)

    assert "the disk is full; free some space" in reported(
        "run", "hi", "--plan", str(plan)
    )


@pytest.mark.parametrize("number", sorted(errno.errorcode))
def test_no_number_of_an_error_is_shown(number: int) -> None:
    error = OSError(number, os.strerror(number), "/srv/notes.txt")

    text = describe(error)

    assert text.startswith("/srv/notes.txt: ")
    assert not TECHNICAL.search(text), text
    assert not TECHNICAL.search(plain(f"It cannot be read: {error}"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("down: ConnectError: gone", "down: gone"),
        ("httpx2.ReadTimeout", "httpx2.ReadTimeout"),
        ("a ValueError is raised", "a ValueError is raised"),
        ("a list; got dict", "a list; got a mapping"),
        ("a list; got str of words", "a list; got str of words"),
        (
            "cannot be reached: [Errno -2] Name or service not known; try",
            "cannot be reached: the address is not known here: check its spelling and the network; try",
        ),
        (
            "no JSON: 'utf-8' codec can't decode byte 0x88 in position 2: invalid start byte",
            "no JSON: it is not UTF-8; save it as UTF-8",
        ),
    ],
)
def test_what_another_error_said_is_made_plain(text: str, said: str) -> None:
    assert plain(text) == said


def test_a_name_that_cannot_be_looked_up() -> None:
    error = socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    assert "the address is not known here" in system_text(error)


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path
