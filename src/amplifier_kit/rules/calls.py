"""A tool call as rules see it, and where its paths, commands and addresses stand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from amplifier_sdk.effects import Effect
from amplifier_sdk.jsontypes import JSONValue

if TYPE_CHECKING:
    from amplifier_kit.shell.file_access import FileAccess

__all__ = ["COMMAND_KEYS", "URL_KEYS", "RuledCall", "has_shell_grammar"]

COMMAND_KEYS: Final = (
    "command",
    "commands",
    "cmd",
    "command_line",
    "script",
    "shell_command",
)
"""The arguments that hold shell texts, at any depth, in any spelling."""

URL_KEYS: Final = ("url", "urls", "uri", "uris", "href", "link", "endpoint", "base_url")
"""The arguments that hold web addresses, likewise."""


@attrs.frozen(kw_only=True)
class RuledCall:
    """One tool call.

    Args:
        tool_name: the tool.
        arguments: as they will run.
        directory: the absolute folder where relative paths start.
        effects: what the tool says that it does; `None` where it says nothing, and anything is possible.
        shell_directory: where its shell texts run, where that is not `directory`.
    """

    tool_name: str
    arguments: Mapping[str, JSONValue]
    directory: Path
    effects: frozenset[Effect] | None = None
    shell_directory: Path | None = None

    @property
    def canonical(self) -> str:
        """The call in the one text that stands for it: the tool and its arguments, keys sorted.

        Raises:
            ValueError: the arguments are no JSON data.
        """
        try:
            return json.dumps(
                [self.tool_name, self.arguments],
                sort_keys=True,
                ensure_ascii=True,
                allow_nan=False,
            )
        except (TypeError, RecursionError) as error:
            raise ValueError(
                f"the arguments of {self.tool_name!r} are no JSON data: {error}"
            ) from error

    @cached_property
    def file_accesses(self) -> tuple[FileAccess | None, ...]:
        """The files that its shell texts may use; `None` stands for a text that cannot be read."""
        return tuple(
            access
            for text in self.values_of(COMMAND_KEYS)
            for access in self._accesses(text)
        )

    def _accesses(self, text: JSONValue) -> tuple[FileAccess | None, ...]:
        if not isinstance(text, str) or not has_shell_grammar():
            return (None,)
        # few sessions have rules on paths, and run commands
        from amplifier_kit.shell.file_access import file_accesses

        return file_accesses(text, str(self.shell_directory or self.directory))

    def values_of(self, keys: tuple[str, ...]) -> Iterator[JSONValue]:
        """Yield what stands under keys of these names, at any depth; the items of a list one by one."""
        yield from _found(self.arguments, keys, 0)


_MAX_DEPTH: Final = 40


def has_shell_grammar() -> bool:
    """Whether shell texts can be read."""
    return all(
        find_spec(name) is not None for name in ("tree_sitter", "tree_sitter_bash")
    )


def _key(name: object) -> str:
    """Return an argument's name as the lists have it: `base_url` for `baseUrl`, `Base-URL` and the like."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", str(name)).casefold()


def _found(value: JSONValue, keys: tuple[str, ...], depth: int) -> Iterator[JSONValue]:
    if depth > _MAX_DEPTH:
        yield None  # what stands deeper is not checked, and is no text that could fit
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if _key(key) in keys:
                yield from item if isinstance(item, (list, tuple)) else (item,)
            # also below one, as in `files: [{path: …}]`
            yield from _found(item, keys, depth + 1)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _found(item, keys, depth + 1)
