"""The web page in Chromium: a person signs in, asks, answers a question and reads what came of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import attrs
import httpx2
import pytest
from playwright.sync_api import Page, expect, sync_playwright

from amplifier_sdk.jsontypes import JSONValue
from tests.server.serving import Site, write_call

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium"
    ),
    pytest.mark.timeout(120),
]

HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
SCREENS = os.environ.get("AMPLIFIER_TEST_SCREENS")


@attrs.frozen
class ServerProcess:
    """A server in a process of its own, and where it serves."""

    process: subprocess.Popen[str]
    url: str


@contextmanager
def served(site: Site, *options: str) -> Iterator[str]:
    """Run the command as a process and yield where it serves."""
    with serving(site, *options) as server:
        yield server.url


@contextmanager
def serving(site: Site, *options: str) -> Iterator[ServerProcess]:
    """Run the command as a process."""
    command = [sys.executable, "-m", "amplifier", "serve", "--port", "0", *options]
    with subprocess.Popen(
        command, cwd=site.folder, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if line.startswith("Serving at "):
                    break
            yield ServerProcess(process, line.removeprefix("Serving at ").strip())
        finally:
            process.terminate()
            process.communicate(timeout=30)
    assert process.returncode == 0


@contextmanager
def browsing(url: str, secret: str, **options: object) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        context = browser.new_context(**options)  # type: ignore[arg-type]  # playwright's
        page = context.new_page()
        outside: list[str] = []
        page.on("request", lambda request: outside.append(request.url))
        page.goto(url)
        page.get_by_label("Token").fill(secret)
        page.keyboard.press("Enter")
        yield page
        # nothing was asked of another host
        assert all(asked.startswith(url) for asked in outside)
        browser.close()


def shot(page: Page, name: str) -> None:
    if SCREENS:
        page.screenshot(path=Path(SCREENS) / f"{name}.png", full_page=True)


def test_a_turn_is_asked_answered_and_read(site: Site) -> None:
    secret = anyio.run(site.token)
    file = site.plan(write_call(f"{HOSTILE}\n"), f"**Done** {HOSTILE}").file
    with served(site, "--plan", str(file)) as url, browsing(url, secret) as page:
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.get_by_role("button", name="New session").click()
        page.get_by_label("Prompt").fill(f"Write it {HOSTILE}")
        page.keyboard.press("Control+Enter")
        question = page.get_by_role("group", name="A question")
        expect(question).to_contain_text("Creates notes.txt")
        expect(page.locator("#open-questions")).to_have_text("1", timeout=5_000)
        expect(page.get_by_role("heading", level=2)).to_contain_text("Write it <img")
        expect(page.locator(".facts").first).to_contain_text("running")
        # what allows more than this one call does not stand out
        expect(question.locator("button.main")).to_have_text(["Allow once"])
        shot(page, "question")
        question.get_by_role("button", name="Allow once").click()
        expect(page.locator("#open-questions")).to_be_hidden(timeout=5_000)
        expect(page.get_by_role("log")).to_contain_text("**Done** <img", timeout=15_000)
        expect(page.get_by_role("button", name="Cancel the turn")).to_be_disabled()
        expect(page.get_by_role("status")).to_have_text("The turn has finished")
        expect(page.locator(".facts").first).to_contain_text("1 turn")
        shot(page, "turn")
        # who comes later reads what was asked as well
        page.reload()
        expect(page.get_by_role("log")).to_contain_text("Write it <img")
        expect(page.get_by_role("log").get_by_text("You")).to_have_count(1)
        page.get_by_role("button", name="Show the trace").click()
        expect(page.get_by_text("Turn 1")).to_be_visible()
        shot(page, "trace")
        page.get_by_role("link", name="Cost").click()
        expect(page.get_by_role("table")).to_contain_text("$")
        shot(page, "cost")
        page.get_by_role("link", name="Sessions", exact=True).click()
        page.get_by_label("Search").fill("write it")
        page.keyboard.press("Enter")
        expect(page.get_by_role("list", name="Sessions")).to_contain_text("Write it")
        shot(page, "sessions")
        title, images = page.title(), page.locator("img").count()

    assert (title, images, errors) == ("Amplifier", 0, [])
    assert (site.folder / "notes.txt").read_text() == f"{HOSTILE}\n"


def test_what_a_child_does_is_shown_while_it_runs(site: Site) -> None:
    secret = anyio.run(site.token)
    file = delegating(site)
    with served(site, "--plan", str(file)) as url, browsing(url, secret) as page:
        page.get_by_role("button", name="New session").click()
        page.get_by_label("Prompt").fill("Ask the scout")
        page.keyboard.press("Control+Enter")
        log = page.get_by_role("log")
        question = page.get_by_role("group", name="A question")
        expect(question).to_contain_text("notes.txt", timeout=15_000)
        expect(log.locator("summary", has_text="task")).to_contain_text("scout")
        children = page.get_by_role("list", name="Children")
        expect(children).to_contain_text("scout")
        expect(children).to_contain_text("Write the notes")
        shot(page, "child")
        question.get_by_role("button", name="Allow once").click()
        expect(log).to_contain_text("The scout wrote it.", timeout=15_000)
        expect(log.locator("summary", has_text="task")).to_have_text("task · finished")
        expect(page.locator(".facts").first).to_contain_text("idle", timeout=10_000)
        expect(children).to_contain_text("1 turn")
        shot(page, "children")

    assert (site.folder / "notes.txt").read_text() == "hello"


def delegating(site: Site) -> Path:
    """Write a plan whose model delegates to an agent that asks a person."""
    arguments = {"agent": "scout", "instruction": "Write the notes"}
    task: JSONValue = {"tool_calls": [{"name": "task", "arguments": arguments}]}
    file = site.plan(task, "The scout wrote it.").file
    assert file is not None
    script = site.folder / "scout.json"
    script.write_text(json.dumps([write_call(), "Written."]))
    config = {"responses": str(script), "by_history": True}
    scout = {"module": "provider-scripted", "config": config}
    plan = json.loads(file.read_text())
    plan["tools"].append({"module": "tool-task"})
    plan["agents"] = {"scout": {"providers": [scout]}}
    file.write_text(json.dumps(plan))
    return file


def test_the_page_fits_a_phone_in_the_dark_and_needs_no_mouse(site: Site) -> None:
    secret = anyio.run(site.token)
    file = site.plan(write_call(), "x" * 300).file
    phone = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
    with (
        served(site, "--plan", str(file), "--backend", "trio") as url,
        browsing(url, secret, **phone) as page,
    ):
        page.get_by_role("button", name="New session").focus()
        page.keyboard.press("Enter")
        page.get_by_label("Prompt").focus()
        page.keyboard.type("Write")
        page.keyboard.press("Control+Enter")
        # the badge in the header is what last moves the page
        expect(page.locator("#open-questions")).to_have_text("1", timeout=15_000)
        allow = page.get_by_role("button", name="Allow once")
        allow.focus()
        covered = page.evaluate(
            "document.activeElement.getBoundingClientRect().bottom"
            " - document.getElementById('status').getBoundingClientRect().top"
        )
        shot(page, "phone")
        page.keyboard.press("Enter")
        expect(page.get_by_role("log")).to_contain_text("x" * 300, timeout=15_000)
        wide = page.evaluate("document.documentElement.scrollWidth")
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        unnamed = page.evaluate(
            "[...document.querySelectorAll('button, input, textarea, a')]"
            ".filter((one) => !(one.textContent || one.labels?.length)).length"
        )

    assert wide <= 360
    assert covered <= 0
    assert back == "rgb(20, 22, 26)"
    assert unnamed == 0


def test_limits_are_shown_beside_what_was_spent(site: Site) -> None:
    limits: JSONValue = {
        "*": {"turns": 2, "cost_usd": {"day": 1}, "tokens": {"month": 50_000}}
    }
    settings = {"server": {"limits": {"tenants": limits}}}
    (site.home / "settings.yaml").write_text(json.dumps(settings))
    usage: JSONValue = {"input_tokens": 10, "output_tokens": 5, "cost_usd": "1.25"}
    secret = anyio.run(site.token)
    file = site.plan({"text": "Fine.", "usage": usage}).file
    with (
        served(site, "--plan", str(file)) as url,
        browsing(url, secret, viewport={"width": 360, "height": 640}) as page,
    ):
        page.get_by_role("button", name="New session").click()
        for _ in range(2):
            page.get_by_label("Prompt").fill("Hello")
            page.keyboard.press("Control+Enter")
            expect(page.get_by_role("log")).to_contain_text("Fine.", timeout=15_000)
        expect(
            page.get_by_role("alert").or_(page.get_by_role("status"))
        ).to_contain_text(["of which 0 are left"])
        page.get_by_role("link", name="Cost").click()
        table = page.get_by_role("table", name="Of all processes together")
        expect(table).to_contain_text("1.25 of 1")
        expect(table).to_contain_text("tokens a month")
        shot(page, "limits")
        wide = page.evaluate("document.documentElement.scrollWidth")

    assert wide <= 360


def test_the_page_may_load_and_run_nothing_else(site: Site) -> None:
    anyio.run(site.token)
    file = site.plan("Fine.").file
    with served(site, "--plan", str(file)) as url:
        answer = httpx2.get(url)

    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "trusted-types 'none'" in policy
    assert answer.headers["x-frame-options"] == "DENY"
    assert "<style" not in answer.text
    assert "onclick" not in answer.text
