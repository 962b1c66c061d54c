"""What an agent may change of its session's configuration never allows more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.restrictions import Restriction, intersection, subset

names = st.lists(st.sampled_from(["a", "b", "c", "d"]))


@given(own=names, asked=names)
def test_what_is_narrowed_is_in_both(
    own: list[JSONValue], asked: list[JSONValue]
) -> None:
    narrowed = intersection(own, asked)

    assert isinstance(narrowed, list)
    assert set(map(str, narrowed)) == set(map(str, own)) & set(map(str, asked))
    if set(map(str, asked)) <= set(map(str, own)):
        assert subset(own, asked) == asked
    else:
        with pytest.raises(ValueError, match="its session allows no"):
            subset(own, asked)


def test_unnamed_session_allows_everything_or_nothing() -> None:
    assert intersection(None, ["a"]) == ["a"]
    assert subset(None, []) == []
    with pytest.raises(ValueError, match="its session allows no 'a', 'b'"):
        subset(None, ["a", "b"])


@pytest.mark.parametrize("rule", [intersection, subset])
@pytest.mark.parametrize("asked", [None, "a", 3, [1], {"a": 1}])
def test_what_is_no_list_of_names_is_refused(
    rule: Restriction, asked: JSONValue
) -> None:
    with pytest.raises(ValueError, match="a list of strings; got"):
        rule(["a"], asked)
