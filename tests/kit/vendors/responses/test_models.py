"""Models are known by the beginnings of their names."""

from __future__ import annotations

import pytest

from amplifier_kit.vendors.responses import facts_of, is_listed


@pytest.mark.parametrize(
    ("model", "like"),
    [
        ("gpt-5-mini-2025-08-07", "gpt-5"),
        ("gpt-5.4-mini-2026-03-17", "gpt-5.4-mini"),
        ("GPT-4o-2024-11-20", "gpt-4o"),
        ("o3-mini", "o3"),
    ],
    ids=["dated", "longest", "capitals", "o-series"],
)
def test_model_is_what_longest_name_says_that_it_begins_with(
    model: str, like: str
) -> None:
    assert facts_of(model) == facts_of(like)
    assert facts_of(model).is_known


def test_a_longer_name_has_facts_of_its_own() -> None:
    assert facts_of("gpt-5").is_reasoning
    assert not facts_of("gpt-5-chat-latest").is_reasoning
    assert facts_of("gpt-5.4").is_long
    assert not facts_of("gpt-5.4-nano").is_long


def test_what_nobody_knows_is_guessed_with_care() -> None:
    facts = facts_of("mystery")

    assert (facts.is_known, facts.is_reasoning, facts.context_window) == (
        False,
        False,
        128_000,
    )


@pytest.mark.parametrize(
    ("model", "listed"),
    [
        ("gpt-6.1-sol", True),
        ("gpt-4o-audio-preview", False),
        ("text-embedding-3-small", False),
        ("whisper-1", False),
    ],
    ids=["text", "audio", "embedding", "speech"],
)
def test_models_for_conversations_are_listed(model: str, listed: bool) -> None:
    assert is_listed(model) is listed
