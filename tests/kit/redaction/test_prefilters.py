"""Words that are looked for before a pattern is tried leave out none of what it finds."""

from __future__ import annotations

import re

import pytest

from amplifier_kit.redaction.assigned import NAMES, NEEDED
from amplifier_kit.redaction.known import SHORTEST_SECRET, KnownSecrets
from amplifier_kit.redaction.redactor import StrictRedactor
from amplifier_kit.redaction.windows import line_matches


@pytest.mark.parametrize(
    "name",
    [
        *("password", "passwort", "passwd", "passphrase", "passcode", "pwd", "secret"),
        *("secrets", "token", "keys", "credentials", "authorization", "cookies", "jwt"),
        *("connection_string", "connectionstring", "bearer", "_pass", "-pass", "_pw"),
        *("pass", "pw", "psk", "mdp", "code_verifier", "device_code"),
        "dockerconfigjson",
    ],
)
def test_each_name_of_a_secret_begins_with_a_word_that_is_looked_for(name: str) -> None:
    found = re.search(NAMES, name)
    assert found is not None
    assert found[0].startswith(NEEDED)


@pytest.mark.parametrize("secret", ["a1-?%/", "ž1?%🙂x", "\ud83d12345"])
def test_no_form_of_known_secret_is_shorter_than_its_search(
    secret: str,
) -> None:
    known = KnownSecrets([secret])
    shortest = secret[:SHORTEST_SECRET]
    assert len(shortest) == SHORTEST_SECRET
    assert [kind for *_, kind in known.places(shortest)] == ["known-secret"]
    redactor = StrictRedactor(known=known)
    assert redactor.redact_text(shortest) == "[REDACTED:known-secret]"
    assert redactor.redact_text(secret[:-1]) == secret[:-1]


def test_a_finder_of_ones_own_reads_short_texts() -> None:
    redactor = StrictRedactor(finders=[lambda text: iter([(0, len(text), "own")])])
    assert redactor.redact_text("abc") == "[REDACTED:own]"
    assert StrictRedactor().redact({"key": ["abc"]}) == {"key": ["abc"]}


def test_lines_are_matched_where_the_pattern_alone_would_match_them() -> None:
    pattern = re.compile(r"^\w=(\d|\n)*$", re.MULTILINE)
    for text in ("", "a=1", "x\na=1\r\nb=2\n", "a=1\n\n2\nb=\n\n", "a=1b=2\nc=3\nd"):
        expected = [match.span() for match in pattern.finditer(text)]
        assert [match.span() for match in line_matches(pattern, text)] == expected
