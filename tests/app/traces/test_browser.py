"""The page in Chromium: it draws what it should, obeys nothing of a log, and asks no host."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from amplifier.app.traces.builder import build_trace
from amplifier.app.traces.page import render_page
from tests.app.logs.records import Story
from tests.app.traces.test_builder import USAGE, a_turn
from tests.app.traces.test_page import HOSTILE

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium"
    ),
    pytest.mark.timeout(120),
]


class Shown(HTMLParser):
    """The document that the browser has after the script ran: texts by class, and how many rows there are."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows = 0
        self.texts: dict[str, list[str]] = {}
        self.tags: list[str] = []
        self._class = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        self._class = found.get("class") or found.get("id") or tag
        self.rows += found.get("role") == "treeitem"

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._class, []).append(data)


def chromium(folder: Path, *options: str) -> str:
    """Run the browser on `page.html` of a folder and return what it prints."""
    command = [
        str(CHROMIUM),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        "--v=0",
        f"--user-data-dir={folder / 'profile'}",
        "--virtual-time-budget=2000",
        "--window-size=1400,900",
        *options,
        (folder / "page.html").as_uri(),
    ]
    result = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=100
    )
    # The page's own complaints: an error of its script, and whatever its policy refused.
    assert not re.findall(r".*CONSOLE.*", result.stderr), result.stderr
    return result.stdout


def write(folder: Path, story: Story) -> None:
    (folder / "page.html").write_text(
        render_page(build_trace(story.records, story.session_id)), "utf-8"
    )


def test_a_session_is_drawn(tmp_path: Path) -> None:
    story = Story("abc")
    a_turn(story)
    for number, text in enumerate(HOSTILE):
        story.tell(
            "tool:pre", span=f"h{number}", tool_name=text[:100], tool_input={"x": text}
        )
        story.tell(
            "provider:response",
            span=f"p{number}",
            provider="p",
            usage=USAGE,
            response=text,
        )
    write(tmp_path, story)

    shown = Shown(chromium(tmp_path, "--dump-dom"))

    assert shown.rows == 11 + 2 * len(HOSTILE)
    names = shown.texts["name"]
    assert names[:5] == ["Turn 1", "Iteration 1", "p big", "hooks-x", "bash"]
    assert HOSTILE[0] in names
    assert "denied" in shown.texts["state"]
    assert "".join(shown.texts["count"]).strip() == "27 of 27 steps"
    assert shown.tags.count("script") == 2
    assert shown.tags.count("img") == 0
    # The first problem is looked at.
    assert "denied: Denied by guard: not here" in "".join(shown.texts["pre"])


def test_of_ten_thousand_steps_those_that_are_seen_are_drawn(tmp_path: Path) -> None:
    story = Story("big")
    for number in range(400):
        turn, span = f"turn{number}", f"span{number}"
        story.tell("execution:start", turn=turn, span=span, prompt=f"Prompt {number}")
        for call in range(25):
            story.tell(
                "tool:pre",
                turn=turn,
                span=f"{number}-{call}",
                iteration=0,
                tool_name="read_file",
            )
        story.tell("execution:end", turn=turn, span=span, status="success")
    write(tmp_path, story)

    shown = Shown(chromium(tmp_path, "--dump-dom"))

    assert "".join(shown.texts["count"]).strip() == "426 of 10,800 steps"
    assert 20 < shown.rows < 100


def test_a_picture_of_it_can_be_taken(tmp_path: Path) -> None:
    story = Story("abc")
    a_turn(story)
    write(tmp_path, story)

    chromium(tmp_path, f"--screenshot={tmp_path / 'page.png'}")

    picture = (tmp_path / "page.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 20_000
