"""Values: compared, hashed and shown by their fields, without code of their own."""

from __future__ import annotations

from copy import copy

import attrs
import pytest

from amplifier_sdk import ChatRequest, Message, TextBlock, ToolCall, Usage
from amplifier_sdk.values import Value


@attrs.frozen(eq=False, repr=False)
class Point(Value):
    x: int
    y: int = 0
    note: str = attrs.field(default="", eq=False, repr=False)
    label: str = attrs.field(default="p", hash=False, repr=str.upper)


@attrs.frozen(eq=False, repr=False)
class Nothing(Value):
    pass


@attrs.frozen(eq=False, repr=False)
class Other(Value):
    x: int
    y: int = 0
    label: str = "p"


def test_values_with_equal_fields_are_equal_and_hash_alike() -> None:
    assert Point(1, 2) == Point(1, 2)
    assert hash(Point(1, 2)) == hash(Point(1, 2))
    assert len({Point(1, 2), Point(1, 2), Point(2, 1)}) == 2


def test_values_differ_by_any_compared_field() -> None:
    assert Point(1) != Point(2)
    assert Point(1, label="a") != Point(1, label="b")


def test_a_field_left_out_of_the_comparison_makes_no_difference() -> None:
    assert Point(1, note="a") == Point(1, note="b")
    assert hash(Point(1, note="a")) == hash(Point(1, note="b"))


def test_a_field_left_out_of_the_hash_still_compares() -> None:
    assert hash(Point(1, label="a")) == hash(Point(1, label="b"))


def test_values_of_different_classes_are_not_equal() -> None:
    assert Point(1) != Other(1)
    assert Point(1) != (1, 0, "p")
    assert TextBlock(text="a") != Message(role="user", content="a")


def test_a_value_without_fields_equals_its_like() -> None:
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())
    assert repr(Nothing()) == "Nothing()"


def test_a_value_is_shown_as_the_call_that_makes_it() -> None:
    assert repr(Point(1, note="unseen")) == "Point(x=1, y=0, label=P)"
    assert repr(Usage(input_tokens=1, output_tokens=2, total_tokens=3)).startswith(
        "Usage(input_tokens=1, output_tokens=2,"
    )


def test_a_class_inside_a_function_is_shown_by_its_own_name() -> None:
    @attrs.frozen(eq=False, repr=False)
    class Local(Value):
        x: int

    assert repr(Local(1)) == "Local(x=1)"


def test_what_holds_something_unhashable_has_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(ToolCall(id="1", name="t", arguments={"a": []}))


def test_copies_are_equal() -> None:
    request = ChatRequest(messages=[Message(role="user", content="hi")])
    assert copy(request) == request
    assert attrs.evolve(request, model="m") != request
