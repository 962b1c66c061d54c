"""The loop in a session: the order of its steps, its settings, its limits."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import cast

import pytest

from amplifier import AmplifierSession, ModuleLoader
from amplifier.testing import MockContextManager, mounting
from amplifier_module_loop_basic import BasicLoop
from amplifier_sdk import (
    BaseProvider,
    ChatRequest,
    ChatResponse,
    ConfigError,
    Delta,
    JSONValue,
    LoopConfig,
    MessageDict,
    Orchestrator,
    ProviderInfo,
    TextBlock,
    ToolCall,
    Usage,
    provider,
    tool,
)
from amplifier_sdk.checks import check_instance
from amplifier_sdk.errors import LLMError


@provider
class Answers(BaseProvider):
    """Calls `double` as often as it is configured to, then answers; keeps the requests."""

    name = "answers"

    def __init__(self, config: Mapping[str, JSONValue]) -> None:
        self.name = str(config.get("name", "answers"))  # several stand in one session
        self.priority = config.get("priority")
        self.calls = config.get("calls", 0)
        self.parallel = config.get("parallel", 1)
        self.requests: list[ChatRequest] = []

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id=self.name, display_name="Answers")

    async def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        self.requests.append(request)
        number = len(self.requests)
        if not isinstance(self.calls, int) or not isinstance(self.parallel, int):
            raise LLMError("down")
        calls = [
            ToolCall(id=f"{number}-{index}", name="double", arguments={"x": index})
            for index in range(self.parallel)
        ]
        usage = Usage(input_tokens=5, output_tokens=5, total_tokens=10)
        if number <= self.calls:
            yield ChatResponse(
                content=[TextBlock(text="Wait.")], tool_calls=calls, usage=usage
            )
        else:
            yield ChatResponse(
                content=[TextBlock(text=f"Done by {self.name}.")], usage=usage
            )


@tool
async def double(x: int) -> int:
    """Double a number."""
    return 2 * x


def session(
    *providers: JSONValue, loop: JSONValue = None, limits: JSONValue = None
) -> AmplifierSession:
    """Build a session of the loop, with a provider per configuration."""
    plan: dict[str, JSONValue] = {
        "session": {
            "orchestrator": "loop-basic",
            "context": "memory",
            "limits": limits,
        },
        "orchestrator": {"config": loop},
        "providers": [
            {"module": "answers", "instance_id": f"p{number}", "config": config}
            for number, config in enumerate(providers or ({},))
        ],
        "tools": ["double"],
    }
    modules = {
        "loop-basic": BasicLoop,
        "memory": mounting(MockContextManager()),
        "answers": Answers,
        "double": double,
    }
    return AmplifierSession(plan, ModuleLoader(modules=modules))


def requests(opened: AmplifierSession, name: str = "p0") -> list[ChatRequest]:
    asked = opened.coordinator.get("providers", name)
    assert isinstance(asked, Answers)
    return asked.requests


def messages(opened: AmplifierSession) -> list[MessageDict]:
    memory = opened.coordinator.get("context")
    assert isinstance(memory, MockContextManager)
    return memory.messages


def test_it_is_an_orchestrator() -> None:
    loop = BasicLoop(LoopConfig())

    assert isinstance(loop, Orchestrator)
    assert check_instance("orchestrator", loop) == []


async def test_an_answer_without_calls_ends_the_turn() -> None:
    async with session() as opened:
        assert await opened.execute("Hello") == "Done by answers."
        assert len(requests(opened)) == 1


async def test_calls_are_run_and_results_shown_until_model_answers() -> None:
    async with session({"calls": 2, "parallel": 2}) as opened:
        await opened.execute("Hello")

        assert len(requests(opened)) == 3
        assert [message["role"] for message in messages(opened)] == [
            "user",
            *("assistant", "tool", "tool"),
            *("assistant", "tool", "tool"),
            "assistant",
        ]
        assert [m["content"] for m in messages(opened) if m["role"] == "tool"] == [
            "0",
            "2",
            "0",
            "2",
        ]


async def test_the_events_of_a_turn_come_in_order() -> None:
    heard: list[str] = []
    async with session({"calls": 1}) as opened:
        opened.coordinator.hooks.register("*", lambda event, data: heard.append(event))

        await opened.execute("Hello")

    blocks = [event for event in heard if event.startswith("content_block:")]
    assert blocks
    assert [event for event in heard if event not in blocks] == [
        "session:start",
        "execution:start",
        "prompt:submit",
        *("provider:request", "provider:response"),
        *("tool:pre", "tool:post"),
        *("provider:request", "provider:response"),
        "orchestrator:stopping",
        "prompt:complete",
        "orchestrator:complete",
        "execution:end",
        "session:end",
    ]


async def test_its_name_stands_in_the_events() -> None:
    names: list[object] = []
    async with session() as opened:
        opened.coordinator.hooks.register(
            "orchestrator:complete",
            lambda event, data: names.append(data["orchestrator"]),
        )

        await opened.execute("Hello")

    assert names == ["loop-basic"]


async def test_the_first_tool_is_forced_once_a_turn() -> None:
    async with session({"calls": 1}, loop={"first_tool": "double"}) as opened:
        await opened.execute("Hello")
        await opened.execute("Again")

        assert [request.forced_tool for request in requests(opened)] == [
            "double",
            None,
            "double",
        ]


async def test_first_tool_not_mounted_is_error_that_names_nearest() -> None:
    async with session(loop={"first_tool": "duble"}) as opened:
        with pytest.raises(
            ConfigError,
            match=r"first_tool: no tool 'duble' is mounted; mounted: double; did you mean",
        ):
            await opened.execute("Hello")
        assert requests(opened) == []


async def test_the_settings_reach_every_request() -> None:
    settings: JSONValue = {
        "model": "m",
        "temperature": 0,
        "max_output_tokens": 9,
        "reasoning_effort": "low",
    }
    async with session({"calls": 1}, loop=settings) as opened:
        await opened.execute("Hello")

        for request in requests(opened):
            assert (request.model, request.temperature, request.tool_choice) == (
                "m",
                0,
                None,
            )
            assert (request.max_output_tokens, request.reasoning_effort) == (9, "low")


async def test_the_provider_with_the_lowest_priority_is_asked() -> None:
    async with session(
        {"name": "a", "priority": 9}, {"name": "b", "priority": 1}
    ) as opened:
        assert await opened.execute("Hello") == "Done by b."


async def test_the_configured_provider_is_asked_whatever_its_priority() -> None:
    providers: list[JSONValue] = [
        {"name": "a", "priority": 9},
        {"name": "b", "priority": 1},
    ]
    async with session(*providers, loop={"default_provider": "p0"}) as opened:
        assert await opened.execute("Hello") == "Done by a."


async def test_unmounted_configured_provider_names_nearest() -> None:
    async with session(loop={"default_provider": "p"}) as opened:
        with pytest.raises(
            ConfigError,
            match=r"no provider 'p' is mounted; mounted: p0; did you mean 'p0'",
        ):
            await opened.execute("Hello")


@pytest.mark.parametrize(
    "limits", [{"iterations": 3}, {"tool_calls": 2}, {"tokens": 20}]
)
async def test_a_limit_gives_one_last_answer_without_tools(limits: JSONValue) -> None:
    async with session({"calls": 1_000}, limits=limits) as opened:
        (name, amount), *_ = cast("dict[str, object]", limits).items()
        note = f"[The turn ended early: its limit {name!r} of {amount} is reached.]"
        assert await opened.execute("Hello") == f"Wait.\n\n{note}"

        assert [request.tools is None for request in requests(opened)] == [
            False,
            False,
            True,
        ]
        assert "answer now" in requests(opened)[-1].messages[-1].text
        assert messages(opened)[-1] == {
            "role": "assistant",
            "content": [{"type": "text", "text": "Wait."}],
        }


async def test_a_failing_provider_fails_the_turn() -> None:
    async with session({"calls": "none"}) as opened:
        with pytest.raises(LLMError, match="down"):
            await opened.execute("Hello")


async def test_an_unknown_setting_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"frst_tool: .*did you mean 'first_tool'"):
        async with session(loop={"frst_tool": "double"}):
            pass
