"""What events and sinks get to see, through a coordinator as sessions have it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import pytest

from amplifier.testing import TestCoordinator
from amplifier_kit.redaction import REDACTION_FAILED, StrictRedactor, redactor_of
from amplifier_module_hooks_redaction import mount
from amplifier_sdk import ConfigError, JSONValue, ToolResult
from amplifier_sdk.content import ContentBlock, TextBlock, VendorBlock
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.media import image_block
from amplifier_sdk.redaction import REDACTOR, Redactor

TOKEN: Final = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
GONE: Final = "[REDACTED:github-token]"

pytestmark = pytest.mark.anyio


@pytest.fixture
async def coordinator() -> AsyncIterator[TestCoordinator]:
    async with TestCoordinator() as made:
        yield made


async def reported(
    coordinator: TestCoordinator, event: str, config: JSONObject, **data: object
) -> dict[str, object]:
    """Mount the module, emit an event, and return what a later handler heard."""
    heard: list[dict[str, object]] = []

    async def hear(_: str, shown: dict[str, object]) -> None:
        heard.append(shown)

    await mount(coordinator, config)
    coordinator.hooks.register(event, hear, 50)
    await coordinator.hooks.emit(event, data)
    return heard[0]


async def test_content_of_result_loses_secrets_and_keeps_images(
    coordinator: TestCoordinator,
) -> None:
    picture = image_block("image/png", "A" * 40)
    blocks: list[ContentBlock] = [
        TextBlock(text=f"It is {TOKEN}", visibility="user"),
        picture,
        VendorBlock(type="audio", extras={"x": TOKEN}),
    ]
    heard = await reported(
        coordinator,
        "tool:post",
        {"skip_events": []},
        result=ToolResult(output="fine", content=blocks),
    )

    gone = VendorBlock(type="audio", extras={"x": GONE})
    content: list[ContentBlock] = [
        TextBlock(text=f"It is {GONE}", visibility="user"),
        picture,
        gone,
    ]
    assert heard["result"] == ToolResult(output="fine", content=content)


async def test_later_handlers_hear_no_secret(coordinator: TestCoordinator) -> None:
    heard = await reported(
        coordinator,
        "prompt:complete",
        {},
        prompt=f"It is {TOKEN}",
        response={"api_key": "abc", "items": [TOKEN]},
        length=3,
        parts=({"a": object, "b": TOKEN}, [TOKEN]),
        same=("x", 1),
    )

    assert heard["prompt"] == f"It is {GONE}"
    assert heard["response"] == {"api_key": "[REDACTED:secret]", "items": [GONE]}
    assert heard["parts"] == ({"a": object, "b": GONE}, [GONE])
    assert heard["same"] == ("x", 1)
    assert heard["length"] == 3


async def test_an_event_without_secrets_is_not_touched(
    coordinator: TestCoordinator,
) -> None:
    heard = await reported(
        coordinator,
        "prompt:complete",
        {},
        prompt="Hello",
        result=ToolResult(output="fine"),
    )

    assert heard["prompt"] == "Hello"
    assert heard["result"] == ToolResult(output="fine")


async def test_ids_and_the_history_are_left_alone(coordinator: TestCoordinator) -> None:
    heard = await reported(
        coordinator,
        "provider:request",
        {},
        turn_id="password=h4Xk9Qz7",
        messages=[{"content": TOKEN}],
    )

    assert heard["turn_id"] == "password=h4Xk9Qz7"
    assert heard["messages"] == [{"content": TOKEN}]


async def test_tool_calls_are_skipped_unless_config_says_otherwise(
    coordinator: TestCoordinator,
) -> None:
    heard = await reported(
        coordinator, "tool:pre", {}, tool_name="x", tool_input={"text": TOKEN}
    )

    assert heard["tool_input"] == {"text": TOKEN}


async def test_what_is_skipped_by_events_still_reaches_no_sink(
    coordinator: TestCoordinator,
) -> None:
    await mount(coordinator, {"skip_events": ["*"]})

    assert coordinator.hooks.list_handlers() == {}
    assert redactor_of(coordinator).redact({"text": TOKEN}) == {"text": GONE}


async def test_results_are_redacted_where_nothing_is_skipped(
    coordinator: TestCoordinator,
) -> None:
    result = ToolResult(output={"text": TOKEN})
    heard = await reported(
        coordinator,
        "tool:post",
        {"skip_events": []},
        result=result,
        tool_result=result,
        tool_input={},
    )

    assert heard["result"] is heard["tool_result"]
    assert isinstance(heard["result"], ToolResult)
    assert heard["result"].output == {"text": GONE}


async def test_rules_choose_what_events_lose(coordinator: TestCoordinator) -> None:
    heard = await reported(
        coordinator,
        "prompt:complete",
        {"rules": ["pii-basic"]},
        prompt=f"ann@example.org {TOKEN}",
    )

    assert heard["prompt"] == f"[REDACTED:email-address] {TOKEN}"
    assert (
        redactor_of(coordinator).redact_text(f"ann@example.org {TOKEN}")
        == f"[REDACTED:email-address] {GONE}"
    )


async def test_an_allowed_path_stays(coordinator: TestCoordinator) -> None:
    heard = await reported(
        coordinator,
        "prompt:complete",
        {"allowlist": ["data.token"]},
        data={"token": "a", "text": TOKEN},
    )

    assert heard["data"] == {"token": "a", "text": GONE}


async def test_a_priority_says_who_hears_first(coordinator: TestCoordinator) -> None:
    heard = await reported(
        coordinator, "prompt:complete", {"priority": 90}, prompt=TOKEN
    )

    assert heard["prompt"] == TOKEN


async def test_an_unknown_key_is_refused(coordinator: TestCoordinator) -> None:
    with pytest.raises(ConfigError, match="allow_list"):
        await mount(coordinator, {"allow_list": []})


async def test_a_redaction_that_fails_denies_or_withholds(
    coordinator: TestCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> JSONValue:
        raise ValueError

    heard = []
    await mount(coordinator, {})
    assert isinstance(coordinator.get_capability(REDACTOR), Redactor)
    monkeypatch.setattr(StrictRedactor, "redact", fail)
    coordinator.hooks.register(
        "prompt:complete", lambda _, data: heard.append(data), 50
    )
    denied = await coordinator.hooks.emit("prompt:submit", {"prompt": TOKEN})
    result = ToolResult(output={"text": TOKEN})
    await coordinator.hooks.emit(
        "prompt:complete", {"prompt": TOKEN, "length": 3, "result": result}
    )

    assert denied.denied
    assert heard[0]["prompt"] == REDACTION_FAILED
    assert heard[0]["result"] == ToolResult.failure(REDACTION_FAILED)
    assert heard[0]["length"] == 3
