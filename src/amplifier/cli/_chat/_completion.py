"""What a person may be typing: a command, what a command takes, a mention, a path."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from amplifier.app.commands.registry import CommandRegistry
from amplifier.app.projects.paths import ProjectPaths
from amplifier_kit.fuzzy import best_matches
from amplifier_kit.terminal import one_line, visible

__all__ = ["ChatCompleter"]

_MOST: Final = 200
_MAX_FILES: Final = 50


@attrs.define(eq=False)
class ChatCompleter(Completer):
    """Completes for one conversation; nothing is read but the names in folders.

    Args:
        registry: the commands.
        folder: where the person works; relative paths start there.
        roots: the folders of mentions with a prefix, such as `user:`, by prefix.
        choices: what a command takes, by its name.
    """

    registry: CommandRegistry
    folder: Path
    roots: Mapping[str, Path] = attrs.field(factory=dict)
    choices: Mapping[str, Callable[[], Sequence[str]]] = attrs.field(factory=dict)
    project: ProjectPaths = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.project = ProjectPaths(self.folder)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Yield what may follow; plain paths only when Tab was pressed."""
        before = document.text_before_cursor
        word = before[max(before.rfind(" "), before.rfind("\n")) + 1 :]
        if before.startswith("/") and word == before:
            yield from self._commands(word[1:])
        elif word.startswith("@"):
            yield from self._mentions(word[1:])
        elif before.startswith("/") and (
            choices := self.choices.get(
                before[1:].split()[0] if before[1:].strip() else ""
            )
        ):
            yield from (
                Completion(name, -len(word))
                for name in choices()
                if name.startswith(word)
            )
        # Every second word is the beginning of some file; only Tab asks for those.
        elif complete_event.completion_requested and word:
            yield from self._paths(word, self.folder)

    def _commands(self, begun: str) -> Iterator[Completion]:
        for name, command in self.registry.listed.items():
            if name.startswith(begun.casefold()):
                yield Completion(
                    name,
                    -len(begun),
                    display=f"/{name}",
                    display_meta=one_line(command.description, 60),
                )

    def _mentions(self, begun: str) -> Iterator[Completion]:
        prefix, colon, rest = begun.partition(":")
        if colon and f"{prefix}:" in self.roots:
            yield from self._paths(rest, self.roots[f"{prefix}:"])
            return
        for name in self.roots:
            if begun and name.startswith(begun):
                yield Completion(name, -len(begun))
        if not begun or begun.startswith((".", "/", "~")):
            yield from self._paths(begun, self.folder)
            return
        # Any characters of the path, in their order; what git ignores is left out.
        for path in best_matches(begun, self.project.list(), _MAX_FILES):
            if _is_plain(path):
                yield Completion(path, -len(begun))

    def _paths(self, begun: str, folder: Path) -> Iterator[Completion]:
        """Yield the names in a folder that go on what was begun; hidden ones when a dot was typed."""
        parent, _, start = begun.rpartition("/")
        place = os.path.join(
            folder,
            os.path.expanduser(f"{parent}/" if parent or begun.startswith("/") else ""),
        )
        try:
            with os.scandir(place) as entries:
                found = sorted(
                    (entry.name, entry.is_dir())
                    for entry in entries
                    if entry.name.startswith(start)
                    and (start or not entry.name.startswith("."))
                )
        except OSError:
            return
        for name, is_folder in found[:_MOST]:
            if _is_plain(name):
                yield Completion(f"{name}/" if is_folder else name, -len(start))


def _is_plain(name: str) -> bool:
    """Tell whether a name is read back as the one that is offered: it has no blanks and no control characters."""
    return visible(name) == name and not any(map(str.isspace, name))
