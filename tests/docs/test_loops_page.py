"""The pages list exactly the events that loops send, with their keys, and the states in which a turn ends."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import amplifier_kit.selection
import amplifier_sdk.loops.events
import amplifier_sdk.loops.loop
from amplifier_sdk.events import ALL_EVENTS

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs" / "concepts" / "loops.md").read_text("utf-8")
EVENTS: Final = (ROOT / "docs" / "reference" / "events.md").read_text("utf-8")
ROW: Final = re.compile(
    r"^\| `(?P<event>[a-z_]+:[a-z_]+)` \| `(?P<constant>\w+)` \| .*? \| (?P<keys>.*?) \|$",
    re.MULTILINE,
)
FUTURE: Final = "from __future__ import annotations\n"


def _declared() -> Iterator[tuple[str, str, list[str]]]:
    modules = (amplifier_sdk.loops.events, amplifier_kit.selection)
    tree = ast.parse(
        "\n".join(
            Path(str(module.__file__)).read_text("utf-8") for module in modules
        ).replace(FUTURE, "")
    )
    keys = {
        node.name: [
            part.target.id
            for part in node.body
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
        ]
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    for node in tree.body:
        match node:
            case ast.AnnAssign(
                target=ast.Name(id=constant),
                value=ast.Call(
                    func=ast.Subscript(slice=ast.Name(id=payload)),
                    args=[ast.Constant(value=str(event))],
                ),
            ):
                yield event, constant, keys[payload]
            case _:
                pass


def test_the_page_lists_every_event_of_a_loop_with_its_keys() -> None:
    listed = [
        (row["event"], row["constant"], re.findall(r"`(\w+)`", row["keys"]))
        for row in ROW.finditer(
            EVENTS.split("\n## Events of loops\n")[1].split("\n## ")[0]
        )
    ]

    assert sorted(listed) == sorted(_declared())


def test_the_events_of_loops_are_not_among_the_canonical_ones() -> None:
    assert {event for event, _, _ in _declared()} & set(ALL_EVENTS) == set()


def test_the_page_lists_every_way_in_which_a_turn_ends() -> None:
    source = Path(amplifier_sdk.loops.loop.__file__).read_text("utf-8")
    table = PAGE.split("| status | the turn |")[1].split("\n\n")[0]
    words = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)

    assert all(f'"{word}"' in source for word in words)
    assert len(words) == 6
