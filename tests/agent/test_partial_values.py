"""Answers that are still being written: each prefix gives what is certain of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.agent.partial_values import PartialObject
from amplifier_sdk.jsontypes import JSONValue
from tests.sdk.values import json_values


def read(*pieces: str) -> PartialObject:
    partial = PartialObject()
    for piece in pieces:
        partial.feed(piece)
    return partial


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("Sure:", None),
        ("Sure: {", {}),
        ('{"na', {}),
        ('{"name"', {}),
        ('{"name":', {}),
        ('{"name": "', {"name": ""}),
        ('{"name": "te', {"name": "te"}),
        ('{"name": "te\\', {"name": "te"}),
        ('{"name": "te\\n', {"name": "te\n"}),
        ('{"name": "\\u00', {"name": ""}),
        ('{"name": "\\u00e9', {"name": "é"}),
        ('{"name": "\\ud83d\\ude0', {"name": ""}),
        ('{"name": "\\ud83d\\ude00', {"name": "😀"}),
        ('{"price": 12', {}),
        ('{"price": 12,', {"price": 12}),
        ('{"price": -1.5e3}', {"price": -1500.0}),
        ('{"is": tru', {}),
        ('{"is": true, "no": null ', {"is": True, "no": None}),
        ('{"items": [', {"items": []}),
        ('{"items": ["a", {"b": [1, 2', {"items": ["a", {"b": [1]}]}),
        ('{"items": [[], {}], "x": "y"', {"items": [[], {}], "x": "y"}),
    ],
)
def test_a_prefix_gives_what_is_certain(text: str, value: JSONValue) -> None:
    assert read(text).value == value
    assert read(*text).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, b: 2}', {"a": 1}),
        ('{"a": 1 "b": 2}', {"a": 1}),
        ('{"a": 01, "b": 2}', {}),
        ('{"a": [1}, "b": 2}', {"a": [1]}),
        ('{"a": {"b": 1], "c": 2}', {"a": {"b": 1}}),
        ('{"a": "x\ny", "c": 2}', {"a": "x"}),
        ('{"a": "x\\q", "c": 2}', {"a": "x"}),
        ('{"a": "\\uzzzz", "c": 2}', {"a": ""}),
        ('{"a": "\\ud83d..", "c": 2}', {"a": ""}),
        ("{1: 2}", {}),
        ('{"a": 1} {"b": 2}', {"a": 1}),
        ('{"a": 1}, "b"', {"a": 1}),
    ],
)
def test_nothing_is_read_behind_a_mistake_or_the_end(
    text: str, value: JSONValue
) -> None:
    assert read(*text).value == value


@given(st.dictionaries(st.text(), json_values(), max_size=5), st.data())
def test_an_object_in_any_pieces_is_the_object(
    value: dict[str, JSONValue], data: st.DataObject
) -> None:
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    partial = read(*pieces)

    assert partial.value == json.loads(text)
    assert partial.is_complete


@given(st.text(st.sampled_from('{}[]",:\\u0123456789deabc -+.tfn \n'), max_size=60))
def test_any_text_is_read_alike_in_any_pieces(text: str) -> None:
    assert read(*text).value == read(text).value


@given(st.dictionaries(st.text(), json_values(), max_size=4), st.data())
def test_what_is_certain_stays(
    value: dict[str, JSONValue], data: st.DataObject
) -> None:
    text = json.dumps(value)
    end = data.draw(st.integers(0, len(text)))

    assert _begins(read(text[:end]).value, value)


def _begins(part: JSONValue, whole: JSONValue) -> bool:
    """Whether one value may become another one by reading on."""
    match part, whole:
        case None, _:
            return True
        case dict(), dict():
            return all(
                key in whole and _begins(item, whole[key]) for key, item in part.items()
            )
        case list(), list():
            return len(part) <= len(whole) and all(map(_begins, part, whole))
        case str(), str():
            return whole.startswith(part)
        case _:
            return part == whole
