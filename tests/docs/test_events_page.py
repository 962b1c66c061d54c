"""The page of events lists exactly the events that there are, with their keys."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import amplifier_sdk.events
from amplifier_sdk.events import ALL_EVENTS, EventFields

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs" / "reference" / "events.md").read_text("utf-8")
SOURCE: Final = ast.parse(Path(amplifier_sdk.events.__file__).read_text("utf-8"))
ROW: Final = re.compile(
    r"\| `(?P<event>[a-z_]+:[a-z_]+)` \| `(?P<constant>\w+)` \| `(?P<payload>\w+)` \| (?P<keys>.*?) \|"
)
KEY: Final = re.compile(r"`(\w+)`(\??)")


def _declared() -> Iterator[tuple[str, str, str, dict[str, bool]]]:
    """Yield each event with its constant, its payload's class and which of its keys may be absent."""
    classes = {
        node.name: node for node in SOURCE.body if isinstance(node, ast.ClassDef)
    }
    for node in SOURCE.body:
        match node:
            case ast.AnnAssign(
                target=ast.Name(id=constant),
                value=ast.Call(
                    func=ast.Subscript(
                        value=ast.Name(id="Event"), slice=ast.Name(id=payload)
                    ),
                    args=[ast.Constant(value=str(event))],
                ),
            ):
                yield event, constant, payload, _keys(classes[payload])
            case _:
                pass


def _keys(payload: ast.ClassDef) -> dict[str, bool]:
    return {
        field.target.id: ast.unparse(field.annotation).startswith("NotRequired")
        for field in payload.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }


def _listed() -> Iterator[tuple[str, str, str, dict[str, bool]]]:
    for row in ROW.finditer(PAGE):
        keys = {key: optional == "?" for key, optional in KEY.findall(row["keys"])}
        yield row["event"], row["constant"], row["payload"], keys


def test_the_page_lists_every_event_once_with_its_keys() -> None:
    declared, listed = list(_declared()), list(_listed())

    assert sorted(event for event, *_ in declared) == sorted(ALL_EVENTS)
    assert sorted(listed, key=lambda row: row[0]) == sorted(
        declared, key=lambda row: row[0]
    )


def test_the_page_lists_what_every_event_carries() -> None:
    section = PAGE.split("## What every event carries")[1].split("\n## ")[0]

    assert set(re.findall(r"^\| `(\w+)` ", section, re.MULTILINE)) == set(
        EventFields.__annotations__
    )
