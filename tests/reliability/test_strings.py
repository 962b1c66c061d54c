"""Hard texts on every way through a session: each arrives as it was, or as the stated rule makes it, and stops nothing.

`AMPLIFIER_TABLES=1` takes all of them instead of a part.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Final

import pytest

from amplifier import AmplifierSession
from amplifier.testing import EventRecorder, answer, call
from amplifier_kit.files.names import folder_name
from amplifier_kit.scripted import Step
from amplifier_kit.terminal import visible
from amplifier_kit.trust.untrusted import mark_untrusted
from amplifier_module_context_persistent import PersistentContext
from amplifier_sdk import ContextManager, MessageDict, tool
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import ToolResult
from tests.reliability.stage import AppDirs, Site, session
from tests.reliability.strings import SAMPLE, STRINGS

pytestmark = pytest.mark.anyio

FULL: Final = "AMPLIFIER_TABLES" in os.environ
STEP: Final = 1 if FULL else 8
"""Every which text goes through a process, a web page and a server of tools."""
STUB: Final = Path(__file__).with_name("stub_server.py")
HALVES: Final = re.compile("[\ud800-\udfff]")


def is_text(text: str) -> bool:
    """Tell whether a text can be an argument: halves of surrogate pairs cannot."""
    return HALVES.search(text) is None


def is_file(text: str) -> bool:
    """Tell whether a text can be that of a text file."""
    return is_text(text) and "\x00" not in text


def is_plain(text: str) -> bool:
    """Tell whether a text stays as it is between the marks: it fits, and has no sign unseen and no mark of its own."""
    return text.isprintable() and "untrusted" not in text and len(text) < 10_000


@pytest.fixture(params=range(12 if FULL else 1))
def texts(anyio_backend_name: str, request: pytest.FixtureRequest) -> list[str]:
    """A part of them for each session, or a half of the sample for each backend."""
    return list(
        STRINGS[request.param :: 12]
        if FULL
        else SAMPLE[anyio_backend_name == "trio" :: 2]
    )


@pytest.mark.process
async def test_a_turn_carries_every_text(
    dirs: AppDirs, web_site: Site, texts: list[str]
) -> None:
    heard: list[str] = []

    @tool
    async def echo(text: str) -> str:
        """Say it again."""
        heard.append(text)
        return text

    steps = [
        step
        for number, text in enumerate(texts)
        for step in turn(number, text, web_site)
    ]
    recorder = EventRecorder()
    made = session(
        dirs,
        *steps,
        tools=["tool-filesystem", "tool-bash", "tool-web", "tool-mcp"],
        hooks=["hooks-logging"],
        extra_tools=[echo],
        extra_hooks=[recorder],
        configs={
            "tool-web": {
                "allowed_addresses": [f"127.0.0.1:{web_site.port}"],
                "max_limit": 2_000_000,
            },
            "tool-bash": {
                "sandbox": "none",
                "unlisted": "allow",
                "max_output_bytes": 3_000_000,
            },
            "tool-mcp": {
                "servers": {
                    "stub": {"command": sys.executable, "args": [str(STUB), "1"]}
                }
            },
        },
    )
    async with made:
        said = [await made.execute(text) for text in texts]
        history = list(await context_of(made).get_messages())

    assert said == texts
    assert heard == [text for text in texts if is_text(text)]
    assert [
        message["content"] for message in history if message["role"] == "user"
    ] == texts
    assert [result.output for result in results(recorder, "echo")] == heard
    check_files(dirs, texts, recorder)
    check_log(dirs)
    assert await resumed(dirs) == history


def results(recorder: EventRecorder, name: str) -> list[ToolResult]:
    """Return what the calls of one tool gave."""
    found = [
        data["result"]
        for event, data in recorder.events
        if event == "tool:post" and data["tool_name"] == name
    ]
    return [result for result in found if isinstance(result, ToolResult)]


def check_files(dirs: AppDirs, texts: list[str], recorder: EventRecorder) -> None:
    """A text is in its file byte for byte, and comes back from a process and a web page; what is no text is refused."""
    for number, text in enumerate(texts):
        stored = dirs.project / f"{number}.txt"
        assert stored.exists() == is_file(text)
        assert not is_file(text) or stored.read_bytes() == text.encode()
    through = [text for text in texts[::STEP] if is_file(text)]
    assert [
        output_of(result)["stdout"]
        for result in results(recorder, "bash")
        if result.success
    ] == through
    reported = [
        str(output_of(result)["content"])
        for result in results(recorder, "mcp__stub__echo")
        if result.success
    ]
    for text, said in zip(filter(is_text, texts[::STEP]), reported, strict=True):
        assert (
            said.count("<untrusted-content") == said.count("</untrusted-content") == 1
        )
        assert text in said or not is_plain(text)
    pages = results(recorder, "web_fetch")
    assert len(pages) == len(texts[::STEP])
    assert {output_of(page)["trust"] for page in pages if page.success} == {"untrusted"}


def output_of(result: ToolResult) -> JSONObject:
    assert isinstance(result.output, dict)
    return result.output


def context_of(made: AmplifierSession) -> ContextManager:
    context = made.coordinator.get("context")
    assert isinstance(context, PersistentContext)
    return context


def turn(number: int, text: str, site: Site) -> list[Step]:
    """Return what the model says in the turn of one text: two rounds of calls, then the text."""
    file = f"{number}.txt"
    site.pages[f"/{file}"] = text.encode("utf-8", "replace")
    first = [
        call("echo", {"text": text}, id=f"a{number}"),
        call("write_file", {"file_path": file, "content": text}, id=f"b{number}"),
    ]
    second = [
        call("read_file", {"file_path": file}, id=f"c{number}"),
        call(text, {}, id=f"f{number}"),
    ]
    if number % STEP == 0:
        second += [
            call("web_fetch", {"url": site.url(f"/{file}")}, id=f"d{number}"),
            call("bash", {"command": f"cat {file}"}, id=f"e{number}"),
            call("mcp__stub__echo", {"text": text}, id=f"g{number}"),
        ]
    return [answer(text, *first), answer("", *second), answer(text)]


def check_log(dirs: AppDirs) -> None:
    """Every line of the log is JSON without a control character, and none is missing."""
    (log,) = dirs.home.rglob("events.jsonl")
    lines = log.read_bytes().splitlines()
    numbers = [json.loads(line, parse_constant=pytest.fail)["seq"] for line in lines]
    assert numbers == list(range(1, len(lines) + 1))
    assert not re.search(rb"[\x00-\x09\x0b-\x1f]", log.read_bytes())


async def resumed(dirs: AppDirs) -> list[MessageDict]:
    """Return the history that the next session begins with."""
    async with session(dirs, tools=[], hooks=[]) as again:
        return list(await context_of(again).get_messages())


def test_a_terminal_and_a_folder_get_nothing_to_obey() -> None:
    for text in STRINGS:
        folder = folder_name(text)
        assert not re.search(
            "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]",
            visible(text),
        )
        assert Path(folder).name == folder not in ("", ".", "..")
        assert len(folder.encode()) < 200


def test_a_mark_round_any_text_is_closed_once_by_its_own_end() -> None:
    for text in STRINGS:
        first, *_, last = mark_untrusted(text, text[:200]).split("\n")
        number = first.split('"')[1]
        marked = mark_untrusted(text, text[:200])
        assert (
            marked.count("<untrusted-content")
            == marked.count("</untrusted-content")
            == 1
        )
        assert last == f'</untrusted-content id="{number}">'
