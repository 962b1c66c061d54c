"""What passes between a session and modules in the original's shape, and what does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio
import pytest
from amplifier_core import HookResult as OriginalResult
from amplifier_core import ToolResult as OriginalToolResult
from amplifier_core.models import ApprovalRequest, ApprovalResponse

import amplifier_module_hooks_logging
import amplifier_sdk
from amplifier import AmplifierSession
from amplifier.testing import (
    EventRecorder,
    MemoryJournal,
    MockApprovalSystem,
    MockTool,
    VirtualClock,
    create_test_session,
)
from amplifier_sdk import HookResult, ToolResult
from amplifier_sdk.chat import ChatResponse
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.convert import to_json
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from tests.compat.modules import hook, loop, odd, provider
from tests.doubles import answer, call, calling

SECRET = "hunter2-hunter2"

Data = dict[str, object]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    odd.reset()
    yield
    odd.reset()


async def results(session: AmplifierSession, prompt: str = "go") -> list[str]:
    """Run a turn and return the contents of its tool results."""
    await session.execute(prompt)
    messages = await session.coordinator.context.get_messages()
    return [str(each["content"]) for each in messages if each["role"] == "tool"]


def script(**arguments: JSONValue) -> tuple[ChatResponse, ChatResponse]:
    return calling(call("plain", arguments)), answer("done")


# -- handlers


async def test_a_handlers_dict_is_read_as_its_result() -> None:
    odd.handlers["tool:pre"] = lambda event, data: {"action": "deny", "reason": "no!"}
    work = MockTool("plain")
    async with create_test_session(*script(), tools=[work], hooks=[odd]) as session:
        (result,) = await results(session)

    assert "no!" in result
    assert work.call_count == 0


@pytest.mark.parametrize(
    "nonsense",
    [
        "deny",
        7,
        {"action": "dance"},
        {"action": "modify", "data": "x"},
        {"action": "modify", "data": {"tool_name": "other"}},
    ],
)
async def test_nonsense_of_a_blocking_handler_denies_by_name(nonsense: object) -> None:
    def guard(event: str, data: Data) -> object:
        return nonsense

    odd.handlers["tool:pre"] = guard
    work = MockTool("plain")
    async with create_test_session(*script(), tools=[work], hooks=[odd]) as session:
        (result,) = await results(session)

    assert "'guard' failed" in result
    assert work.call_count == 0


async def test_a_blocking_handler_that_raises_denies() -> None:
    async def guard(event: str, data: Data) -> object:
        raise RuntimeError("lost")

    odd.handlers["tool:pre"] = guard
    work = MockTool("plain")
    async with create_test_session(*script(), tools=[work], hooks=[odd]) as session:
        (result,) = await results(session)

    assert "RuntimeError: lost" in result
    assert work.call_count == 0


async def test_a_denial_that_a_handler_passes_on_stays_one() -> None:
    async def inner(event: str, data: Data) -> object:
        return odd.deny("inner")

    async def ask(coordinator: Coordinator) -> None:
        async def outer(event: str, data: Data) -> object:
            return await coordinator.hooks.emit("policy:check", {})

        coordinator.hooks.register("tool:pre", outer)  # type: ignore[arg-type]

    odd.handlers["policy:check"] = inner
    odd.on_mount.append(ask)
    work = MockTool("plain")
    async with create_test_session(*script(), tools=[work], hooks=[odd]) as session:
        (result,) = await results(session)

    assert "inner" in result
    assert work.call_count == 0


async def test_a_change_reaches_the_tool_and_is_validated() -> None:
    async def change(event: str, data: Data) -> object:
        data["tool_input"]["text"] = 7  # type: ignore[index]
        return {"action": "modify", "data": data}

    odd.handlers["tool:pre"] = change
    schema: JSONObject = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
    }
    work = MockTool("plain", input_schema=schema)
    async with create_test_session(
        *script(text="a"), tools=[work], hooks=[odd]
    ) as session:
        (result,) = await results(session)

    assert "does not fit" in result
    assert work.call_count == 0


async def test_sending_back_the_copy_is_no_change() -> None:
    async def same(event: str, data: Data) -> object:
        return OriginalResult(action="modify", data=data)

    odd.handlers["tool:post"] = same
    given = ToolResult(output={"a": 1})
    recorder = EventRecorder()
    async with create_test_session(
        *script(), tools=[MockTool("plain", given)], hooks=[odd, recorder]
    ) as session:
        (result,) = await results(session)

    assert recorder.one("tool:post")["result"] == given
    assert result == '{"a": 1}'


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ("shorter", "shorter"),
        (["a"], '["a"]'),
        ({"success": True, "output": "new"}, "new"),
        (OriginalToolResult(output={"b": 2}), '{"b": 2}'),
    ],
)
@pytest.mark.parametrize("key", ["result", "tool_result"])
async def test_a_changed_result_reaches_the_model(
    key: str, changed: object, text: str
) -> None:
    async def change(event: str, data: Data) -> object:
        return {"action": "modify", "data": {**data, key: changed}}

    odd.handlers["tool:post"] = change
    given = ToolResult(output={"a": 1})
    async with create_test_session(
        *script(), tools=[MockTool("plain", given)], hooks=[odd]
    ) as session:
        assert await results(session) == [text]


async def test_a_handler_has_copies_and_nothing_of_the_session() -> None:
    seen: list[Data] = []

    async def note(event: str, data: Data) -> object:
        seen.append(data)
        for value in data.values():
            if isinstance(value, dict):
                value.clear()
        return None

    odd.handlers["tool:pre"] = note
    odd.handlers["tool:post"] = note
    work = MockTool("plain", {"kept": True})
    async with create_test_session(
        *script(text="a"), tools=[work], hooks=[odd]
    ) as session:
        (result,) = await results(session)

    assert work.last_input == {"text": "a"}
    assert result == '{"kept": true}'
    plain = (dict, list, str, int, float, bool, type(None))
    assert all(type(value) in plain for data in seen for value in data.values())


async def test_no_handler_approves_for_the_person() -> None:
    async def approve(event: str, data: Data) -> object:
        return amplifier_sdk.HookResult.approve("trust me")

    odd.handlers["tool:pre"] = approve
    work = MockTool("plain")
    async with create_test_session(
        *script(), tools=[work], hooks=[odd], settings={"ask_before_changes": True}
    ) as session:
        await results(session)

    assert work.call_count == 0


async def test_a_tool_cannot_say_that_it_changes_nothing() -> None:
    mounted = odd.Plain("x")
    odd.tools.append(mounted)
    async with create_test_session(
        *script(), tools=[odd], settings={"ask_before_changes": True}
    ) as session:
        await results(session)

    assert mounted.given is None


async def test_a_tools_own_attributes_mean_nothing_to_the_session() -> None:
    odd.tools.append(odd.Plain("x"))
    async with create_test_session(*script(), tools=[odd]) as session:
        assert await results(session) == ["x"]


async def test_a_handler_waits_as_long_as_it_has_to(
    virtual_clock: VirtualClock,
) -> None:
    async def ask(event: str, data: Data) -> object:
        await anyio.sleep(3_000)
        return None

    odd.handlers["tool:pre"] = ask
    work = MockTool("plain")
    async with create_test_session(*script(), tools=[work], hooks=[odd]) as session:
        await results(session)

    assert work.call_count == 1


async def test_a_question_holds_the_deadline_of_the_tool_that_asks(
    virtual_clock: VirtualClock,
) -> None:
    class Person:
        async def request_approval(
            self, prompt: str, options: object, timeout: float, default: str
        ) -> str:
            await anyio.sleep(3_000)
            return "Allow"

    class Asking(odd.Plain):  # type: ignore[misc]
        async def execute(self, input: object) -> object:
            system = self.coordinator.approval_system
            reply = await system.request_approval(
                "Well?", ["Allow", "Deny"], 9e3, "deny"
            )
            return odd.ToolResult(output=reply)

    asking = Asking()
    odd.tools.append(asking)

    async def note(coordinator: object) -> None:
        asking.coordinator = coordinator

    odd.on_mount.append(note)
    async with create_test_session(
        *script(),
        tools=[odd],
        approval_system=Person(),
    ) as session:
        assert await results(session) == ["Allow"]


# -- injections


@pytest.mark.parametrize(("limit", "length"), [(None, 20_000), (100, 100)])
async def test_an_injection_has_the_plans_limit_alone(
    limit: int | None, length: int
) -> None:
    settings = {} if limit is None else {"injection_size_limit": limit}
    async with create_test_session(
        answer("done"),
        hooks=[hook],
        configs={"hook-0": {"inject": "x" * 20_000}},
        settings=settings,
    ) as session:
        await session.execute("go")
        (request,) = session.coordinator.providers["scripted"].requests  # type: ignore[attr-defined]

    assert len(request.messages[-1].text) == length


async def test_our_hooks_keep_the_limit_beside_an_original() -> None:
    @amplifier_sdk.on("provider:request")
    async def inject(event: str, data: Data) -> HookResult:
        return HookResult.inject("y" * 20_000, ephemeral=True)

    async with create_test_session(answer("done"), hooks=[hook, inject]) as session:
        await session.execute("go")
        (request,) = session.coordinator.providers["scripted"].requests  # type: ignore[attr-defined]

    assert len(request.messages[-1].text) == 10_240


# -- results


async def test_a_result_that_is_changed_afterwards_changes_nothing() -> None:
    mounted = odd.Plain({"kept": True})
    odd.tools.append(mounted)

    async def change(event: str, data: Mapping[str, object]) -> None:
        assert mounted.given is not None
        mounted.given.output["kept"] = False
        mounted.given.success = False

    recorder = EventRecorder()
    async with create_test_session(*script(), tools=[odd], hooks=[recorder]) as session:
        session.coordinator.hooks.register("tool:post", change, decides=False)
        assert await results(session) == ['{"kept": true}']


async def test_values_in_models_are_plain_for_whoever_redacts_or_stores() -> None:
    odd.tools.append(odd.Plain(odd.Account(owner="me", password=SECRET)))

    async def announce(coordinator: Coordinator) -> None:
        async def said(event: str, data: Data) -> object:
            account = odd.Account(owner="me", password=SECRET)
            await coordinator.hooks.emit(
                "account:seen",
                {"account": account, "all": [account], "in": {"a": account}},
            )
            return None

        coordinator.hooks.register("tool:pre", said)  # type: ignore[arg-type]

    odd.on_mount.append(announce)
    recorder, journal = EventRecorder(), MemoryJournal()
    async with create_test_session(
        *script(), tools=[odd], hooks=[recorder], journal=journal
    ) as session:
        await results(session)

    written = {"owner": "me", "password": SECRET}
    heard = recorder.one("account:seen")
    assert to_json(heard["account"]) == written
    assert heard["account"] == written
    assert heard["all"] == [written]
    assert heard["in"] == {"a": written}
    result = recorder.one("tool:post")["result"]
    assert isinstance(result, ToolResult)
    assert type(result) is ToolResult
    assert result.output == written


async def test_a_failure_that_has_only_a_message_reads_as_that() -> None:
    class Failing(odd.Plain):  # type: ignore[misc]
        async def execute(self, input: object) -> object:
            return odd.ToolResult(success=False, error={"message": "no disk"})

    odd.tools.append(Failing())
    async with create_test_session(*script(), tools=[odd]) as session:
        assert await results(session) == ["Error: no disk"]


async def test_a_tool_that_returns_no_result_returned_its_output() -> None:
    class Bare(odd.Plain):  # type: ignore[misc]
        async def execute(self, input: object) -> object:
            return {"bare": True}

    odd.tools.append(Bare())
    async with create_test_session(*script(), tools=[odd]) as session:
        assert await results(session) == ['{"bare": true}']


# -- the coordinator


async def test_a_later_original_takes_the_name_of_an_earlier() -> None:
    odd.tools += [odd.Plain("first"), odd.Plain("second")]
    async with create_test_session(*script(), tools=[odd]) as session:
        assert await results(session) == ["second"]
        assert not session.failures


async def test_a_tool_written_into_the_table_is_mounted() -> None:
    mounted = odd.Plain("written")

    async def write(coordinator: Coordinator) -> None:
        table = coordinator.mount_points["tools"]  # type: ignore[attr-defined]
        table["plain"] = mounted
        assert table["plain"] is mounted
        assert coordinator.get("tools")["plain"] is mounted  # type: ignore[index]
        assert coordinator.get("tools", "plain") is mounted

    odd.on_mount.append(write)
    async with create_test_session(*script(), tools=[odd]) as session:
        assert not session.failures
        assert await results(session) == ["written"]


async def test_originals_find_what_the_session_has_as_they_know_it() -> None:
    seen: list[object] = []

    async def look(coordinator: Coordinator) -> None:
        (asked,) = coordinator.get("providers").values()  # type: ignore[attr-defined]
        seen.append(hasattr(asked, "stream"))
        seen.append(type(asked.get_info()).__module__)
        result = await coordinator.get("tools")["plain"].execute({})  # type: ignore[index]
        seen.append(result.model_dump())

    odd.on_mount.append(look)
    async with create_test_session(
        tools=[MockTool("plain", "x")], hooks=[odd]
    ) as session:
        assert not session.failures

    assert seen == [
        False,
        "amplifier.compat.original.models",
        {"success": True, "output": "x", "error": None},
    ]


async def test_on_session_ready_gets_the_coordinator_that_its_author_knows() -> None:
    async with create_test_session(hooks=[odd]) as session:
        (coordinator,) = odd.ready
        assert session.session_id == coordinator.session_id

    assert type(coordinator).__module__ == "amplifier.compat.original.coordinator"


async def test_an_application_reaches_the_approval_hook_and_the_kernel() -> None:
    class Provider:
        def __init__(self) -> None:
            self.asked: list[str] = []

        async def request_approval(self, request: ApprovalRequest) -> ApprovalResponse:
            self.asked.append(request.tool_name)
            return ApprovalResponse(approved=True)

    registered: list[object] = []

    async def offer(coordinator: Coordinator) -> None:
        coordinator.register_capability("approval.register_provider", registered.append)

    async def ask(event: str, data: Data) -> object:
        return OriginalResult(action="ask_user", approval_prompt="Sure?")

    odd.on_mount.append(offer)
    odd.handlers["tool:pre"] = ask
    person, work = Provider(), MockTool("plain")
    async with create_test_session(*script(), tools=[work], hooks=[odd]) as session:
        (coordinator,) = odd.ready
        coordinator.get_capability("approval.register_provider")(person)
        await results(session)

    assert person.asked == ["plain"]
    assert work.call_count == 1
    reply = await registered[0].request_approval(  # type: ignore[attr-defined]
        ApprovalRequest(tool_name="t", action="a", risk_level="low")
    )
    assert reply.approved


async def test_options_that_spawning_does_not_take_are_left_out() -> None:
    seen: list[object] = []

    class Delegating(odd.Plain):  # type: ignore[misc]
        async def execute(self, input: object) -> object:
            spawn = odd.ready[0].get_capability("session.spawn")
            child = await spawn(
                agent_name="self", instruction="sub", parent_session=None, color="red"
            )
            seen.append(child["output"])
            return odd.ToolResult(output=child["output"])

    odd.tools.append(Delegating())
    async with create_test_session(
        calling(call("plain")), answer("child"), answer("done"), tools=[odd]
    ) as session:
        await session.execute("go")

    assert seen == ["child"]


# -- answers


@pytest.mark.parametrize(
    ("reason", "runs"),
    [
        (None, 1),
        ("tool_use", 1),
        ("end_turn", 1),
        ("STOP", 1),
        ("FinishReason.STOP", 1),
        ("completed", 1),
        ("a-new-word", 1),
        ("max_tokens", 0),
        ("MAX_TOKENS", 0),
        ("incomplete", 0),
        ("refusal", 0),
        ("FinishReason.SAFETY", 0),
        ("error", 0),
    ],
)
async def test_no_tool_runs_from_an_answer_that_was_cut_off(
    reason: str | None,
    runs: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    complete = provider.ScriptedProvider.complete

    async def cut(self: object, request: object, **options: object) -> object:
        made = await complete(self, request, **options)
        if made.tool_calls:
            made.finish_reason = reason
        return made

    monkeypatch.setattr(provider.ScriptedProvider, "complete", cut)
    step = {"id": "c1", "name": "plain", "input": {}}
    work = MockTool("plain")
    async with create_test_session(
        provider=provider,
        tools=[work],
        configs={"provider": {"steps": [step, "done"]}},
        approval_system=MockApprovalSystem(),
    ) as session:
        await session.execute("go")

    assert work.call_count == runs


async def test_messages_of_one_request_alone_reach_a_provider_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[list[object]] = []
    complete = provider.ScriptedProvider.complete

    async def noted(self: object, request: object, **options: object) -> object:
        asked.append([message.content for message in request.messages])  # type: ignore[attr-defined]
        return await complete(self, request, **options)

    def once(event: str, data: Data) -> HookResult | None:
        if len(asked) != 1:
            return None
        return HookResult.inject("be brief", role="user", ephemeral=True)

    monkeypatch.setattr(provider.ScriptedProvider, "complete", noted)
    async with create_test_session(
        provider=provider,
        context=amplifier_sdk.BaseContext(),
        configs={"provider": {"steps": ["one", "two", "three"]}},
    ) as session:
        session.coordinator.hooks.register("provider:request", once)
        for prompt in ("a", "b", "c"):
            await session.execute(prompt)

    assert [["be brief" in str(each) for each in contents] for contents in asked] == [
        [False],
        [False, False, False, True],
        [False, False, False, False, False],
    ]
    assert asked[2][:3] == asked[1][:3]


@pytest.mark.parametrize("orchestrator", [None, loop])
async def test_a_provider_reads_the_calls_of_its_own_answers(
    orchestrator: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = provider.ScriptedProvider.complete

    async def in_blocks(self: object, request: object, **options: object) -> object:
        made = await complete(self, request, **options)
        made.tool_calls = None
        return made

    def parse(self: object, response: provider.ChatResponse) -> list[object] | None:
        return [
            provider.ToolCall(id=block.id, name=block.name, arguments=block.input)
            for block in response.content
            if block.type == "tool_call"
        ] or None

    monkeypatch.setattr(provider.ScriptedProvider, "complete", in_blocks)
    monkeypatch.setattr(provider.ScriptedProvider, "parse_tool_calls", parse)
    step = {"id": "c1", "name": "plain", "input": {}}
    work = MockTool("plain")
    async with create_test_session(
        provider=provider,
        tools=[work],
        orchestrator=orchestrator,
        configs={"provider": {"steps": [step, "done"]}},
    ) as session:
        assert await session.execute("go") == "done"

    assert work.call_count == 1


async def test_the_log_has_no_secret_that_stood_in_a_model(tmp_path: Path) -> None:
    odd.tools.append(odd.Plain(odd.Account(owner="me", password=SECRET)))

    async def said(event: str, data: Data) -> object:
        account = odd.Account(owner="me", password=SECRET)
        await odd.ready[0].hooks.emit("account:seen", {"account": account})
        return None

    odd.handlers["tool:pre"] = said
    log = tmp_path / "{session_id}.jsonl"
    async with create_test_session(
        *script(),
        tools=[odd],
        hooks=[amplifier_module_hooks_logging],
        configs={"hook-0": {"session_log_template": str(log)}},
    ) as session:
        session.coordinator.register_contributor(
            "observability.events", "odd", lambda: ["account:seen"]
        )
        await results(session)

    (written,) = tmp_path.glob("*.jsonl")
    text = written.read_text()
    assert "account:seen" in text
    assert "tool:post" in text
    assert SECRET not in text
