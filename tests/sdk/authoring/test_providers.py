"""The provider base: what follows from `get_info` and `deltas`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

import pytest

from amplifier_sdk import (
    BaseProvider,
    ChatRequest,
    ChatResponse,
    ProviderInfo,
    StreamingProvider,
    TextDelta,
    ToolCall,
)
from amplifier_sdk.chat import ModelInfo
from amplifier_sdk.errors import StreamError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.streaming import Delta
from tests.sdk.authoring.doubles import Answers, answer, calling

REQUEST = ChatRequest(messages=())


class Described(BaseProvider):
    """Says what it is; never finishes an answer."""

    name = "described"

    def __init__(self, defaults: Mapping[str, JSONValue]) -> None:
        self.defaults = defaults
        self.closed = False

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(
            id="d",
            display_name="Described",
            capabilities=["tools"],
            defaults=self.defaults,
        )

    async def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        try:
            yield TextDelta(text="a")
            yield TextDelta(text="b")
        finally:
            self.closed = True


class Named(BaseProvider):
    """Says nothing of itself but its name."""

    name = "named"

    async def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[Delta | ChatResponse, None]:
        yield answer("x")


async def test_a_provider_that_says_no_more_is_described_by_its_name() -> None:
    assert Named().get_info() == ProviderInfo(
        id="named", display_name="named", capabilities=["streaming"]
    )
    assert await Named().list_models() == []
    assert (await Named().complete(REQUEST)).text == "x"


def test_a_provider_streams() -> None:
    assert isinstance(Answers(), StreamingProvider)


async def test_a_stream_ends_in_the_answer() -> None:
    async with Answers(answer("Hi")).stream(REQUEST) as items:
        assert [item async for item in items] == [TextDelta(text="Hi"), answer("Hi")]


async def test_complete_drains_the_stream() -> None:
    assert await Answers(answer("Hi")).complete(REQUEST) == answer("Hi")


async def test_stream_without_answer_is_error_that_names_provider() -> None:
    with pytest.raises(StreamError, match="before it was whole") as caught:
        await Described({}).complete(REQUEST)

    assert caught.value.provider == "described"
    assert caught.value.retryable


async def test_leaving_a_stream_closes_the_answer() -> None:
    provider = Described({})

    async with provider.stream(REQUEST) as items:
        assert await anext(items) == TextDelta(text="a")
        assert not provider.closed
    assert provider.closed


async def test_the_model_is_the_one_that_the_defaults_describe() -> None:
    provider = Described({"model": "m", "context_window": 8, "max_output_tokens": 2})

    assert await provider.list_models() == [
        ModelInfo(
            id="m",
            display_name="Described",
            context_window=8,
            max_output_tokens=2,
            capabilities=("tools",),
        )
    ]


@pytest.mark.parametrize(
    "defaults",
    [
        {"context_window": 8, "max_output_tokens": 2},
        {"model": "m", "max_output_tokens": 2},
        {"model": "m", "context_window": 8},
    ],
)
async def test_without_its_figures_no_model_is_listed(
    defaults: Mapping[str, JSONValue],
) -> None:
    assert await Described(defaults).list_models() == []


def test_the_calls_are_those_of_the_answer() -> None:
    call = ToolCall(id="1", name="x")

    assert Answers().parse_tool_calls(calling(call)) == [call]
    assert Answers().parse_tool_calls(answer("Hi")) == []
