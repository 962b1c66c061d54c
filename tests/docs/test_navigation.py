"""The site's navigation and the pages that exist are the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]


def _pages(entry: object) -> Iterator[str]:
    match entry:
        case str():
            yield entry
        case list():
            for item in entry:
                yield from _pages(item)
        case dict():
            for item in entry.values():
                yield from _pages(item)
        case _:
            raise TypeError(f"mkdocs.yml: nav holds {entry!r}")


def test_the_navigation_lists_every_page_once() -> None:
    listed = list(
        _pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"])
    )
    existing = [
        path.relative_to(ROOT / "docs").as_posix()
        for path in (ROOT / "docs").rglob("*.md")
    ]

    assert sorted(listed) == sorted(existing)
