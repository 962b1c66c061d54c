"""What the boundary costs: nothing where nobody crosses it, and for a request no more with a longer history."""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import perf_counter

import pytest
from amplifier_core.message_models import ChatRequest as OriginalRequest
from amplifier_core.message_models import ChatResponse, Message, TextBlock

from amplifier.compat.providers import AdaptedProvider, ShownProvider
from amplifier_sdk.chat import ChatRequest, ToolSpec
from amplifier_sdk.history import MessageLog, typed

MAX_SECONDS = 40e-6
MAX_IMPORT_SECONDS = 0.25

untraced = pytest.mark.skipif(
    sys.gettrace() is not None, reason="a tracer takes most of the time"
)


class Provider:
    name = "p"
    answer = ChatResponse(content=[TextBlock(text="x")])

    async def complete(self, request: object, /, **options: object) -> object:
        return self.answer

    def get_info(self) -> object:
        raise NotImplementedError

    async def list_models(self) -> list[object]:
        return []

    def parse_tool_calls(self, response: object, /) -> list[object]:
        return []


@untraced
@pytest.mark.figures
@pytest.mark.parametrize("length", [10, 100, 1_000])
async def test_a_request_to_an_original_provider(length: int) -> None:
    log = MessageLog({"role": "user", "content": f"m {at}"} for at in range(length))
    tools = [ToolSpec(name=f"t{at}", parameters={"type": "object"}) for at in range(10)]
    provider, seconds = AdaptedProvider(Provider()), list[float]()
    for _ in range(100):
        log.append({"role": "assistant", "content": "next"})
        request = ChatRequest(messages=typed(log.view()), tools=tools)
        began = perf_counter()
        await provider.complete(request)
        seconds.append(perf_counter() - began)

    assert median(seconds[1:]) < MAX_SECONDS


@untraced
@pytest.mark.figures
@pytest.mark.parametrize("length", [10, 100, 1_000])
async def test_a_request_of_an_original_loop_to_it(length: int) -> None:
    provider, seconds = ShownProvider(AdaptedProvider(Provider())), list[float]()
    for _ in range(30):
        # such a loop makes its messages anew for each request
        asked = [Message(role="user", content=f"m {at}") for at in range(length)]
        request = OriginalRequest(messages=asked)
        began = perf_counter()
        await provider.complete(request)
        seconds.append(perf_counter() - began)

    assert min(seconds[1:]) < MAX_SECONDS


@pytest.mark.figures
@pytest.mark.process
def test_importing_the_name() -> None:
    code = (
        "import time; t = time.process_time(); import amplifier.compat as c; c.install();"
        "import amplifier_core; amplifier_core.ToolResult, amplifier_core.Message;"
        "print(time.process_time() - t)"
    )

    def seconds() -> float:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True
        )
        return float(done.stdout)

    # others on the machine can only add to it
    assert any(seconds() < MAX_IMPORT_SECONDS for _ in range(5))
