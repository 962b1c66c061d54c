"""A text that comes in pieces: secrets split over them are found, and the rest is shown unchanged."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.redaction import KnownSecrets, StreamFilter, StrictRedactor
from tests.timing import grows_in_proportion, takes_at_most

TOKEN: Final = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
RANDOM: Final = "q8Zr2LmX5tVb7NcK1pWd"
KEY: Final = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAx7\nh4Xk9bbbbbbbbb\n-----END RSA PRIVATE KEY-----"
PARTS: Final = [
    TOKEN,
    f'password = "{RANDOM}"',
    f"Authorization: Bearer {RANDOM}",
    f"the api key is {RANDOM}",
    f"curl -u me:{RANDOM} x",
    f"Cookie: a=1; b={RANDOM}",
    KEY,
    "one value of three words",
    'password = "correct horse 9 battery"',
    "my passphrase: 'Tr0ub4dor and more'",
    "seed phrase: apple banana cherry date elder fig grape honey iris jelly kiwi lemon",
    "password: |\n  swordfish9",
    "Private-Lines: 1\nAAAAgQCh4Xk9aaaa\nPrivate-MAC: 00ff",
]
PLAIN: Final = [
    "Hello there.",
    "A key is a thing that opens.",
    "x = 1\n\n\ty",
    "token",
    "naïve ü",
    "12 + 3 = 15",
    "",
]
MARKS: Final = (
    TOKEN,
    RANDOM,
    "x7",
    "h4Xk9",
    "three words",
    "horse",
    "Tr0ub4",
    "banana",
    "cd34",
    "gh78",
    "kl12",
    "fish9",
)


def streamed(text: str, cuts: list[int]) -> str:
    redactor = StreamFilter(
        StrictRedactor(known=KnownSecrets(["one value of three words"]))
    )
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return (
        "".join(redactor.feed(text[start:end]) for start, end in pairwise(edges))
        + redactor.end()
    )


@given(
    st.lists(st.sampled_from([*PARTS, *PLAIN]), max_size=6),
    st.lists(st.integers(0, 10_000), max_size=30),
    st.data(),
)
def test_no_secret_is_shown_wherever_the_text_is_cut(
    parts: list[str], cuts: list[int], data: st.DataObject
) -> None:
    text = "\n".join(part for part in parts)

    shown = streamed(text, cuts)
    assert not any(mark in shown for mark in MARKS)


@given(
    st.lists(st.sampled_from(PLAIN), max_size=8),
    st.lists(st.integers(0, 10_000), max_size=30),
)
def test_a_text_without_secrets_comes_through_unchanged(
    parts: list[str], cuts: list[int]
) -> None:
    text = " ".join(parts)

    assert streamed(text, cuts) == text


@pytest.mark.parametrize("part", PARTS)
def test_a_secret_that_comes_by_the_character_is_found(part: str) -> None:
    shown = streamed(f"Before {part}\nafter", list(range(200)))

    assert shown.startswith("Before ")
    assert shown.endswith("\nafter")
    assert "[REDACTED:" in shown
    assert not any(mark in shown for mark in MARKS)


def test_a_word_is_shown_when_it_is_over() -> None:
    redactor = StreamFilter(StrictRedactor(known=KnownSecrets()))

    assert [
        redactor.feed("Hel"),
        redactor.feed("lo wor"),
        redactor.feed("ld\n"),
        redactor.end(),
    ] == [
        "",
        "Hello ",
        "world\n",
        "",
    ]


def test_what_is_held_is_bounded() -> None:
    redactor = StreamFilter(StrictRedactor(known=KnownSecrets()))

    shown = [redactor.feed("ab1" * 1_000) for _ in range(100)]
    assert sum(map(len, shown)) > 280_000
    redactor.end()
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "h4Xk9aaaa\n" * 100
    hidden = "".join(
        redactor.feed(key if number == 0 else "h4Xk9aaaa\n" * 100)
        for number in range(100)
    )
    hidden += redactor.feed("-----END RSA PRIVATE KEY-----\nfree") + redactor.end()
    assert "h4Xk9" not in hidden
    assert hidden.endswith("\nfree")


def test_a_long_word_is_not_cut_within_a_secret() -> None:
    redactor = StreamFilter(StrictRedactor(known=KnownSecrets()))
    word = "/".join(["ab1"] * 2_100) + "=" + "/" * 1_000 + f"@{TOKEN}@" + "/" * 8_170

    shown = redactor.feed(word + "/" * 8_192) + redactor.end()
    assert TOKEN[:10] not in shown
    assert "[REDACTED:github-token]" in shown


def test_a_long_secret_that_begins_a_word_is_shown_as_a_mark() -> None:
    redactor = StreamFilter(StrictRedactor(known=KnownSecrets()))

    assert "ab1ab1" not in redactor.feed("sk-ant-" + "ab1xyz" * 3_000)


def test_a_begin_that_opens_no_key_is_shown() -> None:
    redactor = StreamFilter(StrictRedactor(known=KnownSecrets()))
    text = "-----BEGIN a very long heading of something that is certainly no key at all, however long it goes on \n"

    assert redactor.feed(text) + redactor.end() == text


def test_cookie_of_longer_word_is_held_from_where_word_begins() -> None:
    redactor = StreamFilter(StrictRedactor(known=KnownSecrets()))

    assert redactor.feed("ok\nset-cookie: sid=Ab3xK9d2") == "ok\n"
    assert "Ab3xK9d2" not in redactor.feed("Lq; Path=/\n") + redactor.end()


@pytest.mark.figures
@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        ("", "key "),
        ("", "password is "),
        ("", "1 "),
        ("", "12\n"),
        ("curl ", "abcd "),
        ("", "ab1"),
        ('password = "q8Zr2LmX5tVb7NcK1pWd', " a1"),
        ("", "-----BEGIN "),
    ],
)
def test_a_text_that_is_made_to_be_held_takes_linear_time(
    begin: str, piece: str
) -> None:
    redactor = StrictRedactor(known=KnownSecrets())

    def show(size: int) -> None:
        filtering = StreamFilter(redactor)
        filtering.feed(begin)
        for _ in range(size // 4):
            filtering.feed((piece * 4)[:4])
        filtering.end()

    assert grows_in_proportion(show, 500, 4_000)
    assert takes_at_most(2, lambda: show(4_000))


def test_codes_below_each_other_are_held_together() -> None:
    redactor = StreamFilter(StrictRedactor(known=KnownSecrets()))

    shown = "".join(
        map(
            redactor.feed,
            "Recovery codes:\nab12-cd34\nef56-gh78\nij90-kl12\nThat is all.\n",
        )
    )
    assert shown == "Recovery codes:\n[REDACTED:secret]That is all.\n"


def test_a_secret_behind_many_words_that_announce_one_is_found() -> None:
    redactor = StreamFilter(StrictRedactor(known=KnownSecrets()))

    shown = (
        "".join(
            map(redactor.feed, f"{'token ' * 50}token = {RANDOM} and 1 2 3 4 5 6 7 8\n")
        )
        + redactor.end()
    )
    assert shown == f"{'token ' * 50}token = [REDACTED:secret] and 1 2 3 4 5 6 7 8\n"


def test_a_quote_that_nothing_closes_is_not_held_for_ever() -> None:
    redactor = StreamFilter(StrictRedactor(known=KnownSecrets()))

    shown = redactor.feed(f'password = "{RANDOM * 26}') + "".join(
        redactor.feed(" and so on" * 10) for _ in range(1_000)
    )
    assert len(shown) > 60_000
    assert RANDOM not in shown
