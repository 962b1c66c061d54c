"""How many secrets are found that no rule was made from, and how many look-alikes are left alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final

from amplifier_kit.redaction import KnownSecrets, StrictRedactor
from tests.kit.redaction.held_out import (
    NEGATIVES,
    SITUATIONS,
    TOKENS,
    VALUES,
    negatives,
    positives,
)

EVERYDAY: Final[Mapping[str, Sequence[Mapping[str, str]]]] = json.loads(
    Path(__file__).with_name("everyday.json").read_text("utf-8")
)
"""Commands, files, logs and talk with a secret in them, and such without: as people have them, each with its own."""


def test_the_list_is_large_enough() -> None:
    assert len(TOKENS) + len(VALUES) + len(SITUATIONS) >= 60
    assert len(NEGATIVES) * 4 >= 300


def test_at_least_ninety_seven_of_a_hundred_secrets_are_found() -> None:
    redactor = StrictRedactor(known=KnownSecrets())
    texts = [*positives(Random(2026))]

    missed = [
        kind
        for kind, text, secret in texts
        if secret[-12:] in redactor.redact_text(text)
    ]
    assert len(missed) <= len(texts) * 0.03, sorted(missed)


def test_at_most_two_of_a_hundred_look_alikes_are_changed() -> None:
    redactor = StrictRedactor(known=KnownSecrets())
    texts = [*negatives(Random(2026))]

    changed = [
        (kind, redactor.redact_text(text))
        for kind, text in texts
        if redactor.redact_text(text) != text
    ]
    assert len(changed) <= len(texts) * 0.02, changed


def test_ninety_seven_percent_of_everyday_secrets_are_found() -> None:
    redactor = StrictRedactor(known=KnownSecrets())
    cases = EVERYDAY["secrets"]

    missed = [
        case["id"]
        for case in cases
        if case["secret"] in redactor.redact_text(case["text"])
    ]
    assert len(cases) >= 500
    assert len(missed) <= len(cases) * 0.03, missed


def test_everyday_texts_without_secrets_stay_as_they_are() -> None:
    redactor = StrictRedactor(known=KnownSecrets())
    cases = EVERYDAY["harmless"]

    assert len(cases) >= 300
    assert [
        case["id"]
        for case in cases
        if redactor.redact_text(case["text"]) != case["text"]
    ] == []
