"""How long things take: retries, silence, cancellation, several requests at once."""

from __future__ import annotations

import json

import anyio
import httpx2
import pytest

from amplifier.testing.transport import HttpAnswer
from amplifier.testing.vendors.playback import PlayedTests, in_virtual_time
from amplifier_kit.vendors import VendorProvider
from amplifier_sdk.chat import ChatRequest, ChatResponse
from amplifier_sdk.errors import LLMError, LLMTimeoutError
from amplifier_sdk.streaming import TextDelta

__all__ = ["WaitTests"]


class WaitTests(PlayedTests):
    """Nothing hangs, nothing is asked twice that was shown once."""

    @in_virtual_time
    async def test_what_may_pass_is_tried_again(self) -> None:
        """After a failure the request is sent again, the same, and its answer is the answer."""
        failures = (HttpAnswer(status=503), httpx2.ReadError("reset"), self.answer(b""))
        provider, script = self.play(*failures, self.answer(self.text), max_retries=3)
        answer = await provider.complete(self.request())
        assert answer.text
        assert script.bodies == [script.bodies[0]] * 4
        assert script.closed == [True] * 3

    @in_virtual_time
    async def test_what_was_shown_is_not_asked_for_again(self) -> None:
        """A stream that breaks after a piece of text was shown is an error, whatever may pass."""
        provider, script = self.play(
            self.answer(*self._until_text(), httpx2.ReadError("reset")),
            self.answer(self.text),
            max_retries=3,
        )
        seen: list[object] = []
        with pytest.raises(LLMError):
            await _read(provider, self.request(), seen)
        assert any(isinstance(item, TextDelta) and item.text for item in seen)
        assert not any(isinstance(item, ChatResponse) for item in seen)
        assert len(script.requests) == 1

    @in_virtual_time
    async def test_a_wait_shows_that_it_lives(self) -> None:
        """While a request waits to be sent again an empty delta comes every few seconds."""
        provider, _ = self.play(
            HttpAnswer(status=429, headers={"retry-after": "55"}),
            self.answer(self.text),
            max_retries=1,
        )
        last = anyio.current_time()
        async with provider.stream(self.request()) as items:
            async for _ in items:
                # a session's own limit of silence would else end the request
                assert anyio.current_time() - last <= 10
                last = anyio.current_time()
        assert last == 55

    @in_virtual_time
    async def test_a_wait_can_be_cancelled(self) -> None:
        """A cancellation ends a wait at once."""
        provider, script = self.play(
            HttpAnswer(status=429, headers={"retry-after": "55"}), max_retries=1
        )
        with anyio.move_on_after(3):
            await provider.complete(self.request())
        assert (anyio.current_time(), len(script.requests)) == (3, 1)

    @in_virtual_time
    async def test_silence_is_an_error(self) -> None:
        """A vendor that says nothing for `idle_timeout` is given up, and the connection closed."""
        for parts in ((), self._until_text()):
            provider, script = self.play(self.answer(*parts, 1000.0), idle_timeout=7.0)
            started = anyio.current_time()
            with pytest.raises(LLMTimeoutError, match="7 s"):
                await provider.complete(self.request())
            assert anyio.current_time() - started == 7
            assert script.closed == [True]

    @in_virtual_time
    async def test_an_answer_has_a_deadline(self) -> None:
        """An answer that drips for longer than `timeout` is given up."""
        drops = [part for byte in self.text[:-1] for part in (bytes([byte]), 1.0)]
        provider, _ = self.play(self.answer(*drops), timeout=20.0)
        with pytest.raises(LLMTimeoutError, match="20 s"):
            await provider.complete(self.request())
        assert anyio.current_time() == 20

    @in_virtual_time
    async def test_a_cancelled_stream_is_closed(self) -> None:
        """A cancellation in the middle of an answer closes the connection at once; leaving it early does as well."""
        provider, script = self.play(
            *[self.answer(*self._until_text(), 1000.0)] * 2, idle_timeout=500.0
        )
        with anyio.move_on_after(3):
            await provider.complete(self.request())
        assert (anyio.current_time(), script.closed) == (3, [True])
        async with provider.stream(self.request()) as items:
            async for _ in items:
                break
        assert (anyio.current_time(), script.closed) == (3, [True, True])

    @in_virtual_time
    async def test_two_requests_at_once_are_distinguished(self) -> None:
        """Each gets its own answer, whichever is faster."""
        slow, fast = (
            self.answer(*self._halves(self.text)),
            self.answer(*self._halves(self.tools)),
        )
        provider, _ = self.play(slow, fast)
        answers: dict[str, ChatResponse] = {}

        async def ask(name: str) -> None:
            answers[name] = await provider.complete(self.request(name))

        async with anyio.create_task_group() as group:
            group.start_soon(ask, "first")
            # by then the first is on its way, and its halves are still to come
            await anyio.sleep(1)
            group.start_soon(ask, "second")
        assert answers["first"].text and not answers["first"].tool_calls  # noqa: PT018  # both or neither
        assert [call.name for call in answers["second"].tool_calls or ()][:1] == [
            self.tool
        ]

    @in_virtual_time
    async def test_odd_characters_are_sent(self) -> None:
        """Half of a surrogate pair and a zero byte make no request that cannot be read."""
        provider, script = self.play(self.answer(self.text))
        await provider.complete(self.request("a\ud800b\x00c\u2028d\U0001f600"))
        body = json.dumps(script.bodies[0], ensure_ascii=False)
        assert "a?b" in body
        assert "\U0001f600" in body

    @in_virtual_time
    async def test_connections_are_closed_with_the_provider(self) -> None:
        """`aclose` closes what is pooled, and may be called twice."""
        provider, script = self.play(self.answer(self.text))
        await provider.aclose()
        await provider.complete(self.request())
        await provider.aclose()
        await provider.aclose()
        assert script.is_closed

    def _until_text(self) -> tuple[bytes, ...]:
        """Return the longest beginning of the stream of text that is not its end: all but its last quarter."""
        return (self.text[: len(self.text) * 3 // 4],)

    def _halves(self, data: bytes) -> tuple[bytes | float, ...]:
        return (data[: len(data) // 2], 5.0, data[len(data) // 2 :])


async def _read(
    provider: VendorProvider, request: ChatRequest, seen: list[object]
) -> None:
    async with provider.stream(request) as items:
        async for item in items:
            seen.append(item)  # noqa: PERF401  # what came before an error is wanted
