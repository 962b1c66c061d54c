"""Read-only views: dicts and lists in every respect but one."""

from __future__ import annotations

import json
import pickle
from collections import UserList
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.kernel.hooks.readonly import (
    ReadOnlyDict,
    ReadOnlyList,
    ReadOnlySequence,
    read_only,
    read_only_entries,
    writable,
)
from amplifier_sdk.chat import ChatResponse, ToolCall
from amplifier_sdk.content import TextBlock
from amplifier_sdk.history import MessageLog
from amplifier_sdk.results import ToolResult

DATA = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(DATA)
def test_a_view_is_what_it_shows(data: object) -> None:
    seen = read_only(data)

    assert seen == data
    assert isinstance(seen, type(data))
    assert json.dumps(seen) == json.dumps(data)
    assert repr(seen) == repr(data)
    for plain in (deepcopy(seen), writable(seen), pickle.loads(pickle.dumps(seen))):
        assert plain == data
        assert type(plain) is type(data)
    assert read_only(seen) is seen or not isinstance(seen, (dict, list))


def a_dict() -> ReadOnlyDict:
    return ReadOnlyDict({"a": {"b": [1]}, "c": [{"d": 2}], "e": 3})


def a_list() -> ReadOnlyList:
    return ReadOnlyList([{"b": [1]}, [2], 3])


DICT_CHANGES: list[Callable[[ReadOnlyDict], object]] = [
    lambda view: view.__setitem__("a", 1),
    lambda view: view.__delitem__("a"),
    lambda view: view.__ior__({"a": 1}),
    lambda view: view.clear(),
    lambda view: view.pop("a"),
    lambda view: view.popitem(),
    lambda view: view.setdefault("z", 1),
    lambda view: view.update(a=1),
]
LIST_CHANGES: list[Callable[[ReadOnlyList], object]] = [
    lambda view: view.__setitem__(0, 1),
    lambda view: view.__delitem__(0),
    lambda view: view.__iadd__([1]),
    lambda view: view.__imul__(2),
    lambda view: view.append(1),
    lambda view: view.clear(),
    lambda view: view.extend([1]),
    lambda view: view.insert(0, 1),
    lambda view: view.pop(),
    lambda view: view.remove(3),
    lambda view: view.reverse(),
    lambda view: view.sort(),
]


@pytest.mark.parametrize("change", DICT_CHANGES)
def test_a_dict_cannot_be_changed(change: Callable[[ReadOnlyDict], object]) -> None:
    view = a_dict()
    with pytest.raises(TypeError, match=r"a change is made with HookResult\.modify"):
        change(view)
    assert view == a_dict()


@pytest.mark.parametrize("change", LIST_CHANGES)
def test_a_list_cannot_be_changed(change: Callable[[ReadOnlyList], object]) -> None:
    view = a_list()
    with pytest.raises(TypeError, match=r"a change is made with HookResult\.modify"):
        change(view)
    assert view == a_list()


INSIDE_DICT: list[Callable[[ReadOnlyDict], object]] = [
    lambda view: view["a"],
    lambda view: view.get("c"),
    lambda view: next(iter(view.values())),
    lambda view: next(iter(view.items()))[1],
    lambda view: dict(view)["a"],
    lambda view: {**view}["a"],
    lambda view: view.copy()["a"],
    lambda view: copy(view)["a"],
    lambda view: (view | {"z": 1})["a"],
]
INSIDE_LIST: list[Callable[[ReadOnlyList], object]] = [
    lambda view: view[0],
    lambda view: [*view[:1]].pop(),  # type: ignore[misc]  # a slice gives a list
    lambda view: next(iter(view)),
    lambda view: [*reversed(view)][-1],
    lambda view: view.copy()[0],
    lambda view: copy(view)[0],
    lambda view: view.__add__([1])[0],
]


@pytest.mark.parametrize("look", INSIDE_DICT)
def test_what_a_dict_holds_is_seen_through_views(
    look: Callable[[ReadOnlyDict], object],
) -> None:
    assert isinstance(look(a_dict()), (ReadOnlyDict, ReadOnlyList))


@pytest.mark.parametrize("look", INSIDE_LIST)
def test_what_a_list_holds_is_seen_through_views(
    look: Callable[[ReadOnlyList], object],
) -> None:
    assert isinstance(look(a_list()), ReadOnlyDict)


def test_a_missing_key_has_its_default() -> None:
    default: list[object] = []

    assert a_dict().get("z") is None
    assert a_dict().get("z", default) == []


def test_a_sequence_of_another_kind_is_not_copied() -> None:
    held: UserList[object] = UserList([{"content": [{"text": "hello"}]}])
    view: Sequence[object] = read_only(held)

    assert isinstance(view, ReadOnlySequence)
    assert read_only(view) is view
    assert (len(view), [*view], view[0:1]) == (1, [view[0]], [view[0]])
    assert view == held == writable(view)
    assert view == read_only(held)
    assert repr(view) == repr(held)
    message = view[0]
    assert isinstance(message, dict)
    with pytest.raises(TypeError):
        message["content"][0]["text"] = "changed"
    with pytest.raises(TypeError):
        hash(view)


def test_view_of_context_shown_as_list_that_cannot_be_changed() -> None:
    log = MessageLog([{"role": "user", "content": [{"type": "text", "text": "hello"}]}])
    shown: object = log.view()
    view = read_only(shown)

    assert view == shown == writable(view)
    assert isinstance(view, ReadOnlyList)
    assert read_only(view) is view
    assert json.dumps(view) == json.dumps(log.view())
    with pytest.raises(TypeError):
        view.append({"role": "user"})
    with pytest.raises(TypeError):
        view.__getitem__(0).clear()  # type: ignore[attr-defined]  # a message


def test_a_frozen_value_is_seen_with_views_of_what_it_holds() -> None:
    output = {"v": [1]}
    result = ToolResult(output=output, content=[TextBlock(text="a")])
    seen = read_only(result)

    assert seen == result
    assert type(seen.output) is ReadOnlyDict
    assert type(writable(seen).output) is dict  # type: ignore[attr-defined]  # a result, as what it was given
    assert read_only(ToolResult(output="text")).output == "text"
    calls = (ToolCall(id="a", name="b", arguments={"c": 1}),)
    (call,) = read_only(ChatResponse(tool_calls=calls)).tool_calls or ()
    assert type(call.arguments) is ReadOnlyDict


def test_what_needs_no_view_is_told_as_it_is() -> None:
    plain = ToolResult(output="text", content=[TextBlock(text="a")])
    proxy, thing, pair = MappingProxyType({"a": 1}), object(), ("a", 1)

    for value in (plain, proxy, thing, pair, "text", b"bytes", None):
        assert read_only(value) is value
    assert writable(proxy) is proxy
    assert writable(({"a": 1},)) == ({"a": 1},)
    assert read_only(({"a": 1},)) == ({"a": 1},)
    assert read_only_entries({"a": 1, "b": {}, "c": []}) == {"a": 1, "b": {}, "c": []}
