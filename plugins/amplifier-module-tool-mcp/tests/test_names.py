"""Every tool of every server has a name of its own that vendors take."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_module_tool_mcp.definitions import command_name, tool_name

NAMES = st.text("ab_.-/é", min_size=1, max_size=6)


@given(st.text(), st.text())
def test_vendors_take_every_name(server: str, tool: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool_name(server, tool))


@given(NAMES, NAMES, NAMES, NAMES)
def test_two_pairs_never_share_a_name(
    server: str, tool: str, other: str, another: str
) -> None:
    same = (server, tool) == (other, another)

    assert (tool_name(server, tool) == tool_name(other, another)) is same


@given(st.text(), st.text())
def test_people_can_type_every_command(server: str, prompt: str) -> None:
    assert re.fullmatch(r"mcp:[A-Za-z0-9_.:-]{1,140}", command_name(server, prompt))


@given(NAMES, NAMES, NAMES, NAMES)
def test_two_prompts_never_share_a_command(
    server: str, prompt: str, other: str, another: str
) -> None:
    same = (server, prompt) == (other, another)

    assert (command_name(server, prompt) == command_name(other, another)) is same


def test_ordinary_names_are_legible() -> None:
    assert command_name("my.server", "code-review") == "mcp:my.server:code-review"
    assert command_name("s", "コードレビュー") != command_name("s", "翻訳")
    assert tool_name("git", "git_status") == "mcp__git__git_status"
    assert tool_name("my-server", "read-file") == "mcp__my-server__read-file"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("s", "a.b"), ("s", "a_b")),
        (("a__b", "c"), ("a", "b__c")),
        (("a_", "b"), ("a", "_b")),
        (("s", "x" * 80), ("s", "x" * 81)),
        (("s" * 80, "x"), ("s" * 81, "x")),
        (("", "x"), ("_", "x")),
        (("ab", "c"), ("a", "bc")),
    ],
)
def test_names_that_would_be_alike_are_told_apart(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    assert tool_name(*one) != tool_name(*other)
