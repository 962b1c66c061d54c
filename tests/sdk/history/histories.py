"""Random histories in every spelling, and what vendors ask of one, told without the product's own reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hypothesis import strategies as st

from amplifier_sdk import JSONValue, MessageDict

__all__ = ["answered", "called", "complaints", "histories", "said"]

IDS = st.sampled_from(["a", "b", "c", "a-2", ""])
NAMES = st.sampled_from(["find", "write"])
TEXTS = st.sampled_from(["", " ", "hello", "a word"])


def items(value: JSONValue) -> Sequence[JSONValue]:
    return value if isinstance(value, (list, tuple)) else ()


def called(message: MessageDict) -> list[str]:
    """Return the ids of the calls that a message makes: its blocks', then those that stand only beside its content."""
    if message.get("role") != "assistant":
        return []
    found = [
        str(block["id"])
        for block in items(message.get("content"))
        if isinstance(block, Mapping) and block["type"] == "tool_call"
    ]
    beside = [
        str(entry.get("id") or "")
        for entry in items(message.get("tool_calls"))
        if isinstance(entry, Mapping)
    ]
    return found + [
        call for call in beside if call not in found and (call or not found)
    ]


def answered(message: MessageDict) -> list[str]:
    """Return the ids of the calls that a message answers; its blocks name them, else the message."""
    content = items(message.get("content"))
    named = [
        str(b["tool_call_id"])
        for b in content
        if isinstance(b, Mapping) and b["type"] == "tool_result"
    ]
    if message.get("role") not in ("tool", "function"):
        return named
    return named or [str(message.get("tool_call_id") or "")]


def said(messages: Sequence[MessageDict]) -> list[str]:
    """Return what persons and instructions say, text by text."""
    return [
        text
        for message in messages
        if message.get("role") in ("user", "system", "developer")
        for text in _texts(message.get("content"))
        if text.strip()
    ]


def _texts(content: JSONValue) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for block in items(content):
        if isinstance(block, Mapping) and isinstance(block.get("text"), str):
            yield str(block["text"])


def complaints(messages: Sequence[MessageDict]) -> list[str]:
    """Return what a vendor would refuse: each call has an id of its own and one result, directly after, in order."""
    found: list[str] = []
    due: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        is_result = message["role"] in ("tool", "function")
        wrong = (
            _wrong_result(message, due)
            if is_result
            else _wrong_step(message, due, seen)
        )
        found += [f"message {index}: {text}" for text in wrong]
    return found + [f"results of {due} are missing at the end"] * bool(due)


def _wrong_result(message: MessageDict, due: list[str]) -> Iterator[str]:
    given, own = answered(message), message.get("tool_call_id")
    if own and len(given) == 1 and own != given[0]:
        yield f"it names {own} and {given[0]}"
    if due[: len(given)] != given:
        yield f"results of {given} are not due"
    del due[: len(given)]


def _wrong_step(message: MessageDict, due: list[str], seen: set[str]) -> Iterator[str]:
    if due:
        yield f"results of {due} are due before it"
    if answered(message):
        yield f"a result in the role {message['role']}"
    due[:] = called(message)
    if "" in due or len(set(due)) < len(due) or not seen.isdisjoint(due):
        yield f"ids of {due} are not all their own"
    seen.update(due)
    if (
        message["role"] == "assistant"
        and not due
        and not any(t.strip() for t in _texts(message["content"]))
    ):
        yield "an answer without content"


def call_blocks() -> st.SearchStrategy[dict[str, JSONValue]]:
    return st.builds(
        lambda id, name: {"type": "tool_call", "id": id, "name": name, "input": {}},
        IDS,
        NAMES,
    )


def result_blocks() -> st.SearchStrategy[dict[str, JSONValue]]:
    return st.builds(
        lambda id, output: {
            "type": "tool_result",
            "tool_call_id": id,
            "output": output,
        },
        IDS,
        st.integers(0, 9),
    )


def text_blocks() -> st.SearchStrategy[dict[str, JSONValue]]:
    return st.builds(lambda text: {"type": "text", "text": text}, TEXTS)


def calls_beside() -> st.SearchStrategy[dict[str, JSONValue]]:
    flat = st.builds(
        lambda id, name: {"id": id, "tool": name, "arguments": {}}, IDS, NAMES
    )
    nested = st.builds(
        lambda id, name: {"id": id, "function": {"name": name, "arguments": "{}"}},
        IDS,
        NAMES,
    )
    return flat | nested


def persons() -> st.SearchStrategy[MessageDict]:
    content = TEXTS | st.lists(text_blocks() | result_blocks(), max_size=3)
    roles = st.sampled_from(["user", "user", "system", "developer"])
    return st.builds(
        lambda role, content: {"role": role, "content": content}, roles, content
    )


def assistants() -> st.SearchStrategy[MessageDict]:
    blocks = st.lists(
        text_blocks() | call_blocks() | call_blocks() | result_blocks(), max_size=4
    )
    in_blocks: st.SearchStrategy[MessageDict] = st.builds(
        lambda content: {"role": "assistant", "content": content}, blocks
    )
    beside: st.SearchStrategy[MessageDict] = st.builds(
        lambda content, calls: {
            "role": "assistant",
            "content": content,
            "tool_calls": calls,
        },
        st.none() | TEXTS | blocks,
        st.lists(calls_beside(), max_size=3),
    )
    return in_blocks | beside


def results() -> st.SearchStrategy[MessageDict]:
    roles = st.sampled_from(["tool", "tool", "function"])
    content = st.sampled_from(["done", "failed"]) | st.lists(
        text_blocks() | result_blocks(), max_size=3
    )
    optional: dict[str, st.SearchStrategy[JSONValue]] = {
        "tool_call_id": IDS,
        "name": NAMES,
        "metadata": st.just({"synthesized": True}),
    }
    return st.fixed_dictionaries({"role": roles, "content": content}, optional=optional)


@st.composite
def nearly_sound(draw: st.DrawFn) -> list[MessageDict]:
    """Make a sound history and do at most two things to it that crashes and editors do."""
    messages: list[MessageDict] = []
    for number, calls in enumerate(draw(st.lists(st.integers(0, 3), max_size=4))):
        ids = [f"{number}{letter}" for letter in "abc"[:calls]]
        blocks: list[JSONValue] = [
            {"type": "tool_call", "id": id, "name": "find", "input": {}} for id in ids
        ]
        messages += [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": blocks or "done"},
        ]
        messages += [
            {"role": "tool", "tool_call_id": id, "name": "find", "content": "found"}
            for id in ids
        ]
    for change in (
        draw(st.lists(st.sampled_from(["lose", "repeat", "move"]), max_size=2))
        if messages
        else ()
    ):
        at, to = (
            draw(st.integers(0, len(messages) - 1)),
            draw(st.integers(0, len(messages) - 1)),
        )
        message = messages[at] if change == "repeat" else messages.pop(at)
        if change != "lose":
            messages.insert(to, {**message})
        if not messages:
            break
    return messages


def histories() -> st.SearchStrategy[list[MessageDict]]:
    """Make histories of all that there may be in one, in any order, and such as are sound but for a little."""
    message = (
        persons() | assistants() | assistants() | results() | results() | results()
    )
    return st.lists(message, max_size=12) | nearly_sound()
