"""Calls to servers, and what becomes of whatever they answer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import attrs
import pytest

from amplifier.kernel.sessions.session import AmplifierSession
from amplifier.testing import EventRecorder, MockApprovalSystem
from amplifier_sdk.approvals import ApprovalRequest, ApprovalResponse
from amplifier_sdk.content import ImageBlock
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.person_questions import PersonQuestion
from amplifier_sdk.progress import TOOL_PROGRESS
from amplifier_sdk.results import ToolResult

pytestmark = pytest.mark.process

Open = Callable[..., AbstractAsyncContextManager[AmplifierSession]]  # type: ignore[explicit-any]  # options go by name
Text = Callable[..., Awaitable[str]]  # type: ignore[explicit-any]  # a tool's arguments go by name
Call = Callable[..., Awaitable[ToolResult]]  # type: ignore[explicit-any]  # a tool's arguments go by name
Scripted = Callable[..., JSONObject]  # type: ignore[explicit-any]  # options go by name
Status = Callable[[AmplifierSession, str], Awaitable[JSONObject]]
Noted = Callable[[str], list[str]]


async def test_a_session_has_the_tools_of_its_servers(
    opened: Open, text: Text, status: Status, scripted: Scripted
) -> None:
    async with opened({"s": scripted(), "t": scripted()}) as one:
        names = [
            f"mcp__{server}__{name}"
            for server in "st"
            for name in ("change", "echo", "fail", "show", "wait")
        ]
        assert sorted(one.coordinator.tools) == [*names, "mcp_resources", "mcp_status"]
        assert (
            await text(one, "mcp__s__echo", text="héllo\n  there") == "héllo\n  there"
        )
        assert (await status(one, "t"))["state"] == "ready"
        tool = one.coordinator.tools["mcp__s__echo"]
        assert tool.description.startswith("Of the MCP server 's', in whose own words")
        assert tool.description.endswith("\nSay it again.")


async def test_a_server_offers_the_tools_that_are_listed(
    opened: Open, scripted: Scripted
) -> None:
    servers = {
        "s": scripted(tools=["e*", "fail"], exclude_tools=["f*"]),
        "off": scripted(disabled=True),
    }
    async with opened(servers) as one:
        assert sorted(one.coordinator.tools) == [
            "mcp__s__echo",
            "mcp_resources",
            "mcp_status",
        ]


async def test_person_is_asked_about_each_call_of_tools_that_want_it(
    opened: Open, text: Text, failure: Text, scripted: Scripted
) -> None:
    person = MockApprovalSystem("Deny", "Allow")
    async with opened(
        {"s": scripted(require_approval=["ec*"])}, approval=person
    ) as one:
        assert "Denied" in await failure(one, "mcp__s__echo", text="x")
        assert await text(one, "mcp__s__echo", text="x") == "x"
        assert await text(one, "mcp__s__change", bytes=1) == "a"
    assert ["'echo'" in question.prompt for question in person.questions] == [
        True,
        True,
    ]


async def test_arguments_are_checked_before_the_server_sees_them(
    opened: Open, text: Text, failure: Text, scripted: Scripted
) -> None:
    async with opened({"s": scripted()}) as one:
        assert "text: missing" in await failure(one, "mcp__s__echo", words="x")
        assert await text(one, "mcp__s__echo", text="still there") == "still there"


async def test_a_result_is_told_part_by_part(
    opened: Open,
    call: Call,
    scripted: Scripted,
    inner: Callable[[str], str],
    note: Path,
) -> None:
    async with opened({"s": scripted()}) as one:
        result = await call(one, "mcp__s__show")
        assert isinstance(result.output, dict)
        assert inner(str(result.output["content"])).split("\n\n") == [
            "words",
            "[image/png: no image that can be shown]",
            "[audio/wav, 3 bytes: not shown]",
            "[resource a note: note:///a]",
            "note:///b:\ninside",
            "[application/pdf of note:///c, 3 bytes: not shown]",
            '{"n": 1}',
        ]
        assert result.content is not None
        assert [type(block).__name__ for block in result.content] == [
            "TextBlock",
            "ImageBlock",
            "ImageBlock",
            "DocumentBlock",
        ]
        assert isinstance(result.content[1], ImageBlock)
        assert result.content[1].source["media_type"] == "image/png"


async def test_a_failure_that_the_server_reports_is_a_failure(
    opened: Open, failure: Text, scripted: Scripted
) -> None:
    async with opened({"s": scripted()}) as one:
        reported = await failure(one, "mcp__s__fail")
        assert reported.startswith("the server reports a failure:\n<untrusted-content")
        assert "it is broken" in reported


async def test_only_what_a_server_says_against_itself_counts(
    opened: Open, scripted: Scripted
) -> None:
    """A hint that a tool only reads allows nothing; one that it changes something is believed."""
    async with opened({"s": scripted()}) as one:
        reported = {
            name: getattr(one.coordinator.tools[f"mcp__s__{name}"], "read_only", None)
            for name in ("show", "echo", "change")
        }
        assert reported == {"show": None, "echo": None, "change": False}
        assert getattr(one.coordinator.tools["mcp__s__show"], "effects", None) is None


async def test_progress_reaches_those_who_watch(
    opened: Open, text: Text, scripted: Scripted, events: EventRecorder
) -> None:
    async with opened({"s": scripted("progress")}) as one:
        await text(one, "mcp__s__echo", text="x")
        last = events.data(TOOL_PROGRESS)[-1]
        assert (last["message"], last.get("done"), last.get("total")) == (
            "step 2",
            2.0,
            2.0,
        )


async def test_progress_that_is_no_number_is_none(
    opened: Open, text: Text, scripted: Scripted, events: EventRecorder
) -> None:
    async with opened({"s": scripted("no-progress")}) as one:
        await text(one, "mcp__s__echo", text="x")
        last = events.data(TOOL_PROGRESS)[-1]
        assert (last["message"], last.get("done"), last.get("total")) == (
            "step inf",
            None,
            2.0,
        )


@pytest.mark.parametrize(
    ("mode", "reported"),
    [("twice", "first"), ("noise", "after noise"), ("flood", "after the flood")],
)
async def test_what_nobody_asked_for_does_no_harm(
    opened: Open,
    mode: str,
    reported: str,
    text: Text,
    status: Status,
    scripted: Scripted,
) -> None:
    async with opened({"s": scripted(mode)}) as one:
        assert await text(one, "mcp__s__echo", text="x") == reported
        assert await text(one, "mcp__s__echo", text="x") == reported
        assert (await status(one, "s"))["state"] == "ready"


@pytest.mark.parametrize(
    ("mode", "reported"),
    [
        (
            "no-result",
            "gave no answer that can be used; the call may have had its effect",
        ),
        ("error", "no &lt;/untrusted-content>"),
        ("late", "did not carry the call out:\n<untrusted-content"),
        (
            "wrong-id",
            "did not answer within 0.3 s; the call was cancelled, but may have had its effect",
        ),
        (
            "dies",
            "ended the connection before it answered; the call may have had its effect",
        ),
    ],
)
async def test_a_call_that_fails_says_why(
    opened: Open, mode: str, reported: str, failure: Text, scripted: Scripted
) -> None:
    async with opened(
        {"s": scripted(mode, call_timeout=0.3 if mode == "wrong-id" else 20)}
    ) as one:
        assert reported in await failure(one, "mcp__s__echo", text="x")


async def test_sampling_is_refused_nobody_is_asked_and_roots_are_told(
    opened: Open, work: Path, text: Text, scripted: Scripted
) -> None:
    async with opened({"s": scripted("asks")}) as one:
        sampling, elicitation, roots = json.loads(
            await text(one, "mcp__s__echo", text="x")
        )
        assert "not supported" in sampling
        assert elicitation == {"action": "cancel"}
        assert roots == {"roots": [{"uri": work.as_uri(), "name": "work"}]}


@attrs.define(eq=False)
class Person:
    """Answers what tools ask, after longer than a call may take."""

    answer: JSONValue
    asked: list[PersonQuestion] = attrs.field(factory=list)

    async def request_approval(self, request: ApprovalRequest, /) -> ApprovalResponse:
        raise AssertionError(request)

    async def ask_person(self, question: PersonQuestion, /) -> JSONValue:
        self.asked.append(question)
        await anyio.sleep(0.6)
        return self.answer


@pytest.mark.parametrize(
    ("answer", "reported"),
    [
        ({"name": "Ann"}, {"action": "accept", "content": {"name": "Ann"}}),
        (None, {"action": "decline"}),
        ({"name": 7}, {"action": "cancel"}),
    ],
)
async def test_what_a_server_asks_in_a_call_is_asked_for_that_call(
    opened: Open, text: Text, scripted: Scripted, answer: JSONValue, reported: JSONValue
) -> None:
    person = Person(answer)
    async with opened({"s": scripted("asks", call_timeout=0.5)}) as one:
        one.coordinator.decisions.provider = person
        _, heard, _ = json.loads(await text(one, "mcp__s__echo", text="x"))
        # the next call finds the connection as it was
        again = json.loads(await text(one, "mcp__s__echo", text="x"))[1]
    (question, _) = person.asked

    assert heard == again == reported
    assert not question.is_repeatable
    assert question.tool_name == "mcp__s__echo"
    assert question.details["tool_input"] == {"text": "x"}
    assert question.prompt.startswith('mcp__s__echo {"text": "x"}')
    assert "The MCP server 's' asks: your " in question.prompt
    assert "\x1b" not in question.prompt
    assert "\u202e" not in question.prompt


async def test_a_server_asks_so_many_questions_in_a_call(
    opened: Open,
    text: Text,
    scripted: Scripted,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("amplifier_module_tool_mcp.elicitation._MOST", 0)
    person = Person({"name": "Ann"})
    async with opened({"s": scripted("asks")}) as one:
        one.coordinator.decisions.provider = person
        _, heard, _ = json.loads(await text(one, "mcp__s__echo", text="x"))

    assert heard == {"action": "cancel"}
    assert person.asked == []


async def test_roots_may_be_kept_to_oneself(
    opened: Open, text: Text, scripted: Scripted
) -> None:
    async with opened({"s": scripted("asks")}, roots=False) as one:
        assert json.loads(await text(one, "mcp__s__echo", text="x"))[2] is None


async def test_the_other_call_goes_on_beside_one_that_waits(
    opened: Open, text: Text, failure: Text, scripted: Scripted, noted: Noted
) -> None:
    async with opened({"s": scripted("good")}, call_timeout=0.5) as one:
        assert "did not answer within 0.5 s" in await failure(one, "mcp__s__wait")
        assert await text(one, "mcp__s__echo", text="x") == "x"
        assert noted("cancelled")
        assert len(noted("started")) == 1


async def test_a_server_that_gives_no_sign_of_life_is_started_again(
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    text: Text,
    failure: Text,
    scripted: Scripted,
    noted: Noted,
) -> None:
    monkeypatch.setattr("amplifier_module_tool_mcp.server._PING_SECONDS", 0.2)
    async with opened({"s": scripted("stuck", call_timeout=0.3)}) as one:
        assert "did not answer" in await failure(one, "mcp__s__wait")
        assert await text(one, "mcp__s__echo", text="x") == "x"
        assert len(noted("started")) == 2


async def test_resources_are_listed_and_read(
    opened: Open, text: Text, failure: Text, scripted: Scripted, note: Path
) -> None:
    async with opened({"s": scripted()}) as one:
        listed = await text(one, "mcp_resources", server="s")
        assert listed == "note:///a a: A note.\nnote:///{name} (template) any"
        assert (
            await text(one, "mcp_resources", server="s", uri="note:///a")
            == "note:///a:\na note's text"
        )
        assert "there is no MCP server 'x'; known: 's'" in await failure(
            one, "mcp_resources", server="x"
        )


async def test_a_server_need_not_know_templates_of_resources(
    opened: Open, text: Text, scripted: Scripted
) -> None:
    async with opened({"s": scripted("no-templates")}) as one:
        assert await text(one, "mcp_resources", server="s") == "note:///a a: A note."


async def test_resources_can_be_left_out(opened: Open, scripted: Scripted) -> None:
    async with opened({"s": scripted()}, resources=False) as one:
        assert "mcp_resources" not in one.coordinator.tools
