"""The tools of Claude Code and ours: one call under both names, with the arguments of each."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["CALLS", "ClaudeCall", "ToolPair", "claude_calls", "to_claude", "tool_named"]

_MCP: Final = re.compile(r"mcp_(?!_)([^_].*?)_(.+)")
_PATTERN: Final = re.compile(r"([A-Za-z_][\w.-]*)(?:\(.*\))?\Z", re.DOTALL)


@attrs.frozen(kw_only=True)
class ToolPair:
    """One tool under both names.

    Args:
        ours: its name here.
        theirs: its names there; the first is the one that hooks read.
        fields: argument names here, each with its name there, where the two differ.
        paths: arguments that are paths, by their names there; there they are absolute.
        scaled: arguments that are numbers in another unit, by their names there, and what ours are multiplied by.
    """

    ours: str
    theirs: tuple[str, ...]
    fields: Mapping[str, str] = attrs.field(factory=dict)
    paths: tuple[str, ...] = ()
    scaled: Mapping[str, int] = attrs.field(factory=dict)


CALLS: Final = (
    ToolPair(ours="bash", theirs=("Bash",), scaled={"timeout": 1000}),
    ToolPair(
        ours="bash_output",
        theirs=("BashOutput", "TaskOutput"),
        fields={"job": "bash_id"},
    ),
    ToolPair(
        ours="bash_stop",
        theirs=("KillShell", "KillBash", "TaskStop"),
        fields={"job": "shell_id"},
    ),
    ToolPair(ours="read_file", theirs=("Read", "NotebookRead"), paths=("file_path",)),
    ToolPair(ours="write_file", theirs=("Write", "NotebookEdit"), paths=("file_path",)),
    ToolPair(
        ours="edit_file",
        theirs=("Edit", "MultiEdit", "NotebookEdit"),
        paths=("file_path",),
    ),
    ToolPair(ours="list_directory", theirs=("LS",), paths=("path",)),
    ToolPair(ours="glob", theirs=("Glob",), paths=("path",)),
    ToolPair(
        ours="grep",
        theirs=("Grep",),
        fields={"ignore_case": "-i", "context": "-C", "max_results": "head_limit"},
        paths=("path",),
    ),
    ToolPair(ours="web_fetch", theirs=("WebFetch",)),
    ToolPair(ours="web_search", theirs=("WebSearch",)),
    ToolPair(
        ours="task",
        theirs=("Task", "Agent"),
        fields={"instruction": "prompt", "agent": "subagent_type"},
    ),
    ToolPair(ours="todo", theirs=("TodoWrite", "TodoRead")),
    ToolPair(ours="load_skill", theirs=("Skill",)),
    ToolPair(ours="AskUserQuestion", theirs=("AskUserQuestion",)),
    ToolPair(ours="SlashCommand", theirs=("SlashCommand",)),
)
"""The tools that both have."""

_WRITTEN: Final[Mapping[str, tuple[str, ...]]] = {
    "move": ("source", "destination"),
    "delete": ("path",),
    "web_fetch": ("save_to_file",),
}
"""Tools of ours that write files besides what they have in common with theirs, and the arguments that name those."""

_PROGRAMS: Final = {"move": "mv", "delete": "rm -r"}
"""The programs that do there what these tools do here."""

_OURS: Final = {pair.ours: pair for pair in CALLS}
_THEIRS: Final = {name: pair.ours for pair in CALLS for name in pair.theirs}


@attrs.frozen(kw_only=True)
class ClaudeCall:
    """One call as hooks of Claude Code read it.

    Args:
        name: the tool's name there; ours where it has none.
        names: every name that a matcher may use for it.
        arguments: the arguments under their names there.
    """

    name: str
    names: tuple[str, ...]
    arguments: JSONObject
    _given: Mapping[str, JSONValue]
    _pair: ToolPair | None

    def with_changes(self, changes: Mapping[str, JSONValue]) -> JSONObject:
        """Return our arguments with those of Claude Code's that were changed or added; the others stay as they were."""
        # from ours, so that what their form cannot express is not lost on the way
        # back
        changed: JSONObject = dict(self._given)
        if self._pair is None:
            back = {}
        else:
            back = {theirs: ours for ours, theirs in self._pair.fields.items()}
        scaled = {} if self._pair is None else self._pair.scaled
        for name, value in changes.items():
            # what a hook did not change must not be rounded or made absolute
            if name in self.arguments and self.arguments[name] == value:
                continue
            changed[back.get(name, name)] = _scaled(
                value, scaled.get(name), lambda number, by: number / by
            )
        return changed


def to_claude(
    name: str, arguments: Mapping[str, JSONValue], directory: str
) -> ClaudeCall:
    """Write one of our calls as Claude Code's hooks know it.

    Args:
        name: the tool's name here.
        arguments: what it is called with.
        directory: where relative paths start.
    """
    pair = _OURS.get(name)
    if pair is None:
        server = _MCP.fullmatch(name)
        theirs = name
        if server:
            theirs = f"mcp__{server[1]}__{server[2]}"
        return ClaudeCall(
            name=theirs,
            names=tuple(dict.fromkeys((theirs, name))),
            arguments=dict(arguments),
            given=arguments,
            pair=None,
        )
    shown: JSONObject = {}
    for field, value in arguments.items():
        theirs = pair.fields.get(field, field)
        is_path = theirs in pair.paths and isinstance(value, str)
        whole = (
            os.path.join(directory, os.path.expanduser(str(value)))
            if is_path
            else value
        )
        shown[theirs] = _scaled(
            whole, pair.scaled.get(theirs), lambda number, by: round(number * by)
        )
    # there several edits at once are a tool of their own
    if pair.ours == "edit_file" and arguments.get("edits"):
        first = "MultiEdit"
    else:
        first = pair.theirs[0]
    names = tuple(dict.fromkeys((first, *pair.theirs, name)))
    return ClaudeCall(
        name=first, names=names, arguments=shown, given=arguments, pair=pair
    )


def claude_calls(
    name: str, arguments: Mapping[str, JSONValue], directory: str
) -> tuple[ClaudeCall, ...]:
    """Write one of our calls as the calls that hooks of Claude Code would read, if its agent did the same.

    There nobody has tools that move and delete: a shell command does it, or a file is written. What guards one or the
    other is asked about both. The first is the call itself, and the only one whose changes can be brought back.

    Args:
        name: the tool's name here.
        arguments: what it is called with.
        directory: where relative paths start.
    """
    call = to_claude(name, arguments, directory)
    written = [
        value
        for key in _WRITTEN.get(name, ())
        if (value := arguments.get(key)) is not None
    ]
    edits = (*_OURS["write_file"].theirs, *_OURS["edit_file"].theirs)
    calls = [
        attrs.evolve(
            to_claude("write_file", {"file_path": value}, directory),
            names=tuple(dict.fromkeys(edits)),
        )
        for value in written
    ]
    program = _PROGRAMS.get(name)
    if program is not None:
        command = f"{program} -- {shlex.join(map(str, written))}"
        # the shell command comes first: guards of `Bash` are the stricter ones
        calls.insert(0, to_claude("bash", {"command": command}, directory))
    return (call, *calls)


def tool_named(pattern: str) -> str:
    """Return our name of the tool that an entry of `tools` or `allowed-tools` names, such as `Bash(git:*)`."""
    name = pattern.strip()
    if found := _PATTERN.match(name):
        name = found[1]
    return _THEIRS.get(name, name)


def _scaled(
    value: JSONValue, by: int | None, change: Callable[[float, int], float]
) -> JSONValue:
    if by is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return change(value, by)
