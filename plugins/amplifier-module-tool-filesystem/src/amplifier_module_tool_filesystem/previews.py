"""What a person reads of a change before it is made: a diff, or what is moved or deleted."""

from __future__ import annotations

from collections.abc import Sequence

from amplifier_kit.files.text import UndecodableTextError
from amplifier_module_tool_filesystem.config import FilesystemConfig
from amplifier_module_tool_filesystem.edit import Edit, planned_edit
from amplifier_module_tool_filesystem.move import planned_deletion, planned_move
from amplifier_module_tool_filesystem.walk import Budget
from amplifier_module_tool_filesystem.workspace import Workspace
from amplifier_module_tool_filesystem.write import planned_write

__all__ = ["preview_deletion", "preview_edit", "preview_move", "preview_write"]


def preview_edit(
    workspace: Workspace,
    config: FilesystemConfig,
    file_path: str,
    edits: Sequence[Edit],
) -> str:
    """Return the diff of an edit.

    Raises:
        ToolError: it must fail.
    """
    with planned_edit(workspace, config, file_path, edits) as planned:
        return f"Changes {workspace.shown(planned.resolved.path)}:\n{planned.diff}"


def preview_write(
    workspace: Workspace, config: FilesystemConfig, file_path: str, content: str
) -> str:
    """Return the diff of a file that is written over, or the lines of a new one.

    Raises:
        ToolError: it must fail.
    """
    with planned_write(workspace, config, file_path, content) as planned:
        shown = workspace.shown(planned.resolved.path)
        verb = "Writes over"
        if planned.expected is None:
            verb = "Creates"
        try:
            return f"{verb} {shown}:\n{planned.difference(content, config)}"
        except UndecodableTextError:
            return f"Writes over {shown}, which is no text"


def preview_move(workspace: Workspace, source: str, destination: str) -> str:
    """Return what is moved where.

    Raises:
        ToolError: it must fail.
    """
    with planned_move(workspace, source, destination) as (old, new):
        return f"Moves the {old.kind} {workspace.shown(old.path)} to {workspace.shown(new.path)}"


def preview_deletion(
    workspace: Workspace, path: str, budget: Budget, *, recursive: bool
) -> str:
    """Return what is deleted, with how much is in it.

    Raises:
        ToolError: it must fail.
    """
    with planned_deletion(workspace, path, budget, recursive=recursive) as (
        resolved,
        deleted,
    ):
        shown = workspace.shown(resolved.path)
        if deleted.missing is not None:
            return f"Nothing is at {shown}"
        inside = ""
        if deleted.entries:
            inside = f" with {deleted.entries} entries in it"
        return f"Deletes the {deleted.kind} {shown}{inside}, for good"
