"""Who sees what of a message."""

from __future__ import annotations

import pytest

from amplifier.app.text.message_visibility import Audience, is_shown, visible_texts
from amplifier_sdk.content import TextBlock, ThinkingBlock, ToolCallBlock, Visibility
from amplifier_sdk.messages import MessageDict

SAID: list[MessageDict] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hi"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.\nWell."},
            {"type": "reasoning", "content": ["So."], "summary": []},
            {"type": "text", "text": "Hello."},
            {"type": "text", "text": "Between us.", "visibility": "internal"},
            {"type": "tool_call", "id": "1", "name": "look", "input": {"path": "a"}},
            {"type": "vendor_thing", "x": 1, "visibility": "user"},
        ],
    },
    {"role": "tool", "tool_call_id": "1", "content": "```\nfound"},
    {
        "role": "tool",
        "content": [{"type": "tool_result", "tool_call_id": "1", "output": {"a": 1}}],
    },
    {"role": "nonsense", "content": 3},
]


def _told(audience: Audience) -> str:
    return "\n".join(visible_texts(SAID, audience))


def test_a_user_sees_what_is_meant_for_users() -> None:
    assert _told("user") == "## You\n\nHi\n## Agent\n\nHello.\n\n(vendor_thing)"


def test_a_developer_sees_thinking_and_tools_as_well() -> None:
    text = _told("developer")
    assert "> Hm.\n> Well." in text
    assert "> So." in text
    assert "Calls `look`:" in text
    assert "````\n```\nfound\n````" in text
    assert '```\n{"a": 1}\n```' in text
    assert "Between us." not in text
    assert "Be kind." not in text


def test_everything_is_shown_where_nothing_is_hidden() -> None:
    text = _told("internal")
    assert "Between us." in text
    assert "Be kind." in text


@pytest.mark.parametrize(
    ("visibility", "audience", "shown"),
    [
        (None, "user", False),
        (None, "developer", True),
        ("user", "user", True),
        ("developer", "user", False),
        ("internal", "developer", False),
        ("internal", "internal", True),
    ],
)
def test_what_a_block_says_of_itself_counts_before_its_kind(
    visibility: Visibility | None, audience: Audience, shown: bool
) -> None:
    assert (
        is_shown(ThinkingBlock(thinking="x", visibility=visibility), audience) is shown
    )
    assert (
        is_shown(
            ToolCallBlock(id="1", name="x", input={}, visibility=visibility), audience
        )
        is shown
    )


def test_text_is_for_users_unless_it_says_otherwise() -> None:
    assert is_shown(TextBlock(text="x"), "user")
    assert not is_shown(TextBlock(text="x", visibility="developer"), "user")
