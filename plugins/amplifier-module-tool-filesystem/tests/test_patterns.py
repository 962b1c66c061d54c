"""Glob patterns match what a shell would match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_module_tool_filesystem.patterns import GlobPattern
from amplifier_sdk.errors import ToolError

NAMES = st.sampled_from(["a", "b", "ab", ".a", "a.py", "b.txt"])
PATTERN_PARTS = st.sampled_from(
    ["a", "*", "**", "?", "a*", "*.py", ".*", "[ab]", "{a,*.py}", "{a,b}?"]
)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.py", "a.py", True),
        ("*.py", "b/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "a/b/c.py", True),
        ("a/**/c", "a/c", True),
        ("a/**/c", "a/b/b/c", True),
        ("a/**/**/c", "a/b/c", True),
        ("**", "a/b", True),
        ("**/*.py", ".git/a.py", False),
        ("**/*.py", "a/.b.py", False),
        (".git/**", ".git/a", True),
        ("./a//b", "a/b", True),
        ("a**b", "axxb", True),
        ("a**b", "a/b", False),
        ("{src,test}/*.{py,pyi}", "test/x.pyi", True),
        ("{a,{b,c}}", "c", True),
        ("{a}", "{a}", True),
        ("[!a]", "b", True),
        ("[a", "[a", True),
    ],
)
def test_a_pattern_matches_whole_paths(pattern: str, path: str, matches: bool) -> None:
    assert GlobPattern(pattern).matches(path.split("/")) is matches


@given(
    pattern=st.lists(PATTERN_PARTS, min_size=1, max_size=4),
    path=st.lists(NAMES, min_size=1, max_size=5),
)
def test_no_directory_is_passed_by_that_holds_a_match(
    pattern: list[str], path: list[str]
) -> None:
    glob = GlobPattern("/".join(pattern))

    if glob.matches(path):
        assert all(glob.may_match_below(path[:depth]) for depth in range(len(path)))


@given(
    pattern=st.lists(PATTERN_PARTS, min_size=1, max_size=4),
    path=st.lists(NAMES, min_size=1, max_size=5),
)
def test_matching_is_that_of_the_definition(
    pattern: list[str], path: list[str]
) -> None:
    assert GlobPattern("/".join(pattern)).matches(path) == _defined(pattern, path)


def _defined(pattern: list[str], path: list[str]) -> bool:
    """Match by the definition: `**` is nothing, or one visible name and itself again."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        return _defined(pattern[1:], path) or (
            bool(path) and path[0][0] != "." and _defined(pattern, path[1:])
        )
    return (
        bool(path)
        and GlobPattern(pattern[0]).matches(path[:1])
        and _defined(pattern[1:], path[1:])
    )


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("", "empty"),
        ("//", "empty"),
        ("/etc/*", "relative and cannot go upwards"),
        ("~/x", "relative and cannot go upwards"),
        ("a/../b", "relative and cannot go upwards"),
        ("a" * 1001, "at most 1000 characters"),
        ("{a,b}" * 7, "more than 64 alternatives"),
    ],
)
def test_a_pattern_that_cannot_be_used_says_why(pattern: str, reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        GlobPattern(pattern)
