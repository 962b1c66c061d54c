"""What becomes of streams: whole ones, broken ones, and ones that are cut anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar, Final, TypeAlias

import pytest

from amplifier.testing.sessions import create_test_session
from amplifier.testing.tools import MockTool
from amplifier.testing.transport import pieces
from amplifier.testing.vendors.cases import without_network
from amplifier.testing.vendors.playback import PlayedTests, in_virtual_time
from amplifier_sdk.chat import ChatResponse
from amplifier_sdk.errors import LLMError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.streaming import TextDelta, ThinkingDelta

__all__ = ["StreamTests"]

_Gist: TypeAlias = tuple[str, str | None, list[tuple[str, JSONValue]]]
_SAMPLES: Final = 24
_SMALL: Final = 7


class StreamTests(PlayedTests):
    """Whole streams become whole answers, and no others do."""

    least_bad: ClassVar[int] = 24

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make a test of each bad stream."""
        if "bad_stream" in metafunc.fixturenames:
            metafunc.parametrize("bad_stream", sorted(self.becomes))

    def test_every_bad_stream_says_what_it_becomes(self) -> None:
        """The folder and the table name the same streams, and there are enough of them."""
        files = {file.stem for file in self.bad.iterdir()}
        # a stream without an entry would be a test of nothing
        assert files == set(self.becomes), files ^ set(self.becomes)
        assert len(files) >= self.least_bad

    @in_virtual_time
    async def test_a_good_stream_becomes_a_whole_answer(self) -> None:
        """Its deltas are those of the answer, and the vendor's counts are in it."""
        for name, data in self.good_streams().items():
            provider, script = self.play(self.answer(data))
            async with provider.stream(self.request()) as items:
                seen = [item async for item in items]
            answer = seen[-1]
            assert isinstance(answer, ChatResponse)
            assert answer.is_complete, name
            assert answer.usage is not None, f"{name}: no usage"
            assert answer.usage.input_tokens > 0, f"{name}: {answer.usage!r}"
            assert (
                "".join(item.text for item in seen if isinstance(item, TextDelta))
                == answer.text
            )
            thought = answer.thinking
            streamed = "".join(
                item.text for item in seen if isinstance(item, ThinkingDelta)
            )
            assert streamed == thought
            assert bool(thought) or name != "thinking", (
                f"{name}: no thinking in {answer!r}"
            )
            called = {
                call.name for call in answer.tool_calls or () if call.problem is None
            }
            assert called == ({self.tool} if name == "tools" else set()), (
                f"{name}: {answer.tool_calls!r}"
            )
            assert script.closed == [True]

    @in_virtual_time
    async def test_a_bad_stream_becomes_what_it_must(self, bad_stream: str) -> None:
        """It never becomes a whole answer with calls, and raises nothing but an `LLMError`."""
        provider, script = self.play(self.answer(self._bad_bytes(bad_stream)))
        outcome: ChatResponse | LLMError
        try:
            outcome = await provider.complete(self.request())
        except LLMError as error:
            outcome = error
        assert _name(outcome) == self.becomes[bad_stream], f"{outcome!r}"
        assert script.closed == [True]

    @in_virtual_time
    async def test_no_tool_runs_from_a_bad_stream(self, bad_stream: str) -> None:
        """In a whole session no tool runs of what a bad stream began to call."""
        good = self.answer(self.text)
        tool = MockTool(self.tool)
        session = create_test_session(
            provider=without_network(
                self.provider, self.answer(self._bad_bytes(bad_stream)), lambda _: good
            ),
            tools=[tool],
            configs={"provider": {**self.config, "max_retries": 0}},
        )
        async with session:
            with suppress(LLMError):
                await session.execute("Hello.")
        assert tool.calls == []

    def _bad_bytes(self, name: str) -> bytes:
        (file,) = (file for file in self.bad.iterdir() if file.stem == name)
        return file.read_bytes()

    @in_virtual_time
    async def test_the_beginning_of_a_stream_is_no_answer(self) -> None:
        """A stream that ends early, at any byte, becomes an error or the very same answer."""
        for data in self.good_streams().values():
            whole = await self._gist(data)
            # two dozen places: every byte would take minutes for each vendor
            for end in _places(len(data)):
                try:
                    gist = await self._gist(data[:end])
                except LLMError:
                    continue
                assert gist == whole, (
                    f"cut at byte {end}, behind {data[max(0, end - 60) : end]!r}"
                )

    @in_virtual_time
    async def test_it_does_not_matter_how_the_network_cuts_a_stream(self) -> None:
        """In pieces of a few bytes, or in two, a stream becomes the same answer."""
        for data in self.good_streams().values():
            whole = await self._gist(data)
            assert await self._gist(*pieces(data, range(1, len(data), _SMALL))) == whole
            for place in _places(len(data)):
                assert await self._gist(*pieces(data, [place])) == whole, (
                    f"cut at byte {place}"
                )

    async def _gist(self, *parts: bytes) -> _Gist:
        provider, _ = self.play(self.answer(*parts))
        answer = await provider.complete(self.request())
        calls: list[tuple[str, JSONValue]] = [
            (call.name, call.arguments) for call in answer.tool_calls or ()
        ]
        return answer.text, answer.finish_reason, calls


def _places(length: int) -> Sequence[int]:
    return range(1, length, max(1, length // _SAMPLES))


def _name(outcome: ChatResponse | LLMError) -> str:
    if isinstance(outcome, LLMError):
        return type(outcome).__name__
    if not outcome.is_complete:
        return str(outcome.finish_reason)
    calls = outcome.tool_calls or ()
    if not calls:
        return "text"
    if all(call.problem for call in calls):
        return "problem"
    return "a whole answer with calls"
