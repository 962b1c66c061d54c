"""The files of a project that the commands of its hooks name: what is in them runs when the hooks do."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Final

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["scripts_of"]

_WORD: Final = re.compile(r"[\w./@+-]+")
_FOLDER: Final = re.compile(r"\"?\$\{?CLAUDE_PROJECT_DIR\}?\"?/")


def scripts_of(contents: Mapping[str, bytes], folder: str) -> list[str]:
    """Return the files below a project's folder, besides these, that the commands of hooks among these name; blocks.

    Args:
        contents: files by their names below the folder; hooks stand in those that end in `.json`.
        folder: the project's folder, links resolved.
    """
    found = set()
    for name, content in contents.items():
        if not name.endswith(".json"):
            continue
        try:
            document: JSONValue = json.loads(content)
        except (ValueError, RecursionError):
            continue  # it is told where hooks are read
        for text in _commands(document):
            for word in _WORD.findall(_FOLDER.sub("./", text)):
                path = os.path.normpath(os.path.join(folder, word))
                if path.startswith(f"{folder.rstrip('/')}/") and os.path.isfile(path):
                    found.add(os.path.relpath(path, folder))
    return sorted(found - contents.keys())


def _commands(document: JSONValue) -> Iterator[str]:
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            text = value.get("command")
            if isinstance(text, str):
                yield text
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
