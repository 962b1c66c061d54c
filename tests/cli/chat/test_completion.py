"""What Tab and typing offer, and what is remembered of what was typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from amplifier.app.commands.registry import CommandRegistry
from amplifier.cli._chat._completion import ChatCompleter
from amplifier.cli._chat._history import MOST, NAME, HistoryFile
from amplifier_kit.commands import CommandAnswer, SessionCommand
from tests.timing import takes_at_most


async def _make(_: str) -> CommandAnswer:
    return CommandAnswer(text="")


@pytest.fixture
def completer(tmp_path: Path) -> ChatCompleter:
    (tmp_path / "shop/src").mkdir(parents=True)
    (tmp_path / "own/context").mkdir(parents=True)
    for name in (
        "shop/src/shop.py",
        "shop/src/style.md",
        "shop/.env",
        "shop/two words",
        "own/context/notes.md",
    ):
        (tmp_path / name).touch()
    registry = CommandRegistry()
    registry.add(
        [SessionCommand(name=name, make=_make) for name in ("status", "save", "mode")]
    )
    roots = {"user:": tmp_path / "own"}
    return ChatCompleter(
        registry, tmp_path / "shop", roots, {"mode": lambda: ("ask", "plan")}
    )


@pytest.mark.parametrize(
    ("text", "is_tab", "offered"),
    [
        ("/", False, ["mode", "save", "status"]),
        ("/s", False, ["save", "status"]),
        ("/mode ", False, ["ask", "plan"]),
        ("/mode p", False, ["plan"]),
        ("/save s", True, ["src/"]),
        ("@", False, ["src/"]),
        ("look at @src/s", False, ["src/shop.py", "src/style.md"]),
        ("@.", False, [".env"]),
        ("@us", False, ["user:"]),
        ("@user:context/", False, ["notes.md"]),
        ("@nowhere/", False, []),
        ("src/sh", False, []),
        ("src/sh", True, ["shop.py"]),
        ("a line\n@st", False, ["src/style.md"]),
        ("", True, []),
        ("/ x", True, []),
    ],
    ids=repr,
)
def test_what_may_follow_is_offered(
    completer: ChatCompleter, text: str, is_tab: bool, offered: list[str]
) -> None:
    found = completer.get_completions(
        Document(text), CompleteEvent(completion_requested=is_tab)
    )
    assert [completion.text for completion in found] == offered


def test_what_was_typed_is_remembered_without_secrets(tmp_path: Path) -> None:
    history = HistoryFile(tmp_path / "state")
    history.append_string("one\ntwo")
    history.append_string(" not this")
    history.append_string("the token ghp_16C7e42F292c6912E7710c838347Ae178B4a")
    file = tmp_path / "state" / NAME
    assert file.stat().st_mode & 0o777 == 0o600
    assert "ghp_16C7" not in file.read_text("utf-8")
    latest, first = HistoryFile(tmp_path / "state").load_history_strings()
    assert first == "one\ntwo"
    assert latest.startswith("the token ")


def test_the_history_is_bounded_and_a_torn_line_costs_itself(tmp_path: Path) -> None:
    lines = [json.dumps(f"text {number}") for number in range(MOST + 10)]
    (tmp_path / NAME).write_text("\n".join([*lines, '"torn', "3"]) + "\n", "utf-8")
    found = list(HistoryFile(tmp_path).load_history_strings())
    assert len(found) == MOST
    assert found[0] == f"text {MOST + 9}"
    assert len((tmp_path / NAME).read_text("utf-8").splitlines()) == MOST


def test_a_history_that_cannot_be_kept_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    history = HistoryFile(tmp_path / "file")
    history.append_string("one")
    assert list(history.load_history_strings()) == []


@pytest.mark.figures
def test_ten_thousand_files_are_completed_in_50_ms(tmp_path: Path) -> None:
    for number in range(100):
        folder = tmp_path / "big" / f"package{number}" / "src"
        folder.mkdir(parents=True)
        for other in range(99):
            (folder / f"module_{other}.py").touch()
    completer = ChatCompleter(CommandRegistry(), tmp_path / "big")
    every = completer.project.list()
    assert len(every) == 10_100

    def complete() -> None:
        for text in ("@m", "@pack7mod", "@package42/src/module_7", "@zzz"):
            list(completer.get_completions(Document(text), CompleteEvent()))

    assert takes_at_most(4 * 0.05, complete)
