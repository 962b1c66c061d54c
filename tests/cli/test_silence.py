"""A request without an answer is reported while it waits."""

from __future__ import annotations

import anyio
import pytest

from amplifier import HookRegistry
from amplifier.cli._silence import SilenceReport
from amplifier.testing import VirtualClock
from amplifier_sdk.events import (
    LLM_REQUEST,
    PROVIDER_RETRY,
    LlmRequest,
    ProviderRetry,
)

SAID = "still waiting for slow after 5 s; Ctrl-C stops\n"

RETRY = ProviderRetry(
    session_id="s",
    provider="slow",
    model=None,
    attempt=1,
    max_retries=5,
    delay=1.0,
    retry_after=None,
    error_type="NetworkError",
    error_message="nothing listens there",
    status_code=None,
)


async def request(hooks: HookRegistry, session: str = "s") -> None:
    said = LlmRequest(provider="slow", model="m", message_count=1, session_id=session)
    await hooks.emit(LLM_REQUEST, said)


@pytest.mark.parametrize(
    ("seconds", "session", "reported"),
    [(6, "s", SAID), (4, "s", ""), (6, "child", "")],
    ids=["silent", "answered", "child"],
)
def test_silence_is_reported_once(
    anyio_backend_name: str,
    capsys: pytest.CaptureFixture[str],
    seconds: float,
    session: str,
    reported: str,
) -> None:
    async def main() -> None:
        hooks = HookRegistry()
        async with anyio.create_task_group() as group:
            silence = SilenceReport(group, "s")
            with silence.listening(hooks):
                await request(hooks, session)
                await anyio.sleep(seconds)
                silence.break_off()
                await anyio.sleep(60)
            await request(hooks)

    VirtualClock().run(main, backend=anyio_backend_name)
    assert capsys.readouterr().err == reported


def test_a_retry_that_is_reported_anyway_ends_the_wait(
    anyio_backend_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        hooks = HookRegistry()
        async with anyio.create_task_group() as group:
            with SilenceReport(group, "s").listening(hooks):
                await request(hooks)
                await hooks.emit(PROVIDER_RETRY, RETRY)
                await anyio.sleep(60)

    VirtualClock().run(main, backend=anyio_backend_name)
    assert capsys.readouterr().err == ""
