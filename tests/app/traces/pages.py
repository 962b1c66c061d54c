"""What stands in a page, read as a browser would."""

from __future__ import annotations

import json
from html.parser import HTMLParser

__all__ = ["ReadPage"]


class ReadPage(HTMLParser):
    """A page's elements with their attributes, and the text of its scripts, styles and the rest."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.styles: list[str] = []
        self.texts: list[str] = []
        self._inside: list[str] = []
        self.feed(html)
        self.close()

    @property
    def data(self) -> dict[str, list[list[object]]]:
        """The data that the script shows."""
        data: dict[str, list[list[object]]] = json.loads(self.scripts["data"])
        return data

    def text(self, row: object, section: object) -> object:
        """Return the text of a row's section, by their numbers."""
        assert isinstance(row, int)
        assert isinstance(section, int)
        sections = self.data["rows"][row][10]
        assert isinstance(sections, list)
        return sections[section][1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style", "title"):
            self._inside.append(dict(attrs).get("id") or tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "title"):
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        match self._inside[-1:]:
            case ["style"]:
                self.styles.append(data)
            case ["script" | "data" as name]:
                self.scripts[name] = self.scripts.get(name, "") + data
            case _:
                self.texts.append(data)
