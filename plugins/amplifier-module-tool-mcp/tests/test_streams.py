"""Streams of events over HTTP that break off: what is missing is asked for, and no call is sent twice."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import pytest

from amplifier.kernel.sessions.session import AmplifierSession

Open = Callable[..., AbstractAsyncContextManager[AmplifierSession]]  # type: ignore[explicit-any]  # options go by name
Text = Callable[..., Awaitable[str]]  # type: ignore[explicit-any]  # a tool's arguments go by name
Until = Callable[[Callable[[], object]], Awaitable[None]]
Page: TypeAlias = tuple[int, dict[str, str], bytes]
Sites = Callable[..., Any]  # type: ignore[explicit-any]  # what it makes is conftest.py's
Hello = Callable[..., Page]  # type: ignore[explicit-any]  # options go by name

CUT = {"Content-Length": "100000"}
NOTHING: Page = (405, {}, b"")


def events(*texts: str, cut: bool = False) -> Page:
    """A stream; one that is cut breaks off where it should go on."""
    return (
        200,
        {"Content-Type": "text/event-stream", **(CUT if cut else {})},
        "".join(texts).encode(),
    )


def event(message: object, id: str = "") -> str:
    return (f"id: {id}\n" if id else "") + f"data: {json.dumps(message)}\n\n"


def progress(number: int) -> object:
    params = {"progressToken": "none", "progress": number}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def result(text: str, id: object = 1) -> object:
    return {
        "jsonrpc": "2.0",
        "id": id,
        "result": {"content": [{"type": "text", "text": text}]},
    }


SOON = "retry: 1\n\n"


@pytest.fixture
def calling(site: Sites, hello: Hello) -> Callable[..., Any]:  # type: ignore[explicit-any]  # conftest.py's
    """Open a site that answers a call with one page, and requests for the rest with the others, one after another."""

    def calling(first: Page, *rest: Page) -> object:
        left: Iterator[Page] = iter(rest)

        def answer(message: dict[str, object], headers: dict[str, str]) -> Page:
            if message["method"] == "tools/call":
                return first
            if message["method"] == "GET" and any(
                one["method"] == "tools/call" for one in here.seen
            ):
                return next(left, NOTHING)
            return hello(message)

        here = site(answer)
        return here

    return calling


Calling = Callable[..., Any]  # type: ignore[explicit-any]  # what it makes is conftest.py's


@pytest.mark.parametrize("cut", [True, False], ids=["cut", "ended"])
async def test_rest_of_answer_is_asked_for_and_call_is_sent_once(
    opened: Open, calling: Calling, text: Text, cut: bool
) -> None:
    here = calling(
        events(SOON, event(progress(1), "e1"), cut=cut),
        events(event(progress(2), "e2"), cut=cut),
        events(event(result("all of it"))),
    )
    async with opened({"s": {"url": here.url}}) as one:
        assert await text(one, "mcp__s__go") == "all of it"

    assert [asked["method"] for asked in here.seen].count("tools/call") == 1
    asked = [asked for asked in here.seen if "last-event-id" in asked]
    assert [(one["last-event-id"], one["mcp-session-id"]) for one in asked] == [
        ("e1", "abc"),
        ("e2", "abc"),
    ]


async def test_a_server_that_is_away_for_a_moment_is_asked_again(
    opened: Open, calling: Calling, text: Text
) -> None:
    here = calling(
        events(SOON, event(progress(1), "e1"), cut=True),
        (503, {}, b""),
        events(": nothing new\n\n", cut=True),
        events(event(result("back"))),
    )
    async with opened({"s": {"url": here.url}}) as one:
        assert await text(one, "mcp__s__go") == "back"


@pytest.mark.parametrize(
    ("first", "rest", "asks"),
    [
        (events(SOON, event(progress(1)), cut=True), (), 0),
        (events(SOON, event(progress(1), "\u00e9"), cut=True), (), 0),
        (events(SOON, event(progress(1), "e1"), cut=True), ((404, {}, b""),), 1),
        (events(SOON, event(progress(1), "e1"), cut=True), [(503, {}, b"")] * 5, 3),
    ],
    ids=["no id", "no id that can be sent", "gone", "away"],
)
async def test_answer_that_cannot_be_had_says_that_call_may_have_run(
    opened: Open,
    calling: Calling,
    failure: Text,
    first: Page,
    rest: tuple[Page, ...],
    asks: int,
) -> None:
    here = calling(first, *rest)
    async with opened({"s": {"url": here.url}}) as one:
        reported = await failure(one, "mcp__s__go")

    assert (
        "gave no answer that can be used; the call may have had its effect" in reported
    )
    assert "its stream of events ended without an answer" in reported
    assert len([asked for asked in here.seen if "last-event-id" in asked]) == asks


async def test_what_is_no_message_in_a_stream_is_passed_over(
    opened: Open, calling: Calling, text: Text
) -> None:
    here = calling(
        events(
            "data: {\n\n", "event: ping\ndata: x\n\n", event([]), event(result("found"))
        )
    )
    async with opened({"s": {"url": here.url}}) as one:
        assert await text(one, "mcp__s__go") == "found"


async def test_an_event_that_is_too_long_fails_its_call_alone(
    opened: Open, calling: Calling, failure: Text
) -> None:
    here = calling(events(event(result("x" * 200_000))))
    async with opened({"s": {"url": here.url}}, max_message_bytes=100_000) as one:
        assert "more than the 100000 bytes of max_message_bytes" in await failure(
            one, "mcp__s__go"
        )


async def test_broken_server_stream_is_reopened_for_messages(
    opened: Open, site: Sites, hello: Hello, until: Until
) -> None:
    changed = event(
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, "n1"
    )
    said: Iterator[Page] = iter([events(SOON, cut=True), events(changed, cut=True)])
    listed = 0

    def answer(message: dict[str, object], _: dict[str, str]) -> Page:
        nonlocal listed
        if message["method"] == "GET":
            return next(said, NOTHING)
        listed += message["method"] == "tools/list"
        return hello(message, changes=True)

    here = site(answer)
    async with opened({"s": {"url": here.url}}):
        await until(lambda: listed == 2)


async def test_the_answer_to_a_call_that_took_too_long_is_left(
    opened: Open, site: Sites, hello: Hello, failure: Text, until: Until
) -> None:
    endless = (200, {"Content-Type": "text/event-stream"}, None)
    here = site(
        lambda message, _: (
            endless if message["method"] == "tools/call" else hello(message)
        )
    )
    async with opened({"s": {"url": here.url, "call_timeout": 0.3}}) as one:
        assert "did not answer within 0.3 s" in await failure(one, "mcp__s__go")
        await until(here.was_left.is_set)
        assert "notifications/cancelled" in [asked["method"] for asked in here.seen]
