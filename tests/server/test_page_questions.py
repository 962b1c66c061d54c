"""What a turn asks, answered in Chromium: by another process than asked it, an hour later by their clocks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
from playwright.sync_api import expect

from tests.server.asked import calling_tool, plan_that_asks, write_tools
from tests.server.effects import CLOCK
from tests.server.serving import Site, write_call
from tests.server.test_page import CHROMIUM, browsing, served, serving, shot
from tests.server.test_processes import read_until

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium"
    ),
    pytest.mark.timeout(180),
]


@pytest.fixture
def effects(site: Site, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which the tools of all processes note what they do."""
    write_tools(site)
    packages = site.home / "packages"
    (packages / "sitecustomize.py").write_text(CLOCK)
    inherited = os.environ.get("PYTHONPATH")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join(filter(None, [str(packages), inherited]))
    )
    file = site.home / "effects.log"
    monkeypatch.setenv("EFFECTS", str(file))
    return file


def plan_with_everything(site: Site) -> str:
    """Write a plan whose model writes a file, which asks, and deploys, whose tool asks."""
    responses = (write_call(), calling_tool("deploy", target="web"), "All is done.")
    plan_that_asks(site, *responses)
    file = site.home / "plan.json"
    plan = json.loads(file.read_text())
    rule = {"decision": "allow", "tools": ["deploy"]}
    plan["hooks"].append({"module": "hooks-approval", "config": {"rules": [rule]}})
    file.write_text(json.dumps(plan))
    return str(file)


@contextmanager
def worker(site: Site, name: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker, which is killed at the end of the block."""
    words = [sys.executable, "-m", "amplifier", "worker", "--name", name]
    with (site.home / f"{name}.log").open("wb") as log:
        process = subprocess.Popen([*words, *options], cwd=site.folder, stderr=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_turn_of_one_worker_is_answered_later_and_finished_by_another(
    site: Site, effects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dbos")
    secret = anyio.run(site.token)
    plan = plan_with_everything(site)
    common = ("--plan", plan, "--engine", f"dbos+sqlite:///{site.home}/turns.db")
    headers = {"Authorization": f"Bearer {secret}"}
    with (
        serving(site, *common) as server,
        worker(site, "one", *common),
        httpx2.Client(base_url=server.url, headers=headers, timeout=60) as client,
    ):
        session = client.post("/sessions").json()["session_id"]
        client.post(f"/sessions/{session}/turns", json={"prompt": "Do all of it"})
        read_until(client, session, "approval_requested")
    # both processes are gone, and nothing was done
    assert not (site.folder / "notes.txt").exists()
    monkeypatch.setenv("CLOCK", "3600")
    with (
        serving(site, *common) as server,
        worker(site, "two", *common, "--backend", "trio"),
        browsing(server.url, secret) as page,
    ):
        page.get_by_role("link", name="Questions").click()
        question = page.get_by_role("group", name="A question")
        expect(question).to_contain_text("Creates notes.txt")
        question.get_by_role("button", name="Allow once").click()
        page.get_by_role("link", name="Sessions").click()
        page.get_by_role("link", name="Do all of it").click()
        asked = page.get_by_role("group", name="A question").filter(
            has_text="Which branch for web?"
        )
        expect(asked).to_contain_text("The tool asks, in its own words", timeout=60_000)
        shot(page, "choice")
        asked.get_by_role("button", name="next").click()
        log = page.get_by_role("log")
        expect(log).to_contain_text("All is done.", timeout=60_000)
        expect(page.get_by_role("status")).to_have_text("The turn has finished")

    assert (site.folder / "notes.txt").read_text() == "hello"
    # run, left, and run again with the answer
    assert effects.read_text().splitlines() == ["ran web", "ran web", "deployed next"]


def test_text_is_written_on_the_page_and_a_reader_answers_nothing(
    site: Site, effects: Path
) -> None:
    secret, other = anyio.run(site.token), anyio.run(site.token, "rita", "reader")
    plan_that_asks(site, calling_tool("upload"), "Uploaded.")
    plan = str(site.home / "plan.json")
    with served(site, "--plan", plan) as url, browsing(url, secret) as page:
        page.get_by_role("button", name="New session").click()
        page.get_by_label("Prompt").fill("Upload it")
        page.keyboard.press("Control+Enter")
        question = page.get_by_role("group", name="A question")
        expect(question).to_contain_text("Which label?", timeout=15_000)
        headers = {"Authorization": f"Bearer {other}"}
        with httpx2.Client(base_url=url, headers=headers) as client:
            (asked,) = client.get("/questions").json()["questions"]
            path = f"/sessions/{asked['session_id']}/approvals/{asked['approval_id']}"
            refused = client.post(path, json={"answer": "v0"})
        question.get_by_label("Your answer").fill("v1 <b>")
        shot(page, "text")
        question.get_by_role("button", name="Answer", exact=True).click()
        expect(page.get_by_role("log")).to_contain_text("Uploaded.", timeout=15_000)

    assert refused.status_code == 403
    assert effects.read_text() == "begun\nuploaded v1 <b>\n"
