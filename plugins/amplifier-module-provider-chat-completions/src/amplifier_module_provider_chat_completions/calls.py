"""Tool calls as they form, out of the pieces that servers send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import uuid4

import attrs

from amplifier_module_provider_chat_completions.pieces import function_of, text_of
from amplifier_sdk.arguments import read_arguments
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.streaming import ToolCallDelta

__all__ = ["CallDraft", "CallDrafts"]


@attrs.define(eq=False)
class CallDraft:
    """One call: the vendor's id for it, ours, its name and its arguments so far."""

    index: int
    given_id: str
    id: str
    name: str = ""
    arguments: str = ""
    _waiting: str = ""
    _is_announced: bool = False

    def grow(self, name: str, arguments: str) -> Iterator[ToolCallDelta]:
        """Add a piece. Nothing streams before the arguments begin: until then the name may grow."""
        if name and name != self.name and not self.arguments:
            self.name += name
        self.arguments += arguments
        self._waiting += arguments
        if arguments:
            yield from self.announce()

    def announce(self) -> Iterator[ToolCallDelta]:
        """Stream what was not streamed yet; a call without arguments streams once as well."""
        if self._waiting or not self._is_announced:
            yield ToolCallDelta(id=self.id, name=self.name, arguments=self._waiting, index=self.index)
        self._waiting, self._is_announced = "", True

    def finish(self) -> ToolCall:
        """Return the whole call; arguments that cannot be read are its `problem`."""
        read = read_arguments(self.arguments)
        return ToolCall(
            id=self.id, name=self.name, arguments=read.values, raw_arguments=self.arguments, problem=read.problem
        )


@attrs.define(eq=False)
class CallDrafts:
    """An answer's calls. Servers number the pieces, or name the call in each, or do neither and go one by one."""

    drafts: list[CallDraft] = attrs.field(factory=list)
    _by_number: dict[int, CallDraft] = attrs.field(factory=dict)

    def find(self, piece: Mapping[str, JSONValue], next_index: int) -> CallDraft:
        """Return the call that a piece belongs to, a new one with the given index if it begins one."""
        number, id, name = piece.get("index"), text_of(piece, "id"), text_of(function_of(piece), "name")
        known = self._by_number.get(number) if isinstance(number, int) else self._unnumbered(id, name)
        if known is None or (id and known.given_id and id != known.given_id):
            known = self._begin(id, next_index)
        if isinstance(number, int):
            self._by_number[number] = known
        return known

    def _unnumbered(self, id: str, name: str) -> CallDraft | None:
        """Return the call of a piece without a number: that of its id, else the last unless a name begins another."""
        if id:
            return next((draft for draft in self.drafts if draft.given_id == id), None)
        return None if name or not self.drafts else self.drafts[-1]

    def _begin(self, id: str, index: int) -> CallDraft:
        is_new = bool(id) and all(draft.id != id for draft in self.drafts)
        draft = CallDraft(index=index, given_id=id, id=id if is_new else f"call_{uuid4().hex}")
        self.drafts.append(draft)
        return draft
