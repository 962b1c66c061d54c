"""The status line, and retries that are shown while they wait."""

from __future__ import annotations

import time

import pytest

from amplifier.app.sessions.live_figures import Retry
from amplifier_kit.terminal import columns_of
from amplifier_sdk.events import (
    LLM_REQUEST,
    PROVIDER_RETRY,
    LlmRequest,
    ProviderRetry,
)
from amplifier_sdk.jsontypes import JSONValue
from tests.cli.chat.conftest import Chat, OpenChat


def retry(attempt: int) -> ProviderRetry:
    return ProviderRetry(
        provider="scripted",
        model=None,
        attempt=attempt,
        max_retries=5,
        delay=4.0,
        retry_after=None,
        error_type="ProviderUnavailableError",
        error_message="the vendor is busy",
        status_code=503,
    )


async def emit_retry(chat: Chat, attempt: int) -> None:
    hooks = chat.talk.opened.session.coordinator.hooks
    await hooks.emit(PROVIDER_RETRY, retry(attempt))


async def test_the_status_says_where_one_is_and_what_it_took(
    open_chat: OpenChat,
) -> None:
    usage: JSONValue = {
        "input_tokens": 9_000,
        "output_tokens": 1_000,
        "cost_usd": "0.25",
    }
    async with open_chat([{"text": "one", "usage": usage}]) as chat:
        await chat.screen.until(
            lambda screen: screen.below == "ask | scripted | ~/shop"
        )
        chat.screen.type("a")
        await chat.screen.until(
            lambda screen: (
                screen.below == "ask | scripted | ~/shop | context 5% of 200k | $0.25"
            )
        )


@pytest.mark.parametrize("width", [100, 60, 40, 20, 8])
async def test_the_status_fits_every_width(open_chat: OpenChat, width: int) -> None:
    async with open_chat([]) as chat:
        status = chat.conversation.status
        status.branch = "a-branch-with-a-long-name"
        text = status.text("working 3 s, Esc stops", width)

    assert columns_of(text) <= width
    if width >= 20:
        assert text.startswith("working 3 s")
    assert ("ask" in text) == (width >= 40)


async def test_a_branch_cannot_steer_the_terminal(open_chat: OpenChat) -> None:
    async with open_chat([]) as chat:
        chat.conversation.status.branch = "x\x1b[2J"
        assert "\x1b" not in chat.conversation.status.text("", 80)


async def test_a_retry_is_shown_until_it_is_sent(open_chat: OpenChat) -> None:
    async with open_chat([]) as chat:
        await emit_retry(chat, 2)
        await chat.screen.until(
            lambda screen: "503, retrying in 4 s, 2 of 5" in screen.above
        )
        hooks = chat.talk.opened.session.coordinator.hooks
        await hooks.emit(
            LLM_REQUEST, LlmRequest(provider="scripted", model="m", message_count=1)
        )
        await chat.screen.until(lambda screen: "503" not in screen.above)


async def test_a_retry_is_a_line_where_nothing_is_redrawn(
    open_chat: OpenChat,
) -> None:
    async with open_chat([], live=False) as chat:
        await emit_retry(chat, 1)
        await chat.screen.until_written("503, retrying in 4 s, 1 of 5")


def test_a_retry_counts_down() -> None:
    waiting = Retry(
        status=503, reason="busy", number=2, limit=5, due=time.monotonic() + 4
    )

    assert waiting.text(waiting.due - 1.2) == "503, retrying in 1 s, 2 of 5"
    assert waiting.text(waiting.due + 1) == "503, retrying, 2 of 5"


async def test_a_retry_without_an_answer_says_why_and_no_class(
    open_chat: OpenChat,
) -> None:
    async with open_chat([]) as chat:
        hooks = chat.talk.opened.session.coordinator.hooks
        said = retry(1)
        said["status_code"] = None
        said["error_message"] = "NetworkError: nothing listens there"
        await hooks.emit(PROVIDER_RETRY, said)
        await chat.screen.until(
            lambda screen: (
                "retrying in 4 s, 1 of 5: nothing listens there" in screen.above
            )
        )
