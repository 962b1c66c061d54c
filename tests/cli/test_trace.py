"""`amplifier trace`: the page of a session at the command line, from a real session on."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from amplifier.app.directories import AppDirs
from amplifier_kit.files.documents import read_document
from tests.app.logs.records import Story, write_log
from tests.app.traces.pages import ReadPage
from tests.cli.programs import call, write_plan


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def log() -> Path:
    story, child = Story("aaa"), Story("aaa-1_kid", "aaa", start=1.5)
    story.tell("execution:start", prompt="Hello")
    child.tell("execution:start", prompt="Look")
    folder = AppDirs.find().state / "sessions"
    write_log(folder / "aaa-1_kid" / "events.jsonl", child.records)
    return write_log(folder / "aaa" / "events.jsonl", story.records)


def test_the_page_stands_beside_the_log(log: Path) -> None:
    page = log.with_name("trace.html")
    assert call("trace").stdout == f"{page}\n"
    assert call("trace", "aa").stdout == f"{page}\n"
    rows = ReadPage(page.read_text("utf-8")).data["rows"]
    assert [row[3] for row in rows] == ["Hello", "Look"]


@pytest.mark.usefixtures("log")
def test_the_page_goes_where_it_is_wanted(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    assert call("trace", "aaa", "--to", str(out)).stdout == f"{out}\n"
    assert call("trace", "--to", "-").stdout == out.read_text("utf-8")


@pytest.mark.parametrize("code", [0, 1])
def test_the_page_is_opened(
    log: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    opened: list[str] = []

    def launch(url: str) -> int:
        opened.append(url)
        return code

    monkeypatch.setattr(click, "launch", launch)
    result = call("trace", "--open")
    assert opened == [log.with_name("trace.html").as_uri()]
    assert ("open the file yourself" in result.stderr) is bool(code)


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("zzz",), 1, "no session of this id"),
        (("aaa", "--file", "x"), 2, "not both"),
        (("--open", "--to", "-"), 2, "--open needs a file"),
        (("--to", "nowhere/x.html"), 1, "nowhere"),
    ],
    ids=["unknown", "both", "no-file", "no-folder"],
)
def test_what_cannot_be_is_told(
    arguments: tuple[str, ...], code: int, said: str
) -> None:
    assert said in call("trace", *arguments, expect=code).stderr


def test_a_log_without_records_has_a_page_that_says_so(tmp_path: Path) -> None:
    result = call("trace", "--file", str(write_log(tmp_path / "x.jsonl", [b"?\n"])))
    assert "no record" in result.stderr
    assert "1 damaged line" in result.stderr
    assert (tmp_path / "trace.html").is_file()


def test_a_session_that_ran_is_shown_with_what_hooks_decided(tmp_path: Path) -> None:
    plan = write_plan(
        tmp_path,
        [{"tool_calls": [{"name": "speak"}]}, "The end."],
        "tool-trials",
        "hooks-logging",
    )
    document = read_document(plan)
    assert isinstance(document, dict)
    document["hooks"] = ["hooks-logging", "hooks-asks"]
    plan.write_text(json.dumps(document), "utf-8")
    call("run", "Speak </script> up", "--yes", "--plan", str(plan))

    page = ReadPage(Path(call("trace").stdout.rstrip("\n")).read_text("utf-8"))

    assert [row[:3] for row in page.data["rows"]] == [
        ["turn", 0, "Turn 1"],
        ["iteration", 1, "Iteration 1"],
        ["model", 2, "scripted"],
        ["tool", 2, "speak"],
        ["decision", 3, "hooks-asks"],
        ["note", 3, "approval:required"],
        ["note", 3, "approval:granted"],
        ["iteration", 1, "Iteration 2"],
        ["model", 2, "scripted"],
    ]
    assert all(row[6] == "ok" for row in page.data["rows"])
    said = [[role, page.text(row, section)] for role, row, section in page.data["said"]]
    assert [role for role, _ in said] == ["user", "call", "tool", "assistant"]
    assert said[0] == ["user", "Speak </script> up"]
    assert said[-1] == ["assistant", "The end."]
