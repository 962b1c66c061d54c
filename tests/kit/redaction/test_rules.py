"""Tokens that are known by their form: each rule finds what it is for, and leaves alone what it refuses."""

from __future__ import annotations

import sysconfig
from itertools import islice
from pathlib import Path
from random import Random
from typing import Final

import pytest

from amplifier_kit.redaction import KnownSecrets, StrictRedactor, TokenRule, token_rules
from amplifier_kit.redaction.tokens import tokens_in

AROUND: Final = (
    "{}",
    "Use {} for it.",
    '{{"note": "{}"}}',
    "a\\n{}\\n",
    "x={}&y=1",
    "({})",
    "`{}`,",
)


def redactor() -> StrictRedactor:
    return StrictRedactor(known=KnownSecrets())


def test_at_least_sixty_kinds_are_known_each_by_one_rule() -> None:
    names = [rule.name for rule in token_rules()]

    assert len(set(names)) == len(names) >= 60


def kinds(text: str) -> set[str]:
    return {kind for _, _, kind in tokens_in(text)}


@pytest.mark.parametrize("rule", token_rules(), ids=lambda rule: rule.name)
def test_a_rule_finds_its_tokens_and_refuses_what_looks_similar(
    rule: TokenRule,
) -> None:
    random = Random(rule.name)
    samples = [sample for _ in range(8) for sample in rule.samples(random)]

    missed = [sample for sample in samples if rule.name not in kinds(sample)]
    assert len(missed) <= 1, missed  # a token by chance without any digit
    assert [text for text in rule.refuses if rule.name in kinds(text)] == []


def test_tokens_are_found_wherever_they_stand() -> None:
    random, reported = Random(5), redactor()
    texts = [
        (around.format(sample), sample)
        for rule in token_rules()
        for around in AROUND
        for sample in islice(rule.samples(random), 1)
    ]

    missed = [
        text for text, sample in texts if sample[-12:] in reported.redact_text(text)
    ]
    assert len(missed) <= len(texts) * 0.03, missed[:10]


@pytest.mark.figures  # how often a rule errs, over a library's source
def test_ordinary_source_is_left_as_it_is() -> None:
    reported, lines, changes = redactor(), 0, 0
    library = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(
        file for file in library.glob("[a-z]*/*.py") if file.parent.name != "test"
    )  # those make up passwords
    for file in islice(files, 0, None, 6):
        text = file.read_text("utf-8", "replace")
        lines += text.count("\n")
        changes += len(reported.places(text))

    assert lines > 5_000
    assert changes * 20_000 <= lines


def test_a_character_of_a_rules_hole_is_of_its_alphabet() -> None:
    rule = TokenRule(name="x", starts=("x",), pattern="x", shapes=("<d3>-<h2>",))

    (sample,) = rule.samples(Random(1))
    assert sample.partition("-")[0].isdecimal()
    assert len(sample) == 6
