"""What is a mention, and what only looks like one."""

# ruff: noqa: RUF001  # Chinese and Japanese punctuation ends mentions

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.app.mentions.scanner import (
    LineRange,
    find_mentions,
    has_mentions,
    split_range,
)


def found(text: str) -> list[str]:
    return [mention.text for mention in find_mentions(text)]


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("Explain @FILE.md", ["@FILE.md"]),
        ("See @a.md, @b/c.md: and (@d.md).", ["@a.md", "@b/c.md", "@d.md"]),
        ("Read @a.md. Then @a.md!", ["@a.md"]),
        (
            "@foundation:context/AGENTS.md and @user:notes.md",
            ["@foundation:context/AGENTS.md", "@user:notes.md"],
        ),
        (
            "@~/x.md @./y.md @../z.md @/etc/hosts",
            ["@~/x.md", "@./y.md", "@../z.md", "@/etc/hosts"],
        ),
        ('Look at @"my notes/to do.md" now', ['@"my notes/to do.md"']),
        ("Lines @src/a.py:10-40 please", ["@src/a.py:10-40"]),
        ("the folder @docs/ and @docs", ["@docs/"]),
        ("- @README.md\n- @LICENSE.txt", ["@README.md", "@LICENSE.txt"]),
        ("@a.md\n@b.md\n@./c", ["@a.md", "@b.md", "@./c"]),
        ("don't forget @a.md, it's new", ["@a.md"]),
        ("Grüße @größe/ü.md", ["@größe/ü.md"]),
        ("**@a.md** and *@b.md*", ["@a.md", "@b.md"]),
        ("读 @a.md。", ["@a.md"]),
        ("（见 @a.md）和 @b.md，谢谢", ["@a.md", "@b.md"]),
        ("「 @a.md」、 @b/c.md：第一章", ["@a.md", "@b/c.md"]),
        ("这是 @a.md？ 是 @b.md！", ["@a.md", "@b.md"]),
        ("see “ @a.md”", ["@a.md"]),
        ('读 @"一，二。md"', ['@"一，二。md"']),
    ],
)
def test_what_is_a_mention(text: str, mentions: list[str]) -> None:
    assert found(text) == mentions


@pytest.mark.parametrize(
    "text",
    [
        "me@example.org",
        "first.last+tag@example.co.uk",
        "mailto:a-b@c.io, x_y@z.net",
        "`@a.md`",
        "``a ` @a.md``",
        "```\n@a.md\n```",
        "~~~python\n@a.md\n~~~\n",
        "```\n@never.closed",
        '"@a.md" was what he wrote',
        "he wrote '@a.md'",
        "@ FILE.md",
        "@",
        "@...",
        '@""',
        "@app.route('/x')\ndef f(): ...",
        "@pytest.fixture\n@other.mark\nasync def f(): ...",
        "  @dataclass.x\n  class A: ...",
        r"\@a.md",
        "https://example.org/@user/x.html",
        "npm i pkg/@scope/name.js",
        "git@github.com:a/b.git",
        "100%@a.md",
        "ask @reviewer",
        "a stray @word, and @word!",
        "@FILE",
    ],
)
def test_what_only_looks_like_one(text: str) -> None:
    assert find_mentions(text) == []
    assert not has_mentions(text)


def test_punctuation_behind_a_mention_may_belong_to_it() -> None:
    (mention,) = find_mentions("see @what.md?!..")
    assert mention.targets == ("what.md",)
    (mention,) = find_mentions("see @what.md..")
    assert mention.targets == ("what.md..", "what.md.", "what.md")


@pytest.mark.parametrize(
    ("target", "file", "lines"),
    [
        ("a.py:10-40", "a.py", LineRange(10, 40)),
        ("a.py:7", "a.py", LineRange(7, 7)),
        ("a.py:40-10", "a.py", LineRange(40, 40)),
        ("a.py:0", "a.py:0", None),
        ("name:path.md", "name:path.md", None),
        ("c:x.py:3-4", "c:x.py", LineRange(3, 4)),
    ],
)
def test_lines_stand_behind_a_colon(
    target: str, file: str, lines: LineRange | None
) -> None:
    assert split_range(target) == (file, lines)


@given(st.text("@ab./:`'\"~-\n \\(){}üxE", max_size=60))
def test_a_mention_is_part_of_its_text(text: str) -> None:
    for mention in find_mentions(text):
        assert mention.text in text
        assert mention.targets
        assert all(mention.targets)


@given(st.text(max_size=40), st.text(max_size=40))
def test_path_between_blanks_is_found_outside_code_and_quotes(
    before: str, after: str
) -> None:
    before, after = (
        text.translate(str.maketrans("", "", "`'\"~@\\")) for text in (before, after)
    )
    assert "@notes/a.md" in found(f"{before} @notes/a.md {after}")


@pytest.mark.parametrize(
    "piece",
    ["`", "'", '"', "@", "```\n", "~~~\n", "@a.", "``", "\\@", "@a\n", "(@", "`\n"],
)
def test_long_texts_take_no_longer_than_they_are(piece: str) -> None:
    find_mentions(piece * 20_000)
