"""What a context says when it is asked to show the model less."""

from __future__ import annotations

from amplifier_sdk import CompactionResult


def test_what_was_removed_is_the_difference() -> None:
    result = CompactionResult(
        before_messages=9,
        after_messages=4,
        before_tokens=900,
        after_tokens=300,
        strategy="x",
    )

    assert (result.removed_messages, result.removed_tokens) == (5, 600)
