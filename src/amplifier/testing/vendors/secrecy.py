"""What is emitted about an exchange: its events in pairs, and no key anywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from traceback import TracebackException

import anyio
import httpx2
import pytest

from amplifier.testing.coordinators import TestCoordinator
from amplifier.testing.recorder import EventRecorder
from amplifier.testing.transport import HttpAnswer, HttpStep
from amplifier.testing.vendors.playback import PlayedTests, in_virtual_time
from amplifier_sdk.errors import LLMError
from amplifier_sdk.events import LLM_REQUEST, LLM_RESPONSE

__all__ = ["SecrecyTests"]


class SecrecyTests(PlayedTests):
    """The events say what happened, and nothing shows the key."""

    @in_virtual_time
    async def test_every_exchange_is_reported(self) -> None:
        """Each `llm:request` has its `llm:response`: answered, failed or cancelled."""
        answered = (HttpAnswer(status=503), self.answer(self.text))
        assert await self._statuses(*answered) == ["error", "ok"]
        assert await self._statuses(self.answer(b"")) == ["error"]
        assert await self._statuses(self.answer(1000.0)) == ["cancelled"]

    async def _statuses(self, *steps: HttpStep) -> list[object]:
        coordinator = TestCoordinator()
        recorder = EventRecorder.of(coordinator.hooks, "llm:*")
        provider, _ = self.play(
            *steps,
            coordinator=coordinator,
            max_retries=len(steps) - 1,
            idle_timeout=500.0,
        )
        with anyio.move_on_after(100):
            try:
                await provider.complete(self.request())
            except LLMError:
                assert len(recorder.events) > 1
        names = [name for name, _ in recorder.events]
        assert names == [LLM_REQUEST, LLM_RESPONSE] * (len(names) // 2)
        assert all(
            data["provider"] == provider.name and data["model"]
            for _, data in recorder.events
        )
        assert all("raw" not in data for _, data in recorder.events)
        return [
            data["status"] for name, data in recorder.events if name == LLM_RESPONSE
        ]

    @in_virtual_time
    async def test_raw_events_carry_what_was_sent_and_received(self) -> None:
        """With `raw` the events hold the body and the events of the answer."""
        coordinator = TestCoordinator()
        recorder = EventRecorder.of(coordinator.hooks, "llm:*")
        provider, script = self.play(
            self.answer(self.text), coordinator=coordinator, raw=True
        )
        await provider.complete(self.request())
        (_, sent), (_, received) = recorder.events
        assert sent["raw"] == script.bodies[0]
        assert isinstance(received["raw"], list)
        assert received["raw"]

    @in_virtual_time
    async def test_no_record_holds_the_key(self) -> None:
        """Neither events nor errors, their causes, tracebacks with all variables, nor the provider's own text."""
        if "api_key" not in self.config:
            pytest.skip("the vendor has no keys")
        records = await self._records()
        key = str(self.config["api_key"])
        # a short one is found in texts that have nothing to do with it
        assert len(key) >= 8, "the key of 'config' is too short to be looked for"
        leaks = [record for record in records if key in record]
        assert not leaks, leaks

    async def _records(self) -> list[str]:
        records = []
        for number in range(4):
            coordinator = TestCoordinator()
            recorder = EventRecorder.of(coordinator.hooks)
            provider, _ = self.play(
                self._echo(number), coordinator=coordinator, raw=True
            )
            try:
                await provider.complete(self.request())
            except LLMError as error:
                # as error trackers do it, with the variables of every frame
                trace = TracebackException.from_exception(error, capture_locals=True)
                records += [
                    str(error),
                    repr(error),
                    repr(vars(error)),
                    "".join(trace.format()),
                ]
            records += [
                repr(recorder.events),
                repr(provider),
                repr(provider.config),
                repr(vars(provider)),
            ]
        return records

    def _echo(self, number: int) -> HttpStep:
        """Make an answer that says the key, or fails where it was sent."""
        said = f"The key {self.config['api_key']} is wrong."
        problem: Mapping[str, object] = {
            "error": {"message": said, "type": "authentication_error", "api_key": said}
        }
        body = json.dumps(problem).encode()
        steps: tuple[HttpStep, ...] = (
            HttpAnswer(status=401, parts=(body,)),
            HttpAnswer(headers={"content-type": "text/html"}, parts=(said.encode(),)),
            httpx2.ConnectError(said),
            httpx2.LocalProtocolError(said),
        )
        return steps[number]
