"""The output items of a response as they form."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeAlias

import attrs

from amplifier_kit.vendors.responses._fields import mappings, text
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["Drafts", "Item", "OutputItemDraft", "Part", "parts_of"]

Item: TypeAlias = Mapping[str, JSONValue]
"""An output item as the API writes it."""

Part: TypeAlias = tuple[str, int]
"""A part of an item: the list it stands in, and its place there."""


@attrs.define(eq=False)
class OutputItemDraft:
    """One item as it forms.

    Args:
        kind: its type; empty when nobody said it yet.
        place: the how-manieth item it is, from 0.
        call_id: the id of a call.
        name: the name of the tool that a call is for; empty when nobody said it yet.
        whole: the item, when it is finished.
        parts: the pieces that have come of each part: of what was said, thought, or the arguments of a call.
        indexes: the content block that each part belongs to.
    """

    kind: str
    place: int
    call_id: str = ""
    name: str = ""
    whole: Item | None = None
    parts: dict[Part, list[str]] = attrs.field(factory=dict)
    indexes: dict[Part, int] = attrs.field(factory=dict)


@attrs.define(eq=False)
class Drafts:
    """The items of one response, in the order in which they began."""

    _known: dict[int | str, OutputItemDraft] = attrs.field(factory=dict, init=False)
    _order: list[OutputItemDraft] = attrs.field(factory=list, init=False)

    def __iter__(self) -> Iterator[OutputItemDraft]:
        return iter(self._order)

    def of_event(self, data: Mapping[str, JSONValue], item: Item) -> OutputItemDraft:
        """Return the item that an event belongs to: it names it, numbers it, or both.

        Args:
            data: the event.
            item: the item in it, or what is known of one.
        """
        name = text(data, "item_id") or text(item, "id")
        number = data.get("output_index")
        keys = [key for key in (name, number) if isinstance(key, (int, str))]
        draft = next(
            (self._known[key] for key in keys if key in self._known), None
        ) or self._begin(item)
        for key in keys or [draft.place]:
            self._known.setdefault(key, draft)
        return draft

    def of_items(self, items: Iterable[Item]) -> Iterator[tuple[OutputItemDraft, Item]]:
        """Yield the items of the whole response, each with what came before of it.

        That is the draft of its name, of its place, or the next of its kind; each stands for one item.
        """
        left: dict[str, deque[OutputItemDraft]] = defaultdict(deque)
        for draft in self._order:
            left[draft.kind].append(draft)
        taken: set[OutputItemDraft] = set()
        for place, item in enumerate(items):
            kind = text(item, "type") or ""
            while left[kind] and left[kind][0] in taken:
                left[kind].popleft()
            candidates = (
                self._known.get(text(item, "id") or ""),
                self._known.get(place),
                *islice(left[kind], 1),
            )
            fitting = (
                each
                for each in candidates
                if each and each.kind == kind and each not in taken
            )
            draft = next(fitting, None) or self._begin(item)
            taken.add(draft)
            yield draft, item

    def _begin(self, item: Item) -> OutputItemDraft:
        draft = OutputItemDraft(kind=text(item, "type") or "", place=len(self._order))
        self._order.append(draft)
        return draft


def parts_of(item: Item) -> Iterator[tuple[Part, str]]:
    """Yield the texts of a finished item, under the names that their pieces have."""
    match text(item, "type"):
        case "message":
            for number, part in enumerate(mappings(item, "content")):
                yield (
                    ("content", number),
                    text(part, "text") or text(part, "refusal") or "",
                )
        case "reasoning":
            for key in ("summary", "content"):
                for number, part in enumerate(mappings(item, key)):
                    yield (key, number), text(part, "text") or ""
        case "function_call":
            yield ("arguments", 0), text(item, "arguments") or ""
        case _:  # nothing that is streamed
            pass
