"""Tool calls as they form, out of the pieces that servers send: what stands in a piece, and what they add up to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from uuid import uuid4

import attrs

from amplifier_kit.open_data import as_object, as_text
from amplifier_kit.vendors import storable
from amplifier_sdk.arguments import read_arguments
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.streaming import ToolCallDelta

__all__ = ["CallDraft", "CallDrafts", "arguments_of", "function_of", "text_of"]


@attrs.define(eq=False)
class CallDraft:
    """One call: the vendor's id for it, ours, its name and its arguments so far."""

    index: int
    given_id: str
    id: str
    name: str = ""
    _arguments: list[str] = attrs.field(factory=list, init=False)
    _streamed: int = attrs.field(default=0, init=False)
    _is_announced: bool = attrs.field(default=False, init=False)

    def grow(self, name: str, arguments: str) -> Iterator[ToolCallDelta]:
        """Add a piece. Nothing streams before there are a name and arguments: until then the name may grow."""
        # some servers stream the name in pieces, others repeat it in each
        if name and name != self.name and not (self.name and self._arguments):
            self.name += name
        if arguments:
            # Joined at the end: adding to a text piece by piece would be quadratic.
            self._arguments.append(arguments)
            yield from self.announce()

    def announce(self) -> Iterator[ToolCallDelta]:
        """Stream what was not streamed yet; a call without arguments streams once as well, one without a name never."""
        waiting = storable("".join(self._arguments[self._streamed :]))
        if self.name and (waiting or not self._is_announced):
            self._streamed, self._is_announced = len(self._arguments), True
            yield ToolCallDelta(
                id=self.id, name=self.name, arguments=waiting, index=self.index
            )

    def finish(self) -> ToolCall:
        """Return the whole call; arguments that cannot be read are its `problem`."""
        raw = "".join(self._arguments)
        read = read_arguments(raw)
        return ToolCall(
            id=self.id,
            name=self.name,
            arguments=read.values,
            raw_arguments=storable(raw),
            problem=read.problem,
        )


@attrs.define(eq=False)
class CallDrafts:
    """An answer's calls. Servers number the pieces, or name the call in each, or do neither and go one by one.

    Some give every call the same number and an id of its own.
    """

    drafts: list[CallDraft] = attrs.field(factory=list)
    _by_number: dict[int, CallDraft] = attrs.field(factory=dict)
    _by_id: dict[str, CallDraft] = attrs.field(factory=dict)
    _by_both: dict[tuple[int, str], CallDraft] = attrs.field(factory=dict)

    def find(self, piece: Mapping[str, JSONValue], next_index: int) -> CallDraft:
        """Return the call that a piece belongs to, a new one with the given index if it begins one."""
        number = piece.get("index")
        id = storable(text_of(piece, "id"))
        name = text_of(function_of(piece), "name")
        if isinstance(number, int):
            known = self._numbered(number, id)
        else:
            known = self._unnumbered(id, name)
        known = known or self._begin(id, next_index)
        # Some servers send the id with a later piece.
        known.given_id = known.given_id or id
        # the first call of an id keeps it
        self._by_id.setdefault(known.given_id, known)
        if isinstance(number, int):
            self._by_number[number] = self._by_both[number, known.given_id] = known
        return known

    def _numbered(self, number: int, id: str) -> CallDraft | None:
        last = self._by_number.get(number)
        if last is None or not id or not last.given_id:
            return last
        # the same number with another id is another call
        return self._by_both.get((number, id))

    def _unnumbered(self, id: str, name: str) -> CallDraft | None:
        """Return the call of a piece without a number: that of its id, else the last unless a name begins another."""
        if id:
            return self._by_id.get(id)
        if name or not self.drafts:
            return None
        return self.drafts[-1]

    def _begin(self, id: str, index: int) -> CallDraft:
        # an id that names two calls could not tell their results apart
        is_new = bool(id) and id not in self._by_id
        draft = CallDraft(
            index=index, given_id=id, id=id if is_new else f"call_{uuid4().hex}"
        )
        self.drafts.append(draft)
        return draft


def function_of(piece: Mapping[str, JSONValue]) -> Mapping[str, JSONValue]:
    """Return the function of a piece of a call; empty if it has none."""
    return as_object(piece.get("function"))


def arguments_of(piece: Mapping[str, JSONValue]) -> str:
    """Return the arguments of a piece as text; some servers send the object itself."""
    value = function_of(piece).get("arguments")
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return ""


def text_of(values: Mapping[str, JSONValue], key: str) -> str:
    """Return a text out of an object; empty if there is none."""
    return as_text(values.get(key))
